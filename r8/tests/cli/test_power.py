"""`r8 power`: what a plan can tell, from the reference runs or from an assumed spread."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from r8.claims.reader import load_claims
from r8.cli import main as cli
from r8.tests.support.judged_run import judged_run
from r8.tests.support.run_factory import SyntheticRun

if TYPE_CHECKING:
    from pathlib import Path

R1 = "r1-parallel-read"


def told(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    code = cli.main(["power", *argv])
    out, err = capsys.readouterr()
    return code, out, err


def test_the_reference_runs_are_the_pilot(capsys: pytest.CaptureFixture[str]) -> None:
    code, text, _ = told(capsys, R1)
    assert code == 0
    assert "basis: modelled, 6 blocks of 2 campaigns; simulated, seed 17, n = 4000" in text
    assert "an honest run of 3 blocks, about " in text
    code, out, _ = told(capsys, R1, "--blocks", "5", "--json")
    found = json.loads(out)
    assert (found["blocks"], found["reference_blocks"], found["draws"]) == (5, 6, 4000)
    assert found["basis"].startswith("modelled, 6 blocks")
    assert found["block_ns"] > 60e9
    ids = [row["claim"] for row in found["claims"]]
    assert "reference.ttft-ratio" in ids
    assert all(0 <= row["chance_reproduced"] <= 1 for row in found["claims"])


def test_an_assumed_spread_is_no_measurement(capsys: pytest.CaptureFixture[str]) -> None:
    code, text, _ = told(capsys, R1, "--spread", "2%")
    assert code == 0
    assert "basis: an assumed spread, nothing was measured" in text
    assert "for 90%: 5 blocks\n" in text
    _, text, _ = told(capsys, R1, "--spread", "0.3")
    assert "for 80%: more than 60 blocks; no plan decides it" in text
    assert "what decides it: reference.ttft-ratio" in text


@pytest.mark.parametrize(
    ("argv", "named"),
    [
        (("r5",), "name one of r1-checkpoint"),
        ((R1, "--pilot", "/nowhere"), "/nowhere"),
        ((R1, "--spread", "1%", "--blocks", "1"), "a plan has 2 to 60"),
        ((R1, "--spread", "1%", "--blocks", "61"), "a plan has 2 to 60"),
        ((R1, "--spread", "1%", "--reference-blocks", "1"), "a plan has 2 to 60"),
    ],
)
def test_what_cannot_be_asked_is_one_line(
    capsys: pytest.CaptureFixture[str], argv: tuple[str, ...], named: str
) -> None:
    code, out, err = told(capsys, *argv)
    assert (code, out) == (4, "")
    assert named in err
    assert err.count("\n") == 1


def test_a_pilot_that_a_rule_refuses_is_none(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Its device was faster than its link."""
    run = judged_run(tmp_path, SyntheticRun(link_bytes_per_s=2_000_000))
    code, _, err = told(capsys, R1, "--pilot", str(run.path))
    assert code == 4
    assert "rule C9 refuses a run of the pilot" in err


@pytest.mark.parametrize("scenario", sorted({one.scenario for one in load_claims()}))
def test_a_spread_can_be_assumed_of_every_scenario(
    capsys: pytest.CaptureFixture[str], scenario: str
) -> None:
    assert told(capsys, scenario, "--spread", "1%", "--blocks", "5")[0] == 0


@pytest.mark.parametrize("spread", ["0", "51%", "much"])
def test_a_spread_is_a_share(capsys: pytest.CaptureFixture[str], spread: str) -> None:
    with pytest.raises(SystemExit) as stopped:
        told(capsys, R1, "--spread", spread)
    assert stopped.value.code == 4
    assert "is no share from 0 to 50%" in capsys.readouterr().err
