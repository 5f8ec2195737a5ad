"""The GPU probe: libraries are read with every sample, commands only where no library sees a card.

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
from .card import Page
from .source import Library, Tool, page_samples
from .sources import SOURCES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

NAME = "gpu"
# A command costs a tenth of a second of CPU and more: once a minute is below 1 % of a core.
TOOL_PERIOD_NS = 60_000_000_000


class GpuSampler:
    """Every quantity of every card. A source without cards says so once and is not asked again.

    Nothing appears later: drivers are not loaded in the middle of a run.
    """

    def __init__(
        self,
        sys_root: Path = Path("/sys"),
        sources: Sequence[Library | Tool] = SOURCES,
        *,
        run: Callable[[tuple[str, ...]], ToolRun] = run_tool,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        libraries = [source for source in sources if isinstance(source, Library)]
        self._libraries = {one.name: one.open(sys_root) for one in libraries}
        self._tools = [source for source in sources if isinstance(source, Tool)]
        self._run = run
        self._clock_ns = clock_ns
        self._tools_due_ns: int | None = None
        self._chosen: Tool | None = None

    def sample(self) -> Sequence[Batch]:
        """One batch; none when no source sees a card and each has said so."""
        watch = Stopwatch()
        samples: list[Sample] = []
        for name, read in list(self._libraries.items()):
            page = read()
            samples += page_samples(name, page)
            if not page.cards:
                del self._libraries[name]
        if not self._libraries:
            samples += self._of_tools()
        return [watch.batch(NAME, samples)] if samples else []

    def _of_tools(self) -> list[Sample]:
        """The first tool that sees a card; it alone is asked again."""
        now_ns = self._clock_ns()
        if self._tools_due_ns is not None and now_ns < self._tools_due_ns:
            return []
        self._tools_due_ns = now_ns + TOOL_PERIOD_NS
        samples: list[Sample] = []
        for tool in [self._chosen] if self._chosen else self._tools:
            said = self._run(tool.command)
            page = Page(reason=said.reason) if said.reason else tool.page(said.stdout)
            samples += page_samples(tool.name, page)
            if page.cards:
                self._chosen = tool
                break
        if self._chosen is None:
            self._tools = []
        return samples


def _start(context: Context) -> Mapping[str, Sampler]:
    return {NAME: GpuSampler(context.sys_root)}


def _check(context: Context) -> Status:
    samples = [one for batch in GpuSampler(context.sys_root).sample() for one in batch.samples]
    cards = sorted({one.device for one in samples if one.value is not None})
    if cards:
        return Status(works="yes", detail=", ".join(cards))
    return Status(works="no", detail="; ".join(f"{one.device}: {one.reason}" for one in samples))


GPU = Probe(name=NAME, start=_start, check=_check, rate_hz=1.0, thread=Thread.OWN)
