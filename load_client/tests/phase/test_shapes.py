"""Load shapes beyond the burst: open loops, ramps, soaks, shards."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from load_client.errors import ClientError
from load_client.record.levels import LATE_SEND_NS, InFlightLevels, TimeSlices
from load_client.wire.target import reach
from load_client.workload.schedule import constant_offsets, poisson_offsets, trace_offsets

from ..support.runs import GOOD, by_session, good, most_at_once, plan, rows, run, values
from ..support.scripted_server import Step, scripted
from ..support.streams import head

if TYPE_CHECKING:
    from load_client.phase.running import RunningPhase
    from load_client.wire.target import Target

ROOT = Path(__file__).resolve().parents[3]
MS = 1_000_000
URL = "http://127.0.0.1:1"


def load_rows(out: Path, kind: str) -> list[dict[str, Any]]:
    found = [row for path in (out / "raw").glob("load-*") for row in rows(path)]
    return [row for row in found if row["kind"] == kind]


def test_constant_slots_are_even_and_poisson_slots_repeat_with_their_seed() -> None:
    assert constant_offsets(3, 10) == [0, 100 * MS, 200 * MS]
    some = poisson_offsets(4000, 50, seed=1)
    assert some == poisson_offsets(4000, 50, seed=1)
    assert some != poisson_offsets(4000, 50, seed=2)
    gaps = [b - a for a, b in pairwise(some)]
    mean_ns = sum(gaps) / len(gaps)
    assert min(gaps) >= 0
    # Exponential gaps: mean 1/rate, and as large a deviation (each within five standard errors).
    assert mean_ns == pytest.approx(20 * MS, rel=5 / 63)
    deviation = (sum((gap - mean_ns) ** 2 for gap in gaps) / len(gaps)) ** 0.5
    assert deviation == pytest.approx(mean_ns, rel=0.15)


def test_a_trace_is_stretched_by_its_time_scale() -> None:
    assert trace_offsets([1000 * MS, 1100 * MS, 1300 * MS], 0.5) == [0, 50 * MS, 150 * MS]


@pytest.mark.parametrize("shape", ["constant", "poisson"])
def test_an_open_loop_sends_at_its_slots_however_slow_the_server(
    tmp_path: Path, shape: str
) -> None:
    with scripted(lambda _b, _n: [0.4, GOOD]) as server:
        open_loop = plan(server.url, shape=shape, rate_per_s=40, sessions=list(range(12)))
        summary, said = run(open_loop, tmp_path)
        assert server.most_in_flight > 4, "a closed loop would have held it at concurrency"
    assert summary.all_ok, said
    found = sorted(rows(tmp_path / "requests.jsonl"), key=lambda row: row["scheduled_ns"])
    offsets = [row["scheduled_ns"] - found[0]["scheduled_ns"] for row in found]
    wanted = constant_offsets(12, 40) if shape == "constant" else poisson_offsets(12, 40, 1)
    assert offsets == [one - wanted[0] for one in wanted]
    for row in found:
        assert row["connected_ns"] < row["scheduled_ns"] <= row["sent_ns"]


def test_a_client_that_is_late_for_its_slots_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("load_client.phase.run.LATE_SEND_NS", 0)
    with scripted(good) as server:
        summary, said = run(plan(server.url, shape="constant", rate_per_s=100), tmp_path)
    assert "the client was late" in summary.findings[0]
    assert "the client was late" in said
    assert load_rows(tmp_path, "finding")


@pytest.mark.parametrize(("beyond_ns", "late"), [(0, False), (1, True)])
def test_a_send_may_be_as_late_as_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, beyond_ns: int, late: bool
) -> None:
    def send_late(running: RunningPhase) -> None:
        running.largest_lag_ns = LATE_SEND_NS + beyond_ns

    monkeypatch.setattr("load_client.phase.run.run_shape", send_late)
    with scripted(good) as server:
        summary, _ = run(plan(server.url, shape="constant", rate_per_s=100), tmp_path)
    assert bool(summary.findings) is late


def test_a_ramp_rises_to_n_and_no_further(tmp_path: Path) -> None:
    begins_ns: list[int] = []

    def gate() -> int:
        begins_ns.append(time.monotonic_ns())
        return begins_ns[0]

    with scripted(lambda _b, _n: [0.05, GOOD]) as server:
        ramp = plan(server.url, shape="ramp", ramp_s=0.6, sessions=list(range(60)), concurrency=6)
        summary, said = run(ramp, tmp_path, gate=gate)
    assert summary.all_ok, said
    assert most_at_once(tmp_path) == 6
    found = rows(tmp_path / "requests.jsonl")
    for row in found:
        now_ns = row["sent_ns"]
        under_way = sum(one["sent_ns"] <= now_ns < one["done_ns"] for one in found)
        assert under_way <= 1 + 5 * (now_ns - begins_ns[0]) / (600 * MS)


def test_a_soak_goes_on_with_new_sessions_and_counts_every_slice(tmp_path: Path) -> None:
    with scripted(lambda _b, _n: [0.02, GOOD]) as server:
        soak = plan(server.url, shape="soak", duration_s=1.2, slice_s=0.4, sessions=[5, 6])
        summary, said = run(soak, tmp_path)
        seen = len(server.requests)
    assert summary.all_ok, said
    found = by_session(tmp_path)
    assert len(found) == seen == summary.outcomes["ok"] > 20
    assert sorted(found) == list(range(5, 5 + seen))
    slices = load_rows(tmp_path, "slice")
    assert len(slices) >= 3
    assert sum(one["ended"].get("ok", 0) for one in slices) == seen
    assert all(one["resident_bytes"] > 0 for one in slices)
    assert all(a["end_ns"] == b["begin_ns"] for a, b in pairwise(slices))


def test_a_plateau_that_is_not_n_is_a_finding(tmp_path: Path) -> None:
    """The server answers two of four at once and lets nobody else in before they are done."""

    def slow_for_all_but_two(_body: dict[str, Any], number: int) -> list[Step]:
        return [GOOD] if number < 2 else [0.4, GOOD]

    with scripted(slow_for_all_but_two) as server:
        run(plan(server.url), tmp_path / "burst")
    # A burst is held to its N until the first one ends: nothing to find here.
    found = load_rows(tmp_path / "burst", "finding")
    assert not [row for row in found if "plateau" in row["text"]]
    series = InFlightLevels(4)
    series.moved(0, 1)
    series.moved(5, 3)
    series.expect(10)
    series.moved(100, 2)
    series.moved(400, 3)
    series.release(410)
    assert series.plateau() == (2, 0.75)
    assert (
        series.finding()
        == "4 requests in flight were asked for, the plateau was 2 (75% of the time)"
    )
    series.wanted = 2
    assert series.finding() is None


def test_refused_connections_make_a_burst_smaller_and_that_is_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of two instances stops to listen right after the client has seen that it is there."""
    with scripted(lambda _b, _n: [0.2, GOOD]) as server, scripted(good) as gone:

        def reach_then_close(url: str, proxy: str | None, ca_file: str | None) -> Target:
            found = reach(url, proxy, ca_file)
            if url == gone.url:
                gone.listener.shutdown(socket.SHUT_RDWR)
                gone.listener.close()
            return found

        monkeypatch.setattr("load_client.phase.running.reach", reach_then_close)
        both = plan(server.url, more_instances={"gone": gone.url})
        summary, said = run(both, tmp_path)
    assert summary.outcomes == {"ok": 2, "connect_error": 2}
    assert "the plateau was 2" in said


def test_a_series_without_a_window_says_that_nothing_was_held() -> None:
    series = InFlightLevels(4)
    assert series.finding() is None
    series.expect(1)
    assert "none were held" in str(series.finding())
    assert InFlightLevels(None).finding() is None


def test_a_slice_is_cut_only_when_it_is_over() -> None:
    slices = TimeSlices(length_ns=100, begin_ns=0)
    assert not slices.cut(99)
    assert slices.cut(100)
    assert not slices.cut(150)
    assert slices.cut(150, last=True)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"shape": "constant"}, "needs 'rate_per_s'"),
        ({"rate_per_s": 5}, "no meaning with shape burst"),
        ({"shape": "soak"}, "needs 'duration_s'"),
        ({"turns": 2}, "need 'turn_tokens'"),
        ({"turns": 2, "turn_tokens": 3}, "shape burst has no turns"),
        ({"processes": 5}, "5 processes cannot share 4 requests"),
        ({"shard": [2, 2]}, "'shard'"),
        ({"connect": "later"}, "'connect'"),
        ({"proxy": "https://x"}, "'proxy'"),
        ({"more_instances": {"e0": URL}}, "named twice"),
        ({"api_key_file": "/nonexistent"}, "cannot read api_key_file"),
        ({"shared_prefix_ratio": 1}, "'shared_prefix_ratio'"),
    ],
)
def test_keys_that_contradict_one_another_are_refused(changes: dict[str, Any], what: str) -> None:
    with pytest.raises(ClientError, match=what):
        plan(URL, **changes)


def test_a_key_file_that_others_can_read_is_refused_with_what_to_type(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text("sk-of-a-test")
    for mode in (0o640, 0o604):
        path.chmod(mode)
        with pytest.raises(ClientError, match=f"chmod 600 {path}"):
            plan(URL, api_key_file=str(path))
    path.chmod(0o600)
    plan(URL, api_key_file=str(path))


def sharded(out: Path, a_plan: dict[str, Any]) -> tuple[int, str]:
    (out / "plan.json").write_text(json.dumps(a_plan))
    words = [sys.executable, "-m", "load_client", "run", "--plan", str(out / "plan.json")]
    done = subprocess.run(
        [*words, "--out", str(out)],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    return done.returncode, done.stderr


def test_processes_share_bursts_of_exactly_n_released_at_one_instant(tmp_path: Path) -> None:
    with scripted(good, gather=8) as server:
        shared = values(server.url, sessions=list(range(16)), concurrency=8, processes=2)
        code, said = sharded(tmp_path, shared)
        assert (server.most_in_flight, len(server.requests)) == (8, 16)
    assert code == 0, said
    assert "finished in 2 processes: 16 ok" in said
    found = by_session(tmp_path)
    assert sorted(found) == list(range(16))
    assert len({found[session]["scheduled_ns"] for session in range(8)}) == 1
    assert len({found[session]["scheduled_ns"] for session in range(8, 16)}) == 1
    assert len(list((tmp_path / "raw").glob("client-*"))) == 2


def test_processes_send_one_open_loop_between_them(tmp_path: Path) -> None:
    with scripted(good) as server:
        shared = values(
            server.url, sessions=list(range(9)), shape="constant", rate_per_s=50, processes=2
        )
        code, said = sharded(tmp_path, shared)
    assert code == 0, said
    found = by_session(tmp_path)
    slots = [found[session]["scheduled_ns"] - found[0]["scheduled_ns"] for session in range(9)]
    assert slots == constant_offsets(9, 50)


def test_failures_of_every_process_decide_the_exit_code(tmp_path: Path) -> None:
    def one_fails(body: dict[str, Any], _number: int) -> list[Step]:
        return [head("500 No", "Content-Length: 0")] if body["prompt"][0] == 1003 else [GOOD]

    with scripted(one_fails) as server:
        code, said = sharded(tmp_path, values(server.url, processes=2))
    assert (code, len(by_session(tmp_path))) == (1, 4)
    assert "1 http_error, 3 ok" in said


def test_a_process_that_cannot_work_is_one_clear_error(tmp_path: Path) -> None:
    begin_s = time.monotonic()
    code, said = sharded(tmp_path, values(URL, processes=2))
    assert code == 4
    assert "cannot reach the server" in said
    assert time.monotonic() - begin_s < 30
