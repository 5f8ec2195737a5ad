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
from r8.lab import keeper as keepers
from r8.lab.keeper import Keeper
from r8.lab.process_tree import Root, end_tree, look_up, members

if TYPE_CHECKING:
    from collections.abc import Callable

CHECKOUT = Path(__file__).resolve().parents[2]
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
from r8.lab.keeper import Keeper
state, pids, marker, family = sys.argv[1:]
with Keeper(Path(state)) as keeper:
    keeper.on_exit(["rm", "-f", marker], "marker")
    Path(marker).touch()
    keeper.spawn("family", [sys.executable, "-c", family, pids], grace_s=0.5)
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
        parent.kill()  # its keeper tidies up
        raise


def keeper_pid_of(parent: subprocess.Popen[str]) -> int:
    children = (look_up(int(p.name)) for p in Path("/proc").iterdir() if p.name.isdigit())
    for child in children:
        if child is not None and child.parent_pid == parent.pid:
            command = Path(f"/proc/{child.pid}/cmdline").read_bytes()
            if b"r8.lab.keeper" in command:
                return child.pid
    raise AssertionError("the parent has no keeper")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_parent_ended_by_a_signal_leaves_nothing_running(tmp_path: Path, number: int) -> None:
    parent, pids, marker = start_parent(tmp_path)
    assert all(runs(pid) for pid in pids)
    parent.send_signal(number)
    parent.wait()
    wait_until(lambda: not any(runs(pid) for pid in pids), "the family to be ended")
    wait_until(lambda: not list((tmp_path / "state").iterdir()), "the ledger to be removed")
    assert not marker.exists()


def test_ctrl_c_to_the_whole_terminal_group_does_not_end_the_keeper(tmp_path: Path) -> None:
    parent, pids, _ = start_parent(tmp_path)
    os.kill(keeper_pid_of(parent), signal.SIGINT)
    os.killpg(parent.pid, signal.SIGINT)
    parent.wait()
    wait_until(lambda: not any(runs(pid) for pid in pids), "the family to be ended")


def test_after_a_double_kill_the_leftovers_are_listed_and_cleaned(tmp_path: Path) -> None:
    parent, pids, marker = start_parent(tmp_path)
    assert keepers.leftovers(tmp_path / "state") == [], "a living keeper's work is no leftover"
    keeper_pid = keeper_pid_of(parent)
    os.kill(keeper_pid, signal.SIGKILL)
    parent.kill()
    parent.wait()
    # Its hold on the ledger ends when it has ended, which is a little after the signal.
    wait_until(lambda: not runs(keeper_pid), "the keeper's end")
    left = keepers.leftovers(tmp_path / "state")
    assert [entry.name for entry in left] == ["marker", "family"]
    assert all(runs(pid) for pid in pids)
    assert keepers.clean(tmp_path / "state") == []
    assert not any(runs(pid) for pid in pids)
    assert not marker.exists()
    assert keepers.leftovers(tmp_path / "state") == []


def test_a_parent_whose_keeper_was_killed_tidies_up_itself(tmp_path: Path) -> None:
    pids_path = tmp_path / "pids"
    with Keeper(tmp_path / "state") as keeper:
        keeper.spawn("family", [sys.executable, "-c", FAMILY, str(pids_path)], grace_s=0.2)
        pids = family_pids(pids_path)
        assert keeper._process is not None
        keeper._process.kill()
    assert not any(runs(pid) for pid in pids)


def test_an_exception_inside_the_block_still_stops_everything(tmp_path: Path) -> None:
    started = []

    def fail_inside() -> None:
        with Keeper(tmp_path / "state") as keeper:
            started.append(keeper.spawn("sleeper", ["sleep", "600"]))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_inside()
    assert started[0].poll() == -signal.SIGTERM


def test_stop_ends_the_orphaned_grandchild_in_its_own_session_too(tmp_path: Path) -> None:
    pids_path = tmp_path / "pids"
    with Keeper(tmp_path / "state") as keeper:
        process = keeper.spawn("family", [sys.executable, "-c", FAMILY, str(pids_path)])
        pids = family_pids(pids_path)
        assert set(keeper.members(process)) == set(pids)
        assert keeper.stop(process, grace_s=5.0) == -signal.SIGTERM
        assert not any(runs(pid) for pid in pids)


def test_a_process_deaf_to_the_first_signal_is_killed_after_the_grace(tmp_path: Path) -> None:
    deaf = "trap '' TERM; echo ready; while :; do sleep 1; done"
    log = tmp_path / "log"
    with Keeper(tmp_path / "state") as keeper:
        process = keeper.spawn("deaf", ["sh", "-c", deaf], log_path=log)
        wait_until(lambda: log.exists() and log.read_text(), "the trap")
        assert keeper.stop(process, grace_s=0.3) == -signal.SIGKILL


def test_undo_commands_run_in_reverse_order_and_forgotten_ones_do_not(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with Keeper(tmp_path / "state") as keeper:
        keeper.on_exit(["sh", "-c", f"echo first >> {log}"])
        token = keeper.on_exit(["sh", "-c", f"echo forgotten >> {log}"])
        keeper.on_exit(["sh", "-c", f"echo last >> {log}"])
        keeper.forget(token)
    assert log.read_text().split() == ["last", "first"]


def test_an_undo_that_fails_is_said_and_stays_in_the_ledger(tmp_path: Path) -> None:
    with pytest.raises(SiteError, match="stubborn"), Keeper(tmp_path / "state") as keeper:
        keeper.on_exit(["false"], "stubborn")
    assert [entry.name for entry in keepers.leftovers(tmp_path / "state")] == ["stubborn"]


def test_an_undo_that_an_earlier_thing_stood_in_the_way_of_is_tried_again(tmp_path: Path) -> None:
    with Keeper(tmp_path / "state") as keeper:
        keeper.on_exit(["touch", str(tmp_path / "cleared")], "what stands in the way")
        keeper.on_exit(["test", "-e", str(tmp_path / "cleared")], "blocked")
    assert list((tmp_path / "state").iterdir()) == []


def test_an_undo_run_now_is_not_run_again(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with Keeper(tmp_path / "state") as keeper:
        keeper.undo(keeper.on_exit(["sh", "-c", f"echo once >> {log}"]))
    assert log.read_text().split() == ["once"]


def test_undoing_what_others_stand_on_ends_them_first(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with Keeper(tmp_path / "state") as keeper:
        keeper.on_exit(["sh", "-c", f"echo ground >> {log}"])
        token = keeper.on_exit(["sh", "-c", f"echo mount >> {log}"])
        process = keeper.spawn("engine", ["sleep", "600"])
        keeper.on_exit(["sh", "-c", f"echo engine_hook >> {log}"])
        keeper.undo_from(token)
        assert log.read_text().split() == ["engine_hook", "mount"]
        assert process.poll() == -signal.SIGTERM
    assert log.read_text().split() == ["engine_hook", "mount", "ground"]


def test_a_missing_program_is_refused_by_name(tmp_path: Path) -> None:
    with Keeper(tmp_path / "state") as keeper, pytest.raises(SiteError, match="no-such-program"):
        keeper.spawn("nothing", ["no-such-program-anywhere"])


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
    ledger = tmp_path / "keeper-old.jsonl"
    ledger.write_text(
        '{"op": "open", "boot": "another"}\n'
        '{"op": "add", "token": 1, "name": "x", "argv": ["false"], "cwd": "/"}\n'
    )
    assert keepers.leftovers(tmp_path) == []
    assert keepers.clean(tmp_path) == []
    assert not ledger.exists()


def test_a_torn_last_line_of_the_ledger_is_ignored(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with pytest.raises(SiteError), Keeper(state) as keeper:
        keeper.on_exit(["false"], "stubborn")
    (path,) = state.iterdir()
    with path.open("a") as handle:
        handle.write('{"op": "forg')
    assert [entry.name for entry in keepers.leftovers(state)] == ["stubborn"]
