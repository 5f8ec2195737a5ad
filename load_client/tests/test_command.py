from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from load_client.errors import ClientError
from load_client.record.raw_stream import decode_batches

from .support.runs import GOOD, by_session, good, paced, rows, three_faults, values
from .support.scripted_server import scripted

ROOT = Path(__file__).resolve().parents[2]
N = 16


def command(out: Path, a_plan: dict[str, Any], *flags: str) -> tuple[int, str]:
    path = out / "plan.json"
    path.write_text(json.dumps(a_plan), encoding="utf-8")
    words = [sys.executable, "-m", "load_client", "run", "--plan", str(path), "--out", str(out)]
    done = subprocess.run(
        [*words, *flags], cwd=ROOT, capture_output=True, text=True, timeout=30, check=False
    )
    return done.returncode, done.stderr


def start(out: Path, a_plan: dict[str, Any]) -> subprocess.Popen[bytes]:
    path = out / "plan.json"
    path.write_text(json.dumps(a_plan), encoding="utf-8")
    words = [sys.executable, "-m", "load_client", "run", "--plan", str(path), "--out", str(out)]
    return subprocess.Popen([*words, "--quiet"], cwd=ROOT)


def wait_for_rows(path: Path, count: int) -> None:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if path.exists() and path.read_bytes().count(b"\n") >= count:
            return
        time.sleep(0.02)
    pytest.fail(f"{path} has fewer than {count} lines after 10 s")


def test_kill_9_in_a_closed_loop_leaves_journals_that_parse(tmp_path: Path) -> None:
    with scripted(lambda _b, _n: [0.03, GOOD]) as server:
        endless = values(server.url, shape="closed", sessions=list(range(400)), concurrency=4)
        with start(tmp_path, endless) as client:
            wait_for_rows(tmp_path / "requests.jsonl", 10)
            client.send_signal(signal.SIGKILL)
        answered = len(server.requests)
    found = rows(tmp_path / "requests.jsonl")
    told = {row["request_id"] for row in rows(tmp_path / "chunks.jsonl")}
    assert 10 <= len(found) < 400
    assert {row["request_id"] for row in found} <= told
    # At most a second of 4 / 0.03 s is missing.
    assert len(found) >= answered - 4 * 34
    (raw,) = (tmp_path / "raw").glob("client-*")
    kept = {one.request_id for _, captures in decode_batches(raw) for one in captures}
    assert {row["request_id"] for row in found} <= kept


def test_a_stop_by_signal_keeps_what_was_in_flight_as_rows(tmp_path: Path) -> None:
    with scripted(lambda _b, _n: [GOOD[:250], "hang"], gather=4) as server:
        with start(tmp_path, values(server.url)) as client:
            with server.changed:
                assert server.changed.wait_for(lambda: len(server.requests) == 4, 30)
            time.sleep(0.2)
            client.send_signal(signal.SIGTERM)
        assert client.returncode == 128 + signal.SIGTERM
    found = rows(tmp_path / "requests.jsonl")
    assert [row["outcome"] for row in found] == ["cut"] * 4
    assert all("the client was stopped" in row["error"] for row in found)


def test_a_refusing_disk_is_one_clear_line_and_what_was_written_parses(tmp_path: Path) -> None:
    """A file size limit stands in for a full disk: the same refusal in the middle of a write."""
    with scripted(good) as server:
        many = values(server.url, sessions=list(range(32)), concurrency=4)
        (tmp_path / "plan.json").write_text(json.dumps(many), encoding="utf-8")
        code = (
            "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000));"
            "from load_client.cli import main; sys.exit(main(sys.argv[1:]))"
        )
        words = ["run", "--plan", str(tmp_path / "plan.json"), "--out", str(tmp_path), "--quiet"]
        done = subprocess.run(
            [sys.executable, "-c", code, *words],
            cwd=ROOT, capture_output=True, text=True, timeout=30, check=False,
        )  # fmt: skip
    assert done.returncode == 4
    assert done.stderr.count("\n") == 1
    assert "cannot write" in done.stderr
    assert "jsonl" in done.stderr
    assert 0 < len(rows(tmp_path / "requests.jsonl")) < 32
    rows(tmp_path / "chunks.jsonl")


def test_flags_override_the_plan_and_stderr_tells_the_end(tmp_path: Path) -> None:
    with scripted(paced) as server:
        code, stderr = command(
            tmp_path, values("http://127.0.0.1:9"), "--base-url", server.url, "--sessions", "4-7"
        )
    assert (code, stderr) == (0, "measure e0: finished: 4 ok\n")
    assert sorted(by_session(tmp_path)) == [4, 5, 6, 7]


def test_an_unreachable_server_is_one_line_and_exit_4_before_anything_is_written(
    tmp_path: Path,
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        code, stderr = command(tmp_path, values(url))
    assert (code, stderr.count("\n")) == (4, 1)
    assert url in stderr
    assert "refused" in stderr
    assert os.listdir(tmp_path) == ["plan.json"]  # noqa: PTH208


def test_the_package_runs_alone_where_nothing_is_installed(tmp_path: Path) -> None:
    copy = tmp_path / "load_client"
    copy.mkdir()
    for source in (ROOT / "load_client").rglob("*.py"):
        place = copy / source.relative_to(ROOT / "load_client")
        if "tests" not in place.parts:
            place.parent.mkdir(exist_ok=True)
            place.write_bytes(source.read_bytes())
    done = subprocess.run(
        [sys.executable, "-E", "-S", "-m", "load_client", "--help"],
        cwd=tmp_path, capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert done.returncode == 0
    assert {"run", "calibrate", "rederive"} <= set(done.stdout.split())


def test_one_client_error_names_what_where_and_what_to_type() -> None:
    error = ClientError("no", where="there", next_step="type this")
    assert str(error) == "no [there] -> type this"


def test_one_error_one_cut_one_hang_of_sixteen_are_three_rows_with_three_reasons(
    tmp_path: Path,
) -> None:
    with scripted(three_faults, gather=N) as server:
        faulty = values(server.url, sessions=list(range(N)), concurrency=N, timeout_s=1)
        code, stderr = command(tmp_path, faulty)
    found = by_session(tmp_path)
    assert (code, len(found), len(server.requests)) == (1, N, N), stderr
    assert "finished: 1 cut, 1 http_error, 13 ok, 1 timeout" in stderr
    assert "first failure: measure-e0-" in stderr
    bad = {session: row["outcome"] for session, row in found.items() if row["outcome"] != "ok"}
    assert bad == {3: "http_error", 7: "cut", 11: "timeout"}
    assert len({found[session]["error"] for session in bad}) == 3
    for session in set(found) - set(bad):
        assert (found[session]["output_text"], found[session]["output_tokens"]) == ("abc", 3)
