"""The ledger reads strictly and carries every row; each figure says what can measure it."""

from __future__ import annotations

import csv
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from r8.claims.ledger import ADDED, FIGURES, RELATIONS, load_ledger
from r8.claims.measured import Measure, measure_of
from r8.claims.reports import load_reports
from r8.errors import UsageError
from r8.message import Message
from r8.resources import published_path, query_names, query_text

if TYPE_CHECKING:
    from r8.claims.ledger import Ledger

PUBLISHED = Path(__file__).resolve().parents[3] / "data" / "published"
REPORTS = load_reports()
HEADER = (
    "figure_id,report,where,platform,scenario,arm,level,metric,statistic,value,unit,as_printed,"
    "page_label,basis,formula,note"
)


@pytest.fixture(scope="module")
def ledger() -> Ledger:
    return load_ledger()


def row(name: str, value: str, unit: str, formula: str = "", printed: str | None = None) -> str:
    text = value if printed is None else printed
    return f'{name},S1,page,P,s,a,c16,m,,{value},{unit},"{text}",,measured,"{formula}",'


def read(tmp_path: Path, *lines: str) -> Ledger:
    (tmp_path / FIGURES).write_text("\n".join([HEADER, *lines]) + "\n")
    return load_ledger(tmp_path)


# ---------------------------------------------------------------- bad input: one line, exit 4


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ([row("a", "2", "s", "b / c")], "figure a: no figure 'b'"),
        ([row("a", "2", "x", "max(b.*)")], r"no figure 'b\.\*'"),
        (
            [row("a", "1", "s", "b"), row("b", "1", "s", "c"), row("c", "1", "s", "a")],
            r"its formula is a cycle: (a -> b -> c -> a|b -> c -> a -> b|c -> a -> b -> c)",
        ),
        ([row("a", "1", "s", "a")], "cycle: a -> a"),
        ([row("a", "2", "s", "b + c"), row("b", "1", "s"), row("c", "1", "GB")], "unit mismatch"),
        ([row("a", "2", "GB", "b + c"), row("b", "1", "s"), row("c", "1", "s")], "unit mismatch"),
        ([row("a", "2", "furlong")], "unit 'furlong' is not one R8 knows"),
        ([row("a", "2", "s", "b /")], "ends where"),
        ([row("a", "2", "s", printed="3 s")], "'3 s' does not print 2"),
        ([row("a", "two", "s")], "'two'"),
        ([row("a", "2", "s"), row("a", "2", "s")], "the id is there twice"),
        ([row("a", "2", "s").replace("measured", "hoped")], "'hoped'"),
        ([row("a", "2", "s") + ",more"], "has not the header's columns"),
        (["a,S1"], "has not the header's columns"),
        ([row("a", "2", "x", "b / c"), row("b", "1", "x"), row("c", "0", "x")], "may be zero"),
    ],
)
def test_a_bad_row_is_one_clear_line_and_exit_four(
    tmp_path: Path, lines: list[str], says: str
) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        read(tmp_path, *lines)
    assert caught.value.exit_code == 4
    assert "\n" not in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def test_a_column_that_is_missing_is_named(tmp_path: Path) -> None:
    (tmp_path / FIGURES).write_text("figure_id,value\na,1\n")
    with pytest.raises(UsageError, match="column 'report' is missing"):
        load_ledger(tmp_path)


def test_a_folder_without_figures_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        load_ledger(tmp_path)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("format = 1", "format 1"),
        ("format = 2\n[[relation]]\nkind = 'hope'", "unknown kind"),
        ("format = 2\n[[relation]]\nkind = 'ceiling'\nfigures = ['a']", "'limit' is missing"),
        ("format = 2\n[[reprint]]\nreport = 'R2'", "a reprint: key 'figures' is missing"),
        (
            "format = 2\n[[relation]]\nkind = 'ceiling'\nfigures = ['b']\nlimit = 'a'",
            "no figure 'b'",
        ),
        (
            "format = 2\n[[relation]]\nkind = 'ceiling'\nfigures = ['a']\nlimit = 'b'",
            "no figure 'b'",
        ),
        ("format = 2\n[[relation]]\nkind = 'ceiling'\nlimit = 'b /'", "ends where"),
        ("format = ", "cannot be read"),
        (
            "format = 2\n[[relation]]\nkind = 'base'\nfigures = ['a']\nbytes = 1024000000",
            "a holds no bytes",
        ),
        (
            "format = 2\n[[relation]]\nkind = 'ceiling'\nfigures = ['a']\nlimit = '3'",
            "unit mismatch between a and 3",
        ),
        (
            "format = 2\n[[relation]]\nkind = 'ceiling'\nfigures = []\nlimit = '3'\nunit = 'mile'",
            "'mile' is not one R8 knows",
        ),
        (
            "format = 2\n[[relation]]\nkind = 'identity'\nleft = 'a'\nright = 'a * a'",
            "unit mismatch",
        ),
        (
            "format = 2\n[[relation]]\nkind = 'size'\nfigures = ['a']\nbytes = 'a'",
            "unit mismatch",
        ),
    ],
)
def test_a_bad_relation_is_one_clear_line(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / RELATIONS).write_text(text)
    with pytest.raises(UsageError, match=says):
        read(tmp_path, row("a", "2", "s"))


def test_a_row_that_restates_nothing_known_is_refused(tmp_path: Path) -> None:
    (tmp_path / FIGURES).write_text("\n".join([HEADER, row("a", "2", "s")]) + "\n")
    (tmp_path / ADDED).write_text(f"{HEADER},restates\n{row('b', '2', 's')},c\n")
    with pytest.raises(UsageError, match="restates 'c', not in the ledger"):
        load_ledger(tmp_path)


# ---------------------------------------------------------------- what is shipped


def test_every_row_of_the_transcription_is_in_the_ledger(ledger: Ledger) -> None:
    text = (PUBLISHED / FIGURES).read_text(encoding="utf-8")
    transcribed = list(csv.DictReader(text.splitlines()))
    assert len(transcribed) == 242
    for one in transcribed:
        figure = ledger.figures[one["figure_id"]]
        assert figure.value == Fraction(one["value"]), figure.figure_id
        assert figure.as_printed == one["as_printed"]
        assert figure.where == one["where"]
        assert (figure.formula is None) == (one["formula"] == "")


@pytest.mark.parametrize("report", ["R1", "R2", "R3", "R4", "R5", "R6", "R7", "R9"])
def test_every_report_keeps_rows_of_its_own(ledger: Ledger, report: str) -> None:
    assert ledger.of(report)
    assert load_reports().report(report).platform


def test_every_scenario_of_r1_and_every_device_keeps_its_row(ledger: Ledger) -> None:
    scenarios = {one.scenario for one in ledger.of("R1")}
    assert {
        "r1-parallel-read",
        "r1-checkpoint",
        "r1-model-load",
        "r1-model-switch",
        "array-to-node",
    } <= scenarios
    everything = {one.scenario for one in ledger.of(None)}
    assert {"gate-g1", "gate-g2", "gate-g3", "gate-g4", "cost", "device"} <= everything
    platforms = {one.platform for one in ledger.of(None)}
    assert {
        "FX100",
        "FX200",
        "FX300",
        "FX400",
        "MetaX N260 x1",
        "Huawei Atlas 910B x8",
    } <= platforms


def test_the_third_party_report_prints_the_tables_again_but_one_cell(ledger: Ledger) -> None:
    again = {one.figure_id: one for one in ledger.of("R4") if one.restates}
    assert again["r4.r2.array.c16.ttft_p50"].value == ledger.figures["r2.array.c16.ttft_p50"].value
    assert "r4.r3.fs-own.c32.tput" in again
    assert "r4.r3.fs-own.c16.tput" not in again


def test_an_unknown_report_is_refused_with_the_known_ones(ledger: Ledger) -> None:
    with pytest.raises(UsageError, match="R99"):
        ledger.of("R99")


def test_leaves_go_through_every_formula(ledger: Ledger) -> None:
    assert ledger.leaves("site.tput.low") == {
        f"r2.{arm}.{level}.tput" for arm in ("array", "local") for level in ("c8", "c16", "c32")
    }
    assert ledger.leaves("cost.per_tb") == {
        "cost.platform",
        "cost.drives",
        "cost.drive",
        "cost.drive_tb",
    }


# ---------------------------------------------------------------- what can measure a figure


def measured(ledger: Ledger, name: str) -> Measure:
    found = measure_of(ledger, REPORTS, ledger.figures[name])
    assert isinstance(found, Measure)
    return found


def test_a_reading_maps_to_the_view_in_its_own_unit(ledger: Ledger) -> None:
    one = measured(ledger, "r2.array.c16.ttft_p50")
    assert (one.kind, one.metric, one.statistic, one.unit) == ("value", "ttft", "p50", "ns")
    assert one.claimed == 11_850_000_000
    assert (one.numerator_arm, one.level) == ("role:array", "c16")
    # The release's GB/s is rkB/s over a million: 1.024e9 bytes.
    assert measured(ledger, "r2.array.c8.disk_peak").claimed == pytest.approx(10.26 * 1.024e9)
    assert measured(ledger, "r3.pool.c16.tpot_p50").claimed == pytest.approx(24.2e6)


def test_a_percentile_without_samples_is_measured_as_the_maximum(ledger: Ledger) -> None:
    assert measured(ledger, "r2.array.c8.ttft_p90").statistic == "max"
    assert measured(ledger, "r2.array.c16.ttft_p90").statistic == "p90"
    assert measured(ledger, "r3.pool.c32.ttft_p99").statistic == "max"


def test_a_reduction_is_turned_over(ledger: Ledger) -> None:
    one = measured(ledger, "r2.c8.ttft_change")
    assert (one.numerator_arm, one.denominator_arm) == ("role:local", "role:array")
    assert one.claimed == pytest.approx(1 / 0.74)
    assert measured(ledger, "r2.c16.tput_change").claimed == pytest.approx(1.40)
    assert measured(ledger, "r1.patch.ttft.gain").claimed == 4.1


def test_a_checkpoint_is_read_as_every_rank_saving_a_whole_snapshot(ledger: Ledger) -> None:
    one = measured(ledger, "r1.ckpt.save.gain")
    assert (one.numerator_arm, one.denominator_arm) == ("local-full-each", "array-full-each")
    assert (one.metric, one.level, one.claimed) == ("save_time", "c8", 1.9)
    assert measured(ledger, "r1.ckpt.bw.array").claimed == 6.4e9
    assert measured(ledger, "r1.ckpt.bw.gain").claimed == pytest.approx(1.96)
    assert "array" not in measured(ledger, "r1.ckpt.save.baseline").comparability


@pytest.mark.parametrize(
    ("name", "entry"),
    [
        ("r1.switch.util.before", "unmeasured-claims"),
        ("r1.load.wall", "unmeasured-claims"),
        ("r1.ckpt.size", "unmeasured-cell"),
        ("r9.load.32B.gain", "unmeasured-claims"),
        ("cost.platform", "unmeasured-specification"),
        ("load_time_s", "unmeasured-unpublished"),
        ("r3.pool.c16.ttft_mean", "unmeasured-metric"),
        ("site.tput.low", "unmeasured-through"),
        ("r3.files", "unmeasured-numbers"),
        ("r2.session.kv", "unmeasured-cell"),
    ],
)
def test_what_cannot_be_measured_says_why(ledger: Ledger, name: str, entry: str) -> None:
    found = measure_of(ledger, REPORTS, ledger.figures[name])
    assert isinstance(found, Message)
    assert found.id == entry


def test_a_value_needs_the_keys_of_its_own_medium(ledger: Ledger) -> None:
    assert "array" in measured(ledger, "r2.array.c8.ttft_p50").comparability
    local = measured(ledger, "r2.local.c8.ttft_p50").comparability
    assert "local" in local
    assert "array" not in local
    assert measured(ledger, "r2.c8.ttft_change").comparability == {}


def test_every_measured_metric_is_one_the_views_define(ledger: Ledger) -> None:
    sql = "".join(map(query_text, query_names()))
    for figure in ledger.figures.values():
        found = measure_of(ledger, REPORTS, figure)
        if isinstance(found, Measure):
            assert f"'{found.metric}'" in sql, figure.figure_id
            assert not found.statistic or f"'{found.statistic}'" in sql, figure.figure_id


def test_reports_that_cannot_be_read_are_one_clear_line(tmp_path: Path) -> None:
    path = tmp_path / "reports.toml"
    text = published_path("reports.toml").read_text(encoding="utf-8")
    for old, new in (
        ("format = 2", "format = 3"),
        ('report_id = "R1"', 'id = "R1"'),
        ("[[page]]", "[[pag"),
    ):
        path.write_text(text.replace(old, new, 1), encoding="utf-8")
        with pytest.raises(UsageError, match=r"cannot be read|format 3"):
            load_reports(path)
    with pytest.raises(UsageError, match="no report 'R99'"):
        load_reports().report("R99")
