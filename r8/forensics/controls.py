"""N1 and N2: the certificate can say no. What is known to be warm or absent must be seen so.

Both run once a block, after its cells, on sessions that no cell measures. A control that behaves
speaks for its block; one that misbehaves speaks against it; one whose premise was not met (the
files known to be warm were not) shows nothing: its checks measured nothing, and it is unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from r8.forensics import transfer
from r8.forensics.balance import BALANCE_FLOOR_SHARE, engine_against_device
from r8.forensics.coldness import RESIDENT_SHARE_MAX, files_at, resident
from r8.forensics.rule import Rule
from r8.message import Check, Fact, compared, missing, not_applicable

if TYPE_CHECKING:
    from r8.forensics.case import Case

# Names in the events control_begin and control_end. A control phase without a name is the random
# prompt, as runs before the controls had names have it.
WARM_READ = "warm_read"
RANDOM_PROMPT = "random_prompt"

_PHASES = """
SELECT occurrence, begin_ns, end_ns,
       CASE WHEN json_valid(detail) THEN json_extract_string(detail, '$.control') END
FROM phases
WHERE run_id = $run AND phase = 'control' AND begin_ns IS NOT NULL AND end_ns IS NOT NULL
ORDER BY begin_ns
"""
# A request, what its lookup line hit, and whether a cell measured its session.
_REQUESTS = """
SELECT e.request_id, e.hit_tokens,
       EXISTS (SELECT 1 FROM requests m WHERE m.run_id = r.run_id AND m.session = r.session
               AND m.phase IN ('populate', 'flush', 'measure', 'warm'))
FROM engine_requests e JOIN requests r USING (run_id, request_id)
WHERE e.run_id = $run AND r.phase = 'control' AND r.sent_ns BETWEEN $begin_ns AND $end_ns
ORDER BY e.request_id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """When and as which occurrence of its phase a control ran."""

    occurrence: int
    begin_ns: int
    end_ns: int


def find_control(case: Case, name: str) -> Control | None:
    """The last control of that name."""
    found = None
    for occurrence, begin_ns, end_ns, given in case.rows(_PHASES):
        if given == name or (given is None and name == RANDOM_PROMPT):
            found = Control(occurrence=occurrence, begin_ns=begin_ns, end_ns=end_ns)
    return found


def warm_read_is_refused(case: Case) -> list[Check]:
    """N1: a read known to come from the page cache fails C3 and C4, by their numbers."""
    control = find_control(case, WARM_READ)
    if control is None:
        return [missing("warm_read", "n1-no-warm-read")]
    if _reads_past_the_page_cache(case):
        return [missing("warm_read", "n1-past-the-page-cache")]
    requests = _requests(case, control)
    hits: int | None = case.rows(
        "SELECT hit_bytes FROM control_hits($run, $begin_ns, $end_ns)",
        begin_ns=control.begin_ns,
        end_ns=control.end_ns,
    )[0][0]
    if not hits:
        return [missing("warm_read_hit_bytes", "n1-nothing-hit")]
    return [
        _own_sessions(requests),
        _drop_ran(case, control),
        _through_the_page_cache(case, control, hits),
        *_refused(case, control, hits),
    ]


def _reads_past_the_page_cache(case: Case) -> bool:
    rows = case.rows(
        "SELECT count(*) FROM engine_log WHERE run_id = $run AND kind = 'patch_loaded' "
        "AND mode = 'parallel' AND regexp_matches(text, '\\bodirect=1\\b')"
    )
    return bool(rows[0][0])


def _requests(case: Case, control: Control) -> list[tuple[Any, ...]]:
    return case.rows(_REQUESTS, begin_ns=control.begin_ns, end_ns=control.end_ns)


def _own_sessions(requests: list[tuple[Any, ...]]) -> Check:
    shared = sum(bool(row[2]) for row in requests)
    return compared(
        "control_sessions_of_cells",
        (None if shared else shared, "==", 0),
        "n-own-sessions",
        unit="sessions",
        facts={"requests": len(requests), "shared": shared},
    )


def _drop_ran(case: Case, control: Control) -> Check:
    """What refuses the control must be its numbers, not that nobody dropped."""
    ends = [one for one in case.events("control_drop_end") if one.mono_ns <= control.begin_ns]
    code = ends[-1].detail.get("rc") if ends else None
    return compared(
        "control_drop_rc", (code if code == 0 else None, "==", 0), "n1-drop", facts={"rc": code}
    )


def _through_the_page_cache(case: Case, control: Control, hits: int) -> Check:
    """The engine read files; a tier in DRAM would have answered without."""
    ((read,),) = case.rows(
        "SELECT read_bytes FROM file_reads($run, $begin_ns, $end_ns)",
        begin_ns=control.begin_ns,
        end_ns=control.end_ns,
    )
    if read is None:
        return missing("process_rchar_bytes", "n1-rchar-unknown")
    least = BALANCE_FLOOR_SHARE * hits
    return compared(
        "process_rchar_bytes",
        (read if read >= least else None, ">=", least),
        "n1-through-the-page-cache",
        unit="bytes",
        facts={"file_bytes": read, "hit_bytes": hits},
    )


def _refused(case: Case, control: Control, hits: int) -> list[Check]:
    """What C3 and C4 measure of the control, by their own code: both must say no."""
    drop = case.event("control_drop_end")
    seen = files_at(case, WARM_READ, drop.mono_ns if drop else 0, control.begin_ns)
    known = bool(seen.rows) and all(row[2] is not None for row in seen.rows)
    cached = seen.cached_bytes if known else None
    device = case.read_bytes(case.device, "control", control.occurrence)
    warm = resident(seen).measured if seen.rows else None
    # As many bytes as were hit: from the device it looks cold, in the page cache it was warm.
    looks_cold = None if device is None else device >= BALANCE_FLOOR_SHARE * hits
    was_warm = cached is not None and cached >= BALANCE_FLOOR_SHARE * hits
    checks = [_says_c3(warm, looks_cold=looks_cold)]
    if warm and cached is not None and device is not None:
        checks.append(_adds_up(cached, device, hits))
    return [*checks, _says_c4(case, hits, device, shown=not looks_cold or was_warm)]


def _says_c3(warm: Fact, *, looks_cold: bool | None) -> Check:
    """C3 sees files above its limit; it is blind if it does not and the device gave no bytes."""
    if warm is None:
        return missing("warm_files_resident", "n1-residency-unknown")
    if not warm and looks_cold is not False:
        return missing("warm_files_resident", "n1-files-not-cached")
    return compared(
        "warm_files_resident",
        (warm, ">", 0),
        "n1-c3",
        unit="files",
        facts={"most_share": RESIDENT_SHARE_MAX},
    )


def _adds_up(cached: int, device: int, read: int) -> Check:
    """What memory was too short to keep came from the device: together they gave every byte."""
    return compared(
        "cached_bytes + device_read_bytes",
        (cached + device, ">=", BALANCE_FLOOR_SHARE * read),
        "n1-adds-up",
        unit="bytes",
        facts={"cached_bytes": cached, "device_bytes": device, "wanted_bytes": read},
    )


def _says_c4(case: Case, hits: int, device: int | None, *, shown: bool) -> Check:
    """C4's share of a read that was warm; of one that was not, nothing is shown."""
    c4 = engine_against_device(case, hits, device)
    if c4.measured is None:
        return missing("warm_read_bytes / hit_bytes", "n1-device-unknown")
    return compared(
        "warm_read_bytes / hit_bytes",
        (c4.measured if shown else None, "<", BALANCE_FLOOR_SHARE),
        "n1-c4" if shown else "n1-not-warm",
        unit="ratio",
        facts={"device": case.run.kv_device, "read_bytes": device, "hit_bytes": hits},
    )


def warm_load_is_refused(case: Case) -> list[Check]:
    """N1 of a job: the same loads again, from the page cache, fail C3 and C4 by their numbers."""
    if transfer.writes(case):
        return [not_applicable("warm_load", "n1-window-writes")]
    window, moved = case.window("warm"), transfer.moved_bytes(case, "warm")
    if window is None:
        return [missing("warm_load", "n1-no-warm-load")]
    if not moved:
        return [missing("warm_load_bytes", "n1-nothing-loaded")]
    device = case.read_bytes(case.device, "warm")
    if device is None:
        return [missing("warm_read_bytes", "n1-device-unknown")]
    return _warm_load(case, window.begin_ns, moved, device)


def _warm_load(case: Case, until_ns: int, moved: int, device: int) -> list[Check]:
    named = {"share": RESIDENT_SHARE_MAX, "until_ns": until_ns}
    cached, warm = case.rows(
        "SELECT s.resident_bytes, (SELECT count(*) FROM "
        "residency_at($run, 'after_measure', 0, $until_ns) "
        "WHERE resident_bytes > $share * size_bytes) "
        "FROM residency_sums($run, 'after_measure', 0, $until_ns) s",
        **named,
    )[0]
    if cached is None:
        return [missing("warm_files_resident", "n1-residency-unknown")]
    share = device / moved
    if not warm and share >= BALANCE_FLOOR_SHARE:
        # Both witnesses say cold: somebody else on this machine emptied the page cache.
        return [missing("warm_files_resident", "n1-files-not-cached")]
    return [
        _says_c3(warm, looks_cold=False),
        # A machine short of memory gives up pages in between: those are read again.
        _adds_up(cached, device, moved),
        compared(
            "warm_read_bytes / moved_bytes",
            (share, "<", BALANCE_FLOOR_SHARE),
            "n1-c4-load",
            unit="ratio",
            facts={"device": case.run.kv_device, "read_bytes": device, "moved_bytes": moved},
        ),
    ]


def random_prompt_hits_nothing(case: Case) -> list[Check]:
    """N2: a prompt that nobody populated hits 0 tokens."""
    control = find_control(case, RANDOM_PROMPT)
    if control is None:
        return [missing("random_prompt", "n2-no-random-prompt")]
    requests = _requests(case, control)
    seen = [row[1] for row in requests if row[1] is not None]
    if not requests or len(seen) < len(requests):
        return [missing("hit_tokens", "n2-no-lookup", seen=len(seen), requests=len(requests))]
    return [
        _own_sessions(requests),
        compared(
            "hit_tokens",
            (max(seen), "==", 0),
            "n2-hit-tokens",
            unit="tokens",
            facts={"requests": len(seen)},
        ),
    ]


N1 = Rule(
    rule_id="N1",
    checks=warm_read_is_refused,
    transfer_checks=warm_load_is_refused,
    thresholds={"floor_share": BALANCE_FLOOR_SHARE, "most_share": RESIDENT_SHARE_MAX},
    of_block=True,
    of_device=True,
    of_kv=True,
)
N2 = Rule(
    rule_id="N2",
    checks=random_prompt_hits_nothing,
    of_block=True,
    of_kv=True,
    of_engine=True,
)
