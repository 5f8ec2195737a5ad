"""C11: the code that read the KV files is the code the arm names, by its own word and work."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from r8.forensics.rule import Check, missing

if TYPE_CHECKING:
    from r8.forensics.case import Case
    from r8.model import PatchState

_SEGMENT_BYTES = re.compile(r"\bsegment_bytes=(\d+)")
# Fields of run.json that the `patch_state` event must repeat: both were read before the start.
_STATE_FIELDS = ("expected", "lmcache_version", "target_sha256", "base_sha256", "module_sha256")

_MEASURED_READS = """
SELECT count(*), sum(read_bytes)::BIGINT, sum(segments)::BIGINT, sum(misses)::BIGINT
FROM patch_reads WHERE run_id = $run AND instance = $instance AND phase = 'measure'
"""


def patch_in_force(case: Case) -> list[Check]:
    """C11: the engine's own digest and its count of segments, or the proof that nothing is in."""
    state = case.run.patch
    if state is None:
        return [missing("no patch state in run.json", "Nobody looked which LMCache file ran.")]
    checks = [_state_repeated(case, state)]
    for instance in case.run.instances:
        loaded = case.rows(
            "SELECT digest, mode, text FROM engine_log WHERE run_id = $run "
            "AND instance = $instance AND kind = 'patch_loaded' ORDER BY line",
            instance=instance,
        )
        judge = _patched if state.expected == "patched" else _unpatched
        checks += judge(case, state, instance, loaded)
    return checks


def _state_repeated(case: Case, state: PatchState) -> Check:
    """Run.json and the event the lab wrote before the engine's start must say the same."""
    event = case.event("patch_state")
    if event is None:
        return missing("no `patch_state` event", "The file was not looked at before the start.")
    different = [name for name in _STATE_FIELDS if event.detail.get(name) != getattr(state, name)]
    return Check(
        arithmetic=f"patch state before the start: {len(different)} of {len(_STATE_FIELDS)} "
        f"fields differ from run.json{': ' + different[0] if different else ''}",
        held=not different,
        otherwise="The tree changed between planning and start.",
    )


def _patched(
    case: Case, state: PatchState, instance: str, loaded: list[tuple[Any, ...]]
) -> list[Check]:
    module = state.module_sha256
    if module is None:
        return [missing("digest of the reader module not recorded", "run.json lacks it.")]
    checks = [
        Check(
            arithmetic=f"target {state.target_sha256[:12]} differs from base "
            f"{state.base_sha256[:12]}",
            held=state.target_sha256 != state.base_sha256,
            otherwise="The arm is called patched and ran on the base file.",
        )
    ]
    if not loaded:
        lines = case.rows(
            "SELECT count(*) FROM engine_log WHERE run_id = $run AND instance = $instance",
            instance=instance,
        )[0][0]
        return [
            *checks,
            Check(
                arithmetic=f"{instance}: 0 R8-PATCH loaded lines of {lines} lines that matter",
                held=False if lines else None,
                otherwise="The running engine never loaded the patch: applied too late, or to "
                "another tree.",
            ),
        ]
    digest, mode, text = loaded[-1]
    checks.append(
        Check(
            arithmetic=f"{instance}: engine says module {digest[:12]} mode {mode}, "
            f"plan says {module[:12]} parallel",
            held=all(row[0] == module for row in loaded) and mode == "parallel",
            otherwise="The running engine holds another module, or holds it inactive.",
        )
    )
    return [*checks, *_reads(case, instance, text)]


def _reads(case: Case, instance: str, loaded_text: str) -> list[Check]:
    """Bytes, segments and misses the patch counted while the measured requests ran."""
    run = case.run
    count, size, segments, misses = case.rows(_MEASURED_READS, instance=instance)[0]
    expected = run.expectation.hit_bytes // max(1, len(run.instances))
    if not count:
        return [
            Check(
                arithmetic=f"{instance}: 0 R8-PATCH read lines in the measured phase, "
                f"{expected} B expected",
                held=False,
                otherwise="The patch is loaded and read nothing: another path serves the reads.",
            )
        ]
    checks = [
        Check(
            arithmetic=f"{instance}: patch read {size} B = {expected} B expected",
            held=size == expected,
            otherwise="The patch did not read exactly the measured sessions' chunks.",
        ),
        Check(
            arithmetic=f"{instance}: {misses} misses",
            held=misses == 0,
            otherwise="The patch answered chunks as a miss: those were recomputed.",
        ),
    ]
    segment = _SEGMENT_BYTES.search(loaded_text)
    if segment is None or int(segment[1]) <= 0:
        return [*checks, missing("segment size not known", "The loaded line lacks it.")]
    least = -(-size // int(segment[1]))
    return [
        *checks,
        Check(
            arithmetic=f"{instance}: {segments} segments >= {size} B / {segment[1]} B = {least}",
            held=segments >= least,
            otherwise="Chunks were not split into segments: the reads were not parallel.",
        ),
    ]


def _unpatched(
    case: Case, state: PatchState, instance: str, loaded: list[tuple[Any, ...]]
) -> list[Check]:
    if loaded:
        modes = sorted({str(row[1]) for row in loaded})
        return [
            Check(
                arithmetic=f"{instance}: patch loaded, mode {', '.join(modes)}",
                held=modes == ["serial"],
                otherwise="The arm is called unpatched and the patch is active.",
            )
        ]
    lines = case.rows(
        "SELECT count(*) FROM engine_log WHERE run_id = $run AND instance = $instance",
        instance=instance,
    )[0][0]
    same = state.target_sha256 == state.base_sha256
    return [
        Check(
            arithmetic=f"{instance}: 0 R8-PATCH lines of {lines} lines that matter",
            held=True if lines else None,
            otherwise="Without an engine log nobody knows whether a patch spoke.",
        ),
        Check(
            arithmetic=f"target {state.target_sha256[:12]} = base {state.base_sha256[:12]}",
            held=same,
            otherwise="The file is not the base file of its version and no serial mode is named.",
        ),
    ]
