"""Every limit of the audit, just inside and just outside."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import pytest

from r8.audit.finding import digits
from r8.audit.leads import MAX_DIFFERENCES, MAX_WIDTH
from r8.audit.relations import SIZE_TOLERANCE, deviation, excess
from r8.audit.rules import RULES, audit
from r8.claims.arithmetic import Enclosure
from r8.claims.measured import samples_needed
from r8.message import Answer
from r8.report.audit import SHOWN_IDS, as_markdown
from r8.tests.support.synthetic_ledger import SENTENCES_THAT_HOLD, Synthetic

if TYPE_CHECKING:
    from pathlib import Path

    from r8.audit.finding import AuditFinding

HELD, REFUTED, UNKNOWN = Answer.HELD, Answer.REFUTED, Answer.UNKNOWN


def found(made: Synthetic, tmp_path: Path, rule_id: str) -> list[AuditFinding]:
    """The findings of a rule, each with a sentence that says what its check came to."""
    every = audit(made.write(tmp_path))
    for one in every:
        assert (one.answer is HELD) == (one.check.message in SENTENCES_THAT_HOLD), one
    return [one for one in every if one.rule_id == rule_id]


@pytest.mark.parametrize(
    ("printed", "answer"),
    [(1.43, REFUTED), (1.44, HELD), (1.56, HELD), (1.57, REFUTED)],
)
def test_a1_a_printed_result_shares_a_value_with_its_formula(
    tmp_path: Path, printed: float, answer: Answer
) -> None:
    """3.0 / 2.0 is 2.95 / 2.05 = 1.4390 up to 3.05 / 1.95 = 1.5641."""
    made = Synthetic()
    made.add("a", 3.0, "s", 1)
    made.add("b", 2.0, "s", 1)
    made.add("c", printed, "x", 2, formula="a / b", basis="derived")
    (one,) = found(made, tmp_path, "A1")
    assert one.answer is answer


def test_a1_the_gap_is_measured_from_end_to_end(tmp_path: Path) -> None:
    made = Synthetic()
    made.add("a", 3.0, "s", 1)
    made.add("b", 2.0, "s", 1)
    made.add("c", 1.58, "x", 2, formula="a / b", basis="derived")
    (one,) = found(made, tmp_path, "A1")
    assert (one.answer, one.check.op, one.check.limit) == (REFUTED, "==", 0)
    assert one.check.measured == pytest.approx(1.575 - 3.05 / 1.95)


@pytest.mark.parametrize(
    ("share", "answer"),
    [
        (SIZE_TOLERANCE, HELD),
        (-SIZE_TOLERANCE, HELD),
        (SIZE_TOLERANCE + Fraction(1, 10**6), REFUTED),
        (-SIZE_TOLERANCE - Fraction(1, 10**6), REFUTED),
    ],
)
def test_a5_a_size_may_differ_from_its_geometry_by_half_a_per_cent(
    tmp_path: Path, share: Fraction, answer: Answer
) -> None:
    made = Synthetic()
    made.add("size", 10**9, "B", 0, basis="specification")
    made.add("true", float((1 + share) * 10**9), "B", 0, basis="specification")
    made.relate("size", figures=["size"], bytes="true")
    (one,) = found(made, tmp_path, "A5")
    assert one.answer is answer
    assert one.check.limit == 0.005
    assert one.check.measured == pytest.approx(abs(share))


def test_a5_a_size_that_fits_both_gb_is_taken_for_the_decimal_one(tmp_path: Path) -> None:
    made = Synthetic()
    made.add("size", 1, "GB", 0)
    made.add("true", 1.05, "GB", 2)
    made.relate("size", figures=["size"], bytes="true")
    (one,) = found(made, tmp_path, "A5")
    assert one.check.message == "a5-decimal"


def test_a5_what_meets_needs_no_widening() -> None:
    printed = Enclosure(Fraction(100), Fraction(200))
    assert excess(printed, Enclosure.exact(100)) == 0
    assert excess(printed, Enclosure.exact(200)) == 0
    assert excess(printed, Enclosure.exact(99)) == Fraction(1, 100)
    assert excess(printed, Enclosure.exact(202)) == Fraction(1, 100)


@pytest.mark.parametrize(
    ("base", "answer"),
    [(999_999_999, REFUTED), (1_000_000_000, HELD), (1_000_000_001, REFUTED)],
)
def test_a5_only_a_decimal_gb_is_a_gb(tmp_path: Path, base: int, answer: Answer) -> None:
    made = Synthetic()
    made.add("rate", 5, "GB/s", 2)
    made.relate("base", figures=["rate"], bytes=base)
    (one,) = found(made, tmp_path, "A5")
    assert one.answer is answer


@pytest.mark.parametrize(
    ("rate", "unit", "basis", "answer"),
    [
        (12.50, "GB/s", "measured", HELD),
        (12.51, "GB/s", "measured", REFUTED),  # 12.505 and more; the port carries 12.5
        (100, "Gb/s", "specification", HELD),
        (101, "Gb/s", "specification", REFUTED),
    ],
)
def test_a6_even_the_lowest_reading_must_exceed_the_port(
    tmp_path: Path, rate: float, unit: str, basis: str, answer: Answer
) -> None:
    made = Synthetic()
    made.add("port", 100, "Gb/s", 0, basis="specification")
    made.add("rate", rate, unit, 2 if unit == "GB/s" else 0, basis=basis)
    made.relate("ceiling", figures=["rate"], limit="port")
    (one,) = found(made, tmp_path, "A6")
    assert one.answer is answer


@pytest.mark.parametrize("unless", ["", "settles"])
def test_a6_a_figure_that_would_settle_an_excess_leaves_it_open(
    tmp_path: Path, unless: str
) -> None:
    made = Synthetic()
    made.add("port", 100, "Gb/s", 0, basis="specification")
    made.add("rate", 12.6, "GB/s", 2)
    made.add("settles", None, "GB/s", 0)
    made.relate("ceiling", figures=["rate"], limit="port", **({"unless": unless} if unless else {}))
    (one,) = found(made, tmp_path, "A6")
    assert one.answer is (UNKNOWN if unless else REFUTED)


@pytest.mark.parametrize(("rank", "needed"), [(50, 2), (51, 3), (90, 10), (95, 20), (99, 100)])
def test_a7_a_percentile_needs_one_sample_beyond_it(rank: int, needed: int) -> None:
    assert samples_needed(rank) == needed


@pytest.mark.parametrize(
    ("statistic", "n", "answers"),
    [
        ("p90", 9, [REFUTED]),
        ("p90", 10, [HELD]),
        ("p99", 99, [REFUTED]),
        ("p99", 100, [HELD]),
        ("p51", 2, [REFUTED]),
        ("p50", 1, []),  # a median of one is that one
    ],
)
def test_a7_percentiles_above_the_median_are_counted(
    tmp_path: Path, statistic: str, n: int, answers: list[Answer]
) -> None:
    made = Synthetic()
    made.add("a", 3, "s", 1, statistic=statistic, level=f"c{n}")
    assert [one.answer for one in found(made, tmp_path, "A7")] == answers


@pytest.mark.parametrize(
    ("value", "number", "answer"),
    [
        (2.9, "a + 0.05", HELD),  # 2.90 to 3.00
        (2.9, "a + 0.04", REFUTED),  # 2.89 to 2.99
        (3.1, "a - 0.05", HELD),  # 3.00 to 3.10
        (3.1, "a - 0.04", REFUTED),
        (1.0, "a", HELD),
        (0.0, "a", REFUTED),  # nothing is no number of things
    ],
)
def test_a8_a_number_of_whole_things_holds_a_whole_number(
    tmp_path: Path, value: float, number: str, answer: Answer
) -> None:
    made = Synthetic()
    made.add("a", value, "x", 1)
    made.relate("whole", figures=["a"], number=number)
    (one,) = found(made, tmp_path, "A8")
    assert one.answer is answer


@pytest.mark.parametrize(
    ("left", "right", "two_sided", "covers"),
    [
        ("2.00", "2.01", HELD, HELD),  # both may be 2.005
        ("2.00", "2.02", REFUTED, REFUTED),
        ("2.02", "2.00", REFUTED, HELD),  # more than enough
        ("9.00", "2.00", REFUTED, HELD),
    ],
)
def test_a8_two_sides_share_a_value_or_the_left_covers_the_right(
    tmp_path: Path, left: str, right: str, two_sided: Answer, covers: Answer
) -> None:
    made = Synthetic()
    for name, value in (("a", left), ("b", right)):
        made.add(name, float(value), "s", 2)
    made.relate("identity", figures=["a"], left="a", right="b", unit="s")
    made.relate("identity", figures=["a"], left="a", right="b", unit="s", at_least="left")
    assert [one.answer for one in found(made, tmp_path, "A8")] == [two_sided, covers]


@pytest.mark.parametrize(
    ("later", "answer"),
    [
        (1049.8, HELD),  # 4.99 % of the earlier
        (1050.0, UNKNOWN),  # 5 % of the earlier: its last digit decides
        (1052.5, UNKNOWN),  # 5.25 % of the earlier, 4.99 % of the later
        (1052.9, REFUTED),  # 5.02 % of the later
        (950.1, UNKNOWN),  # 4.99 % of the earlier, 5.25 % of the later
        (949.8, REFUTED),
        (952.6, HELD),  # 4.98 % of the later
    ],
)
def test_a9_a_deviation_is_held_to_the_stated_bound_under_each_denominator(
    tmp_path: Path, later: float, answer: Answer
) -> None:
    made = Synthetic()
    made.add("stated", 5, "%", 0)
    made.add("later.x", later, "tok/s", 1)
    made.add("earlier.x", 1000, "tok/s", 1)
    made.relate("pair", first="later.*", second="earlier.$1", stated="stated")
    (one,) = found(made, tmp_path, "A9")
    assert one.answer is answer


@pytest.mark.parametrize(
    ("measured", "denominator", "least", "most"),
    [
        ((98, 99), (100, 100), "0.01", "0.02"),
        ((101, 102), (100, 100), "0.01", "0.02"),
        ((99, 102), (100, 100), "0", "0.02"),
        ((97, 101), (100, 100), "0", "0.03"),
        ((100, 100), (100, 100), "0", "0"),
    ],
)
def test_a9_a_deviation_has_no_sign(
    measured: tuple[int, int], denominator: tuple[int, int], least: str, most: str
) -> None:
    ends = (Fraction(one) for one in (*measured, *denominator))
    low, high, below, above = ends
    result = deviation(Enclosure(low, high), Enclosure(below, above))
    assert (result.low, result.high) == (Fraction(least), Fraction(most))


@pytest.mark.parametrize(("unit", "leads"), [("s", 1), ("B", 0)])
def test_a_lead_to_a_time_is_made_of_times(tmp_path: Path, unit: str, leads: int) -> None:
    made = Synthetic()
    made.add("a", 50, unit, 0, metric="time", arm="x")
    made.add("b", 20, unit, 0, metric="time", arm="y")
    made.add("one", 3, "s", 0, metric="other", arm="one")
    made.add("off", 30, "s", 0, formula="one + one", basis="derived", metric="time", arm="none")
    (finding,) = found(made, tmp_path, "A1")
    assert [one.arithmetic for one in finding.leads] == ["50 - 20 = 29..31 s"] * leads


def test_two_readings_of_one_cell_are_no_lead(tmp_path: Path) -> None:
    made = Synthetic()
    for name, value in (("a", 10), ("b", 2)):
        made.add(name, value, "s", 2, metric="ttft", arm="x", level="c1", statistic="p50")
        made.rows[name]["where"] = name
    made.add("one", 3, "s", 2, metric="other", arm="one")
    made.add("two", 1, "s", 2, metric="other", arm="two")
    more = {"basis": "derived", "metric": "ttft_ratio", "arm": "none"}
    made.add("off", 5, "x", 1, formula="one / two", **more)
    (finding,) = found(made, tmp_path, "A1")
    assert finding.leads == ()


@pytest.mark.parametrize(
    ("gain", "message"),
    [
        ("20.0", "a10-saved"),
        ("25.0", "a10-faster"),
        ("22.5", "a10-off"),
        ("~20", "a10-either"),  # 15 to 25
    ],
)
def test_a10_a_printed_gain_may_be_time_saved_or_speed(
    tmp_path: Path, gain: str, message: str
) -> None:
    """50 % and 60 % at 20 switches an hour: loads of 90 s and 72 s, 20 % saved, 25 % faster."""
    made = Synthetic()
    made.add("switches", 20, "switches", 0, basis="specification")
    made.add("before", 50, "%", 1)
    made.add("after", 60, "%", 1)
    made.add("gain", 20, "%", 1)
    made.rows["gain"] |= {"value": gain.strip("~"), "as_printed": gain}
    keys = {"before": "before", "after": "after", "switches": "switches", "saved": "gain"}
    made.relate("utilisation", figures=["before"], **keys)
    (one,) = found(made, tmp_path, "A10")
    assert one.check.message == message
    facts = one.check.facts
    assert facts["before_low"] == pytest.approx((1 - 0.5005) * 180)
    assert facts["after_high"] == pytest.approx((1 - 0.5995) * 180)


@pytest.mark.parametrize(
    ("basis", "limit"),
    [("modelled", ("measured", "derived")), ("derived", ("measured", "derived", "specification"))],
)
def test_a2_a_figure_and_its_inputs_are_held_to_lists_of_their_own(
    tmp_path: Path, basis: str, limit: tuple[str, ...]
) -> None:
    made = Synthetic()
    made.add("guess", 2, "s", 1, basis="estimated")
    made.add("count", 2, "drives", 0, basis="specification")
    made.add("a", 4, "s", 1, formula="guess * count", basis=basis, page_label="Measured")
    (one,) = found(made, tmp_path, "A2")
    assert (one.answer, one.check.limit) == (REFUTED, limit)
    assert one.figures == (("a",) if basis == "modelled" else ("a", "guess"))


def test_rules_explain_themselves_with_the_limits_they_apply() -> None:
    thresholds = {one.rule_id: dict(one.thresholds) for one in RULES if one.thresholds}
    assert thresholds == {"A5": {"tolerance_share": 0.005}, "A7": {"p90": 10, "p99": 100}}


def test_a_printed_value_keeps_its_digits() -> None:
    assert digits(Fraction("9.3"), Fraction(1, 100)) == "9.30"
    assert digits(Fraction(280), Fraction(10)) == "280"
    assert digits(Fraction(24), Fraction(1)) == "24"
    assert digits(Fraction(24), None) == "24"


@pytest.mark.parametrize(("differ", "leads"), [(1, 1), (MAX_DIFFERENCES, 1), (3, 0)])
def test_a_lead_is_a_pair_that_differs_in_two_things_at_most(
    tmp_path: Path, differ: int, leads: int
) -> None:
    made = Synthetic()
    made.add("a", 10, "s", 2, metric="ttft", arm="x", level="c1", statistic="p50")
    made.add("b", 2, "s", 2, metric="ttft", arm="x", level="c1", statistic="p50")
    for name in ("arm", "level", "statistic")[:differ]:
        made.rows["b"][name] = "other"
    made.add("one", 3, "s", 2, metric="other", arm="one")
    made.add("two", 1, "s", 2, metric="other", arm="two")
    made.add(
        "off", 5, "x", 1, formula="one / two", basis="derived", metric="ttft_ratio", arm="none"
    )
    (finding,) = found(made, tmp_path, "A1")
    assert finding.answer is REFUTED
    assert len(finding.leads) == leads
    if leads:
        (lead,) = finding.leads
        assert (lead.expression, lead.same_report) == ("a / b", True)
        assert lead.arithmetic == "10.00 / 2.00 = 4.985..5.015 x"


@pytest.mark.parametrize(("whole", "leads"), [(4, 1), (3, 0)])
def test_a_lead_is_at_most_three_times_as_wide_as_the_figure(
    tmp_path: Path, whole: int, leads: int
) -> None:
    """3.00 stands for 0.01. A reading to 0.1 over 4 is 0.025 wide, over 3 it is 0.033 wide."""
    made = Synthetic()
    made.add("a", 3 * whole, "s", 1, metric="time", arm="x")
    made.add("b", whole, "s", 0, metric="time", arm="y", basis="specification")
    made.add("one", 7, "s", 2, metric="other", arm="one")
    made.add("two", 1, "s", 2, metric="other", arm="two")
    more = {"basis": "derived", "metric": "time_ratio", "arm": "none"}
    made.add("off", 3, "x", 2, formula="one / two", **more)
    (finding,) = found(made, tmp_path, "A1")
    assert [one.expression for one in finding.leads] == ["a / b"] * leads
    assert MAX_WIDTH == 3


@pytest.mark.parametrize(("count", "more"), [(SHOWN_IDS, ""), (SHOWN_IDS + 1, " +1")])
def test_a_long_list_of_figures_is_cut_and_says_by_how_many(
    tmp_path: Path, count: int, more: str
) -> None:
    made = Synthetic()
    for number in range(count):
        made.add(f"a.{number}", 3, "s", 1, metric="e2e", statistic="p90", level="c8")
    text = as_markdown(found(made, tmp_path, "A7"), "en")
    (line,) = (one for one in text.splitlines() if "`a.0`" in one)
    assert line.count("`a.") == SHOWN_IDS
    assert f"`a.5`{more};" in line


def test_two_units_that_nothing_converts_are_no_one_quantity(tmp_path: Path) -> None:
    made = Synthetic()
    made.add("a", 3, "s", 1, arm="x")
    made.add("b", 3, "GB", 1, arm="x")
    made.rows["b"]["where"] = "page 2"
    (one,) = found(made, tmp_path, "A3")
    assert one.answer is REFUTED
    assert (one.check.measured, one.check.limit) == ("byte", "second")
