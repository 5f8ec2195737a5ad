"""Synthetic runs with a cluster's keys: made up, so that published claims can be judged at all.

Nothing here was measured. The keys say platform, engine and model of the report; the times are
given by the test. `r2_blocks` makes real run directories; `told` makes a session whose metrics are
told and whose certificates are all held, where only the judging is under test.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from r8.claims.reports import load_reports
from r8.forensics.rules import RULES
from r8.message import Answer
from r8.model import Basis
from r8.tests.support.findings import finding_of
from r8.tests.support.judged_run import judged_run
from r8.tests.support.run_factory import SyntheticRun, synthetic_run
from r8.verdict.session import Session, Value

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from r8.evidence.reader import Evidence
    from r8.model import Run

R1, R2 = "r1-parallel-read", "r2-cold-recovery"
S = 1_000_000_000
OUTPUT_TOKENS = 64
ITL_S = 0.02


def cluster_spec(
    scenario: str, arm: str, block: int, ttft_s: float, **changes: Any
) -> SyntheticRun:
    """One cell at concurrency 8 in which every session has (nearly) the same TTFT."""
    spec: dict[str, Any] = {
        "campaign_id": "cluster-1",
        "scenario": scenario,
        "arm": arm,
        "block": block,
        "concurrency": 8,
        "basis": Basis.MEASURED,
        "fallback_level": "cluster",
        "comparability": dict(load_reports().scenarios[scenario].comparability),
        "ttft_s": tuple(ttft_s + 0.001 * number for number in range(-3, 5)),
        "warm_ttft_s": (0.5,) * 8,
        "read_s": ttft_s * 0.9,
        "itl_s": ITL_S,
        "output_tokens": OUTPUT_TOKENS,
    }
    return SyntheticRun(**{**spec, **changes})


def cluster_run(root: Path, scenario: str, arm: str, block: int = 0, **changes: Any) -> Evidence:
    """A sealed run directory of such a cell."""
    return judged_run(root, cluster_spec(scenario, arm, block, 7.53, **changes))


def r2_blocks(root: Path, array_s: float = 7.53, local_s: float = 10.17) -> list[Evidence]:
    """Five blocks of both arms; the times wander by a thousandth from block to block."""
    return [
        judged_run(root, cluster_spec(R2, arm, block, seconds * (1 + 0.001 * (block % 3))))
        for block in range(5)
        for arm, seconds in (("array", array_s), ("local-nvme", local_s))
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldSession(Session):
    """A fake session: TTFT by run id as told, throughput and ceiling from it, nothing else."""

    ttft_s: Mapping[str, float]
    ceiling_bytes_per_s: Mapping[int, float | None]  # by block

    def value(
        self, run: Run, metric: str, statistic: str | None = None, *, phase: str = "measure"
    ) -> Value:
        """The told number of a run."""
        ttft_s = self.ttft_s[run.run_id]
        throughput = run.concurrency * OUTPUT_TOKENS / (ttft_s + (OUTPUT_TOKENS - 1) * ITL_S)
        told: dict[str, tuple[float | None, str]] = {
            "ttft": (ttft_s * S, "ns"),
            "output_throughput": (throughput, "tokens/s"),
            "ceiling_bandwidth": (self.ceiling_bytes_per_s.get(run.block), "bytes/s"),
        }
        value, unit = told.get(metric, (None, ""))
        reason = None if value is not None else f"no_values on={metric}"
        return Value(value=value, unit=unit, n=8, estimator="told", reason=reason)


def told(
    scenario: str,
    arms: Mapping[str, float],
    *,
    blocks: int = 5,
    ceilings: Mapping[int, float | None] | None = None,
    answer: Answer = Answer.HELD,
    **changes: Any,
) -> ToldSession:
    """Arm to TTFT in s; every rule answers `answer` for every run."""
    runs: list[Run] = []
    ttft_s: dict[str, float] = {}
    for block in range(blocks):
        for order, (arm, seconds) in enumerate(arms.items()):
            spec = cluster_spec(scenario, arm, block, seconds, **changes)
            run = replace(synthetic_run(spec), order=order)
            runs.append(run)
            ttft_s[run.run_id] = seconds * (1 + 0.001 * (block % 3))
    findings = tuple(finding_of(rule.rule_id, run.run_id, answer) for run in runs for rule in RULES)
    return ToldSession(
        runs=tuple(runs),
        findings=findings,
        connection=None,
        ttft_s=ttft_s,
        ceiling_bytes_per_s=ceilings or {},
    )
