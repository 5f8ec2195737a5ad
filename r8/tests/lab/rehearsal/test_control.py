from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from r8.lab.rehearsal.control import Control, serve
from r8.lab.rehearsal.shape import Shape
from r8.tests.support.faulty_fs import (
    DELAY,
    EIO,
    FSYNC,
    SHORT,
    WRITE,
    Fault,
    FaultControl,
    Faults,
    FaultyPlant,
)

if TYPE_CHECKING:
    from pathlib import Path

SHAPE = Shape(read_bandwidth_bytes_per_s=200_000_000, read_latency_ns=6_000_000)


@pytest.fixture
def plant() -> FaultyPlant:
    return FaultyPlant(SHAPE)


@pytest.fixture
def control(plant: FaultyPlant, tmp_path: Path) -> FaultControl:
    # Far beyond the 107 bytes of a socket address.
    home = tmp_path / ("long" * 30)
    home.mkdir()
    serve(plant, home / "control")
    return FaultControl(home / "control")


def test_the_shape_is_read_and_changed_while_it_runs(
    control: FaultControl, plant: FaultyPlant
) -> None:
    assert control.shape() == SHAPE
    changed = control.set_shape(read_latency_ns=1)
    assert changed.read_latency_ns == 1
    assert changed.read_bandwidth_bytes_per_s == SHAPE.read_bandwidth_bytes_per_s
    assert plant.reading.admit(0, now_ns=0) == 1


@pytest.mark.parametrize(
    "changes", [{"read_latency_ns": -1}, {"no_such_field": 1}, {"read_bandwidth_bytes_per_s": 0}]
)
def test_a_senseless_change_is_refused_and_changes_nothing(
    control: Control, changes: dict[str, int]
) -> None:
    with pytest.raises(ValueError, match="Error"):
        control.set_shape(**changes)
    assert control.shape() == SHAPE


def test_a_missing_daemon_is_an_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        Control(tmp_path / "control").shape()


def test_counters_count_and_begin_again(control: FaultControl, plant: FaultyPlant) -> None:
    plant.counters.read_begins(4096)
    plant.counters.read_begins(4096)
    plant.counters.read_ends(late_ns=7, faults=1)
    plant.counters.wrote(10)
    assert control.counters() == {
        "reads": 2,
        "read_bytes": 8192,
        "writes": 1,
        "write_bytes": 10,
        "fsyncs": 0,
        "in_flight": 1,
        "max_in_flight": 2,
        "faults": 1,
        "max_late_ns": 7,
    }
    control.reset_counters()
    assert control.counters()["read_bytes"] == 0
    assert control.counters()["in_flight"] == 1


def test_faults_are_injected_and_cleared_over_the_socket(
    control: FaultControl, plant: FaultyPlant
) -> None:
    assert control.inject(Fault(kind=EIO, path="/image", offset=100, length=50)) == 1
    assert plant.faults.due("/image", 10, 120)
    control.clear_faults()
    assert not plant.faults.due("/image", 10, 120)


@pytest.mark.parametrize(
    ("size", "offset", "meets"),
    [(10, 90, False), (11, 90, True), (1, 149, True), (1, 150, False), (1000, 0, True)],
)
def test_a_fault_on_a_byte_range_meets_reads_that_touch_it(
    size: int, offset: int, *, meets: bool
) -> None:
    faults = Faults()
    faults.add(Fault(kind=SHORT, offset=100, length=50))
    assert bool(faults.due("/image", size, offset)) is meets


def test_a_fault_on_every_third_read_is_limited_by_its_count() -> None:
    faults = Faults()
    faults.add(Fault(kind=DELAY, every=3, count=2, delay_ns=1))
    met = [bool(faults.due("/image", 1, 0)) for _ in range(12)]
    assert met == [False, False, True, False, False, True] + [False] * 6


def test_a_fault_on_another_file_does_not_count_this_files_reads() -> None:
    faults = Faults()
    faults.add(Fault(kind=EIO, path="/a", every=2))
    assert [bool(faults.due(path, 1, 0)) for path in ("/b", "/a", "/b", "/a")] == [
        False,
        False,
        False,
        True,
    ]


def test_a_fault_on_writes_or_flushes_meets_no_read() -> None:
    faults = Faults()
    faults.add(Fault(kind=EIO, on=WRITE, offset=100, length=50))
    faults.add(Fault(kind=EIO, on=FSYNC))
    assert not faults.due("/image", 10, 120)
    assert [one.on for one in faults.due("/image", 10, 120, WRITE)] == [WRITE]
    assert not faults.due("/image", 10, 200, WRITE)
    assert [one.on for one in faults.due("/image", 0, 0, FSYNC)] == [FSYNC]


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "gremlin"},
        {"kind": EIO, "every": 0},
        {"kind": EIO, "on": "rename"},
        {"kind": SHORT, "on": WRITE},
    ],
)
def test_a_fault_that_could_never_happen_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"fault|count"):
        Fault(**wrong)  # type: ignore[arg-type]
