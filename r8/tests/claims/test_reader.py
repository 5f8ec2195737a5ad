"""Claims are read strictly, and say what the figures say."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from r8.claims.ledger import load_ledger
from r8.claims.reader import is_published, load_claims, read_claims
from r8.claims.reports import load_reports
from r8.errors import UsageError
from r8.tests.support.site_keys import shipped_site_keys

if TYPE_CHECKING:
    from pathlib import Path

    from r8.model import Claim

LEDGER, REPORTS = load_ledger(), load_reports()
PUBLISHED = """
format = 2
[common]
source = "R1"
[[claim]]
figures = ["r1.patch.ttft.gain"]
"""
OWN = """
format = 2
levels = ["c1", "c2"]
[common]
source = "rehearsal"
scenario = "r1-parallel-read"
[[claim]]
claim_id = "rehearsal.{level}.x"
kind = "at-least"
metric = "ttft"
arms = ["unpatched", "patched"]
as_printed = "not behind"
[[claim]]
claim_id = "rehearsal.c1.y"
level = "c1"
kind = "at-least"
metric = "fairness"
statistic = "jain"
arms = ["patched"]
as_printed = "fair"
"""
# R1's page says "faster" and no seconds: the table says how the figure is judged.
FASTER = """
format = 2
[common]
source = "R1"
scenario = "r1-model-load"
level = "c8"
kind = "at-least"
arms = ["local-nvme", "array"]
metric = "work_wall"
statistic = ""
[[claim]]
claim_id = "faster"
figures = ["r1.load.wall"]
as_printed = "16% faster, as time saved"
interpretation = "time saved"
"""
DERIVED = """
format = 2
[common]
source = "R1"
scenario = "r1-model-switch"
level = "any"
[[claim]]
claim_id = "ratio"
kind = "at-least"
metric = "utilisation_modelled"
statistic = "n20"
arms = ["array", "local-nvme"]
low = 1.3448
derivation = "ratio"
figure_ids = ["r1.switch.util.after", "r1.switch.util.before"]
as_printed = "as a ratio"
"""


def read(tmp_path: Path, text: str) -> tuple[Claim, ...]:
    path = tmp_path / "claims-x.toml"
    path.write_text(text)
    return read_claims(path, LEDGER, REPORTS)


def test_a_published_claim_takes_what_the_ledger_knows_of_its_figure(tmp_path: Path) -> None:
    (claim,) = read(tmp_path, PUBLISHED)
    assert claim.claim_id == "r1.patch.ttft.gain"
    assert claim.figure_ids == ("r1.patch.ttft.gain",)
    assert (claim.kind, claim.low, claim.high, claim.unit) == ("at-least", 4.1, None, "x")
    assert (claim.metric, claim.statistic, claim.level) == ("ttft", "p50", "c16")
    assert (claim.numerator_arm, claim.denominator_arm) == ("unpatched", "patched")
    assert claim.as_printed == "4.1x"
    assert (claim.tolerance, claim.min_blocks, claim.looks) == (0.05, 5, 2)
    assert claim.comparability == {}


def test_a_set_is_one_claim_for_each_of_its_figures(tmp_path: Path) -> None:
    claims = read(tmp_path, PUBLISHED.replace("ttft.gain", "{ttft,bw}.after"))
    assert [one.claim_id for one in claims] == ["r1.patch.ttft.after", "r1.patch.bw.after"]
    assert [one.unit_base for one in claims] == [None, 1_024_000_000]
    assert all(one.comparability["model"] == "Qwen2.5-32B" for one in claims)


def test_own_claims_are_repeated_for_each_level_before_those_that_name_one(tmp_path: Path) -> None:
    claims = read(tmp_path, OWN)
    assert [one.claim_id for one in claims] == [
        "rehearsal.c1.x",
        "rehearsal.c2.x",
        "rehearsal.c1.y",
    ]
    assert [one.level for one in claims] == ["c1", "c2", "c1"]
    assert [one.unit for one in claims] == ["x", "x", ""]
    assert {(one.low, one.tolerance, one.min_blocks, one.looks) for one in claims} == {
        (1.0, 0.05, 3, 1)
    }


def test_a_table_may_say_how_a_figure_is_judged_but_not_its_number(tmp_path: Path) -> None:
    (claim,) = read(tmp_path, FASTER)
    assert (claim.low, claim.unit, claim.interpretation) == (16.0, "% faster", "time saved")
    assert (claim.numerator_arm, claim.denominator_arm) == ("local-nvme", "array")
    (derived,) = read(tmp_path, DERIVED)
    assert (derived.low, derived.unit, len(derived.figure_ids)) == (1.3448, "x", 2)


@pytest.mark.parametrize(
    ("text", "old", "new", "says"),
    [
        (PUBLISHED, "figures =", "hihg = 5\nfigures =", "unknown key 'hihg'"),
        (PUBLISHED, "format = 2", "format = 1", "format 1"),
        (PUBLISHED, "format = 2", "format = 2\nextra = 1", "unknown key 'extra'"),
        (PUBLISHED, "[[claim]]", "[claim]", r"no \[\[claim\]\]"),
        (PUBLISHED, "[common]", "[common", "cannot be read"),
        (PUBLISHED, '[common]\nsource = "R1"', "common = 1", "`common` is not a table"),
        (PUBLISHED, "ttft.gain", "nothing", "no figure 'r1.patch.nothing'"),
        (PUBLISHED, '["r1.patch.ttft.gain"]', "[]", "cites no figure"),
        (PUBLISHED, '["r1.patch.ttft.gain"]', "[1]", "not all text"),
        (PUBLISHED, '["r1.patch.ttft.gain"]', '["load_time_s"]', "is not published"),
        (PUBLISHED, "figures =", "low = 4.1\nfigures =", "'low' is the figure's own"),
        (PUBLISHED, "figures =", 'unit = "x"\nfigures =', "'unit' is the figure's own"),
        (PUBLISHED, "figures =", "tolerance = -1\nfigures =", "negative tolerance"),
        (PUBLISHED, "figures =", 'tolerance = "5 %"\nfigures =', "wrong type"),
        (PUBLISHED, "figures =", "tolerance = true\nfigures =", "wrong type"),
        (PUBLISHED, "figures =", 'kind = "nearly"\nfigures =', "unknown kind nearly"),
        (PUBLISHED, "figures =", "unit_base = 1\nfigures =", "unknown key 'unit_base'"),
        (OWN, 'metric = "ttft"\n', "", "'metric' is missing"),
        (OWN, 'metric = "ttft"', 'metric = "ttft"\nfigures = ["r1.ratio"]', "cites no figure"),
        (OWN, 'levels = ["c1", "c2"]', "levels = [1]", "`levels` is not a list of texts"),
        (OWN, 'levels = ["c1", "c2"]', 'levels = "c1"', "`levels` is not a list of texts"),
        (OWN, 'arms = ["patched"]\n', "", "'numerator_arm' is missing"),
        (OWN, '["patched"]', '["patched", "unpatched", "third"]', "one arm or two"),
        (OWN, "rehearsal.{level}.x", "rehearsal.x", "written twice"),
        (FASTER, 'interpretation = "time saved"\n', "", "is read as 'nothing'"),
        (FASTER, '"time saved"', '"quicker"', "is read as 'quicker'"),
        (FASTER, '"r1.load.wall"', '"r1.patch.ttft.gain"', "'x' is read as 'time saved'"),
        (DERIVED, "1.3448", "1.3449", "is not the ratio of its figures"),
        (DERIVED, "low = 1.3448\n", "", "'low'"),
        (DERIVED, '"r1.switch.util.after"', '"r1.nothing"', "r1.nothing"),
    ],
)
def test_a_bad_file_is_refused_with_its_reason(
    tmp_path: Path, text: str, old: str, new: str, says: str
) -> None:
    assert old in text
    with pytest.raises(UsageError, match=says) as caught:
        read(tmp_path, text.replace(old, new, 1))
    assert "\n" not in str(caught.value)


def test_a_claim_written_twice_is_refused(tmp_path: Path) -> None:
    claim = PUBLISHED[PUBLISHED.index("[[claim]]") :]
    with pytest.raises(UsageError, match="written twice"):
        read(tmp_path, PUBLISHED + claim)


def test_shipped_claims_load_and_state_the_printed_numbers() -> None:
    claims = {claim.claim_id: claim for claim in load_claims("r1-parallel-read")}
    assert claims["r1.patch.ttft.gain"].low == 4.1
    assert claims["r1.patch.bw.gain"].low == 5.3
    assert claims["r1.patch.ttft.before"].low == 37.97
    assert claims["r1.patch.ttft.after"].low == 9.30
    assert claims["r1.patch.bw.before"].low == 0.98
    assert claims["r1.patch.bw.after"].low == 5.23
    assert claims["rehearsal.prediction"].kind == "prediction"
    assert len(load_claims()) == 134
    assert len(load_claims("r3-tp4x2")) == 33 + 12


def test_absolute_published_claims_name_what_must_match() -> None:
    for claim in load_claims():
        if is_published(claim) and claim.kind == "value":
            assert {"platform", "model"} <= claim.comparability.keys(), claim.claim_id


def test_every_absolute_published_claim_can_be_met_by_a_shipped_site() -> None:
    """A key that no site states would make a published number comparable with nothing."""
    sites = shipped_site_keys()
    for claim in load_claims():
        if is_published(claim) and claim.kind == "value":
            met = [one for one in sites if claim.comparability.items() <= one.items()]
            # The page of R9 names two models; the site file is for the first of them.
            if claim.comparability["model"] != "DeepSeek-70B":
                assert met, claim.claim_id


def test_an_arm_needs_no_key_of_a_medium_its_role_never_touches() -> None:
    claims = {one.claim_id: one.comparability for one in load_claims("r2-cold-recovery")}
    common = {"platform", "engine", "model"}
    assert claims["r2.array.c16.ttft_p50"].keys() == common | {"array"}
    assert claims["r2.local.c16.ttft_p50"].keys() == common | {"local"}
    assert claims["r2.recompute.c16.ttft_p50"].keys() == common


def test_a_scenario_without_claims_has_none() -> None:
    assert load_claims("r0-nothing") == ()


def test_a_figure_whose_scenario_says_nothing_of_its_arms_needs_a_table_that_does(
    tmp_path: Path,
) -> None:
    bare = replace(REPORTS, scenarios={})
    path = tmp_path / "claims-x.toml"
    path.write_text(PUBLISHED)
    with pytest.raises(UsageError, match="is missing"):
        read_claims(path, LEDGER, bare)
