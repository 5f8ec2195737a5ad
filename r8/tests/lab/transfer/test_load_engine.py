"""The worker that starts engines: what it waits for, what it says, and that nothing is left of it.

A stand-in engine prints the lines of a load as a real one does, answers over HTTP, and has a child
and a grandchild of its own.
"""

from __future__ import annotations

import contextlib
import http.server
import os
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from r8.lab.machine.supervisor import Supervisor
from r8.lab.transfer.engine_loading import TOOL
from r8.lab.transfer.worker_pool import WorkerPool, WorkerSpec, start_pool
from r8.tests.support.standins import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

# Words: port, model directory, how it behaves.
STANDIN = """
import http.server, json, os, signal, subprocess, sys, time
port, model, how = int(sys.argv[1]), sys.argv[2], sys.argv[3]
grandchild = "import subprocess, sys; subprocess.Popen(['sleep', '600']); print('x', flush=True)"
subprocess.run([sys.executable, "-c", grandchild + "; import time; time.sleep(0.1)"], check=True)
if how == "dies": sys.exit("no room for the weights")
if how == "stubborn": signal.signal(signal.SIGTERM, signal.SIG_IGN)
time.sleep(0.2)
print(f"INFO Starting to load model {model}...", flush=True)
time.sleep(0.3)
if how != "silent": print("INFO Loading weights took 0.28 seconds", flush=True)
time.sleep(0.2)
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps({"data": [{"id": "tiny"}]}).encode()
        self.send_response(200); self.send_header("Content-Length", str(len(body)))
        self.end_headers(); self.wfile.write(body)
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert asked["model"] == "tiny", asked
        body = json.dumps({"choices": [{"text": "b"}]}).encode()
        self.send_response(200); self.send_header("Content-Length", str(len(body)))
        self.end_headers(); self.wfile.write(body)
    def log_message(self, *_): pass
http.server.HTTPServer(("127.0.0.1", port), Answer).serve_forever()
"""
WEIGHTS_BYTES = 3 * 64 * 2


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[WorkerPool]:
    """Two workers."""
    with Supervisor(tmp_path / ".supervisor") as supervisor:
        specs = [
            WorkerSpec(name=name, argv=(sys.executable, str(TOOL)), env=dict(os.environ))
            for name in ("w0", "w1")
        ]
        started = start_pool(supervisor, specs, tmp_path)
        yield started
        started.stop()


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A directory of weights in two files."""
    home = tmp_path / "model"
    home.mkdir()
    one = np.zeros(64, dtype=np.float16)
    save_file({"a": one, "b": one}, home / "model-1.safetensors", metadata={"format": "pt"})
    save_file({"c": one}, home / "model-2.safetensors")
    return home


def _order(tmp_path: Path, model: Path, how: str = "well", **more: Any) -> dict[str, Any]:
    port = free_port()
    base = {
        "do": "start",
        "path": str(model),
        "argv": [sys.executable, "-c", STANDIN, str(port), str(model), how],
        "env": {"R8_STANDIN": str(tmp_path)},
        "url": f"http://127.0.0.1:{port}",
        "ready_path": "/health",
        "log": str(tmp_path / f"engine-{port}.log"),
        "timeout_s": 20.0,
        "stop_grace_s": 5.0,
    }
    return base | more


def _left(tmp_path: Path) -> list[int]:
    """Processes of the stand-in, its children too: its environment marks them."""
    mark, found = f"R8_STANDIN={tmp_path}".encode(), []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found


def test_a_load_is_timed_by_the_engines_own_marks_and_its_bytes_by_the_headers(
    pool: WorkerPool, model: Path, tmp_path: Path
) -> None:
    order = _order(tmp_path, model, keep=True)
    (row,) = pool.order("measure", {"w0": order}, timeout_s=30.0)
    assert (row["outcome"], row.get("error")) == ("ok", None)
    assert (row["bytes"], row["files"], row["path"]) == (WEIGHTS_BYTES, 2, str(model))
    instants = ("scheduled_ns", "started_ns", "turn_ns", "begin_ns", "end_ns", "ready_ns")
    told = [row[name] for name in (*instants, "serve_begin_ns")]
    assert told == sorted(told)
    assert 0.25 < (row["end_ns"] - row["begin_ns"]) / 1e9 < 2.0
    assert "0.28 seconds" in row["load_line"]
    # Kept until it is told to stop, with what it started; then all of it is gone.
    assert _left(tmp_path)
    (stopped,) = pool.order("release", {"w0": {"do": "stop"}}, timeout_s=30.0)
    assert (stopped["outcome"], _left(tmp_path)) == ("ok", [])


@pytest.mark.parametrize(
    ("how", "more", "word"),
    [
        ("dies", {}, "no room for the weights"),
        ("silent", {"timeout_s": 1.5}, "no line 'Loading weights took' in time"),
    ],
)
def test_an_engine_that_does_not_load_is_a_row_with_its_last_words(
    pool: WorkerPool, model: Path, tmp_path: Path, how: str, more: dict[str, Any], word: str
) -> None:
    (row,) = pool.order("measure", {"w0": _order(tmp_path, model, how, **more)}, timeout_s=30.0)
    assert (row["outcome"], word in row["error"], row["bytes"]) == ("failed", True, None)
    assert _left(tmp_path) == []


def test_an_engine_that_ignores_its_end_is_killed(
    pool: WorkerPool, model: Path, tmp_path: Path
) -> None:
    order = _order(tmp_path, model, "stubborn", stop_grace_s=0.5)
    (row,) = pool.order("warm", {"w0": order}, timeout_s=30.0)
    assert (row["outcome"], _left(tmp_path)) == ("ok", [])


def test_a_server_of_somebody_else_is_not_taken_for_the_engine(
    pool: WorkerPool, model: Path, tmp_path: Path
) -> None:
    class Foreign(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Stay quiet."""

    with http.server.HTTPServer(("127.0.0.1", 0), Foreign) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        order = _order(tmp_path, model, url=f"http://127.0.0.1:{server.server_address[1]}")
        (row,) = pool.order("measure", {"w0": order}, timeout_s=30.0)
        server.shutdown()
    assert "a server that is not ours answers" in row["error"]


def test_engines_take_turns_and_serve_until_the_next_one_is_due(
    pool: WorkerPool, model: Path, tmp_path: Path
) -> None:
    period_ns = 4_000_000_000
    turns = tmp_path / "turns"
    turns.mkdir()
    first = _order(tmp_path, model, stop_grace_s=0.3)
    orders = {
        name: first
        | {"log": str(tmp_path / f"{name}.log"), "turn": {"directory": str(turns), "number": k}}
        | {"after_ns": k * period_ns, "serve_after_ns": (2 + 3 * k) * period_ns // 2}
        for k, name in enumerate(("w0", "w1"))
    }
    one, two = pool.order("measure", orders, timeout_s=60.0)
    assert (one["outcome"], two["outcome"]) == ("ok", "ok"), (one.get("error"), two.get("error"))
    # The same port: the second was started only when nothing of the first was left.
    assert one["serve_until_ns"] <= one["serve_end_ns"] <= one["stopped_ns"] <= two["turn_ns"]
    assert two["started_ns"] >= two["scheduled_ns"] == one["scheduled_ns"] + period_ns
    assert one["answered"] > 0
    assert two["answered"] > 0
    assert _left(tmp_path) == []


def test_a_turn_that_never_comes_ends_with_the_time_it_had(
    pool: WorkerPool, model: Path, tmp_path: Path
) -> None:
    order = _order(tmp_path, model, turn={"directory": str(tmp_path), "number": 1})
    (row,) = pool.order("measure", {"w1": order | {"serve_after_ns": 10**8}}, timeout_s=30.0)
    assert "was not stopped in time" in row["error"]


def test_a_worker_that_is_ended_takes_its_engine_along(
    pool: WorkerPool, model: Path, tmp_path: Path
) -> None:
    pool.order("measure", {"w0": _order(tmp_path, model, keep=True)}, timeout_s=30.0)
    assert _left(tmp_path)
    pool.stop()
    deadline = time.monotonic() + 10.0
    while _left(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert _left(tmp_path) == []
