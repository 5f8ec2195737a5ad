"""N1 and N2: the certificate can say no. What is known to be warm or absent must be seen so.

A control that behaves once speaks for its block; one that misbehaves speaks against it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from r8.forensics.balance import BALANCE_TOLERANCE
from r8.forensics.coldness import RESIDENT_SHARE_MAX
from r8.forensics.rule import Check, missing

if TYPE_CHECKING:
    from r8.forensics.case import Case

# Names a lab may give its controls in the events control_begin and control_end. Without a name the
# control phase is the random prompt, and the warm phase (measured sessions again) the warm read.
WARM_READ = "warm_read"
RANDOM_PROMPT = "random_prompt"

_PHASES = """
SELECT phase, occurrence, begin_ns, end_ns,
       CASE WHEN json_valid(detail) THEN json_extract_string(detail, '$.control') END
FROM phases
WHERE run_id = $run AND phase IN ('warm', 'control')
  AND begin_ns IS NOT NULL AND end_ns IS NOT NULL
ORDER BY begin_ns
"""
_REQUESTS = """
SELECT e.request_id, e.hit_tokens, coalesce(e.retrieved_tokens, 0)
FROM engine_requests e JOIN requests r USING (run_id, request_id)
WHERE e.run_id = $run AND r.phase = $phase AND r.sent_ns BETWEEN $begin_ns AND $end_ns
ORDER BY e.request_id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """When and as which occurrence of which phase a control ran."""

    phase: str
    occurrence: int
    begin_ns: int
    end_ns: int


def find_control(case: Case, name: str) -> Control | None:
    """The control of that name; a lab that gives no names has phase warm and phase control."""
    usual = {WARM_READ: "warm", RANDOM_PROMPT: "control"}[name]
    named, unnamed = None, None
    for phase, occurrence, begin_ns, end_ns, given in case.rows(_PHASES):
        found = Control(phase=phase, occurrence=occurrence, begin_ns=begin_ns, end_ns=end_ns)
        if given == name:
            named = found
        elif given is None and phase == usual:
            unnamed = found
    return named or unnamed


def warm_read_is_refused(case: Case) -> list[Check]:
    """N1: a read known to come from the page cache fails C3 and C4, by their numbers."""
    control = find_control(case, WARM_READ)
    if control is None:
        return [missing("no warm read in this run", "Another run of the block may hold it.")]
    if _reads_past_the_page_cache(case):
        return [
            missing(
                "this arm reads with O_DIRECT, past the page cache",
                "Its warm reads do reach the device; another arm of the block is the control.",
            )
        ]
    tokens = sum(row[2] for row in _requests(case, control))
    expectation = case.run.expectation
    hits = tokens * expectation.chunk_bytes // expectation.chunk_tokens
    if not hits:
        return [missing("the warm read hit nothing", "A control that loads no KV shows nothing.")]
    seen = _residency(case, control)
    if seen is None:
        return [missing("residency at the warm read not measured", "No rows before warm_end.")]
    read = case.read_bytes(case.run.kv_device, control.phase, control.occurrence)
    if read is None:
        return [missing("no read counter around the warm read", "The disk probe is silent.")]
    checks = [_residency_refused(seen, read, hits), _balance_refused(case, read, hits)]
    return [_was_not_warm(seen, read, hits)] if _cold_after_all(seen, read, hits) else checks


def _reads_past_the_page_cache(case: Case) -> bool:
    rows = case.rows(
        "SELECT count(*) FROM engine_log WHERE run_id = $run AND kind = 'patch_loaded' "
        "AND mode = 'parallel' AND regexp_matches(text, '\\bodirect=1\\b')"
    )
    return bool(rows[0][0])


def _requests(case: Case, control: Control) -> list[tuple[Any, ...]]:
    return case.rows(
        _REQUESTS, phase=control.phase, begin_ns=control.begin_ns, end_ns=control.end_ns
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Residency:
    """What the page cache held of the KV files just before or in the warm read."""

    moment: str
    resident_bytes: int
    files_above: int  # C3's limit


def _residency(case: Case, control: Control) -> Residency | None:
    measured = case.event("measure_end")
    rows = case.rows(
        "SELECT moment, sum(resident_bytes)::BIGINT, "
        "count(*) FILTER (resident_bytes > $share * size_bytes) FROM residency "
        "WHERE run_id = $run AND mono_ns BETWEEN $since_ns AND $until_ns "
        "GROUP BY moment ORDER BY max(mono_ns) DESC LIMIT 1",
        share=RESIDENT_SHARE_MAX,
        since_ns=measured.mono_ns if measured else control.begin_ns,
        until_ns=control.end_ns,
    )
    if not rows or rows[0][1] is None:
        return None
    return Residency(moment=rows[0][0], resident_bytes=rows[0][1], files_above=rows[0][2])


def _cold_after_all(seen: Residency, read: int, hits: int) -> bool:
    """Somebody emptied the page cache: both instruments say so, and agree to the byte."""
    return seen.files_above == 0 and abs(read - hits) <= BALANCE_TOLERANCE * hits


def _was_not_warm(seen: Residency, read: int, hits: int) -> Check:
    return missing(
        f"C3 at {seen.moment}: 0 files resident; C4: {read} B read again / {hits} B hit: "
        "the page cache was emptied before the warm read",
        "The instruments agree, and a read that was not warm is no control; another run of the "
        "block may be one. Does something else on this machine drop its caches?",
    )


def _residency_refused(seen: Residency, read: int, hits: int) -> Check:
    """C3's number: what the warm read takes must be in the page cache.

    A machine short of memory gives up some of it in between, and those bytes come from the device
    once more. So two instruments must add up to what was hit: the bytes seen in the page cache, and
    the bytes the device was read for.
    """
    return Check(
        arithmetic=f"C3 at {seen.moment}: {seen.files_above} files above {RESIDENT_SHARE_MAX:.0%} "
        f"resident, {seen.resident_bytes} B in the page cache + {read} B read again >= "
        f"{hits} B hit",
        held=seen.files_above > 0 and seen.resident_bytes + read >= (1 - BALANCE_TOLERANCE) * hits,
        otherwise="Files known to be cached were not seen as cached: C3 proves nothing here.",
    )


def _balance_refused(case: Case, read: int, hits: int) -> Check:
    share = read / hits
    return Check(
        arithmetic=f"C4: {case.run.kv_device} read {read} B / warm hits {hits} B = {share:.4f} "
        f"< {1 - BALANCE_TOLERANCE}",
        held=share < 1 - BALANCE_TOLERANCE,
        otherwise="A read known to be warm balances like a cold one: C4 proves nothing here.",
    )


def random_prompt_hits_nothing(case: Case) -> list[Check]:
    """N2: a prompt that nobody populated hits 0 tokens."""
    control = find_control(case, RANDOM_PROMPT)
    if control is None:
        return [missing("no random prompt in this run", "Another run of the block may hold it.")]
    requests = _requests(case, control)
    seen = [row for row in requests if row[1] is not None]
    if not requests or len(seen) < len(requests):
        return [
            missing(
                f"{len(seen)} of {len(requests)} random prompts with a lookup line",
                "The engine log does not say what they hit.",
            )
        ]
    most = max(row[1] for row in seen)
    return [
        Check(
            arithmetic=f"{len(seen)} random prompts, most hit tokens {most} = 0",
            held=most == 0,
            otherwise="A prompt nobody populated was found in the cache: hits prove nothing here.",
        )
    ]
