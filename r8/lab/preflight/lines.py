"""What dry runs of both kinds print: a command, and what a device gives by itself."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from r8.lab.campaign.calibration import fio_words
from r8.lab.instruments.readers import CEILING, SERIAL

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from r8.lab.campaign.testbed import Testbed
    from r8.lab.site.file import Plan
    from r8.lab.site.transfer import WorkPlan


def line(argv: Iterable[str], tail: str = "") -> str:
    """One command as it would be typed on this machine."""
    return f"here$ {shlex.join(argv)} {tail}".rstrip()


def calibration(testbed: Testbed, plan: Plan | WorkPlan, device: str, block: int) -> Iterator[str]:
    """What a device gives by itself, once before each block."""
    site = testbed.site
    yield ""
    if site.rehearsal is not None:
        yield f"# block {block}: the shaped device {device} is read by itself; first: turned"
        return
    words = fio_words(site, plan, device, "TOKEN")
    if words is None:
        yield f"# block {block}: device {device} is not measured by itself (fio.read_bytes = 0)"
        return
    yield f"# block {block}: what {device} gives by itself, at most {words.device.fio.longest_s} s"
    yield line(words.folder.words("make"))
    for kind in (CEILING, SERIAL):
        yield line(words.words(kind, write=True))
    for kind in (CEILING, SERIAL):
        yield line(testbed.drops[device])
        yield line(words.words(kind, write=False))
    yield line(words.folder.words("remove"))
