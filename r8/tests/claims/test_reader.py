"""Claims are read strictly, and say what the figures say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from r8.claims.reader import is_published, load_claims, load_figures, read_claims
from r8.errors import UsageError
from r8.resources import published_path

if TYPE_CHECKING:
    from pathlib import Path

GOOD = """
format = 1
[common]
source = "R1"
scenario = "r1-parallel-read"
level = "c16"
comparability = {}
[[claim]]
claim_id = "gain"
kind = "at-least"
metric = "ttft"
numerator_arm = "unpatched"
denominator_arm = "patched"
low = 4.1
unit = "x"
tolerance = 0.05
as_printed = "4.1x"
figure_ids = ["r1.patch.ttft.gain"]
"""
FIGURES = {"r1.patch.ttft.gain": {"figure_id": "r1.patch.ttft.gain", "value": "4.1", "unit": "x"}}


def read(tmp_path: Path, text: str) -> None:
    path = tmp_path / "claims-x.toml"
    path.write_text(text)
    read_claims(path, FIGURES)


def test_a_good_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "claims-x.toml"
    path.write_text(GOOD)
    (claim,) = read_claims(path, FIGURES)
    assert claim.low == 4.1
    assert claim.high is None
    assert claim.statistic == "p50"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("low = 4.1", "low = 4.1\nhihg = 5", "unknown key 'hihg'"),
        ("low = 4.1", 'low = 4.1\nneeds_rules = ["C1"]', "unknown key 'needs_rules'"),
        ("format = 1", "format = 2", "format 2"),
        ("format = 1", "format = 1\nextra = 1", "unknown key 'extra'"),
        ('kind = "at-least"', 'kind = "nearly"', "unknown kind nearly"),
        ("tolerance = 0.05", "", "'tolerance' is missing"),
        ("low = 4.1", 'low = "4.1"', "wrong type"),
        ("low = 4.1", "low = true", "wrong type"),
        ("tolerance = 0.05", "tolerance = -1", "negative tolerance"),
        ("low = 4.1", "low = 4.2", "is not the figure's 4.1 x"),
        ('["r1.patch.ttft.gain"]', '["r1.nothing"]', "no published figure"),
        ('["r1.patch.ttft.gain"]', "[]", "cites no figure"),
        ('["r1.patch.ttft.gain"]', "[1]", "not all text"),
        ("[[claim]]", "[claim]", r"no \[\[claim\]\]"),
        ("[common]", "[common", "cannot be read"),
    ],
)
def test_a_bad_file_is_refused_with_its_reason(
    tmp_path: Path, old: str, new: str, says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        read(tmp_path, GOOD.replace(old, new, 1))


def test_a_claim_written_twice_is_refused(tmp_path: Path) -> None:
    claim = GOOD[GOOD.index("[[claim]]") :]
    with pytest.raises(UsageError, match="written twice"):
        read(tmp_path, GOOD + claim)


def test_shipped_claims_load_and_state_the_printed_numbers() -> None:
    claims = {claim.claim_id: claim for claim in load_claims("r1-parallel-read")}
    assert claims["r1.patch.ttft.gain"].low == 4.1
    assert claims["r1.patch.bw.gain"].low == 5.3
    assert claims["r1.patch.ttft.before"].low == 37.97
    assert claims["r1.patch.ttft.after"].low == 9.30
    assert claims["r1.patch.bw.before"].low == 0.98
    assert claims["r1.patch.bw.after"].low == 5.23
    assert claims["rehearsal.prediction"].kind == "prediction"


def test_absolute_published_claims_name_what_must_match() -> None:
    for claim in load_claims():
        if is_published(claim) and claim.kind == "value":
            assert {"platform", "model"} <= claim.comparability.keys(), claim.claim_id


def test_a_scenario_without_claims_has_none() -> None:
    assert load_claims("r0-nothing") == ()


def test_the_ledger_has_one_row_a_figure(tmp_path: Path) -> None:
    figures = load_figures(published_path("figures.csv"))
    assert len(figures) == 242
    twice = tmp_path / "figures.csv"
    twice.write_text("figure_id,value,unit\na,1,s\na,2,s\n")
    with pytest.raises(UsageError, match="2 rows carry 1 figure ids"):
        load_figures(twice)


def test_a_missing_ledger_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        load_figures(tmp_path / "figures.csv")
