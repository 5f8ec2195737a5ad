"""N1 and N2: the certificate can say no. What is known to be warm or absent must be seen so.

A control that behaves once speaks for its block; one that misbehaves speaks against it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from r8.forensics.balance import BALANCE_TOLERANCE
from r8.forensics.case import Window
from r8.forensics.coldness import RESIDENT_SHARE_MAX
from r8.forensics.rule import Check, missing

if TYPE_CHECKING:
    from r8.forensics.case import Case

# Names a lab may give its controls in the events control_begin and control_end. Without a name the
# control phase is the random prompt, and the warm phase (measured sessions again) the warm read.
WARM_READ = "warm_read"
RANDOM_PROMPT = "random_prompt"

_CONTROL_REQUESTS = """
SELECT r.request_id, r.outcome, count(l.line),
       coalesce(max(l.hit_tokens) FILTER (l.kind = 'lookup'), -1),
       coalesce(sum(l.retrieved_tokens) FILTER (l.kind = 'retrieved'), 0)::BIGINT
FROM requests r LEFT JOIN engine_log l
  ON l.run_id = r.run_id AND l.instance = r.instance
 AND (l.server_request_id = r.server_request_id
      OR starts_with(l.server_request_id, r.server_request_id || '-'))
WHERE r.run_id = $run AND r.phase IN ('control', 'warm')
  AND r.sent_ns BETWEEN $begin_ns AND $end_ns
GROUP BY ALL ORDER BY r.request_id
"""


def control_window(case: Case, control: str) -> Window | None:
    """From a control's begin event to its end event."""
    begins = [e.mono_ns for e in case.events("control_begin") if e.detail.get("control") == control]
    ends = [e.mono_ns for e in case.events("control_end") if e.detail.get("control") == control]
    if not begins or not ends or ends[-1] < begins[0]:
        return None
    return Window(begin_ns=begins[0], end_ns=ends[-1])


def warm_read_is_refused(case: Case) -> list[Check]:
    """N1: a read known to come from the page cache fails C3 and C4, by their numbers."""
    window = control_window(case, WARM_READ) or case.window("warm")
    if window is None:
        return [missing("no warm read in this run", "Another run of the block may hold it.")]
    if _reads_past_the_page_cache(case):
        return [
            missing(
                "this arm reads with O_DIRECT, past the page cache",
                "Its warm reads do reach the device; another arm of the block is the control.",
            )
        ]
    requests = _requests(case, window)
    tokens = sum(row[4] for row in requests)
    expectation = case.run.expectation
    hits = tokens * expectation.chunk_bytes // expectation.chunk_tokens
    if not hits:
        return [missing("the warm read hit nothing", "A control that loads no KV shows nothing.")]
    return [_residency_refused(case, window, hits), _balance_refused(case, window, hits)]


def _reads_past_the_page_cache(case: Case) -> bool:
    rows = case.rows(
        "SELECT count(*) FROM engine_log WHERE run_id = $run AND kind = 'patch_loaded' "
        "AND mode = 'parallel' AND regexp_matches(text, '\\bodirect=1\\b')"
    )
    return bool(rows[0][0])


def _requests(case: Case, window: Window) -> list[tuple[Any, ...]]:
    return case.rows(_CONTROL_REQUESTS, begin_ns=window.begin_ns, end_ns=window.end_ns)


def _residency_refused(case: Case, window: Window, hits: int) -> Check:
    """C3's number just before or in the warm read: what it reads must be in the page cache."""
    measured = case.event("measure_end")
    rows = case.rows(
        "SELECT moment, sum(resident_bytes)::BIGINT, sum(size_bytes)::BIGINT, "
        "count(*) FILTER (resident_bytes > $share * size_bytes) FROM residency "
        "WHERE run_id = $run AND mono_ns BETWEEN $since_ns AND $until_ns "
        "GROUP BY moment ORDER BY max(mono_ns) DESC LIMIT 1",
        share=RESIDENT_SHARE_MAX,
        since_ns=measured.mono_ns if measured else window.begin_ns,
        until_ns=window.end_ns,
    )
    if not rows or rows[0][1] is None:
        return missing(
            "residency at the warm read not measured", "No residency rows before warm_end."
        )
    moment, resident, _, above = rows[0]
    return Check(
        arithmetic=f"C3 at {moment}: {above} files above {RESIDENT_SHARE_MAX:.0%} resident, "
        f"{resident} B in the page cache >= {hits} B hit",
        held=above > 0 and resident >= (1 - BALANCE_TOLERANCE) * hits,
        otherwise="Files known to be cached were not seen as cached: C3 proves nothing here.",
    )


def _balance_refused(case: Case, window: Window, hits: int) -> Check:
    device = case.read_bytes(case.run.kv_device, window)
    if device is None:
        return missing("no read counter around the warm read", "The disk probe is silent.")
    share = device / hits
    return Check(
        arithmetic=f"C4: {case.run.kv_device} read {device} B / warm hits {hits} B = {share:.4f} "
        f"< {1 - BALANCE_TOLERANCE}",
        held=share < 1 - BALANCE_TOLERANCE,
        otherwise="A read known to be warm balances like a cold one: C4 proves nothing here.",
    )


def random_prompt_hits_nothing(case: Case) -> list[Check]:
    """N2: a prompt that nobody populated hits 0 tokens."""
    named = any("control" in event.detail for event in case.events("control_begin"))
    window = control_window(case, RANDOM_PROMPT) if named else case.window("control")
    if window is None:
        return [missing("no random prompt in this run", "Another run of the block may hold it.")]
    requests = _requests(case, window)
    seen = [row for row in requests if row[3] >= 0]
    if not requests or len(seen) < len(requests):
        return [
            missing(
                f"{len(seen)} of {len(requests)} random prompts with a lookup line",
                "The engine log does not say what they hit.",
            )
        ]
    most = max(row[3] for row in seen)
    return [
        Check(
            arithmetic=f"{len(seen)} random prompts, most hit tokens {most} = 0",
            held=most == 0,
            otherwise="A prompt nobody populated was found in the cache: hits prove nothing here.",
        )
    ]
