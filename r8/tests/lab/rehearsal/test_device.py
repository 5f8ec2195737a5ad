"""The real device on this machine: skipped with the reason where it cannot be built."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from r8.lab.machine import supervisor as supervisors
from r8.lab.machine.supervisor import Supervisor
from r8.lab.rehearsal import fallback
from r8.lab.rehearsal.device import backing
from r8.lab.rehearsal.fallback import FUSE, LOOP, PLAIN, Capability, ShapedDevice, shaped_device
from r8.lab.rehearsal.shape import Shape
from r8.lab.rehearsal.teardown import loop_devices_on, mount_points
from r8.tests.support.extents import physical_ranges
from r8.tests.support.faulty_fs import EIO, SHORT, Fault, control_of, faulty_device

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

GIB = 1 << 30
MIB = 1 << 20
CHECKOUT = Path(__file__).resolve().parents[4]
PATIENCE_S = 30.0
# Fast enough not to be waited for; the pacing itself is proven with a clock of its own.
QUICK = Shape(read_bandwidth_bytes_per_s=4_000_000_000, read_latency_ns=100_000)
SIZE = GIB // 2

taken, why_not = fallback.best_level(fallback.capabilities())
needs_loop = pytest.mark.skipif(taken is not LOOP, reason=f"no shaped block device here: {why_not}")
needs_fuse = pytest.mark.skipif(taken is PLAIN, reason=f"no FUSE here: {why_not}")


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    with Supervisor(tmp_path / "state") as supervisor:
        yield supervisor


def drop(device: ShapedDevice) -> None:
    subprocess.run(device.drop_command, check=True, cwd=CHECKOUT)


def write_durably(path: Path, content: bytes) -> None:
    with path.open("wb") as handle:
        handle.write(content)
        handle.flush()
        os.fsync(handle.fileno())


def nothing_is_left_under(path: Path) -> bool:
    mounted = any(Path(point).is_relative_to(path) for point in mount_points())
    loops = loop_devices_on(path / "array" / "fuse" / "image")
    return not mounted and not loops and not (path / "array").exists()


def wait_until(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(0.05)


def sectors_read(block_device: str) -> int:
    for line in Path("/proc/diskstats").read_text().splitlines():
        fields = line.split()
        if fields[2] == block_device:
            return int(fields[5])
    raise AssertionError(f"{block_device} is not in /proc/diskstats")


@pytest.mark.root
@needs_loop
def test_a_cold_read_is_seen_by_the_block_device_and_by_the_image(
    tmp_path: Path, supervisor: Supervisor
) -> None:
    with faulty_device(QUICK, supervisor, tmp_path, "array", SIZE) as device:
        assert device.level is LOOP
        control = control_of(device)
        assert device.block_device is not None
        content = os.urandom(8 * MIB)
        write_durably(device.kv_dir / "a.pt", content)
        drop(device)
        control.reset_counters()
        before = sectors_read(device.block_device)
        assert (device.kv_dir / "a.pt").read_bytes() == content
        read = (sectors_read(device.block_device) - before) * 512
        assert 8 * MIB <= read < 9 * MIB
        assert 8 * MIB <= control.counters()["read_bytes"] < 9 * MIB
        again = sectors_read(device.block_device)
        assert (device.kv_dir / "a.pt").read_bytes() == content
        assert sectors_read(device.block_device) - again < MIB // 512, "warm: no physical read"
        queue = Path("/sys/block") / device.block_device / "queue"
        assert (queue / "max_sectors_kb").read_text().strip() == str(QUICK.max_sectors_kib)
        assert (queue / "read_ahead_kb").read_text().strip() == str(QUICK.read_ahead_kib)
    assert nothing_is_left_under(tmp_path)


@pytest.mark.root
@needs_loop
def test_more_requests_are_in_flight_than_fuse_allows_untold(
    tmp_path: Path, supervisor: Supervisor
) -> None:
    slow = Shape(read_bandwidth_bytes_per_s=4_000_000_000, read_latency_ns=50_000_000)
    with faulty_device(slow, supervisor, tmp_path, "array", SIZE) as device:
        control = control_of(device)
        path = device.kv_dir / "a.pt"
        write_durably(path, os.urandom(32 * MIB))
        drop(device)
        control.reset_counters()
        code = (
            "import sys, mmap, os, concurrent.futures as f\n"
            "def read(i):\n"
            "    h = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT)\n"
            "    with mmap.mmap(-1, 1 << 20) as m: return os.preadv(h, [m], i << 20)\n"
            "assert sum(f.ThreadPoolExecutor(32).map(read, range(32))) == 32 << 20\n"
        )
        subprocess.run([sys.executable, "-c", code, str(path)], check=True)
        assert control.counters()["max_in_flight"] > 32


@pytest.mark.root
@needs_loop
def test_two_devices_stand_side_by_side_and_one_stays_silent(
    tmp_path: Path, supervisor: Supervisor
) -> None:
    with (
        shaped_device(QUICK, supervisor, tmp_path, "array", SIZE) as array,
        shaped_device(QUICK, supervisor, tmp_path, "local", SIZE) as local,
    ):
        assert array.block_device != local.block_device
        assert local.block_device is not None
        write_durably(array.kv_dir / "a.pt", os.urandom(MIB))
        drop(array)
        before = sectors_read(local.block_device)
        (array.kv_dir / "a.pt").read_bytes()
        assert sectors_read(local.block_device) == before


@pytest.mark.root
@needs_loop
def test_an_error_aimed_at_one_file_meets_that_file_only(
    tmp_path: Path, supervisor: Supervisor
) -> None:
    with faulty_device(QUICK, supervisor, tmp_path, "array", SIZE) as device:
        control = control_of(device)
        for name in "ab":
            write_durably(device.kv_dir / name, os.urandom(4 * MIB))
        for _, physical, length in physical_ranges(device.kv_dir / "a"):
            control.inject(Fault(kind=EIO, offset=physical, length=length))
        drop(device)
        assert len((device.kv_dir / "b").read_bytes()) == 4 * MIB
        with pytest.raises(OSError, match="Input/output") as caught:
            (device.kv_dir / "a").read_bytes()
        assert caught.value.errno == errno.EIO
        assert control.counters()["faults"] > 0
        control.clear_faults()
        drop(device)
        assert len((device.kv_dir / "a").read_bytes()) == 4 * MIB


@pytest.mark.root
@needs_loop
def test_a_level_that_fails_while_being_built_is_taken_down_and_the_next_is_taken(
    tmp_path: Path, supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """mkfs.xfs refuses 16 MiB: the loop device is already there and must go again."""
    with shaped_device(QUICK, supervisor, tmp_path, "array", 16 * MIB) as device:
        assert device.level is FUSE
        assert "loop-xfs failed: mkfs.xfs" in device.note
        assert not loop_devices_on(tmp_path / "array" / "fuse" / "image")
    assert nothing_is_left_under(tmp_path)


PARENT = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job starts without
from pathlib import Path
from r8.lab.machine.supervisor import Supervisor
from r8.lab.rehearsal.fallback import shaped_device
from r8.lab.rehearsal.shape import Shape
home = Path(sys.argv[1])
shape = Shape(read_bandwidth_bytes_per_s=10**9, read_latency_ns=0)
with Supervisor(home / "state") as supervisor, shaped_device(shape, supervisor, home, "array", 1
<< 29) as d:
    busy = supervisor.spawn("busy", ["sleep", "600"], cwd=d.kv_dir)
    print(d.level.name, flush=True)
    time.sleep(600)
"""


def start_parent(tmp_path: Path) -> subprocess.Popen[str]:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path)],
        cwd=CHECKOUT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert parent.stdout is not None
    assert parent.stdout.readline() == "loop-xfs\n"
    parent.stdout.close()
    return parent


@pytest.mark.root
@needs_loop
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_no_mount_and_no_loop_device_is_left_after_the_parent_is_ended(
    tmp_path: Path, number: int
) -> None:
    parent = start_parent(tmp_path)
    assert not nothing_is_left_under(tmp_path)
    os.killpg(parent.pid, number)
    parent.wait()
    wait_until(lambda: nothing_is_left_under(tmp_path), "mounts and loop devices to be gone")
    wait_until(lambda: not list((tmp_path / "state").iterdir()), "the log to be removed")


@pytest.mark.root
@needs_loop
def test_a_double_kill_is_cleaned_by_the_next_start(tmp_path: Path) -> None:
    parent = start_parent(tmp_path)
    (log,) = (tmp_path / "state").iterdir()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            command = (entry / "cmdline").read_bytes() if (entry / "cmdline").exists() else b""
            if b"r8.lab.machine.supervisor" in command and str(log).encode() in command:
                os.kill(int(entry.name), signal.SIGKILL)
    parent.kill()
    parent.wait()
    assert supervisors.leftovers(tmp_path / "state")
    assert supervisors.clean(tmp_path / "state") == []
    assert nothing_is_left_under(tmp_path)


@needs_fuse
def test_the_fuse_level_serves_a_directory_and_shows_short_reads_to_the_reader(
    tmp_path: Path, supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    without = tuple(
        Capability(name=one.name, present=one.present and one.name != "loop", saw=one.saw)
        for one in fallback.capabilities()
    )
    monkeypatch.setattr(fallback, "capabilities", lambda: without)
    with faulty_device(QUICK, supervisor, tmp_path, "array", MIB) as device:
        assert device.level is FUSE
        assert device.block_device is None
        control = control_of(device)
        content = os.urandom(MIB)
        path = device.kv_dir / "a.pt"
        write_durably(path, content)
        path.rename(device.kv_dir / "b.pt")
        path = device.kv_dir / "b.pt"
        assert path.read_bytes() == content
        control.inject(Fault(kind=SHORT, path="/kv/b.pt", keep_bytes=1000))
        with path.open("rb", buffering=0) as handle:
            assert len(handle.read(MIB)) < MIB
        control.clear_faults()
        control.inject(Fault(kind=EIO, path="/kv/b.pt"))
        with pytest.raises(OSError, match="Input/output"):
            path.read_bytes()
        control.clear_faults()
        path.unlink()
        assert list(device.kv_dir.iterdir()) == []
    assert nothing_is_left_under(tmp_path)


def test_without_anything_the_device_is_a_plain_directory_and_says_why(
    tmp_path: Path, supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = tuple(
        Capability(name=one.name, present=False, saw="") for one in fallback.capabilities()
    )
    monkeypatch.setattr(fallback, "capabilities", lambda: nothing)
    with shaped_device(QUICK, supervisor, tmp_path, "array", MIB) as device:
        assert device.level is PLAIN
        assert device.control is None
        assert device.shape is None
        assert "loop-xfs needs root, fuse, mfusepy, loop, xfs" in device.note
        write_durably(device.kv_dir / "a.pt", b"x")
    assert nothing_is_left_under(tmp_path)


def test_every_level_says_what_it_cannot_show() -> None:
    known = {capability.name for capability in fallback.capabilities()}
    for level in fallback.LEVELS:
        assert level.cannot
        assert set(level.needs) <= known


def test_the_page_cache_is_dropped_file_by_file_where_the_whole_may_not_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_args: False)
    assert fallback.drop_command(tmp_path)[1:4] == ("-m", "probes", "evict")


@pytest.mark.parametrize(("available", "in_memory"), [(16 * GIB, True), (11 * GIB, False)])
def test_the_image_lies_in_memory_only_where_the_engine_still_fits_beside_it(
    *, available: int, in_memory: bool
) -> None:
    found, why = backing(4 * GIB, available)
    assert found is in_memory
    assert "4.0 GiB image" in why
