from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.process.counters import ProcessSampler, parse_io, parse_status
from probes.process.tree import ProcessTable, parse_stat
from probes.tests.support.samplers import rows_by_device

if TYPE_CHECKING:
    from probes.samples import Sample

PROC = Path("/proc")
# A parent and its child: the child ends with its standard input, the parent with argv[1].
PARENT = """
import os, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"])
print(child.pid, flush=True)
child.wait()
os.read(int(sys.argv[1]), 1)
"""
# A parent whose child ends at once and leaves a grandchild behind, alive until argv[1] is closed.
ORPHANING = """
import os, sys
hold = int(sys.argv[1])
if os.fork() == 0:
    if os.fork() == 0:
        print(os.getpid(), flush=True)
        os.read(hold, 1)
    os._exit(0)
os.wait()
os.read(hold, 1)
"""


def _device(rows: dict[str, dict[str, Sample]], pid: int) -> str:
    return next(device for device in rows if device.split(":")[1] == str(pid))


def test_this_process_is_read_with_every_counter_and_its_start_time() -> None:
    rows = rows_by_device(ProcessSampler({"a": os.getpid()}, PROC))
    own = rows[_device(rows, os.getpid())]
    assert own["read_bytes"].value is not None
    assert own["rchar"].value is not None
    assert (own["rss_bytes"].value or 0) > 1 << 20
    assert own["cpu_ms"].value is not None
    start_ticks = (PROC / "self" / "stat").read_text().rpartition(")")[2].split()[19]
    assert _device(rows, os.getpid()) == f"a:{os.getpid()}:{start_ticks}"


def test_children_appear_and_an_ended_one_says_where_its_bytes_went() -> None:
    hold_read, hold_write = os.pipe()
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(hold_read)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        pass_fds=(hold_read,),
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdin is not None
        child = int(parent.stdout.readline())
        probe = ProcessSampler({"a": parent.pid}, PROC)
        rows = rows_by_device(probe)
        assert {device.split(":")[1] for device in rows} == {str(parent.pid), str(child)}
        device = _device(rows, child)
        parent.stdin.close()
        deadline = time.monotonic() + 10
        while (PROC / str(child)).exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        rows = rows_by_device(probe)
        assert rows[device]["exited"].text == f"folded:{_device(rows, parent.pid)}"
        assert device not in rows_by_device(probe)
        os.close(hold_write)
    os.close(hold_read)


def test_the_kernel_adds_the_bytes_of_a_waited_child_to_its_parent() -> None:
    """The fact behind `folded`: were it otherwise, sums over a tree would lose those bytes."""
    before = parse_io((PROC / "self" / "io").read_bytes())["rchar"]
    subprocess.run(["head", "-c", "5000000", "/dev/zero"], stdout=subprocess.DEVNULL, check=True)
    after = parse_io((PROC / "self" / "io").read_bytes())["rchar"]
    assert before is not None
    assert after is not None
    assert after - before >= 5_000_000


def test_a_pid_that_is_not_there_is_null_with_a_reason() -> None:
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    rows = rows_by_device(ProcessSampler({"a": gone.pid}, PROC))[f"a:{gone.pid}:-"]
    assert rows["read_bytes"].value is None
    assert rows["read_bytes"].reason == "absent: no process has this pid"


def test_a_pid_used_again_by_another_process_is_not_taken_for_the_first(tmp_path: Path) -> None:
    _fake_process(tmp_path, 50, start_ticks=1000, read_bytes=7_000_000)
    probe = ProcessSampler({"a": 50}, tmp_path)
    assert rows_by_device(probe)["a:50:1000"]["read_bytes"].value == 7_000_000
    _fake_process(tmp_path, 50, start_ticks=2000, read_bytes=5)
    rows = rows_by_device(probe)
    assert rows["a:50:1000"]["exited"].text == "lost:its parent is not in the tree"
    assert "read_bytes" not in rows["a:50:1000"]


def _fake_process(proc_root: Path, pid: int, *, start_ticks: int, read_bytes: int) -> None:
    """A fake /proc entry, as far as the probe reads it."""
    directory = proc_root / str(pid)
    directory.mkdir(exist_ok=True)
    fields = ["S", "1", str(pid), str(pid), *["0"] * 7, "10", "5", *["0"] * 6, str(start_ticks)]
    stat = f"{pid} (a (b) c) {' '.join(fields)} 0 12 0 0 0\n"
    (directory / "stat").write_text(stat, encoding="ascii")
    names = ("rchar", "wchar", "syscr", "syscw", "write_bytes", "cancelled_write_bytes")
    lines = "".join(f"{name}: 0\n" for name in names)
    (directory / "io").write_text(f"{lines}read_bytes: {read_bytes}\n", encoding="ascii")
    (directory / "status").write_text("VmRSS:\t 4 kB\nThreads:\t1\n", encoding="ascii")


def test_counters_that_may_not_be_read_are_null_with_their_reason(tmp_path: Path) -> None:
    _fake_process(tmp_path, 50, start_ticks=1, read_bytes=3)
    (tmp_path / "50" / "io").unlink()
    rows = rows_by_device(ProcessSampler({"a": 50}, tmp_path))["a:50:1"]
    assert rows["read_bytes"].value is None
    assert (rows["read_bytes"].reason or "").startswith("absent: FileNotFoundError")
    assert rows["rss_bytes"].value == 4096
    assert rows["swap_bytes"].value is None


def test_a_grandchild_adopted_by_init_is_still_found_through_its_session() -> None:
    hold_read, hold_write = os.pipe()
    with subprocess.Popen(
        [sys.executable, "-c", ORPHANING, str(hold_read)],
        stdout=subprocess.PIPE,
        pass_fds=(hold_read,),
        start_new_session=True,
    ) as root:
        assert root.stdout is not None
        orphan = int(root.stdout.readline())
        table = ProcessTable(PROC)
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            table.refresh()
            stat = parse_stat((PROC / str(orphan) / "stat").read_bytes())
            if stat is not None and stat.ppid != root.pid and orphan in table.tree(root.pid):
                break
            time.sleep(0.02)
        assert orphan in table.tree(root.pid)
        os.close(hold_write)
    os.close(hold_read)


def test_a_command_with_spaces_and_parentheses_does_not_shift_the_columns() -> None:
    stat = parse_stat(b"7 (a) S (x y) R 3 7 5 0 " + b"0 " * 15 + b"99 0 1 2 3\n")
    assert stat is not None
    assert (stat.pid, stat.state, stat.ppid, stat.session) == (7, "R", 3, 5)


@pytest.mark.parametrize("data", [b"", b"7 (cat) S 1", b"x (cat) " + b"0 " * 30])
def test_a_stat_line_that_is_none_gives_none(data: bytes) -> None:
    assert parse_stat(data) is None


IO = (PROC / "self" / "io").read_bytes()
STATUS = (PROC / "self" / "status").read_bytes()
STAT = (PROC / "self" / "stat").read_bytes()


@given(data=st.data(), inserted=st.binary(max_size=10), length=st.integers(0, 20))
def test_mutated_proc_files_raise_nothing_and_make_no_zero(
    data: st.DataObject, inserted: bytes, length: int
) -> None:
    for text, parse in ((IO, parse_io), (STATUS, parse_status)):
        position = data.draw(st.integers(0, len(text)))
        mutated = text[:position] + inserted + text[position + length :]
        mutated = mutated[: data.draw(st.integers(0, len(mutated)))]
        for value in parse(mutated).values():
            assert value is None or value > 0 or b"0" in mutated
    parse_stat(STAT[: data.draw(st.integers(0, len(STAT)))] + inserted)
