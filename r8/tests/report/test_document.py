"""A report says what the runs show, and the same runs give the same text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from r8.claims.reader import load_claims
from r8.model import Basis, Finding, Outcome
from r8.report.document import report
from r8.report.tables import SHOWN_METRICS, markdown, number
from r8.report.terminal import summary
from r8.report.words import render_reasons
from r8.resources import query_names, query_text
from r8.tests.support.judged_run import Tables, judged_run
from r8.tests.support.run_factory import SyntheticRun
from r8.verdict.judge import exit_code, judge

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from r8.evidence.reader import Evidence

BLOCKS = 3
COLD = {"unpatched": 1.9, "patched": 0.76}


def campaign(
    root: Path,
    edit: Callable[[Tables], None] | None = None,
    *,
    failures: int = 0,
    resident_share: float = 0.0,
    kv_mount_device: str | None = None,
) -> list[Evidence]:
    """Three blocks at concurrency 16; the last patched run alone is spoiled."""
    runs = []
    for block in range(BLOCKS):
        for order, arm in enumerate(COLD):
            spoil = block == BLOCKS - 1 and arm == "patched"
            spec = SyntheticRun(
                campaign_id="c",
                block=block,
                order=order,
                arm=arm,
                concurrency=16,
                ttft_s=tuple(COLD[arm] * (1 + 0.01 * block + 0.001 * n) for n in range(16)),
                warm_ttft_s=(0.1,) * 16,
                read_s=COLD[arm],
                ceiling_bytes_per_s=200_000_000,
                serial_bytes_per_s=75_000_000,
                failures=failures if spoil else 0,
                resident_share=resident_share if spoil else 0.0,
                kv_mount_device=kv_mount_device if spoil else None,
            )
            runs.append(judged_run(root, spec, edit if spoil else None))
    return runs


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Evidence]:
    return campaign(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def text(runs: list[Evidence]) -> str:
    return report(runs, load_claims("r1-parallel-read"))


def test_a_clean_rehearsal_reproduces_its_prediction_and_judges_nothing_published(
    runs: list[Evidence],
) -> None:
    verdicts = judge(runs, load_claims("r1-parallel-read"))
    by_id = {one.claim.claim_id: one for one in verdicts}
    prediction = by_id["rehearsal.prediction"]
    assert prediction.outcome is Outcome.REPRODUCED, render_reasons(prediction.reasons)
    assert prediction.basis is Basis.MODELLED
    published = [one for one in verdicts if one.claim.source == "R1"]
    assert len(published) == 6
    assert all(one.outcome is Outcome.NOT_COMPARABLE for one in published)
    assert all("is modelled, published" in render_reasons(one.reasons) for one in published)
    assert by_id["reference.ttft-ratio"].outcome is Outcome.NOT_MEASURED
    assert exit_code(verdicts) == 0


@pytest.mark.parametrize(
    ("spoiled", "rule", "quantity", "measured"),
    [
        ({"resident_share": 1.0}, "C3", "resident_files", 128),
        ({"kv_mount_device": "vda"}, "C1", "kv_files_elsewhere", 128),
        ({"failures": 1}, "Q1", "requests_failed", 1),
    ],
    ids=["cache not dropped", "kv on another device", "one of sixteen failed"],
)
def test_one_spoiled_run_makes_the_claim_invalid_by_rule_and_number(
    tmp_path: Path, spoiled: dict[str, Any], rule: str, quantity: str, measured: int
) -> None:
    verdicts = judge(campaign(tmp_path, **spoiled), load_claims("r1-parallel-read"))
    (prediction,) = [one for one in verdicts if one.claim.claim_id == "rehearsal.prediction"]
    assert prediction.outcome is Outcome.INVALID
    found = [one for one in prediction.reasons if isinstance(one, Finding) and one.rule_id == rule]
    assert [one.run_id for one in found] == ["c-b2-patched-c16"]
    refuted = {one.quantity: one.measured for one in found[0].checks}
    assert refuted[quantity] == measured
    assert f"rule {rule} in c-b2-patched-c16: " in render_reasons(prediction.reasons)
    assert exit_code(verdicts) == 3


def test_the_report_is_the_same_whatever_the_order_of_runs(runs: list[Evidence], text: str) -> None:
    assert report(list(reversed(runs)), load_claims("r1-parallel-read")) == text


def test_the_report_leads_with_verdicts_and_states_the_basis(text: str) -> None:
    assert text.index("## Verdicts") < text.index("## Arms") < text.index("## Certificate")
    assert "**Basis: modelled.**" in text
    assert "| rehearsal.prediction" in text
    assert "**REPRODUCED**" in text


def test_the_report_shows_ratio_prediction_and_interval(text: str) -> None:
    section = text[text.index("## TTFT p50 over") : text.index("## Certificate")]
    assert section.count("| unpatched / patched") == BLOCKS
    assert "| **unpatched / patched**" in section
    assert "3 blocks" in section


def test_the_report_holds_no_path_of_this_machine(text: str, runs: list[Evidence]) -> None:
    assert str(runs[0].path.parent) not in text


def test_the_report_says_what_was_not_measured(text: str) -> None:
    section = text[text.index("## Not measured") :]
    assert "* Claim `r1.patch.ttft.before` (37.97 s): NOT_COMPARABLE" in section
    assert "* Claim `rehearsal.not-inferior-to-upstream-32`" in section
    assert "no other runs" in section


def test_what_did_not_hold_is_printed_with_its_arithmetic(tmp_path: Path) -> None:
    text = report(campaign(tmp_path, failures=1), load_claims("r1-parallel-read"))
    assert "REFUTED" in text
    assert "* `Q1` REFUTED in `c-b2-patched-c16`: 1 of 16 requests failed" in text


def test_every_number_of_the_report_is_the_number_of_plain_duckdb(
    runs: list[Evidence], text: str
) -> None:
    with duckdb.connect() as connection:
        quoted = ", ".join(f"'{one.path}'" for one in runs)
        connection.execute(f"SET VARIABLE r8_run_dirs = [{quoted}]")
        for name in query_names():
            connection.execute(query_text(name))
        rows = connection.execute(
            "SELECT run_id, phase, metric, statistic, value FROM metrics WHERE value IS NOT NULL"
        ).fetchall()
    raw = text[text.index("## Rows behind the tables") :].splitlines()
    printed = {
        tuple(cell.strip() for cell in line.strip("|").split("|"))[:5]
        for line in raw
        if line.startswith("| c-b")
    }
    expected = {
        (run_id, phase, metric, statistic or "-", repr(value))
        for run_id, phase, metric, statistic, value in rows
        if (phase, metric, statistic) in SHOWN_METRICS
    }
    assert printed == expected
    assert len(printed) > 60


def test_the_terminal_summary_shows_judged_claims_first(runs: list[Evidence]) -> None:
    lines = summary(runs, judge(runs, load_claims("r1-parallel-read"))).splitlines()
    assert lines[2].startswith("rehearsal.prediction")
    assert lines[-1] == "basis: modelled; runs: 6"


def test_a_bar_inside_a_cell_does_not_break_the_table() -> None:
    assert r"a\|b" in markdown([["a|b", None]], ["x", "y"])
    assert number(None) == "-"


def test_claims_of_other_scenarios_are_counted_and_do_not_drown_these(tmp_path: Path) -> None:
    runs = campaign(tmp_path)
    text = report(runs, load_claims())
    table = text.partition("## Verdicts")[2].partition("## ")[0]
    assert "r1.patch.ttft.gain" in table
    assert "r2.c8" not in table
    last = text.partition("## Not measured, and why")[2].partition("## ")[0]
    assert "claims of other scenarios were not asked of these runs: " in last
    assert "r2-cold-recovery" in last


def test_what_was_judged_stands_before_what_was_not(tmp_path: Path) -> None:
    text = report(campaign(tmp_path), load_claims("r1-parallel-read"))
    table = text.partition("## Verdicts")[2].partition("## ")[0]
    outcomes = re.findall(r"\*\*([A-Z_]+)\*\*", table)
    unjudged = [one in {"NOT_COMPARABLE", "NOT_MEASURED"} for one in outcomes]
    assert True in unjudged
    assert unjudged == sorted(unjudged)
