"""The cards of this moment as the vendors' own tools see them: parsed, and the raw texts kept."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..tool import ToolRun, run_tool
from .ask import ask
from .card import TOTAL, USED, Page, is_unified
from .seen import seen
from .sources import LIBRARIES, TOOLS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .seen import Seen

GTT_USED, GTT_TOTAL = "gtt_used_bytes", "gtt_total_bytes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One tool's view: what it printed, and what was understood of it."""

    source: str
    parsed: Page
    raw: ToolRun
    further: tuple[ToolRun, ...] = ()  # the commands after the first

    def row(self) -> dict[str, Any]:
        """For the record."""
        return asdict(self)


def take_snapshots(run: Callable[[tuple[str, ...]], ToolRun] = run_tool) -> list[Snapshot]:
    """Ask every tool once; one that is missing, hangs or prints no card gives a reason."""
    found = []
    for tool in TOOLS:
        asked = ask(tool, run)
        first, *further = asked.runs
        found.append(
            Snapshot(source=tool.name, parsed=asked.page, raw=first, further=tuple(further))
        )
    return found


def cards_now(snapshots: Sequence[Snapshot], sys_root: Path | None = Path("/sys")) -> list[Seen]:
    """Every card once, of libraries and of tools; without a sysfs root of tools alone."""
    of = {snapshot.source: snapshot.parsed for snapshot in snapshots}
    libraries = [] if sys_root is None else [(one, one.open(sys_root)()) for one in LIBRARIES]
    return seen([*libraries, *((tool, of[tool.name]) for tool in TOOLS if tool.name in of)])


def memory_in_use(
    snapshots: Sequence[Snapshot], sys_root: Path | None = Path("/sys")
) -> list[dict[str, int | str | None]]:
    """GPU memory as a judge needs it; a size that no source gives is None.

    Of unified memory it is what the card maps of the host's. An integrated card beside others that
    have memory of their own holds no model, and is left out.
    """
    cards = cards_now(snapshots, sys_root)
    own = [one for one in cards if not is_unified(one.card)]
    return [_in_use(one) for one in own or cards]


def _in_use(one: Seen) -> dict[str, int | str | None]:
    mapped = is_unified(one.card)
    used, total = (GTT_USED, GTT_TOTAL) if mapped else (USED, TOTAL)
    return {
        "device": one.card.device,
        "source": f"{one.source} gtt" if mapped else one.source,
        USED: _whole(one.card.values.get(used)),
        TOTAL: _whole(one.card.values.get(total)),
    }


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
