"""A session whose metrics are told, and the claims and runs that the tests of the judge share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from r8.forensics.rules import RULES
from r8.message import Answer, Message
from r8.model import Basis, Claim, Finding, Run
from r8.tests.support.findings import finding_of
from r8.tests.support.run_factory import SyntheticRun, synthetic_run
from r8.verdict.judge import judge_session
from r8.verdict.session import Session, Value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from r8.model import Verdict

S = 1e9
KEYS = {"platform": "P", "model": "M"}
ARMS = ("unpatched", "patched")


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeSession(Session):
    """A session whose metrics are told instead of computed."""

    told: dict[tuple[str, str], tuple[float, str]]

    def value(
        self, run: Run, metric: str, statistic: str | None = None, *, phase: str = "measure"
    ) -> Value:
        found = self.told.get((run.run_id, metric))
        if found is None:
            return Value(value=None, unit="", n=0, estimator="", reason="no_values")
        return Value(value=found[0], unit=found[1], n=16, estimator="told", reason=None)


def cluster_run(block: int, arm: str) -> Run:
    spec = SyntheticRun(
        block=block, arm=arm, basis=Basis.MEASURED, fallback_level="cluster", concurrency=16
    )
    return replace(synthetic_run(spec), comparability=KEYS)


def session_of(
    runs: Sequence[Run], ttft_s: Mapping[str, Sequence[float]], **spoiled: Answer
) -> FakeSession:
    """Runs with TTFT p50 by arm and block; every rule held but the spoiled ones of every run."""
    told: dict[tuple[str, str], tuple[float, str]] = {}
    for run in runs:
        told[run.run_id, "ttft"] = (ttft_s[run.arm][run.block] * S, "ns")
        told[run.run_id, "device_read_bytes"] = (0.0, "bytes")
    findings = tuple(
        finding_of(rule.rule_id, run.run_id, spoiled.get(rule.rule_id, Answer.HELD))
        for run in runs
        for rule in RULES
    )
    return FakeSession(
        runs=tuple(runs),
        findings=findings,
        connection=None,
        told=told,
    )


def ratio_claim(**changes: object) -> Claim:
    claim = Claim(
        claim_id="gain",
        source="R1",
        kind="at-least",
        scenario="r1-parallel-read",
        metric="ttft",
        numerator_arm="unpatched",
        denominator_arm="patched",
        level="c16",
        low=4.1,
        high=None,
        unit="x",
        tolerance=0.05,
        as_printed="4.1x",
        figure_ids=("r1.patch.ttft.gain",),
        comparability={},
        min_blocks=5,
        looks=2,
    )
    return replace(claim, **changes)  # type: ignore[arg-type]


def value_claim(**changes: object) -> Claim:
    absolute = ratio_claim(
        claim_id="before",
        kind="value",
        denominator_arm=None,
        low=37.97,
        unit="s",
        comparability=KEYS,
        min_blocks=2,
        looks=1,
    )
    return replace(absolute, **changes)  # type: ignore[arg-type]


def blocks(n: int) -> list[Run]:
    return [cluster_run(block, arm) for block in range(n) for arm in ARMS]


def judged(session: FakeSession, claim: Claim, reference: FakeSession | None = None) -> Verdict:
    (verdict,) = judge_session(session, [claim], reference)
    return verdict


def ids(verdict: Verdict) -> list[str]:
    """Ids of the reasons, findings aside."""
    return [
        one.id if isinstance(one, Message) else one.message
        for one in verdict.reasons
        if not isinstance(one, Finding)
    ]


def facts(verdict: Verdict, entry: str) -> dict[str, Any]:
    """Facts of the one reason of that id."""
    (found,) = [
        one.facts
        for one in verdict.reasons
        if not isinstance(one, Finding)
        and entry == (one.id if isinstance(one, Message) else one.message)
    ]
    return dict(found)


STEADY = {"unpatched": [38.0, 38.2, 37.9, 38.1, 38.0], "patched": [9.3, 9.2, 9.3, 9.25, 9.3]}
