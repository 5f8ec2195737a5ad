"""The four gates of the vendor's joint test, judged from run directories.

G1 every drive of the array is recognised: distinct drives in the probes' own topology.
G2 R1 within 10 % either way, and 83 % line efficiency of a fio stress in the same session.
G3 TTFT reduced by at least 25 % and throughput up by 29 to 40 %, at every level that was run.
G4 72 hours without interruption and faults nobody notices: not yet measurable here.

The limits are the published figures `gate.*`; nothing is widened. A gate is as good as its worst
item, and an item that nothing measured is not passed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from r8.claims.measured import Measure, measure_of
from r8.claims.printed import printed_numbers
from r8.claims.reader import LOOKS, MIN_BLOCKS
from r8.errors import UsageError
from r8.forensics.certificate import objections
from r8.message import Answer, Check, Message, parse_reason
from r8.model import Claim, Outcome
from r8.roles import Role
from r8.verdict.diff import claim_of
from r8.verdict.judge import judge_session, of_a_rehearsal, ordered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from r8.claims.ledger import Ledger
    from r8.claims.reports import Reports
    from r8.message import Fact
    from r8.model import Reason, Run, Verdict
    from r8.verdict.session import Session

GATES = ("G1", "G2", "G3", "G4")
R1_SCENARIO = "r1-parallel-read"
G3_SCENARIOS = ("r2-cold-recovery", "r3-tp4x2")
# Kinds of the topology probe that are one drive each; a partition or a path is a part of one.
DRIVE_KINDS = ("disk", "nvme-head")
# Drives below the KV device, by run. A drive counts in the runs whose topology shows it.
_DRIVES = """
    WITH kinds AS (
        SELECT DISTINCT run_id, host, device FROM probes
        WHERE probe = 'topology' AND counter = 'kind' AND list_contains($kinds, text)
    ),
    members AS (
        SELECT DISTINCT p.run_id, p.host, unnest(string_split(p.text, ',')) AS device
        FROM probes p JOIN runs r USING (run_id)
        WHERE p.probe = 'topology' AND p.counter = 'members' AND p.device = r.kv_device
          AND p.text <> ''
    )
    SELECT run_id, count(DISTINCT device)
    FROM members SEMI JOIN kinds USING (run_id, host, device)
    GROUP BY run_id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateItem:
    """One condition of a gate and what the runs say."""

    name: str
    outcome: Outcome
    reasons: tuple[Reason, ...]


def gate(
    name: str, session: Session, ledger: Ledger, reports: Reports, line_bytes_per_s: float | None
) -> list[GateItem]:
    """The items of one gate.

    Args:
        name: G1 to G4.
        session: the runs, certified.
        ledger: published figures; the limits are read from it.
        reports: comparability keys.
        line_bytes_per_s: rate of the line to the array; None: the published port, where the runs'
            array is the published one.

    Raises:
        UsageError: no such gate.

    """
    if name == "G1":
        return [_drives(session, ledger)]
    if name == "G2":
        claims = _within_r1(session, ledger, reports)
        return [*claims, _line_efficiency(session, ledger, reports, line_bytes_per_s)]
    if name == "G3":
        return _joint(session, ledger, reports)
    if name == "G4":
        hours = ledger.figures["gate.g4.hours"].as_printed
        return [_item("G4", Outcome.NOT_MEASURED, "gate-g4", printed=hours)]
    raise UsageError(
        f"no gate {name!r}", where="r8 gate", next_step=f"choose one of {', '.join(GATES)}"
    )


def _item(name: str, outcome: Outcome, entry: str, **facts: Fact) -> GateItem:
    return GateItem(name=name, outcome=outcome, reasons=(Message(id=entry, facts=facts),))


def _limit(ledger: Ledger, figure_id: str) -> float:
    value = ledger.figures[figure_id].value
    if value is None:
        raise UsageError(
            f"the limit {figure_id} has no value",
            where=ledger.where,
            next_step="correct the ledger",
        )
    return float(value)


def _foreign(name: str, runs: Sequence[Run]) -> GateItem | None:
    """A gate of a real array has nothing to say about a rehearsal."""
    why = of_a_rehearsal(runs)
    if why is None:
        return None
    about = Message(id="gate-of-array")
    return GateItem(name=name, outcome=Outcome.NOT_COMPARABLE, reasons=(about, why))


# ---------------------------------------------------------------- G1


def _drives(session: Session, ledger: Ledger) -> GateItem:
    foreign = _foreign("drives", session.runs)
    if foreign is not None:
        return foreign
    wanted = round(_limit(ledger, "gate.g1.drives"))
    rows = session.connection.execute(_DRIVES, {"kinds": list(DRIVE_KINDS)}).fetchall()
    by_run = dict(rows)
    if not by_run:
        return _item("drives", Outcome.INVALID, "gate-no-topology")
    fewest = min(int(by_run.get(run.run_id, 0)) for run in session.runs)
    drives = Check(
        quantity="drives of the array",
        measured=fewest,
        op=">=",
        limit=wanted,
        unit="drives",
        message="gate-drives",
    )
    outcome = Outcome.REPRODUCED if drives.answer is Answer.HELD else Outcome.DEVIATES
    return GateItem(name="drives", outcome=outcome, reasons=(drives,))


# ---------------------------------------------------------------- G2


def _within_r1(session: Session, ledger: Ledger, reports: Reports) -> list[GateItem]:
    """R1's parallel-read figures, each within the gate's tolerance on both sides."""
    tolerance = _limit(ledger, "gate.g2.tolerance") / 100
    claims = [
        replace(claim_of(figure, found, "R1"), kind="value", tolerance=tolerance)
        for figure in ledger.of("R1")
        if figure.scenario == R1_SCENARIO
        for found in [measure_of(ledger, reports, figure)]
        if isinstance(found, Measure)
    ]
    return [_judged(verdict) for verdict in judge_session(session, claims)]


def _judged(verdict: Verdict) -> GateItem:
    published = Message(id="gate-published", facts={"claimed": verdict.claim.as_printed})
    reasons = (published, *verdict.reasons)
    return GateItem(name=verdict.claim.claim_id, outcome=verdict.outcome, reasons=reasons)


def _line_efficiency(
    session: Session, ledger: Ledger, reports: Reports, line_bytes_per_s: float | None
) -> GateItem:
    """The fio ceiling of each run over the line rate, against the published share."""
    name = "line-efficiency"
    runs = [run for run in session.runs if run.scenario == R1_SCENARIO]
    if not runs:
        return _item(name, Outcome.NOT_MEASURED, "gate-no-run", scenario=R1_SCENARIO)
    foreign = _foreign(name, runs)
    if foreign is not None:
        return foreign
    line = line_bytes_per_s or _published_line(runs, ledger, reports)
    if line is None:
        return _item(name, Outcome.NOT_COMPARABLE, "gate-no-line")
    refused = ordered(objections(runs, session.findings, session.runs))
    if refused:
        return GateItem(name=name, outcome=Outcome.INVALID, reasons=refused)
    shares = []
    for run in runs:
        found = session.value(run, "ceiling_bandwidth", phase="calibration")
        if found.value is None:
            silent = Message(id="gate-no-stress", facts={"run": run.run_id})
            why = [parse_reason(found.reason)] if found.reason else []
            return GateItem(name=name, outcome=Outcome.INVALID, reasons=(silent, *why))
        shares.append(found.value / line)
    return _of_line(name, shares, _limit(ledger, "gate.g2.line") / 100, line)


def _of_line(name: str, shares: Sequence[float], wanted: float, line: float) -> GateItem:
    """Passed when the slowest run reaches the share, failed when not even the fastest does."""
    about = Message(id="gate-line", facts={"runs": len(shares), "line_bytes_per_s": line})
    slowest, fastest = (
        Check(
            quantity="ceiling_bandwidth / line",
            measured=share,
            op=">=",
            limit=wanted,
            unit="share",
            message=message,
        )
        for share, message in (
            (min(shares), "gate-line-slowest"),
            (max(shares), "gate-line-fastest"),
        )
    )
    outcome = Outcome.INCONCLUSIVE
    if slowest.answer is Answer.HELD:
        outcome = Outcome.REPRODUCED
    elif fastest.answer is not Answer.HELD:
        outcome = Outcome.DEVIATES
    return GateItem(name=name, outcome=outcome, reasons=(about, slowest, fastest))


def _published_line(runs: Sequence[Run], ledger: Ledger, reports: Reports) -> float | None:
    """The published port's rate, where every run names the published array."""
    published = reports.scenarios[R1_SCENARIO].comparability.get("array")
    if published is None or any(run.comparability.get("array") != published for run in runs):
        return None
    return float(ledger.figures["dev.port"].quantity().enclosure.middle)


# ---------------------------------------------------------------- G3


def _joint(session: Session, ledger: Ledger, reports: Reports) -> list[GateItem]:
    reduction = _limit(ledger, "gate.g3.ttft") / 100
    band = [float(one.value) / 100 for one in printed_numbers(_printed(ledger, "gate.g3.tput"))]
    cells = sorted({(run.scenario, f"c{run.concurrency}") for run in session.runs})
    wanted = [cell for cell in cells if cell[0] in G3_SCENARIOS]
    if not wanted:
        scenarios = ", ".join(G3_SCENARIOS)
        return [_item("G3", Outcome.NOT_MEASURED, "gate-no-run", scenario=scenarios)]
    claims = []
    for scenario, level in wanted:
        arms = {one.role: one.run for one in reports.scenarios[scenario].arms.values()}
        array, local = arms.get(Role.ARRAY) or arms[Role.POOL], arms[Role.LOCAL]
        # A reduction by r is a ratio of at least 1 / (1 - r).
        least = 1 / (1 - reduction)
        claim = _claim(f"{scenario} {level} ttft", scenario, level, (local, array), least)
        claims.append(replace(claim, as_printed=f">={reduction:.0%}"))
        least = 1 + band[0]
        claim = _claim(f"{scenario} {level} throughput", scenario, level, (array, local), least)
        claims.append(
            replace(
                claim,
                kind="band",
                metric="output_throughput",
                statistic="",
                high=1 + band[1],
                as_printed=_printed(ledger, "gate.g3.tput"),
            )
        )
    nodes = _printed(ledger, "gate.g3.nodes")
    shared = _item("nodes", Outcome.NOT_MEASURED, "gate-nodes", printed=nodes)
    return [*(_judged(one) for one in judge_session(session, claims)), shared]


def _printed(ledger: Ledger, figure_id: str) -> str:
    return ledger.figures[figure_id].as_printed


def _claim(name: str, scenario: str, level: str, arms: tuple[str, str], low: float) -> Claim:
    return Claim(
        claim_id=name,
        source="gate G3",
        kind="at-least",
        scenario=scenario,
        metric="ttft",
        numerator_arm=arms[0],
        denominator_arm=arms[1],
        level=level,
        low=low,
        high=None,
        unit="x",
        tolerance=0,
        as_printed="",
        figure_ids=("gate.g3.ttft", "gate.g3.tput"),
        comparability={},
        min_blocks=MIN_BLOCKS,
        looks=LOOKS,
    )
