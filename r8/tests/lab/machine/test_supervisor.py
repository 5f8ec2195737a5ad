from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from r8.errors import SiteError
from r8.lab.machine import supervisor as supervisors
from r8.lab.machine.process_tree import Root, end_tree, look_up, members
from r8.lab.machine.supervisor import Supervisor

if TYPE_CHECKING:
    from collections.abc import Callable

CHECKOUT = Path(__file__).resolve().parents[4]
PATIENCE_S = 20.0

# A process with a child in its group, a grandchild in a session of its own that outlives its
# parent, and pids written where the test can read them.
FAMILY = """
import os, subprocess, sys, time
pids = open(sys.argv[1], "a")
child = subprocess.Popen(["sleep", "600"])
middle = (
    "import subprocess; null = subprocess.DEVNULL;"
    "p = subprocess.Popen(['sleep', '600'], start_new_session=True, stdout=null, stderr=null);"
    "print(p.pid)"
)
orphan = subprocess.run([sys.executable, "-c", middle], capture_output=True, text=True).stdout
pids.write(f"{os.getpid()} {child.pid} {orphan.strip()}\\n")
pids.close()
time.sleep(600)
"""

PARENT = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job starts without
from pathlib import Path
from r8.lab.machine.supervisor import Supervisor
state, pids, marker, family = sys.argv[1:]
with Supervisor(Path(state)) as supervisor:
    supervisor.on_exit(["rm", "-f", marker], "marker")
    Path(marker).touch()
    supervisor.spawn("family", [sys.executable, "-c", family, pids], grace_s=0.5)
    print("up", flush=True)
    time.sleep(600)
"""


def wait_until(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(0.02)


def runs(pid: int) -> bool:
    found = look_up(pid)
    return found is not None and found.state != "Z"


def family_pids(path: Path) -> list[int]:
    wait_until(lambda: path.exists() and path.read_text().endswith("\n"), "the family's pids")
    return [int(word) for word in path.read_text().split()]


def start_parent(tmp_path: Path) -> tuple[subprocess.Popen[str], list[int], Path]:
    marker = tmp_path / "marker"
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, tmp_path / "state", tmp_path / "pids", marker, FAMILY],
        cwd=CHECKOUT,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert parent.stdout is not None
    assert parent.stdout.readline() == "up\n"
    parent.stdout.close()
    try:
        return parent, family_pids(tmp_path / "pids"), marker
    except AssertionError:
        parent.kill()  # its supervisor tidies up
        raise


def supervisor_pid_of(parent: subprocess.Popen[str]) -> int:
    children = (look_up(int(p.name)) for p in Path("/proc").iterdir() if p.name.isdigit())
    for child in children:
        if child is not None and child.parent_pid == parent.pid:
            command = Path(f"/proc/{child.pid}/cmdline").read_bytes()
            if b"r8.lab.machine.supervisor" in command:
                return child.pid
    raise AssertionError("the parent has no supervisor")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_parent_ended_by_a_signal_leaves_nothing_running(tmp_path: Path, number: int) -> None:
    parent, pids, marker = start_parent(tmp_path)
    assert all(runs(pid) for pid in pids)
    parent.send_signal(number)
    parent.wait()
    wait_until(lambda: not any(runs(pid) for pid in pids), "the family to be ended")
    wait_until(lambda: not list((tmp_path / "state").iterdir()), "the log to be removed")
    assert not marker.exists()


def test_ctrl_c_to_the_whole_terminal_group_does_not_end_the_supervisor(tmp_path: Path) -> None:
    parent, pids, _ = start_parent(tmp_path)
    os.kill(supervisor_pid_of(parent), signal.SIGINT)
    os.killpg(parent.pid, signal.SIGINT)
    parent.wait()
    wait_until(lambda: not any(runs(pid) for pid in pids), "the family to be ended")


def test_after_a_double_kill_the_leftovers_are_listed_and_cleaned(tmp_path: Path) -> None:
    parent, pids, marker = start_parent(tmp_path)
    assert supervisors.leftovers(tmp_path / "state") == [], (
        "a living supervisor's work is no leftover"
    )
    supervisor_pid = supervisor_pid_of(parent)
    os.kill(supervisor_pid, signal.SIGKILL)
    parent.kill()
    parent.wait()
    # Its hold on the log ends when it has ended, which is a little after the signal.
    wait_until(lambda: not runs(supervisor_pid), "the supervisor's end")
    left = supervisors.leftovers(tmp_path / "state")
    assert [entry.name for entry in left] == ["marker", "family"]
    assert all(runs(pid) for pid in pids)
    assert supervisors.clean(tmp_path / "state") == []
    assert not any(runs(pid) for pid in pids)
    assert not marker.exists()
    assert supervisors.leftovers(tmp_path / "state") == []


def test_a_parent_whose_supervisor_was_killed_tidies_up_itself(tmp_path: Path) -> None:
    pids_path = tmp_path / "pids"
    with Supervisor(tmp_path / "state") as supervisor:
        supervisor.spawn("family", [sys.executable, "-c", FAMILY, str(pids_path)], grace_s=0.2)
        pids = family_pids(pids_path)
        assert supervisor._process is not None
        supervisor._process.kill()
    assert not any(runs(pid) for pid in pids)


def test_an_exception_inside_the_block_still_stops_everything(tmp_path: Path) -> None:
    started = []

    def fail_inside() -> None:
        with Supervisor(tmp_path / "state") as supervisor:
            started.append(supervisor.spawn("sleeper", ["sleep", "600"]))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_inside()
    assert started[0].poll() == -signal.SIGTERM


def test_stop_ends_the_orphaned_grandchild_in_its_own_session_too(tmp_path: Path) -> None:
    pids_path = tmp_path / "pids"
    with Supervisor(tmp_path / "state") as supervisor:
        process = supervisor.spawn("family", [sys.executable, "-c", FAMILY, str(pids_path)])
        pids = family_pids(pids_path)
        assert {one.pid for one in members(process.root)} == set(pids)
        assert supervisor.stop(process, grace_s=5.0) == -signal.SIGTERM
        assert not any(runs(pid) for pid in pids)


def test_a_process_deaf_to_the_first_signal_is_killed_after_the_grace(tmp_path: Path) -> None:
    deaf = "trap '' TERM; echo ready; while :; do sleep 1; done"
    log = tmp_path / "log"
    with Supervisor(tmp_path / "state") as supervisor:
        process = supervisor.spawn("deaf", ["sh", "-c", deaf], log_path=log)
        wait_until(lambda: log.exists() and log.read_text(), "the trap")
        assert supervisor.stop(process, grace_s=0.3) == -signal.SIGKILL


def test_undo_commands_run_in_reverse_order_and_forgotten_ones_do_not(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with Supervisor(tmp_path / "state") as supervisor:
        supervisor.on_exit(["sh", "-c", f"echo first >> {log}"])
        token = supervisor.on_exit(["sh", "-c", f"echo forgotten >> {log}"])
        supervisor.on_exit(["sh", "-c", f"echo last >> {log}"])
        supervisor.forget(token)
    assert log.read_text().split() == ["last", "first"]


def test_an_undo_that_fails_is_said_and_stays_in_the_log(tmp_path: Path) -> None:
    with pytest.raises(SiteError, match="stubborn"), Supervisor(tmp_path / "state") as supervisor:
        supervisor.on_exit(["false"], "stubborn")
    assert [entry.name for entry in supervisors.leftovers(tmp_path / "state")] == ["stubborn"]


def test_an_undo_that_an_earlier_thing_stood_in_the_way_of_is_tried_again(tmp_path: Path) -> None:
    with Supervisor(tmp_path / "state") as supervisor:
        supervisor.on_exit(["touch", str(tmp_path / "cleared")], "what stands in the way")
        supervisor.on_exit(["test", "-e", str(tmp_path / "cleared")], "blocked")
    assert list((tmp_path / "state").iterdir()) == []


def test_an_undo_run_now_is_not_run_again(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with Supervisor(tmp_path / "state") as supervisor:
        supervisor.undo(supervisor.on_exit(["sh", "-c", f"echo once >> {log}"]))
    assert log.read_text().split() == ["once"]


def test_undoing_what_others_stand_on_ends_them_first(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with Supervisor(tmp_path / "state") as supervisor:
        supervisor.on_exit(["sh", "-c", f"echo testbed >> {log}"])
        token = supervisor.on_exit(["sh", "-c", f"echo mount >> {log}"])
        process = supervisor.spawn("engine", ["sleep", "600"])
        supervisor.on_exit(["sh", "-c", f"echo engine_hook >> {log}"])
        supervisor.undo_from(token)
        assert log.read_text().split() == ["engine_hook", "mount"]
        assert process.poll() == -signal.SIGTERM
    assert log.read_text().split() == ["engine_hook", "mount", "testbed"]


def test_a_missing_program_is_refused_by_name(tmp_path: Path) -> None:
    with (
        Supervisor(tmp_path / "state") as supervisor,
        pytest.raises(SiteError, match="no-such-program"),
    ):
        supervisor.spawn("nothing", ["no-such-program-anywhere"])


def test_a_stranger_that_inherited_the_pid_is_left_alone() -> None:
    stranger = subprocess.Popen(["sleep", "600"], start_new_session=True)
    found = look_up(stranger.pid)
    assert found is not None
    root = Root(mark="nobody-has-this", pid=stranger.pid, start_ticks=found.start_ticks + 1)
    assert members(root) == []
    assert end_tree(root, 0.0) == []
    assert stranger.poll() is None
    stranger.kill()
    stranger.wait()


def test_entries_of_an_earlier_boot_are_void(tmp_path: Path) -> None:
    log = tmp_path / "supervisor-old.jsonl"
    log.write_text(
        '{"op": "open", "boot": "another"}\n'
        '{"op": "add", "token": 1, "name": "x", "argv": ["false"], "cwd": "/"}\n'
    )
    assert supervisors.leftovers(tmp_path) == []
    assert supervisors.clean(tmp_path) == []
    assert not log.exists()


def test_a_torn_last_line_of_the_log_is_ignored(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with pytest.raises(SiteError), Supervisor(state) as supervisor:
        supervisor.on_exit(["false"], "stubborn")
    (path,) = state.iterdir()
    with path.open("a") as handle:
        handle.write('{"op": "forg')
    assert [entry.name for entry in supervisors.leftovers(state)] == ["stubborn"]
