"""N1 and N2: the certificate can say no. What is known to be warm or absent must be seen so.

Both run once a block, after its cells, on sessions that no cell measures. A control that behaves
speaks for its block; one that misbehaves speaks against it; one whose premise was not met (the
files known to be warm were not) shows nothing and is unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from r8.forensics.balance import BALANCE_TOLERANCE, engine_against_device
from r8.forensics.case import Window
from r8.forensics.coldness import files_at, resident
from r8.forensics.rule import Check, missing

if TYPE_CHECKING:
    from r8.forensics.case import Case

# Names in the events control_begin and control_end. A control phase without a name is the random
# prompt, as runs before the controls had names have it.
WARM_READ = "warm_read"
RANDOM_PROMPT = "random_prompt"
NOT_HERE = "The block's controls are in the run of its last cell that reads KV."

_PHASES = """
SELECT occurrence, begin_ns, end_ns,
       CASE WHEN json_valid(detail) THEN json_extract_string(detail, '$.control') END
FROM phases
WHERE run_id = $run AND phase = 'control' AND begin_ns IS NOT NULL AND end_ns IS NOT NULL
ORDER BY begin_ns
"""
# A request, what its lookup line hit, what was retrieved, and whether a cell measured its session.
_REQUESTS = """
SELECT e.request_id, e.hit_tokens, coalesce(e.retrieved_tokens, 0),
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


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmRead:
    """What the warm read came to, in bytes."""

    hits: int
    cached: int | None  # of the pool, just before; None: not known of every file
    device: int | None

    @property
    def looks_cold(self) -> bool | None:
        """The device gave as many bytes as were hit."""
        return None if self.device is None else self.device >= (1 - BALANCE_TOLERANCE) * self.hits

    @property
    def was_warm(self) -> bool | None:
        """As many bytes as were hit lay in the page cache."""
        return None if self.cached is None else self.cached >= (1 - BALANCE_TOLERANCE) * self.hits

    @property
    def adds_up(self) -> bool | None:
        """What memory was too short to keep came from the device: together they gave every byte."""
        if self.cached is None or self.device is None:
            return None
        return self.cached + self.device >= (1 - BALANCE_TOLERANCE) * self.hits


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
        return [missing("no warm read in this run", NOT_HERE)]
    if _reads_past_the_page_cache(case):
        return [
            missing(
                "this arm reads with O_DIRECT, past the page cache",
                "Its warm reads do reach the device; another arm of the block is the control.",
            )
        ]
    requests = _requests(case, control)
    expectation = case.run.expectation
    hits = sum(row[2] for row in requests) * expectation.chunk_bytes // expectation.chunk_tokens
    if not hits:
        return [missing("the warm read hit nothing", "A control that loads no KV shows nothing.")]
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
    shared = sum(bool(row[3]) for row in requests)
    return Check(
        arithmetic=f"N = {len(requests)}, of sessions a cell uses {shared} = 0",
        held=None if shared else True,
        otherwise="A control on a cell's own sessions shows what that cell left behind.",
    )


def _drop_ran(case: Case, control: Control) -> Check:
    """What refuses the control must be its numbers, not that nobody dropped."""
    ends = [one for one in case.events("control_drop_end") if one.mono_ns <= control.begin_ns]
    code = ends[-1].detail.get("rc") if ends else None
    return Check(
        arithmetic=f"drop before the control returned {code}",
        held=True if code == 0 else None,
        otherwise="Without a drop of its own the control would be refused for that, not by bytes.",
    )


def _through_the_page_cache(case: Case, control: Control, hits: int) -> Check:
    """The engine read files; a tier in DRAM would have answered without."""
    processes = case.rows(
        "SELECT DISTINCT device FROM probes WHERE run_id = $run AND probe = 'process' "
        "AND counter = 'rchar'"
    )
    window = Window(begin_ns=control.begin_ns, end_ns=control.end_ns)
    each = [case.grown("process", name, "rchar", window) for (name,) in processes]
    known = [size for size in each if size is not None]
    if not known:
        return missing("rchar around the warm read not known", "The process probe is silent.")
    read = sum(known)
    return Check(
        arithmetic=f"the engine's processes read {read} B of files >= "
        f"{1 - BALANCE_TOLERANCE} of {hits} B hit",
        held=True if read >= (1 - BALANCE_TOLERANCE) * hits else None,
        otherwise="The hits came from a tier in DRAM: it was not flushed before the control.",
    )


def _refused(case: Case, control: Control, hits: int) -> list[Check]:
    """What C3 and C4 say of the control, by their own code: both must say no."""
    drop = case.event("control_drop_end")
    files = files_at(case, WARM_READ, drop.mono_ns if drop else 0, control.begin_ns)
    known = [row[2] for row in files if row[2] is not None]
    seen = WarmRead(
        hits=hits,
        cached=sum(known) if files and len(known) == len(files) else None,
        device=case.read_bytes(case.run.kv_device, "control", control.occurrence),
    )
    c3 = resident(files) if files else missing("residency at the warm read not known", "")
    c4 = engine_against_device(case, hits, seen.device)
    return [_says_no("C3", c3, _c3(c3, seen)), _says_no("C4", c4, _c4(c4, seen))]


def _c3(c3: Check, seen: WarmRead) -> tuple[bool | None, str]:
    """No file above the limit: C3 is blind, unless the device shows that they really were cold."""
    if c3.held is None:
        return None, "Residency of the files was not measured."
    if c3.held is False and seen.adds_up is False:
        return False, "Page cache and device together gave fewer bytes than were hit."
    if c3.held is False:
        return True, ""
    if seen.looks_cold is None:
        return None, "Files known to be cached were not seen so, and no device counter says more."
    if not seen.looks_cold:
        return False, "Files that were read from the page cache were not seen in it: C3 is blind."
    return (
        None,
        "Files known to be cached were not, and the device gave them: nothing is shown.",
    )


def _c4(c4: Check, seen: WarmRead) -> tuple[bool | None, str]:
    """As many bytes from the device as were hit, though the files were in the page cache."""
    if seen.looks_cold is None or c4.held is None:
        return None, "The disk probe is silent around the warm read."
    if not seen.looks_cold:
        return True, ""
    if seen.was_warm:
        return False, "A read known to be warm balances like a cold one: C4 proves nothing here."
    return None, "The page cache did not hold what was read into it: the read was not warm."


def _says_no(rule_id: str, asked: Check, answer: tuple[bool | None, str]) -> Check:
    held, otherwise = answer
    word = {True: "holds", False: "is refuted", None: "is unknown"}[asked.held]
    return Check(arithmetic=f"{rule_id} {word}: {asked.arithmetic}", held=held, otherwise=otherwise)


def random_prompt_hits_nothing(case: Case) -> list[Check]:
    """N2: a prompt that nobody populated hits 0 tokens."""
    control = find_control(case, RANDOM_PROMPT)
    if control is None:
        return [missing("no random prompt in this run", NOT_HERE)]
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
        _own_sessions(requests),
        Check(
            arithmetic=f"{len(seen)} random prompts, most hit tokens {most} = 0",
            held=most == 0,
            otherwise="A prompt nobody populated was found in the cache: hits prove nothing here.",
        ),
    ]
