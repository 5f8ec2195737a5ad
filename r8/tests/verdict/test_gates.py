"""Gates pass only what was measured, inside limits nobody widened."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from r8.claims.ledger import load_ledger
from r8.claims.reports import load_reports
from r8.cli import main as cli
from r8.cli.audit import gate_code, newest
from r8.errors import UsageError
from r8.message import Answer, Check, Message
from r8.model import Basis, Outcome
from r8.tests.support.cluster_runs import R1, R2, cluster_run, told
from r8.tests.support.findings import all_held
from r8.verdict.gates import GateItem, gate
from r8.verdict.session import Session, open_session

if TYPE_CHECKING:
    from pathlib import Path

LEDGER, REPORTS = load_ledger(), load_reports()
PORT = 12_500_000_000


def items(name: str, session: Session, line: float | None = None) -> dict[str, GateItem]:
    return {one.name: one for one in gate(name, session, LEDGER, REPORTS, line)}


def measured(item: GateItem, message: str) -> Any:
    """What the check of that message measured."""
    checks = [one for one in item.reasons if isinstance(one, Check) and one.message == message]
    return checks[0].measured


def r1(patched_s: float = 9.3, **changes: Any) -> Session:
    times = {"unpatched": 37.97, "patched": patched_s}
    return told(R1, times, **({"concurrency": 16} | changes))


def r2(array_s: float = 7.53, **changes: Any) -> Session:
    return told(R2, {"array": array_s, "local-nvme": 10.17}, **changes)


def g1(root: Path, *members: tuple[str, ...]) -> GateItem:
    runs = [
        cluster_run(root, R1, "patched", block, concurrency=16, kv_members=names)
        for block, names in enumerate(members)
    ]
    (item,) = items("G1", open_session(runs)).values()
    return item


# ---------------------------------------------------------------- G1


@pytest.mark.parametrize(
    ("drives", "outcome"),
    [(24, Outcome.REPRODUCED), (23, Outcome.DEVIATES), (25, Outcome.REPRODUCED)],
)
def test_g1_counts_the_drives_below_the_device(
    tmp_path: Path, drives: int, outcome: Outcome
) -> None:
    item = g1(tmp_path, tuple(f"nvme{number}n1" for number in range(drives)))
    assert item.outcome is outcome
    assert measured(item, "gate-drives") == drives


def test_g1_counts_a_drive_only_when_every_run_saw_it(tmp_path: Path) -> None:
    members = tuple(f"nvme{number}n1" for number in range(24))
    item = g1(tmp_path, members, members[:20])
    assert item.outcome is Outcome.DEVIATES
    assert measured(item, "gate-drives") == 20


def test_g1_without_members_in_the_topology_is_invalid(tmp_path: Path) -> None:
    assert g1(tmp_path, ()).outcome is Outcome.INVALID


# ---------------------------------------------------------------- G2


def test_g2_takes_r1_within_ten_per_cent_on_both_sides() -> None:
    good = items("G2", r1(9.3 * 1.08))
    assert good["r1.patch.ttft.after"].outcome is Outcome.REPRODUCED
    assert good["r1.patch.ttft.gain"].outcome is Outcome.REPRODUCED
    assert items("G2", r1(9.3 * 1.12))["r1.patch.ttft.after"].outcome is Outcome.DEVIATES
    fast = items("G2", r1(9.3 * 0.88))
    assert fast["r1.patch.ttft.after"].outcome is Outcome.DEVIATES
    assert fast["r1.patch.ttft.gain"].outcome is Outcome.DEVIATES


@pytest.mark.parametrize(
    ("shares", "outcome"),
    [
        ((0.84, 0.835), Outcome.REPRODUCED),
        ((0.83, 0.84), Outcome.REPRODUCED),
        ((10374999999 / PORT, 0.81), Outcome.DEVIATES),
        ((10374999999 / PORT, 0.83), Outcome.INCONCLUSIVE),
        ((0.82, 0.81), Outcome.DEVIATES),
        ((0.82, 0.84), Outcome.INCONCLUSIVE),
        ((0.84, None), Outcome.INVALID),
    ],
)
def test_g2_wants_83_per_cent_of_the_line_from_fio_in_every_run(
    shares: tuple[float | None, ...], outcome: Outcome
) -> None:
    ceilings = {block: share and share * PORT for block, share in enumerate(shares)}
    item = items("G2", r1(blocks=2, ceilings=ceilings))["line-efficiency"]
    assert item.outcome is outcome


def test_g2_says_what_the_slowest_and_the_fastest_run_reach() -> None:
    item = items("G2", r1(blocks=2, ceilings={0: 0.82 * PORT, 1: 0.84 * PORT}))["line-efficiency"]
    slowest, fastest = (measured(item, f"gate-line-{end}") for end in ("slowest", "fastest"))
    assert (slowest, fastest) == (pytest.approx(0.82), pytest.approx(0.84))
    about = {"runs": 4, "line_bytes_per_s": PORT}
    assert item.reasons[0] == Message(id="gate-line", facts=about)


def test_g2_names_the_run_without_a_stress_and_why() -> None:
    item = items("G2", r1(blocks=1, ceilings={0: None}))["line-efficiency"]
    assert [getattr(one, "id", "") for one in item.reasons] == ["gate-no-stress", "no_values"]


def limits(item: GateItem) -> list[Any]:
    """What the ends of the interval are held against."""
    return [one.limit for one in item.reasons if isinstance(one, Check)]


def test_the_limits_are_those_of_the_published_gates() -> None:
    seconds = limits(items("G2", r1())["r1.patch.ttft.after"])
    assert seconds == [pytest.approx(9.3 * 0.9e9), pytest.approx(9.3 * 1.1e9)]
    found = items("G3", r2())
    assert limits(found["r2-cold-recovery c8 ttft"]) == [pytest.approx(1 / 0.75)]
    band = [pytest.approx(1.29), pytest.approx(1.40)]
    assert limits(found["r2-cold-recovery c8 throughput"]) == band


def test_g2_needs_to_know_the_line_of_another_array() -> None:
    other = r1(blocks=1, comparability={"array": "mine"}, ceilings={0: PORT})
    assert items("G2", other)["line-efficiency"].outcome is Outcome.NOT_COMPARABLE
    assert items("G2", other, line=1.1 * PORT)["line-efficiency"].outcome is Outcome.REPRODUCED
    assert items("G2", other, line=1.3 * PORT)["line-efficiency"].outcome is Outcome.DEVIATES


@pytest.mark.parametrize("answer", [Answer.REFUTED, Answer.UNKNOWN])
def test_g2_refuses_evidence_without_a_certificate(answer: Answer) -> None:
    found = items("G2", r1(answer=answer, ceilings=dict.fromkeys(range(5), PORT)))
    assert {one.outcome for one in found.values()} == {Outcome.INVALID}


def test_g2_reads_the_stress_of_a_real_run_directory(tmp_path: Path) -> None:
    run = cluster_run(tmp_path, R1, "patched", concurrency=16, ceiling_bytes_per_s=PORT)
    session = open_session([run])
    held = all_held(session.findings)
    item = items("G2", replace(session, findings=held))["line-efficiency"]
    assert item.outcome is Outcome.REPRODUCED
    assert measured(item, "gate-line-slowest") == pytest.approx(1.0, rel=0.01)


# ---------------------------------------------------------------- G3


def test_g3_wants_the_reduction_and_the_band_at_every_level() -> None:
    found = items("G3", r2())
    assert found["r2-cold-recovery c8 ttft"].outcome is Outcome.REPRODUCED
    assert found["nodes"].outcome is Outcome.NOT_MEASURED
    assert gate_code(found.values()) != 0


@pytest.mark.parametrize(
    ("share", "outcome"), [(0.74, Outcome.REPRODUCED), (0.76, Outcome.DEVIATES)]
)
def test_g3_wants_a_reduction_of_25_per_cent(share: float, outcome: Outcome) -> None:
    assert items("G3", r2(10.17 * share))["r2-cold-recovery c8 ttft"].outcome is outcome


@pytest.mark.parametrize(
    ("gain", "outcome"),
    [(1.35, Outcome.REPRODUCED), (1.25, Outcome.DEVIATES), (1.45, Outcome.DEVIATES)],
)
def test_g3_wants_the_throughput_inside_the_band(gain: float, outcome: Outcome) -> None:
    # 64 tokens at 20 ms follow the TTFT, so the whole time of the array is (10.17 + 1.26) / gain.
    array_s = (10.17 + 63 * 0.02) / gain - 63 * 0.02
    assert items("G3", r2(array_s))["r2-cold-recovery c8 throughput"].outcome is outcome


def test_g3_without_its_scenarios_is_not_measured() -> None:
    (item,) = items("G3", r1()).values()
    assert item.outcome is Outcome.NOT_MEASURED


# ---------------------------------------------------------------- all


@pytest.mark.parametrize("name", ["G1", "G2", "G3"])
@pytest.mark.parametrize("changes", [{"basis": Basis.MODELLED}, {"fallback_level": "loop"}])
def test_a_rehearsal_passes_no_gate(name: str, changes: dict[str, Any]) -> None:
    session = r2(**changes) if name == "G3" else r1(**changes)
    found = items(name, session, line=PORT)
    allowed = {Outcome.NOT_COMPARABLE, Outcome.NOT_MEASURED}
    assert {one.outcome for one in found.values()} <= allowed
    assert gate_code(found.values()) == 5


def test_g4_is_listed_as_not_yet_measurable() -> None:
    (item,) = items("G4", r1()).values()
    assert item.outcome is Outcome.NOT_MEASURED
    assert item.reasons == (Message(id="gate-g4", facts={"printed": "72 hours"}),)


@pytest.mark.parametrize("name", ["G0", "G5", "G"])
def test_an_unknown_gate_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=f"no gate '{name}'"):
        items(name, r1())


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        ([Outcome.REPRODUCED, Outcome.REPRODUCED], 0),
        ([Outcome.REPRODUCED, Outcome.DEVIATES], 1),
        ([Outcome.REPRODUCED, Outcome.INCONCLUSIVE], 2),
        ([Outcome.DEVIATES, Outcome.INVALID], 3),
        ([Outcome.REPRODUCED, Outcome.NOT_MEASURED], 5),
        ([], 5),
    ],
)
def test_the_worst_item_decides_the_exit_code(outcomes: list[Outcome], code: int) -> None:
    found = [GateItem(name="x", outcome=one, reasons=(Message(id="gate-g4"),)) for one in outcomes]
    assert gate_code(found) == code


def test_the_command_prints_each_item_in_the_chosen_language(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(cluster_run(tmp_path, R1, "patched", concurrency=16).path)
    assert cli.main(["gate", "g4", path]) == 5
    assert "not yet measurable" in capsys.readouterr().out
    assert cli.main(["gate", "G4", path, "--lang", "zh"]) == 5
    assert "尚不可测" in capsys.readouterr().out
    assert cli.main(["gate", "G4", path, "--json"]) == 5
    assert '"exit_code": 5' in capsys.readouterr().out


def test_the_newest_campaign_is_the_one_that_started_last(tmp_path: Path) -> None:
    old = cluster_run(tmp_path, R1, "patched", 0, campaign_id="first")
    new = [
        cluster_run(tmp_path, R1, arm, 1, campaign_id="second") for arm in ("unpatched", "patched")
    ]
    assert newest([*new, old]) == new
