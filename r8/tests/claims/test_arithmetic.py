"""Interval arithmetic is exact and never narrower than the truth; formulas mean what they say."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r8.claims.arithmetic import (
    PLAIN,
    Dimension,
    Enclosure,
    Quantity,
    UndefinedError,
    dimension_name,
    extreme,
)
from r8.claims.formula import FormulaError, Node, bindings, evaluate, matches, names, parse
from r8.claims.printed import COUNTED, UNITS, plain, printed_enclosure, printed_numbers

SECOND: Dimension = (1, 0, 0)
BYTE: Dimension = (0, 1, 0)
small = st.integers(min_value=-500, max_value=500)


def enclosure(low: int, high: int) -> Enclosure:
    return Enclosure(Fraction(min(low, high)), Fraction(max(low, high)))


@given(small, small, small, small, st.fractions(0, 1), st.fractions(0, 1))
def test_every_result_of_members_lies_in_the_result_of_enclosures(
    a: int, b: int, c: int, d: int, s: Fraction, t: Fraction
) -> None:
    one, other = enclosure(a, b), enclosure(c, d)
    x = one.low + s * (one.high - one.low)
    y = other.low + t * (other.high - other.low)
    results = {"+": (one + other, x + y), "-": (one - other, x - y), "*": (one * other, x * y)}
    if not other.low <= 0 <= other.high:
        results["/"] = (one / other, x / y)
    for sign, (whole, value) in results.items():
        assert whole.low <= value <= whole.high, sign


def test_a_division_by_what_may_be_zero_has_no_answer() -> None:
    with pytest.raises(UndefinedError, match="may be zero"):
        enclosure(1, 2) / enclosure(-1, 1)


def test_ends_in_the_wrong_order_are_refused() -> None:
    with pytest.raises(ValueError, match="from 2 down to 1"):
        Enclosure(Fraction(2), Fraction(1))


def test_the_gap_is_signed_and_zero_where_they_meet() -> None:
    assert enclosure(1, 2).gap_to(enclosure(4, 5)) == 2
    assert enclosure(4, 5).gap_to(enclosure(1, 2)) == -2
    assert enclosure(1, 2).gap_to(enclosure(2, 5)) == 0


def test_units_must_agree_to_add_and_combine_to_multiply() -> None:
    time = Quantity(enclosure(2, 2), SECOND)
    size = Quantity(enclosure(6, 6), BYTE)
    assert (size / time).dimension == (-1, 1, 0)
    assert (size * time).dimension == (1, 1, 0)
    with pytest.raises(UndefinedError, match="second with byte"):
        time + size
    with pytest.raises(UndefinedError, match="byte with second"):
        extreme("min", [size, time])


def test_a_quantity_without_a_unit_takes_any() -> None:
    unknown = Quantity(enclosure(1, 1), None)
    assert (unknown + Quantity(enclosure(1, 1), SECOND)).dimension is None
    assert (unknown * Quantity(enclosure(1, 1), SECOND)).dimension is None


def test_dimensions_are_named() -> None:
    assert dimension_name((-1, 1, 0)) == "byte/second"
    assert dimension_name(PLAIN) == "a plain number"
    assert dimension_name((-2, 0, 0)) == "1/second^2"


@pytest.mark.parametrize(
    ("text", "value", "low", "high"),
    [
        ("7.53", "7.53", "7.525", "7.535"),
        ("9.30 s", "9.3", "9.295", "9.305"),
        ("-26%", "-26", "-26.5", "-25.5"),
        ("+29-40%", "29", "28.5", "29.5"),
        ("+29-40%", "40", "39.5", "40.5"),
        ("-26-32%", "-32", "-32.5", "-31.5"),
        ("8.6-20x", "20", "19.5", "20.5"),
        ("29.8K", "29800", "29750", "29850"),
        ("16M", "16000000", "15500000", "16500000"),
        ("160,000", "160000", "159999.5", "160000.5"),
        ("~280 s", "280", "275", "285"),
        ("about 5.3x", "5.3", "5.25", "5.35"),
        ("about 2,014", "2014", "2013.5", "2014.5"),
        ("361-365 s", "363", "360.5", "365.5"),
        ("343-344 GB / 22656 files", "343", "342.5", "343.5"),
        ("~11-12 GB/s", "12", "11.5", "12.5"),
        ("32/32", "32", "31.5", "32.5"),
    ],
)
def test_a_printed_number_stands_for_all_that_rounds_to_it(
    text: str, value: str, low: str, high: str
) -> None:
    found = printed_enclosure(text, Fraction(value))
    assert found is not None
    assert (found[0].low, found[0].high) == (Fraction(low), Fraction(high))


def test_a_counted_number_is_exact_unless_the_text_says_about() -> None:
    exact = printed_enclosure("24", Fraction(24), counted=True)
    about = printed_enclosure("~24", Fraction(24), counted=True)
    assert exact is not None
    assert about is not None
    assert exact[0] == Enclosure.exact(24)
    assert about[0].high > 24
    rounded = printed_enclosure("7.5", Fraction("7.5"), counted=True)
    assert rounded is not None
    assert (rounded[0].low, rounded[0].high) == (Fraction("7.45"), Fraction("7.55"))


def test_a_text_that_does_not_print_the_value_is_no_print_of_it() -> None:
    assert printed_enclosure("7.53", Fraction("7.54")) is None
    assert printed_enclosure("not published", Fraction(7)) is None
    assert printed_enclosure("361-365", Fraction(366)) is None


def test_numbers_inside_words_are_not_numbers() -> None:
    assert printed_numbers("c16 R2 x4") == []


@given(
    st.decimals(min_value=1, max_value=1000, places=6),
    st.decimals(min_value=1, max_value=1000, places=6),
    st.integers(0, 3),
    st.integers(0, 3),
)
def test_what_was_rounded_honestly_is_never_off(
    a: object, b: object, places: int, result_places: int
) -> None:
    x, y = Fraction(str(a)), Fraction(str(b))
    printed = {"x": f"{float(x):.{places}f}", "y": f"{float(y):.{places}f}"}
    if Fraction(printed["y"]) == 0:
        return
    ratio = f"{float(x / y - 1) * 100:.{result_places}f}"

    def value_of(name: str) -> Quantity:
        found = printed_enclosure(printed[name], Fraction(printed[name]))
        assert found is not None
        return Quantity(found[0], PLAIN)

    result = evaluate(parse("x / y - 1"), value_of, lambda name: [name]).enclosure
    shown = printed_enclosure(ratio, Fraction(ratio))
    assert shown is not None
    assert result.scaled(Fraction(100)).meets(shown[0])


FIGURES = {
    "a.x": Quantity(enclosure(4, 4), SECOND),
    "a.y": Quantity(enclosure(6, 6), SECOND),
    "b.x-z": Quantity(enclosure(10, 10), SECOND),
    "n": Quantity(enclosure(2, 2), PLAIN),
}


def value(text: str) -> Fraction:
    result = evaluate(parse(text), FIGURES.__getitem__, lambda name: matches(name, FIGURES))
    assert result.enclosure.low == result.enclosure.high
    return result.enclosure.low


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("a.x + a.y * n", 16),
        ("(a.x + a.y) * n", 20),
        ("a.y - a.x - a.x", -2),
        ("a.y / n / 3", 1),
        ("a.y / (n / 3)", 9),
        ("b.x-z - a.x", 6),
        ("1 - a.x / a.y", Fraction(1, 3)),
        ("min(a.*)", 4),
        ("max(a.*, n * a.x)", 8),
        ("max(a.{x,y})", 6),
        ("mean(a.x, a.y)", 5),
        ("min(a.x, a.y / n)", 3),
        ("min of a.*", 4),
        ("max of a.{x,y}", 6),
        ("2.5 * n", 5),
    ],
)
def test_formulas_mean_what_they_say(text: str, result: Fraction | int) -> None:
    assert value(text) == result


@pytest.mark.parametrize(
    "text",
    [
        "a.x + a.y * n",
        "(a.x + a.y) * n",
        "a.y - (a.x - a.x)",
        "a.y / (n / 3)",
        "a.y * (n * 3)",
        "min(a.{x,y}, 1 - n)",
    ],
)
def test_the_canonical_text_parses_to_the_same_tree(text: str) -> None:
    assert str(parse(text)) == text
    assert parse(str(parse(text))) == parse(text)


def test_words_over_a_set_become_a_function() -> None:
    assert str(parse("min of r3.{pool,fs-own}.*.tpot_p50")) == "min(r3.{pool,fs-own}.*.tpot_p50)"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "ends where"),
        ("a.x /", "ends where"),
        ("a.x a.y", "does not fit"),
        ("(a.x", "is missing"),
        ("min(a.x", "is missing"),
        ("a.* / 2", "outside"),
        ("a.x ^ 2", "does not fit"),
        ("a.x + %", "no figure id"),
        ("median of a.*", "does not fit"),
    ],
)
def test_what_is_no_formula_is_refused(text: str, says: str) -> None:
    with pytest.raises(FormulaError, match=says):
        parse(text)


def test_a_set_stands_for_whole_parts_only() -> None:
    ids = ["r3.pool.c16.tput", "r3.pool.c16.tput.x", "r33.pool.c16.tput", "r3.local.c16.tput"]
    assert matches("r3.*.*.tput", ids) == ["r3.pool.c16.tput", "r3.local.c16.tput"]
    assert matches("r3.{pool,fs}.*.tput", ids) == ["r3.pool.c16.tput"]
    assert bindings("r3.*.*.tput", ids[0]) == ["pool", "c16"]
    assert bindings("r3.*.*.tput", ids[1]) == []


def test_names_come_from_left_to_right() -> None:
    assert list(names(parse("min(b.*, a.x) / n"))) == ["b.*", "a.x", "n"]
    assert list(names(Node("number", "3"))) == []


def test_units_are_what_they_say() -> None:
    assert UNITS["Gb/s"].scale == 125_000_000
    assert UNITS["ms"].scale * 1000 == UNITS["s"].scale
    assert UNITS["TB"].scale == 1000 * UNITS["GB"].scale
    assert UNITS["%"].scale == Fraction(1, 100)
    assert {UNITS[one].scale for one in (*COUNTED, "x", "s", "B", "tok/s", "IO/s", "CNY")} == {1}
    assert UNITS["h"].scale == 3600
    assert UNITS["ms"].dimension == UNITS["s"].dimension == UNITS["h"].dimension == SECOND
    assert UNITS["GB"].dimension == UNITS["TB"].dimension == UNITS["B"].dimension == BYTE
    assert UNITS["Gb/s"].dimension == UNITS["GB/s"].dimension == (-1, 1, 0)
    assert UNITS["CNY/TB"].dimension == (0, -1, 1)
    assert {UNITS[one].dimension for one in (*COUNTED, "x", "%")} == {PLAIN}


def test_plain_shows_people_numbers() -> None:
    assert plain(Fraction(371200)) == "371200"
    assert plain(Fraction(7671382016), 16) == "7671382016"
    assert plain(Fraction(1, 3), 3) == "0.333"
