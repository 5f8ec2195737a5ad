"""What all tests of the checkout share: no deadlines, and how `pytest -n` divides them."""

from __future__ import annotations

import re
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.scheduler import Scheduling

ROOT = Path(__file__).resolve().parent
# Marks of tests that own what a machine has one of: its devices, mounts and page cache; its memory
# and cores, which an engine takes. Those of one kind never run beside each other.
_KINDS = re.compile(r"pytest\.mark\.(root|stack)\b")


def pytest_configure() -> None:
    """A busy machine is no fault of a property: none has a deadline."""
    with suppress(ImportError):  # the environment of the scenarios has no hypothesis
        from hypothesis import settings  # noqa: PLC0415 - it may be absent

        settings.register_profile("r8", deadline=None)
        settings.load_profile("r8")


@cache
def group_of(test_file: str) -> str:
    """The group whose tests one process runs: the file, or the kind its marks name first."""
    found = _KINDS.search((ROOT / test_file).read_text(encoding="utf-8"))
    return found[1] if found else test_file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling:
    """Of several processes one runs all of a file, and one all of a kind."""
    from xdist.scheduler import LoadScopeScheduling  # noqa: PLC0415 - it may be absent

    # `--dist loadgroup` of xdist 3.8 does nothing with pytest 9.2, and says nothing.
    class ByKind(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid.partition("::")[0])

    return ByKind(config, log)
