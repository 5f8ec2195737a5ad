"""`status`: which probes work on this host, and why the others do not."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from .cache.residency import check as check_residency
from .catalogue import PROBES
from .errors import reason_of
from .probe import Context, Status
from .record.iostat import NAME as IOSTAT_NAME
from .record.iostat import check as check_iostat

if TYPE_CHECKING:
    from collections.abc import Callable

    from .plan import Plan


def status(plan: Plan, directory: Path | None) -> dict[str, Status]:
    """Try every probe once, by name; none of them can stop the others.

    Residency is tried in `directory`, else where temporary files lie.
    """
    place = directory or Path(tempfile.gettempdir())
    checks: dict[str, Callable[[Context], Status]] = {one.name: one.check for one in PROBES}
    checks |= {IOSTAT_NAME: check_iostat, "residency": partial(check_residency, directory=place)}
    context, found = Context(plan=plan), {}
    for name, check in checks.items():
        try:
            found[name] = check(context)
        except Exception as error:  # noqa: BLE001 - what does not work here is the answer
            found[name] = Status(works="no", detail=reason_of(error))
    return found
