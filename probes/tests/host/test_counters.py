from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from probes.host.counters import (
    HostSampler,
    parse_cpu,
    parse_loadavg,
    parse_meminfo,
    parse_pressure,
    parse_vmstat,
)

if TYPE_CHECKING:
    from probes.samples import Sample

STAT = b"cpu  14898 0 3479 123762 352 0 65 13 0 0\ncpu0 1 2 3\n"
MEMINFO = b"MemTotal:       24684092 kB\nDirty:              1428 kB\nHugePages_Total:       0\n"
PRESSURE = (
    b"some avg10=0.70 avg60=0.20 avg300=0.14 total=2494170\n"
    b"full avg10=0.70 avg60=0.20 avg300=0.10 total=1800294\n"
)


def _values(samples: list[Sample]) -> dict[str, float | None]:
    return {row.counter: row.value for row in samples}


def test_this_host_gives_the_counters_named_in_the_tables() -> None:
    samples = HostSampler().sample()[0].samples
    names = {row.counter for row in samples}
    assert {"cpu_user_jiffies", "mem_available_bytes", "psi_io_some_total_us"} <= names
    assert {"vmstat_pgpgin_kib", "vmstat_workingset_refault_file_pages", "load_1m"} <= names
    assert len(names) == len(samples)


def test_constants_are_written_once() -> None:
    probe = HostSampler()
    first, second = ({row.counter for row in probe.sample()[0].samples} for _ in range(2))
    assert first - second == {"clk_tck_hz", "boot_id"}


def test_values_are_converted_to_the_units_in_their_names() -> None:
    assert _values(parse_cpu(STAT))["cpu_idle_jiffies"] == 123762
    memory = _values(parse_meminfo(MEMINFO))
    assert memory["mem_total_bytes"] == 24684092 * 1024
    assert memory["mem_dirty_bytes"] == 1428 * 1024
    assert _values(parse_pressure(PRESSURE, "io")) == {
        "psi_io_some_total_us": 2494170,
        "psi_io_full_total_us": 1800294,
    }
    assert [row.value for row in parse_loadavg(b"0.58 1.00 2.5 3/99 1\n")] == [0.58, 1.0, 2.5]


def test_what_is_not_there_is_a_reason_and_no_zero() -> None:
    rows = {row.counter: row for row in parse_meminfo(MEMINFO)}
    assert rows["mem_cached_bytes"].value is None
    assert (rows["mem_cached_bytes"].reason or "").startswith("absent")
    assert {row.value for row in parse_vmstat(b"")} == {None}
    assert {row.value for row in parse_cpu(b"")} == {None}


def test_another_unit_than_kb_is_refused() -> None:
    rows = {row.counter: row for row in parse_meminfo(MEMINFO.replace(b"1428 kB", b"1428 MB"))}
    assert rows["mem_dirty_bytes"].reason == "failed: the unit is not kB"


def test_files_that_are_missing_leave_every_one_of_their_counters_with_a_reason(
    tmp_path: Path,
) -> None:
    rows = {row.counter: row for row in HostSampler(tmp_path).sample()[0].samples}
    here = {row.counter for row in HostSampler(Path("/proc")).sample()[0].samples}
    assert set(rows) == here
    assert (rows["psi_io_some_total_us"].reason or "").startswith("absent: FileNotFoundError")
    assert {row.value for name, row in rows.items() if name != "clk_tck_hz"} == {None}


@given(data=st.data(), inserted=st.binary(max_size=8), length=st.integers(0, 20))
def test_mutated_files_raise_nothing_and_make_no_zero(
    data: st.DataObject, inserted: bytes, length: int
) -> None:
    for text in (STAT, MEMINFO, PRESSURE, b"pgpgin 153\npswpin 7\n", b"0.58 1.00 2.5\n"):
        position = data.draw(st.integers(0, len(text)))
        mutated = text[:position] + inserted + text[position + length :]
        mutated = mutated[: data.draw(st.integers(0, len(mutated)))]
        samples = [*parse_cpu(mutated), *parse_meminfo(mutated), *parse_vmstat(mutated)]
        samples += [*parse_pressure(mutated, "io"), *parse_loadavg(mutated)]
        for row in samples:
            assert row.value != 0 or b"0" in mutated
