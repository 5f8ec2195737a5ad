"""Begin and end of a run as the vendors' own tools see the cards: parsed, and the raw text kept."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .gpu import find_amd_cards
from .gpu_amdsmi import parse_amd_smi
from .gpu_other import parse_mx_smi, parse_npu_info, parse_nvidia_smi
from .gpu_reading import Page
from .gpu_rocm import parse_rocm_smi
from .kernel_files import counter_of, read_whole
from .tool import ToolRun, run_tool

if TYPE_CHECKING:
    from collections.abc import Callable

_NVIDIA_QUERY = (
    "timestamp,index,uuid,pci.bus_id,memory.used,memory.total,utilization.gpu,power.draw,"
    "temperature.gpu"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One tool's view."""

    source: str
    page: Page
    run: ToolRun

    def row(self) -> dict[str, Any]:
        """For the record: what was understood beside what was said."""
        return {"source": self.source, "parsed": self.page.row(), "raw": self.run.row()}


_TOOLS: dict[str, tuple[tuple[str, ...], Callable[[str], Page]]] = {
    "rocm-smi": (
        (
            "rocm-smi",
            *("--showuse", "--showmeminfo", "vram", "--showmemuse", "--showpower", "--showtemp"),
            "--json",
        ),
        parse_rocm_smi,
    ),
    "amd-smi": (("amd-smi", "metric", "--json"), parse_amd_smi),
    "nvidia-smi": (
        ("nvidia-smi", f"--query-gpu={_NVIDIA_QUERY}", "--format=csv,nounits"),
        parse_nvidia_smi,
    ),
    "npu-smi": (("npu-smi", "info"), parse_npu_info),
    "mx-smi": (("mx-smi", "--show-memory", "--show-usage"), parse_mx_smi),
}


def take_snapshots(run: Callable[[tuple[str, ...]], ToolRun] = run_tool) -> list[Snapshot]:
    """Ask every tool once; one that is missing, hangs or talks nonsense is a reason."""
    found = []
    for source, (argv, parse) in _TOOLS.items():
        said = run(argv)
        page = Page(reason=said.reason) if said.reason else parse(said.stdout)
        found.append(Snapshot(source=source, page=page, run=said))
    return found


def memory_in_use(
    snapshots: list[Snapshot], sys_root: Path = Path("/sys")
) -> list[dict[str, int | str | None]]:
    """GPU memory as a judge needs it: sysfs where there is amdgpu, else the first tool that knows.

    One source only: the same card under two names would count twice.
    """
    cards = find_amd_cards(sys_root)
    if cards:
        return [
            {
                "device": card.address,
                "source": "amdgpu sysfs",
                "vram_used_bytes": _counter(card.paths["vram_used_bytes"]),
                "vram_total_bytes": _counter(card.paths["vram_total_bytes"]),
            }
            for card in cards
        ]
    for snapshot in snapshots:
        if snapshot.page.cards:
            return [
                {
                    "device": card.device,
                    "source": snapshot.source,
                    "vram_used_bytes": _whole(card.values.get("vram_used_bytes")),
                    "vram_total_bytes": _whole(card.values.get("vram_total_bytes")),
                }
                for card in snapshot.page.cards
            ]
    return []


def _counter(path: str) -> int | None:
    try:
        return counter_of(read_whole(path).strip())
    except OSError:
        return None


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
