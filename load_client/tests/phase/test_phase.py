from __future__ import annotations

import importlib
import json
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from load_client.clock import Clock
from load_client.phase.summary import PhaseSummary
from load_client.record.raw_stream import decode_batches
from load_client.record.rows import burst_rows
from load_client.wire import sockets

from ..support.runs import (
    GOOD,
    by_session,
    good,
    most_at_once,
    paced,
    plan,
    rows,
    run,
    three_faults,
)
from ..support.scripted_server import Step, scripted
from ..support.streams import DONE, chunked, completion, head, usage

ROOT = Path(__file__).resolve().parents[3]
N = 16


def test_a_burst_holds_exactly_n_requests_in_flight(tmp_path: Path) -> None:
    """The server answers nobody before all N are there: fewer would hang, more would be counted."""
    with scripted(good, gather=N) as server:
        summary, _ = run(plan(server.url, sessions=list(range(N)), concurrency=N), tmp_path)
    assert summary.all_ok
    assert (server.most_in_flight, len(server.requests)) == (N, N)


def test_more_sessions_than_n_are_consecutive_bursts_of_n(tmp_path: Path) -> None:
    with scripted(good, gather=4) as server:
        summary, _ = run(plan(server.url, sessions=list(range(12)), concurrency=4), tmp_path)
    assert summary.all_ok
    assert (server.most_in_flight, len(server.requests)) == (4, 12)
    found = sorted(rows(tmp_path / "requests.jsonl"), key=lambda row: row["session"])
    released = [row["scheduled_ns"] for row in found]
    assert [len(set(released[i : i + 4])) for i in (0, 4, 8)] == [1, 1, 1]
    assert max(row["done_ns"] for row in found[:4]) < released[4]


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_closed_loop_never_exceeds_n_and_sends_every_session_once(
    tmp_path: Path, concurrency: int
) -> None:
    with scripted(lambda _b, _n: [0.02, GOOD]) as server:
        closed = plan(server.url, shape="closed", sessions=list(range(9)), concurrency=concurrency)
        summary, _ = run(closed, tmp_path)
    assert summary.all_ok
    assert most_at_once(tmp_path) == concurrency
    assert sorted(by_session(tmp_path)) == list(range(9))
    assert len(server.requests) == 9


def test_requests_are_connected_before_the_barrier_and_sent_after_it(tmp_path: Path) -> None:
    with scripted(good) as server:
        run(plan(server.url), tmp_path)
    found = rows(tmp_path / "requests.jsonl")
    release = found[0]["scheduled_ns"]
    for row in found:
        assert row["connected_ns"] <= release <= row["sent_ns"] <= row["sent_done_ns"]
        assert row["sent_ns"] <= row["first_byte_ns"] <= row["first_content_ns"] <= row["done_ns"]
        assert row["stamp"] == "kernel"


@pytest.mark.parametrize(
    ("steps", "outcome", "reason"),
    [
        ([], "cut", "closed"),
        ([GOOD[:250], "reset"], "cut", "reset"),
        (["hang"], "timeout", "before any response byte"),
        ([GOOD[:250], "hang"], "timeout", "limit 1 s"),
        ([b"HTTP/1.1 20", 0.05], "cut", "response head"),
        ([head("401 Who", "Content-Length: 2") + b"no", "hang"], "http_error", "401"),
        ([GOOD, "hang"], "ok", None),
        ([GOOD[:100], 0.02, GOOD[100:-3], 0.02, GOOD[-3:], "hang"], "ok", None),
    ],
)
def test_every_ending_is_a_row_with_its_reason_and_no_retry(
    tmp_path: Path, steps: list[Step], outcome: str, reason: str | None
) -> None:
    with scripted(lambda _b, _n: steps) as server:
        run(plan(server.url, sessions=[0], concurrency=1, timeout_s=1), tmp_path)
    (row,) = rows(tmp_path / "requests.jsonl")
    assert (row["outcome"], len(server.requests)) == (outcome, 1)
    assert row["error"] is None if reason is None else reason in row["error"]


def test_an_error_answered_before_the_whole_body_was_read_is_kept(tmp_path: Path) -> None:
    """413 and close: sending fails, the answer is still there to be read."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(4)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        code = (
            "import socket,sys,time\n"
            f"l=socket.socket(fileno={listener.fileno()})\n"
            "l.accept()[0].close()\n"  # the client's look whether anyone is there
            "s=l.accept()[0]; s.recv(10)\n"
            "s.sendall(b'HTTP/1.1 413 Big\\r\\nContent-Length: 3\\r\\n\\r\\nbig'); time.sleep(.2)\n"
        )
        with subprocess.Popen([sys.executable, "-c", code], pass_fds=[listener.fileno()]) as server:
            big = plan(url, sessions=[0], concurrency=1, prompt_tokens=1_500_000)
            run(big, tmp_path)
            server.kill()
    (row,) = rows(tmp_path / "requests.jsonl")
    assert (row["outcome"], row["http_status"]) == ("http_error", 413)


def test_answers_that_came_at_once_are_told_and_stand_in_the_findings(tmp_path: Path) -> None:
    """dstackai/dstack#4269: a gateway that keeps every stream until its end."""
    for script, told in ((good, 1), (paced, 0)):
        out = tmp_path / script.__name__
        with scripted(script) as server:
            summary, said = run(plan(server.url), out)
        assert summary.all_ok
        assert summary.marks["held"] == 4 * told
        assert said.count("4 of 4 good answers came at once") == told
        (load,) = (out / "raw").glob("load-*")
        texts = [row["text"] for row in rows(load) if row["kind"] == "finding"]
        assert sum("came at once" in text for text in texts) == told


def test_marks_of_several_processes_are_added() -> None:
    merged, part = PhaseSummary(), PhaseSummary()
    part.marks.update(["held", "surplus"])
    for _ in range(2):
        merged.add(json.loads(json.dumps(part.as_json())))
    assert merged.marks == {"held": 2, "surplus": 2}


@pytest.mark.parametrize(("reason", "told"), [("abort", "gave the answer up"), ("zzz", "no word")])
def test_an_answer_that_did_not_succeed_fails_the_phase(
    tmp_path: Path, reason: str, told: str
) -> None:
    answer = chunked(completion("a"), completion("b", finish_reason=reason), usage(), DONE)
    with scripted(lambda _b, _n: [answer]) as server:
        summary, said = run(plan(server.url, sessions=[0], concurrency=1), tmp_path)
    (row,) = rows(tmp_path / "requests.jsonl")
    assert not summary.all_ok
    assert row["finish_reason"] == reason
    assert told in row["error"]
    assert told in said


@pytest.mark.parametrize(
    ("known", "profile", "outcome"),
    [
        (set[str](), "vllm", "http_error"),
        (set[str](), "nim", "http_error"),
        (set[str](), "openai", "ok"),
        ({"ignore_eos", "min_tokens"}, "sglang", "http_error"),
        ({"ignore_eos", "min_tokens"}, "trtllm", "ok"),
        ({"nvext"}, "nim", "ok"),
    ],
)
def test_a_server_that_refuses_keys_is_served_by_its_profile(
    tmp_path: Path, known: set[str], profile: str, outcome: str
) -> None:
    """sipeed/picoclaw#1019, Kilo-Org/kilocode#9652: 400 for a key beyond OpenAI's."""
    openai = {"model", "prompt", "max_tokens", "temperature", "stream", "stream_options"}

    def strict(body: dict[str, Any], _number: int) -> list[Step]:
        refusal = head("400 Bad Request", "Content-Length: 5") + b"extra"
        return [GOOD] if body.keys() <= openai | known else [refusal]

    with scripted(strict) as server:
        run(plan(server.url, sessions=[0], concurrency=1, profile=profile), tmp_path)
    (row,) = rows(tmp_path / "requests.jsonl")
    assert row["outcome"] == outcome


def test_a_server_that_vanishes_between_two_bursts_leaves_connect_errors(tmp_path: Path) -> None:
    with scripted(good) as server:

        def vanish(_body: dict[str, Any], _number: int) -> list[Step]:
            server.listener.shutdown(socket.SHUT_RDWR)
            server.listener.close()
            return [GOOD]

        server.script = vanish
        run(plan(server.url, sessions=[0, 1], concurrency=1), tmp_path)
    found = by_session(tmp_path)
    assert (found[0]["outcome"], found[1]["outcome"]) == ("ok", "connect_error")
    assert "refused" in found[1]["error"]
    assert found[1]["sent_ns"] is None


def test_rows_carry_exactly_the_columns_of_the_run_directory(tmp_path: Path) -> None:
    schema = pytest.importorskip("r8.schema")
    with scripted(good) as server:
        run(plan(server.url), tmp_path)
    for name in ("requests", "chunks"):
        wanted = [column.name for column in schema.TABLES[name].columns if column.name != "run_id"]
        for row in rows(tmp_path / f"{name}.jsonl"):
            assert list(row) == wanted


def test_outcomes_and_phases_are_those_of_the_model() -> None:
    model = pytest.importorskip("r8.model")
    plan_module = importlib.import_module("load_client.workload.rules")
    assert set(plan_module.PHASES) == {phase.value for phase in model.Phase}


def test_the_raw_streams_give_the_same_rows_again(tmp_path: Path) -> None:
    with scripted(three_faults) as server:
        run(plan(server.url, sessions=list(range(8)), concurrency=8, timeout_s=1), tmp_path)
    (raw,) = (tmp_path / "raw").glob("client-*")
    requests, chunks = [], []
    for clock, captures in decode_batches(raw):
        some_requests, some_chunks, _ = burst_rows(captures, clock)
        requests += some_requests
        chunks += [row for some in some_chunks for row in some]
    assert requests == rows(tmp_path / "requests.jsonl")
    assert chunks == rows(tmp_path / "chunks.jsonl")


def test_a_second_phase_of_the_same_name_overwrites_nothing(tmp_path: Path) -> None:
    with scripted(good) as server:
        run(plan(server.url), tmp_path)
        run(plan(server.url), tmp_path)
    assert sorted(path.name for path in (tmp_path / "raw").glob("client-*")) == [
        "client-measure-e0-0.raw.gz",
        "client-measure-e0-1.raw.gz",
    ]
    assert len({row["request_id"] for row in rows(tmp_path / "requests.jsonl")}) == 8


class StepClock:
    """A fake clock: the wall clock is set forward by an hour while the burst runs."""

    def __init__(self) -> None:
        self.set_at_ns: int | None = None

    def wall_ns(self) -> int:
        now_ns = time.monotonic_ns()
        stepped = self.set_at_ns is not None and now_ns >= self.set_at_ns
        return time.time_ns() + (3_600_000_000_000 if stepped else 0)


def test_a_wall_clock_set_during_the_burst_changes_no_duration(tmp_path: Path) -> None:
    stepping = StepClock()
    begin_ns = time.monotonic_ns()

    def step_once_a_request_is_here(_body: dict[str, Any], _number: int) -> list[Step]:
        stepping.set_at_ns = time.monotonic_ns()
        return [0.1, GOOD[:250], 0.2, GOOD[250:]]

    with scripted(step_once_a_request_is_here) as server:
        _, said = run(plan(server.url), tmp_path, Clock(wall_ns=stepping.wall_ns))
    end_ns = time.monotonic_ns()
    assert "wall clock was set during the burst" in said
    for row in rows(tmp_path / "requests.jsonl"):
        assert row["stamp"] == "user"
        assert row["outcome"] == "ok"
        assert begin_ns < row["sent_ns"] < row["first_content_ns"] < row["done_ns"] < end_ns


def test_without_kernel_stamps_arrivals_are_stamped_by_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sockets, "SO_TIMESTAMPNS", socket.SO_KEEPALIVE)
    with scripted(good) as server:
        summary, _ = run(plan(server.url), tmp_path)
    assert summary.all_ok
    assert {row["stamp"] for row in rows(tmp_path / "requests.jsonl")} == {"user"}
