"""Begin and end of a run as the vendors' own tools see the cards: parsed, and the raw text kept."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..tool import ToolRun, run_tool
from .card import Page
from .sources import LIBRARIES, TOOLS

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One tool's view: what it printed, and what was understood of it."""

    source: str
    parsed: Page
    raw: ToolRun

    def row(self) -> dict[str, Any]:
        """For the record."""
        return asdict(self)


def take_snapshots(run: Callable[[tuple[str, ...]], ToolRun] = run_tool) -> list[Snapshot]:
    """Ask every tool once; one that is missing, hangs or prints no card gives a reason."""
    found = []
    for tool in TOOLS:
        said = run(tool.command)
        page = Page(reason=said.reason) if said.reason else tool.page(said.stdout)
        found.append(Snapshot(source=tool.name, parsed=page, raw=said))
    return found


def memory_in_use(
    snapshots: list[Snapshot], sys_root: Path = Path("/sys")
) -> list[dict[str, int | str | None]]:
    """GPU memory as a judge needs it, of the first source that sees cards.

    One source only: the same card under two names would count twice.
    """
    pages = [(library.name, library.open(sys_root)()) for library in LIBRARIES]
    pages += [(snapshot.source, snapshot.parsed) for snapshot in snapshots]
    source, page = next(((name, page) for name, page in pages if page.cards), ("", Page()))
    return [
        {
            "device": card.device,
            "source": source,
            "vram_used_bytes": _whole(card.values.get("vram_used_bytes")),
            "vram_total_bytes": _whole(card.values.get("vram_total_bytes")),
        }
        for card in page.cards
    ]


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
