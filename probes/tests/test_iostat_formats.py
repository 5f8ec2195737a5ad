from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probes.iostat_json import parse_iostat_json, salvage
from probes.iostat_report import UNIT_BUG, has_unit_bug
from probes.iostat_text import HUMAN, parse_iostat_text
from probes.tests.captures import SAMPLES, capture

KIB, MIB = 1024, 1 << 20

# file, reports, salvaged, device, its last read_bytes_per_s and util as printed in the capture
JSON_CAPTURES = [
    ("11.6.0_x_t_ISO", 1, False, "vda", 73373.42 * KIB, 9.76),
    ("11.6.0_xy_JSON_invalid", 2, True, "vda", 1132.67 * KIB, 0.0),
    ("11.7.3_x_t_ISO", 1, False, "vda", 73373.11 * KIB, 9.76),
    ("12.5.2_x_t_ISO", 1, False, "vda", 73372.95 * KIB, 9.76),
    ("12.6.1_x_JSON_SIGINT_valid", 3, False, "vda", 1135240.00 * KIB, 100.0),
    ("12.6.1_x_JSON_killed_SIGTERM_invalid", 3, True, "vda", 1225864.00 * KIB, 100.0),
    ("12.6.1_x_JSON_noT_first_report_since_boot", 3, False, "vda", 953600.00 * KIB, 98.0),
    ("12.6.1_xtym_ISO", 1, False, "vda", 1093.64 * MIB, 100.0),
    ("12.6.1_xyt_md0_nvmeof_kernel6.12", 3, False, "md0", 68023.76 * KIB, 96.63),
    ("12.7.9_x_t_ISO", 1, False, "loop0", 609.95 * KIB, 0.21),
]
TEXT_CAPTURES = [
    ("12.6.1_during_link_fault_util100_zero_bytes", 1, "md0", 0.0, 99.8),
    ("12.6.1_xmt_LANG_default", 3, "vda", 784.77 * MIB, 100.0),
    ("12.6.1_xmty_p_ISO", 2, "vda", 1043.26 * MIB, 100.0),
    ("12.6.1_xy_LANG_de", 1, "vda", 0.0, 0.0),
    ("12.6.1_xyt_md0_nvmeof_kernel6.1", 2, "md0", 27374.26 * KIB, 96.63),
    ("12.6.1_xyt_md0_nvmeof_kernel6.12", 2, "md0", 41472.0 * KIB, 96.4),
]


@pytest.mark.parametrize(("name", "reports", "salvaged", "device", "rate", "util"), JSON_CAPTURES)
def test_every_captured_json_gives_the_values_printed_in_it(
    name: str, reports: int, salvaged: object, device: str, rate: float, util: float
) -> None:
    found = parse_iostat_json(capture(f"iostat_{name}.json"))
    assert (len(found.samples), found.salvaged, found.reason) == (reports, salvaged, None)
    last = next(one for one in found.samples[-1].devices if one.name == device)
    assert last.read_bytes_per_s == pytest.approx(rate)
    assert last.util_percent == pytest.approx(util)
    dated = "_t_" in name or "xty" in name or "xyt" in name
    assert (found.samples[0].timestamp is not None) == dated


@pytest.mark.parametrize(("name", "reports", "device", "rate", "util"), TEXT_CAPTURES)
def test_every_captured_table_gives_the_values_printed_in_it(
    name: str, reports: int, device: str, rate: float, util: float
) -> None:
    found = parse_iostat_text(capture(f"iostat_{name}.txt"))
    assert (len(found.samples), found.reason, found.notes) == (reports, None, ())
    last = next(one for one in found.samples[-1].devices if one.name == device)
    assert last.read_bytes_per_s == pytest.approx(rate)
    assert last.util_percent == pytest.approx(util)


def test_the_list_of_captures_is_complete() -> None:
    listed = {f"capture_iostat_{name}.json" for name, *_ in JSON_CAPTURES}
    listed |= {f"capture_iostat_{name}.txt" for name, *_ in TEXT_CAPTURES}
    listed |= {"capture_iostat_12.2.0_x_t_ISO.json", "capture_iostat_12.6.1_xyh_human.txt"}
    assert {path.name for path in SAMPLES.glob("capture_iostat_*")} == listed


def test_12_2_0_is_recognised_by_its_contradiction_and_gives_no_rates() -> None:
    found = parse_iostat_json(capture("iostat_12.2.0_x_t_ISO.json"))
    assert found.reason == UNIT_BUG
    rates = {one.read_bytes_per_s for one in found.samples[0].devices}
    assert rates == {None}


def test_the_same_bug_in_megabytes_is_recognised() -> None:
    honest = capture("iostat_12.6.1_xtym_ISO.json")
    # As 12.2.0 prints it: sectors under the name of megabytes.
    wrong = honest.replace("1093.64", f"{1093.64 * 2048:.2f}")
    assert parse_iostat_json(honest).reason is None
    assert parse_iostat_json(wrong).reason == UNIT_BUG


def test_without_traffic_the_bug_cannot_be_told_and_is_not_claimed() -> None:
    found = parse_iostat_text(capture("iostat_12.6.1_xy_LANG_de.txt"))
    assert has_unit_bug(found.samples) is None


def test_a_decimal_comma_is_a_fraction_and_not_a_hundredfold() -> None:
    text = capture("iostat_12.6.1_xy_LANG_de.txt").replace("vda              0,00", "vda   23,61")
    found = parse_iostat_text(text)
    assert found.samples[0].devices[1].columns["r/s"] == pytest.approx(23.61)


def test_human_units_are_refused() -> None:
    assert parse_iostat_text(capture("iostat_12.6.1_xyh_human.txt")).reason == HUMAN


def test_a_device_named_by_a_date_is_never_made() -> None:
    found = parse_iostat_text(capture("iostat_12.6.1_xmt_LANG_default.txt"))
    assert {one.name for sample in found.samples for one in sample.devices} == {"vda"}
    assert found.samples[1].timestamp == "11/30/26 00:43:20"


def test_sectors_under_posixly_correct_are_512_bytes() -> None:
    text = capture("iostat_12.5.2_x_t_ISO.json").replace("kB/s", "sec/s")
    vda = parse_iostat_json(text).samples[0].devices[1]
    assert vda.read_bytes_per_s == pytest.approx(73372.95 * 512)


def test_columns_without_bytes_are_a_reason_and_not_a_rate_of_zero() -> None:
    text = capture("iostat_12.5.2_x_t_ISO.json").replace("rkB/s", "a").replace("wkB/s", "b")
    vda = parse_iostat_json(text).samples[0].devices[1]
    assert (vda.read_bytes_per_s, vda.write_bytes_per_s) == (None, None)
    assert (vda.reason or "").startswith("absent")


def test_a_cut_inside_a_report_drops_that_report_whole() -> None:
    text = capture("iostat_12.6.1_xyt_md0_nvmeof_kernel6.12.json")
    second = text.rindex('"timestamp"')
    # Some devices of the third report are complete; the report is not.
    found = parse_iostat_json(text[: text.index("nvme1n1", second)])
    assert (len(found.samples), found.salvaged) == (2, True)
    assert len(found.samples[0].devices) == len(found.samples[1].devices)


def test_text_without_one_complete_report_cannot_be_salvaged() -> None:
    assert salvage('{"sysstat": {"hosts": [{"statistics": [{"disk": [') is None
    assert (parse_iostat_json('{"sysstat": {"hosts": [').reason or "").startswith("failed")
    assert (parse_iostat_json("").reason or "").startswith("absent")


ALL_JSON = [path.read_text() for path in sorted(SAMPLES.glob("capture_iostat_*.json"))]
ALL_TEXT = [path.read_text() for path in sorted(SAMPLES.glob("capture_iostat_*.txt"))]
PIECES = st.sampled_from(
    ["", "{", "}", "[", "]", ",", '"', "null", "-1", "1e999", "NaN", "\n", "é"]
)


@settings(deadline=None)
@given(data=st.data(), piece=PIECES, length=st.integers(0, 60))
def test_mutated_json_raises_nothing_and_gives_only_finite_numbers(
    data: st.DataObject, piece: str, length: int
) -> None:
    text = data.draw(st.sampled_from(ALL_JSON))
    position = data.draw(st.integers(0, len(text)))
    cut = data.draw(st.integers(0, len(text)))
    found = parse_iostat_json((text[:position] + piece + text[position + length :])[:cut])
    assert found.samples or found.reason
    for sample in found.samples:
        for one in sample.devices:
            assert all(math.isfinite(value) for value in one.columns.values())
            assert one.read_bytes_per_s is None or "r" in "".join(one.columns)


@settings(deadline=None)
@given(data=st.data(), piece=PIECES, length=st.integers(0, 60))
def test_mutated_tables_raise_nothing_and_a_broken_row_has_no_rate(
    data: st.DataObject, piece: str, length: int
) -> None:
    text = data.draw(st.sampled_from(ALL_TEXT))
    position = data.draw(st.integers(0, len(text)))
    cut = data.draw(st.integers(0, len(text)))
    found = parse_iostat_text((text[:position] + piece + text[position + length :])[:cut])
    assert found.samples or found.reason
    for sample in found.samples:
        for one in sample.devices:
            assert (one.read_bytes_per_s is None) or one.columns
