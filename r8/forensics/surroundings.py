"""G1 and Q3: nothing of an earlier arm lay in GPU memory, and the host stayed the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from r8.forensics.rule import Check, missing, not_applicable
from r8.units import BYTES_PER_GIB, gb_per_s

if TYPE_CHECKING:
    from r8.forensics.case import Case

# An idle MI300X shows 0.3 GB of 206 GB in use; what an engine leaves behind is tens of GB.
RESIDUE_SHARE_MAX = 0.01
# Small cards: a desktop session takes some hundred MB, which no KV of a run fits into.
RESIDUE_FLOOR_BYTES = BYTES_PER_GIB
BEGIN, END = "begin", "end"


def no_residue(case: Case) -> list[Check]:
    """G1: memory in use on every GPU before the engine was started."""
    found = _capture(case, BEGIN)
    gpus = found.get("gpus") if found else None
    if not isinstance(gpus, list):
        return [_no_capture(BEGIN)]
    if not gpus:
        return [
            not_applicable(
                "no GPU on the engine's host", "Without GPU memory nothing can be left in it."
            )
        ]
    started = case.event("engine_started") or case.event("worker_started")
    checks = [_gpu(gpu if isinstance(gpu, dict) else {}) for gpu in gpus]
    taken = _instant(case, BEGIN)
    before = started is not None and taken is not None and taken <= started.mono_ns
    return [
        Check(
            arithmetic=f"captured before the engine was started: {before}".lower(),
            held=before if started is not None else None,
            otherwise="After the start the engine's own memory would be taken for residue.",
        ),
        *checks,
    ]


def _gpu(gpu: dict[str, Any]) -> Check:
    device, used, total = (
        gpu.get(key) for key in ("device", "vram_used_bytes", "vram_total_bytes")
    )
    if not isinstance(used, int) or not isinstance(total, int):
        return missing(f"{device}: memory in use not known", "Its driver or tool does not say.")
    limit = max(round(RESIDUE_SHARE_MAX * total), RESIDUE_FLOOR_BYTES)
    return Check(
        arithmetic=f"{device}: {gb_per_s(used):.2f} GB in use <= {gb_per_s(limit):.2f} GB",
        held=used <= limit,
        otherwise=f"An earlier process still holds memory of {device}: its KV may be served again.",
    )


def host_unchanged(case: Case) -> list[Check]:
    """Q3: what must not change between begin and end of a run did not, section by section."""
    before, after = _capture(case, BEGIN), _capture(case, END)
    if before is None or after is None:
        return [_no_capture(BEGIN if before is None else END)]
    old, new = before.get("sections"), after.get("sections")
    if not isinstance(old, dict) or not isinstance(new, dict) or not old:
        return [missing("captures without sections", "The capture did not go through.")]
    changed = sorted(name for name in {*old, *new} if old.get(name) != new.get(name))
    changes = after.get("changes")
    shown = [_shown(one) for one in changes] if isinstance(changes, list) else []
    absent = before.get("unavailable")
    without = f", unavailable here: {', '.join(absent)}" if isinstance(absent, list) else ""
    line = f"{len(changed)} of {len(old)} sections changed{without}"
    return [
        Check(
            arithmetic=line + (f" ({'; '.join(shown)[:400]})" if changed else ""),
            held=not changed,
            otherwise="The host was not the same at the end: compare raw/environment-begin.json "
            "with raw/environment-end.json.",
        )
    ]


def _shown(change: object) -> str:
    if not isinstance(change, dict):
        return str(change)
    return f"{change.get('fact')}: {change.get('before')} -> {change.get('after')}"


def _capture(case: Case, moment: str) -> dict[str, Any] | None:
    details = [event.detail for event in case.events("environment")]
    found = [detail for detail in details if detail.get("moment") == moment]
    return found[-1] if found else None


def _instant(case: Case, moment: str) -> int | None:
    events = [one for one in case.events("environment") if one.detail.get("moment") == moment]
    return events[-1].mono_ns if events else None


def _no_capture(moment: str) -> Check:
    return missing(
        f"the environment was not captured at the {moment}",
        "Event `environment` of that moment is missing.",
    )
