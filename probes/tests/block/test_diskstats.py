from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from probes.block.disk import COUNTERS, parse_diskstats
from probes.tests.support.captures import capture, snapshots

LINE = capture("diskstats_line.txt").splitlines()[1].encode() + b"\n"
VDA = frozenset({"vda"})


def test_the_captured_line_gives_every_counter_its_own_value() -> None:
    line = parse_diskstats(LINE, VDA)["vda"]
    assert list(line.counters) == list(COUNTERS)
    assert list(line.counters.values()) == [
        *(9446, 4834, 1693130, 5028, 1127, 10392, 1418048, 4180),
        *(0, 2472, 9418, 3205, 53, 40032, 209, 12, 0),
    ]
    assert line.missing == {}


def test_counters_an_older_kernel_does_not_give_are_absent_and_not_zero() -> None:
    columns = LINE.split()
    for count, lost in ((18, "flushes"), (14, "discards")):
        line = parse_diskstats(b" ".join(columns[:count]) + b"\n", VDA)["vda"]
        assert lost not in line.counters
        assert line.missing[lost].startswith("absent: ")
        assert line.counters["read_sectors"] == 1693130


def test_columns_a_later_kernel_may_append_are_ignored() -> None:
    assert parse_diskstats(LINE[:-1] + b" 77\n", VDA)["vda"].missing == {}


def test_a_line_without_its_end_is_refused_because_its_last_number_may_be_cut() -> None:
    line = parse_diskstats(LINE[:-3], VDA)["vda"]
    assert line.counters == {}
    assert set(line.missing) == set(COUNTERS)


def test_a_line_of_an_unknown_length_is_refused() -> None:
    line = parse_diskstats(b" ".join(LINE.split()[:11]) + b"\n", VDA)["vda"]
    assert line.counters == {}


def test_what_is_no_counter_is_a_reason_for_that_counter_alone() -> None:
    for bad in (b"-5", b"1.0", b"x", b"99999999999999999999"):
        line = parse_diskstats(LINE.replace(b"1693130", bad), VDA)["vda"]
        assert "read_sectors" not in line.counters
        assert line.missing["read_sectors"].startswith("failed: ")
        assert line.counters["reads"] == 9446


def test_two_lines_of_one_name_make_it_unreadable() -> None:
    assert parse_diskstats(LINE + LINE, VDA)["vda"].counters == {}


def test_a_device_without_a_line_is_not_in_the_result() -> None:
    assert parse_diskstats(LINE, frozenset({"vdb"})) == {}


TEXT = snapshots("diskstats_md0_nvmeof_kernel6.12.txt")["after_direct_read_200MiB"].encode()
NAMES = frozenset({"md0", "nvme1n1", "nvme1c1n1", "nvme0n1"})


@given(
    position=st.integers(0, len(TEXT) - 1),
    length=st.integers(0, 30),
    inserted=st.binary(max_size=12),
    cut=st.integers(0, len(TEXT)),
)
def test_mutated_text_raises_nothing_and_makes_no_number_that_is_not_written_there(
    position: int, length: int, inserted: bytes, cut: int
) -> None:
    data = (TEXT[:position] + inserted + TEXT[position + length :])[:cut]
    words = set(data.split())
    for line in parse_diskstats(data, NAMES).values():
        assert set(line.counters).isdisjoint(line.missing)
        assert set(line.counters) | set(line.missing) == set(COUNTERS)
        for value in line.counters.values():
            assert any(word.isdigit() and int(word) == value for word in words)
