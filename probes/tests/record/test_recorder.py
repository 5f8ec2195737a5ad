from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import probes
from probes.block.disk import DiskSampler
from probes.block.sysfs import Sysfs
from probes.block.topology import WatchedDevices
from probes.cli import _plan
from probes.probe import Context, Thread
from probes.record.recorder import task_groups
from probes.tests.support.samplers import taken

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CHECKOUT = Path(probes.__file__).parent.parent
PATIENCE_S = 20.0


def _start(
    *arguments: str, stdin: int = subprocess.PIPE, **plan: object
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "probes", "record", "--plan", json.dumps(plan), *arguments],
        cwd=CHECKOUT,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


def _has_samples(out: Path) -> bool:
    path = out / "probes.jsonl"
    return path.exists() and '"cpu_user_jiffies"' in path.read_text(encoding="utf-8")


def _finish(process: subprocess.Popen[bytes]) -> tuple[int, str]:
    # Not communicate(): that would close standard input, which is a reason to stop.
    code = process.wait(PATIENCE_S)
    assert process.stderr is not None
    errors = process.stderr.read().decode()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            stream.close()
    return code, errors


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_recording_and_finishes_the_file(
    tmp_path: Path, number: signal.Signals
) -> None:
    process = _start("--out", str(tmp_path), host="h", iostat=False)
    _wait_for(lambda: _has_samples(tmp_path))
    process.send_signal(number)
    assert _finish(process) == (0, "")
    rows = _rows(tmp_path / "probes.jsonl")
    assert (rows[0]["counter"], rows[0]["host"]) == ("started", "h")
    assert (rows[-1]["counter"], rows[-1]["text"]) == ("stopped", number.name)


def test_the_end_of_standard_input_means_that_the_parent_is_gone(tmp_path: Path) -> None:
    process = _start("--out", str(tmp_path), iostat=False)
    _wait_for(lambda: _has_samples(tmp_path))
    assert process.stdin is not None
    process.stdin.write(b"words of a parent do not stop it\n")
    process.stdin.close()
    assert _finish(process) == (0, "")
    assert _rows(tmp_path / "probes.jsonl")[-1]["text"] == "stdin closed"


def test_standard_input_from_dev_null_is_no_dead_parent(tmp_path: Path) -> None:
    process = _start("--out", str(tmp_path), "--for", "0.4", stdin=subprocess.DEVNULL, iostat=False)
    assert _finish(process) == (0, "")
    assert _rows(tmp_path / "probes.jsonl")[-1]["text"] == "elapsed"


def test_an_engine_that_never_answers_does_not_keep_the_recorder_from_ending(
    tmp_path: Path,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts, and says nothing
        metrics = {"a": f"http://127.0.0.1:{silent.getsockname()[1]}/metrics"}
        process = _start("--out", str(tmp_path), iostat=False, metrics=metrics)
        _wait_for(lambda: _has_samples(tmp_path))
        started = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert _finish(process) == (0, "")
        # The page's own timeout is 5 s.
        assert time.monotonic() - started < 4


def test_without_out_rows_go_to_standard_output() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "probes", "record", "--for", "0.3"],
        cwd=CHECKOUT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
    )
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert {"self", "host", "iostat"} <= {row["probe"] for row in rows}
    witness = [row for row in rows if row["probe"] == "iostat"]
    assert witness[0]["reason"] == "absent: no raw directory, give --out"


def test_a_recorder_that_is_killed_leaves_whole_lines_and_no_iostat_behind(tmp_path: Path) -> None:
    process = _start("--out", str(tmp_path))
    _wait_for(lambda: _has_samples(tmp_path))
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    process.kill()
    assert _finish(process)[0] == -signal.SIGKILL
    rows = _rows(tmp_path / "probes.jsonl")
    assert rows[-1]["counter"] != "stopped"
    programs = [Path(f"/proc/{child}/exe") for child in children]
    _wait_for(lambda: not any(program.exists() for program in programs))
    assert children or shutil.which("iostat") is None


def test_a_recorder_that_was_stopped_for_a_while_says_how_many_ticks_it_missed(
    tmp_path: Path,
) -> None:
    process = _start(
        "--out", str(tmp_path), iostat=False, block_devices=["any"], rates_hz={"disk": 50}
    )
    _wait_for(lambda: _has_samples(tmp_path))
    process.send_signal(signal.SIGSTOP)
    time.sleep(0.5)
    process.send_signal(signal.SIGCONT)
    process.send_signal(signal.SIGTERM)
    assert _finish(process) == (0, "")
    own = [
        row
        for row in _rows(tmp_path / "probes.jsonl")
        if (row["probe"], row["device"]) == ("self", "disk")
    ]
    missed = [row["value"] for row in own if row["counter"] == "missed_ticks"]
    late_us = [row["value"] for row in own if row["counter"] == "worst_late_us"]
    # 0.5 s at 50 Hz; anything the machine's own load adds only raises it.
    assert missed[-1] >= 20
    assert late_us[-1] >= 400_000
    assert any("ms late at" in row["text"] for row in own if row["counter"] == "late_ticks")


def test_a_file_that_blocks_its_reader_delays_no_disk_sample(tmp_path: Path) -> None:
    """An array's state, a driver's statistics: the kernel may let them wait."""
    watched = WatchedDevices(("any",), Sysfs(tmp_path, tmp_path))
    (tmp_path / "diskstats").write_text("")
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "mountinfo").write_text("")
    metrics = {"a": "http://127.0.0.1:1/metrics", "b": "http://127.0.0.1:2/metrics"}
    plan = _plan({"block_devices": ["any"], "metrics": metrics, "rates_hz": {"nvme": 0}}, "test")
    groups = task_groups(Context(plan=plan, proc_root=tmp_path, sys_root=tmp_path))
    threads = {name: [task.name for task in group] for name, group in groups.items()}
    assert threads == {
        Thread.URGENT.name: ["disk"],
        Thread.PATIENT.name: ["topology", "host"],
        **{name: [name] for name in ("engine:a", "engine:b", "gpu")},
    }
    # The disk probe goes on while a resolve of the topology waits for a file.
    with pytest.MonkeyPatch.context() as patch:
        resolving, go_on = threading.Event(), threading.Event()

        def layers(*_: object) -> dict[str, None]:
            resolving.set()
            go_on.wait(10)
            return {"any": None}

        patch.setattr(watched._sysfs, "layers", layers)
        blocked = threading.Thread(target=watched.resolve)
        blocked.start()
        assert resolving.wait(10)
        samples = taken(DiskSampler(watched, tmp_path))
        assert blocked.is_alive()
        go_on.set()
        blocked.join()
    assert {sample.device for sample in samples} == {"any"}


def test_a_directory_that_is_not_there_is_one_line_and_exit_code_4(tmp_path: Path) -> None:
    code, errors = _finish(_start("--out", str(tmp_path / "no")))
    assert code == 4
    assert len(errors.splitlines()) == 1
    assert "give --out a run directory" in errors


def test_a_copy_alone_in_a_directory_runs_without_anything_installed(tmp_path: Path) -> None:
    shutil.copytree(
        CHECKOUT / "probes", tmp_path / "probes", ignore=shutil.ignore_patterns("tests")
    )
    # -I and -S: no site-packages, hence no psutil either.
    program = "import sys; sys.path.insert(0, '.'); sys.argv[0] = 'probes'\n"
    program += "from probes.cli import main; sys.exit(main())"
    for arguments in (["--help"], ["status", "--json"], ["record", "--for", "0.2"]):
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", program, *arguments],
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert done.stdout


@pytest.fixture(name="small_disk")
def _small_disk(tmp_path: Path) -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("needs root to mount a small file system")
    place = tmp_path / "small"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(place)]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"cannot mount a small file system: {done.stderr.decode().strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


@pytest.mark.root
def test_a_full_disk_is_one_line_exit_code_4_and_a_readable_file(small_disk: Path) -> None:
    process = _start("--out", str(small_disk), block_devices=["any"], rates_hz={"disk": 100})
    code, errors = _finish(process)
    assert code == 4
    assert len(errors.splitlines()) == 1
    assert "No space left on device" in errors
    assert "free space" in errors
    assert len(_rows(small_disk / "probes.jsonl")) > 100
