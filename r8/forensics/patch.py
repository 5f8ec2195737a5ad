"""C11: the code that read the KV files is the code the arm names, by its own word and work."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from r8.forensics.rule import Rule
from r8.message import Check, Fact, compared, missing

if TYPE_CHECKING:
    from r8.forensics.case import Case
    from r8.model import PatchState

DIGEST_CHARS = 12
_SEGMENT_BYTES = re.compile(r"\bsegment_bytes=(\d+)")

_MEASURED_READS = """
SELECT read_bytes, segments, misses FROM patch_sums
WHERE run_id = $run AND instance = $instance AND phase = 'measure'
"""


def patch_in_force(case: Case) -> list[Check]:
    """C11: the engine's own digest and its count of segments, or the proof that nothing is in."""
    state = case.kv_run.patch
    if state is None:
        return [missing("patch_state", "c11-no-patch-state")]
    checks = [_state_repeated(case, state)]
    for instance in case.run.processes:
        loaded = case.rows(
            "SELECT digest, mode, text FROM engine_log WHERE run_id = $run "
            "AND instance = $instance AND kind = 'patch_loaded' ORDER BY line",
            instance=instance,
        )
        judge = _patched if case.kv_run.treatment.patch == "patched" else _unpatched
        checks += judge(case, state, instance, loaded)
    return checks


def _state_repeated(case: Case, state: PatchState) -> Check:
    """Run.json and the event the lab wrote before the engine's start must say the same."""
    event = case.event("patch_state")
    if event is None:
        return missing("patch_state", "c11-no-patch-event")
    planned = {"expected": case.kv_run.treatment.patch} | asdict(state)
    different = [name for name, value in planned.items() if event.detail.get(name) != value]
    return compared(
        "patch_state_fields_changed",
        (len(different), "==", 0),
        "c11-state-repeated",
        facts={"fields": len(planned), "changed": ", ".join(different)},
    )


def _patched(
    case: Case, state: PatchState, instance: str, loaded: list[tuple[Any, ...]]
) -> list[Check]:
    module = state.module_sha256
    if module is None:
        return [missing("module_sha256", "c11-no-module-digest")]
    target = compared(
        "target_sha256",
        (state.target_sha256, "!=", state.base_sha256),
        "c11-target-patched",
        facts=_digests(state),
    )
    if not loaded:
        return [target, _lines(case, instance, expected=True)]
    _, mode, text = loaded[-1]
    digest = next((row[0] for row in loaded if row[0] != module), module)
    return [
        target,
        compared(
            "loaded_module_sha256",
            (digest, "==", module),
            "c11-module",
            facts={
                "instance": instance,
                "found": digest[:DIGEST_CHARS],
                "planned": module[:DIGEST_CHARS],
            },
        ),
        compared("patch_mode", (mode, "==", "parallel"), "c11-mode", facts={"instance": instance}),
        *_reads(case, instance, text),
    ]


def _digests(state: PatchState) -> dict[str, Fact]:
    return {
        "target": state.target_sha256[:DIGEST_CHARS],
        "base": state.base_sha256[:DIGEST_CHARS],
    }


def _lines(case: Case, instance: str, *, expected: bool) -> Check:
    """An engine whose log has no line of the patch, though it has others."""
    rows = case.rows(
        "SELECT count(*) FROM engine_log WHERE run_id = $run AND instance = $instance",
        instance=instance,
    )
    lines = rows[0][0]
    return compared(
        "patch_loaded_lines",
        (0 if lines else None, ">" if expected else "==", 0),
        "c11-not-loaded" if expected else "c11-no-patch-line",
        unit="lines",
        facts={"instance": instance, "lines": lines},
    )


def _reads(case: Case, instance: str, loaded_text: str) -> list[Check]:
    """Bytes, segments and misses the patch counted while the measured requests ran."""
    run = case.run
    rows = case.rows(_MEASURED_READS, instance=instance)
    expected = run.expected_bytes // len(run.processes)
    if not rows:
        return [
            compared(
                "patch_read_lines",
                (0, ">", 0),
                "c11-nothing-read",
                unit="lines",
                facts={"instance": instance, "expected_bytes": expected},
            )
        ]
    size, segments, misses = rows[0]
    read = compared(
        "patch_read_bytes",
        (size, "==", expected),
        "c11-read-bytes",
        unit="bytes",
        facts={"instance": instance},
    )
    missed = compared(
        "patch_misses", (misses, "==", 0), "c11-misses", unit="chunks", facts={"instance": instance}
    )
    found = _SEGMENT_BYTES.search(loaded_text)
    segment = int(found[1]) if found else 0
    if not segment:
        return [read, missed, missing("segment_bytes", "c11-no-segment-size")]
    split = compared(
        "patch_segments",
        (segments, ">=", -(-size // segment)),
        "c11-segments",
        unit="segments",
        facts={"instance": instance, "read_bytes": size, "segment_bytes": segment},
    )
    return [read, missed, split]


def _unpatched(
    case: Case, state: PatchState, instance: str, loaded: list[tuple[Any, ...]]
) -> list[Check]:
    if loaded:
        return [
            compared(
                "patch_mode",
                (", ".join(sorted({str(row[1]) for row in loaded})), "==", "serial"),
                "c11-patch-inactive",
                facts={"instance": instance},
            )
        ]
    base = compared(
        "target_sha256",
        (state.target_sha256, "==", state.base_sha256),
        "c11-target-base",
        facts=_digests(state),
    )
    return [_lines(case, instance, expected=False), base]


C11 = Rule(rule_id="C11", checks=patch_in_force, of_kv=True, of_engine=True)
