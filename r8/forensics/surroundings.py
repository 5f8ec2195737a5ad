"""G1 and Q3: nothing of an earlier arm lay in GPU memory, and the host stayed the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from r8.forensics.rule import Rule
from r8.message import Check, compared, missing, not_applicable
from r8.units import BYTES_PER_GIB

if TYPE_CHECKING:
    from r8.forensics.case import Case, Event

# An idle MI300X shows 0.3 GB of 206 GB in use; what an engine leaves behind is tens of GB.
RESIDUE_SHARE_MAX = 0.01
# Small cards: a desktop session takes some hundred MB, which no KV of a run fits into.
RESIDUE_FLOOR_BYTES = BYTES_PER_GIB
BEGIN, END = "begin", "end"


def no_residue(case: Case) -> list[Check]:
    """G1: memory in use on every GPU before the engine was started."""
    capture = _capture(case, BEGIN)
    gpus = capture.detail.get("gpus") if capture else None
    if capture is None or not isinstance(gpus, list):
        return [missing("environment", "no-capture", moment=BEGIN)]
    if not gpus:
        return [not_applicable("gpus", "g1-no-gpu")]
    started = case.event("engine_started") or case.event("worker_started")
    before = compared(
        "captured_before_start",
        (None if started is None else capture.mono_ns <= started.mono_ns, "==", True),
        "g1-captured-before",
    )
    return [before, *(_gpu(gpu if isinstance(gpu, dict) else {}) for gpu in gpus)]


def _gpu(gpu: dict[str, Any]) -> Check:
    device, used, total = (
        gpu.get(key) for key in ("device", "vram_used_bytes", "vram_total_bytes")
    )
    if not isinstance(used, int) or not isinstance(total, int):
        return missing("vram_used_bytes", "g1-memory-unknown", device=str(device))
    return compared(
        "vram_used_bytes",
        (used, "<=", max(round(RESIDUE_SHARE_MAX * total), RESIDUE_FLOOR_BYTES)),
        "g1-memory",
        unit="bytes",
        facts={"device": str(device)},
    )


def host_unchanged(case: Case) -> list[Check]:
    """Q3: what must not change between begin and end of a run did not, section by section."""
    before, after = _capture(case, BEGIN), _capture(case, END)
    if before is None or after is None:
        moment = BEGIN if before is None else END
        return [missing("environment", "no-capture", moment=moment)]
    old, new = before.detail.get("sections"), after.detail.get("sections")
    if not isinstance(old, dict) or not isinstance(new, dict) or not old:
        return [missing("environment_sections", "q3-no-sections")]
    changes, absent = after.detail.get("changes"), before.detail.get("unavailable")
    shown = [_shown(one) for one in changes] if isinstance(changes, list) else []
    changed = sum(old.get(name) != new.get(name) for name in {*old, *new})
    return [
        compared(
            "sections_changed",
            (changed, "==", 0),
            "q3-changed" if changed else "q3-unchanged",
            unit="sections",
            facts={
                "sections": len(old),
                "absent": ", ".join(map(str, absent)) if isinstance(absent, list) else "",
                "changes": "; ".join(shown)[:400],
            },
        )
    ]


def _shown(change: object) -> str:
    if not isinstance(change, dict):
        return str(change)
    return f"{change.get('fact')}: {change.get('before')} -> {change.get('after')}"


def _capture(case: Case, moment: str) -> Event | None:
    found = [one for one in case.events("environment") if one.detail.get("moment") == moment]
    return found[-1] if found else None


Q3 = Rule(rule_id="Q3", checks=host_unchanged)
G1 = Rule(
    rule_id="G1",
    checks=no_residue,
    thresholds={"most_share": RESIDUE_SHARE_MAX, "floor_bytes": RESIDUE_FLOOR_BYTES},
)
