"""The GPU probe: libraries are read with every sample, tools where no library of their vendor is.

Use and power are context only: on some parts the busy percentage reads 0 under full load. Memory in
use shows whether an earlier process left something behind, not where KV came from: engines reserve
nearly all of it.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from ..probe import Context, Probe, Sampler, Status, Thread
from ..samples import Batch, Sample, Stopwatch
from ..tool import ToolRun, run_tool
from .ask import ask
from .card import Page, lost_card
from .seen import seen, vendor_of
from .source import Library, Tool, page_samples
from .sources import SOURCES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

NAME = "gpu"
# A command costs a tenth of a second of CPU and more: once a minute is below 1 % of a core.
TOOL_PERIOD_NS = 60_000_000_000
GONE = "absent: shown before, in no tool's page now"


class GpuSampler:
    """Every quantity of every card. A source without cards says so once and is not asked again.

    No driver appears in the middle of a run; a card may go, and come back.
    """

    def __init__(
        self,
        sys_root: Path = Path("/sys"),
        sources: Sequence[Library | Tool] = SOURCES,
        *,
        run: Callable[[tuple[str, ...]], ToolRun] = run_tool,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._libraries = {
            source: source.open(sys_root) for source in sources if isinstance(source, Library)
        }
        self._tools = [source for source in sources if isinstance(source, Tool)]
        self._run = run
        self._clock_ns = clock_ns
        self._tools_due_ns: int | None = None
        self._known: dict[str, tuple[str, ...]] = {}  # quantities of each card tools have shown

    def sample(self) -> Sequence[Batch]:
        """One batch; none when no source sees a card and each has said so."""
        watch = Stopwatch()
        samples: list[Sample] = []
        for library, read in list(self._libraries.items()):
            page = read()
            samples += page_samples(library.name, page)
            if not page.cards:
                del self._libraries[library]
        covered = {vendor_of(library) for library in self._libraries}
        self._tools = [tool for tool in self._tools if vendor_of(tool) not in covered]
        samples += self._of_tools()
        return [watch.batch(NAME, samples)] if samples else []

    def _of_tools(self) -> list[Sample]:
        """The cards of all tools; after the first time only those that have shown one are asked."""
        now_ns = self._clock_ns()
        if not self._tools or (self._tools_due_ns is not None and now_ns < self._tools_due_ns):
            return []
        first = self._tools_due_ns is None
        self._tools_due_ns = now_ns + TOOL_PERIOD_NS
        pages = [(tool, ask(tool, self._run).page) for tool in self._tools]
        cards = [one.card for one in seen(pages)]
        if first:
            self._tools = [tool for tool, page in pages if page.cards]
        silent = [(tool, page) for tool, page in pages if not page.cards]
        samples = [one for tool, page in silent for one in page_samples(tool.name, page)]
        shown = {card.device for card in cards}
        gone = [device for device in self._known if device not in shown] if cards else []
        cards += [lost_card(device, self._known[device], GONE) for device in gone]
        self._known |= {card.device: (*card.values, *card.reasons) for card in cards}
        return samples + (page_samples("", Page(cards=tuple(cards))) if cards else [])


def _start(context: Context) -> Mapping[str, Sampler]:
    return {NAME: GpuSampler(context.sys_root)}


def _check(context: Context) -> Status:
    samples = [one for batch in GpuSampler(context.sys_root).sample() for one in batch.samples]
    cards = sorted({one.device for one in samples if one.value is not None})
    if cards:
        return Status(works="yes", detail=", ".join(cards))
    return Status(works="no", detail="; ".join(f"{one.device}: {one.reason}" for one in samples))


GPU = Probe(name=NAME, start=_start, check=_check, rate_hz=1.0, thread=Thread.OWN)
