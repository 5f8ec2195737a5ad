"""A claim speaks of the arm it names, or of every arm of the role it names; of nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from r8.claims.ledger import load_ledger
from r8.claims.reader import load_claims, read_claims
from r8.claims.reports import load_reports
from r8.errors import UsageError
from r8.model import Basis, Claim, Outcome, Run
from r8.report.words import render_reasons
from r8.roles import Role
from r8.tests.support.run_factory import SyntheticRun, synthetic_run
from r8.tests.verdict.told_session import FakeSession, ids, ratio_claim, session_of
from r8.verdict.addressed import addressed, of_reference
from r8.verdict.judge import judge_session

if TYPE_CHECKING:
    from pathlib import Path

    from r8.model import Verdict

SCENARIO = "r2-cold-recovery"
TTFT_S = {"array": 7.0, "array-rdma": 5.0, "local-nvme": 10.0, "nvme0": 12.0, "pool-cross": 1.0}
ROLES = {
    "array": Role.ARRAY,
    "array-rdma": Role.ARRAY,
    "local-nvme": Role.LOCAL,
    "nvme0": Role.LOCAL,
    "pool-cross": Role.NEGATIVE,
}


def runs(*arms: str, n: int = 5, level: int = 16, campaign: str = "c") -> list[Run]:
    return [
        synthetic_run(
            SyntheticRun(
                campaign_id=campaign,
                run_id=f"{campaign}-b{block}-{arm}-c{level}",
                scenario=SCENARIO,
                block=block,
                arm=arm,
                role=ROLES[arm],
                basis=Basis.MEASURED,
                fallback_level="cluster",
                concurrency=level,
            )
        )
        for block in range(n)
        for arm in arms
    ]


def session(*arms: str, campaign: str = "c") -> FakeSession:
    found = runs(*arms, campaign=campaign)
    spread = (1.0, 1.01, 0.99, 1.005, 0.995)
    return session_of(found, {arm: [TTFT_S[arm] * one for one in spread] for arm in arms})


def claim(*arms: str, **changes: object) -> Claim:
    sides = {"numerator_arm": arms[0], "denominator_arm": arms[1] if len(arms) > 1 else None}
    return ratio_claim(**{"scenario": SCENARIO, "low": 1.3, "looks": 1} | sides | changes)


def arms_of(found: tuple[Claim, ...]) -> list[tuple[str, str, str | None]]:
    return [(one.claim_id, one.numerator_arm, one.denominator_arm) for one in found]


LOCAL_OVER_ARRAY = claim("role:local", "role:array")


def test_a_role_is_met_by_the_one_arm_that_has_it_whatever_its_name() -> None:
    for names in (("array", "local-nvme"), ("array-rdma", "nvme0")):
        found = addressed(LOCAL_OVER_ARRAY, runs(*names))
        assert arms_of(found) == [("gain", names[1], names[0])]


def test_a_role_of_several_arms_is_several_claims_that_say_their_arms() -> None:
    found = addressed(LOCAL_OVER_ARRAY, runs("array", "array-rdma", "local-nvme"))
    assert arms_of(found) == [
        ("gain@local-nvme/array", "local-nvme", "array"),
        ("gain@local-nvme/array-rdma", "local-nvme", "array-rdma"),
    ]
    (alone, other) = addressed(claim("role:array"), runs("array", "array-rdma"))
    assert (alone.claim_id, other.claim_id) == ("gain@array", "gain@array-rdma")


def test_a_name_is_never_met_by_another_arm_of_the_same_role() -> None:
    by_name = claim("local-nvme", "array")
    assert addressed(by_name, runs("array-rdma", "local-nvme")) == (by_name,)
    mixed = addressed(claim("local-nvme", "role:array"), runs("array-rdma", "local-nvme", "nvme0"))
    assert arms_of(mixed) == [("gain", "local-nvme", "array-rdma")]


def test_only_runs_of_the_claims_scenario_and_level_say_who_has_the_role() -> None:
    other_level = runs("array-rdma", level=8)
    found = addressed(LOCAL_OVER_ARRAY, [*runs("array", "local-nvme"), *other_level])
    assert arms_of(found) == [("gain", "local-nvme", "array")]
    elsewhere = [replace(one, scenario="r4-mine") for one in runs("array-rdma")]
    assert arms_of(addressed(LOCAL_OVER_ARRAY, [*runs("array", "local-nvme"), *elsewhere])) == [
        ("gain", "local-nvme", "array")
    ]


def verdicts(
    asked: Claim, here: FakeSession, reference: FakeSession | None = None
) -> list[Verdict]:
    return list(judge_session(here, [asked], reference))


def test_an_arm_of_the_site_is_judged_as_the_arm_of_the_page_is() -> None:
    (named,) = verdicts(LOCAL_OVER_ARRAY, session("array", "local-nvme"))
    assert named.outcome is Outcome.REPRODUCED
    assert named.estimate == pytest.approx(10 / 7)
    (own,) = verdicts(LOCAL_OVER_ARRAY, session("array-rdma", "local-nvme"))
    assert own.outcome is Outcome.REPRODUCED
    assert own.estimate == pytest.approx(2.0)
    both = verdicts(LOCAL_OVER_ARRAY, session("array", "array-rdma", "local-nvme"))
    assert [one.estimate for one in both] == [pytest.approx(10 / 7), pytest.approx(2.0)]


def test_a_role_that_no_run_has_is_not_measured() -> None:
    (found,) = verdicts(LOCAL_OVER_ARRAY, session("array"))
    assert found.outcome is Outcome.NOT_MEASURED
    assert ids(found) == ["verdict-no-arm"]
    assert "role:local" in render_reasons(found.reasons, "en")


def test_reference_runs_are_met_by_the_same_name_or_by_the_one_arm_of_the_role() -> None:
    asked = claim("role:array")
    (judged,) = addressed(asked, runs("array-rdma"))
    one, same = runs("array"), runs("array", "array-rdma")
    assert of_reference(asked, judged, one).numerator_arm == "array"
    assert of_reference(asked, judged, same).numerator_arm == "array-rdma"
    for name in ("array", "array-rdma"):
        (first,) = addressed(asked, runs(name))
        assert of_reference(asked, first, same).numerator_arm == name
    # Two arms of the role and none of the name: neither stands in.
    (nvme,) = addressed(claim("role:local"), runs("nvme0"))
    several = [replace(run, role=Role.LOCAL) for run in same]
    assert of_reference(claim("role:local"), nvme, several).numerator_arm == "nvme0"


def test_an_equivalence_is_judged_against_the_references_own_arm_of_the_role() -> None:
    asked = claim("role:local", "role:array", kind="equivalence", low=1.0, source="reference")
    here = session("array-rdma", "nvme0")
    (found,) = verdicts(asked, here, session("array", "local-nvme", campaign="reference"))
    assert found.outcome in {Outcome.DEVIATES, Outcome.INCONCLUSIVE, Outcome.REPRODUCED}
    assert found.estimate == pytest.approx((12 / 5) / (10 / 7))


@pytest.mark.parametrize(("side", "said"), [("role:negative", "negative"), ("role:arry", "arry")])
def test_a_claim_about_a_role_that_nobody_judges_or_knows_is_refused(
    tmp_path: Path, side: str, said: str
) -> None:
    path = tmp_path / "claims-x.toml"
    path.write_text(
        'format = 2\n[[claim]]\nclaim_id = "x"\nsource = "rehearsal"\nkind = "at-least"\n'
        f'scenario = "s"\nmetric = "ttft"\narms = ["{side}"]\nlevel = "c8"\nunit = ""\n'
        'as_printed = "-"\n'
    )
    with pytest.raises(UsageError, match=said):
        read_claims(path, load_ledger(), load_reports())


def test_the_claims_of_r2_speak_of_roles_and_those_of_a_treatment_of_names() -> None:
    def sides(scenario: str) -> set[str | None]:
        found = load_claims(scenario)
        return {arm for one in found for arm in (one.numerator_arm, one.denominator_arm)} - {None}

    assert sides("r2-cold-recovery") == {"role:array", "role:local", "role:recompute"}
    assert sides("r1-parallel-read") == {"unpatched", "patched", "upstream-32"}
