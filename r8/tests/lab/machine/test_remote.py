"""Another host, stood in for by a prefix that only changes the environment."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, Any

import pytest

from r8.errors import InstrumentError, SiteError
from r8.lab.instruments.probes import Watched, residency, start_probes, stop_probes
from r8.lab.instruments.recording import Recording
from r8.lab.machine import remote
from r8.lab.machine.hosts import KvDirectory, through
from r8.lab.machine.remote import ClockOffset, clock_offset, on_our_clock
from r8.lab.machine.supervisor import Supervisor
from r8.lab.site.machines import Host
from r8.tests.support.run_factory import SyntheticRun, synthetic_run


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(
        name="node1",
        exec_prefix=("env", "R8_HOST=node1"),
        python=(sys.executable,),
        instruments_dir=str(tmp_path / "instruments"),
    )


def test_ssh_gets_one_quoted_word_and_other_prefixes_get_the_words() -> None:
    words = ["sh", "-c", "a && b", "r8", "/kv dir"]
    assert through(("ssh", "n"), words) == ["ssh", "n", "sh -c 'a && b' r8 '/kv dir'"]
    assert through(("docker", "exec", "c"), words) == ["docker", "exec", "c", *words]
    assert through((), words) == words


def test_the_clock_of_this_very_host_is_a_way_apart_at_most(host: Host) -> None:
    offset = clock_offset(host)
    assert abs(offset.mono_ns) <= offset.way_ns
    assert abs(offset.wall_ns) <= offset.way_ns + 1_000_000
    assert offset.n == remote.PINGS


def test_a_host_that_does_not_answer_is_named() -> None:
    with pytest.raises(InstrumentError, match="did not answer"):
        clock_offset(Host(name="gone", exec_prefix=("false",)))


@pytest.mark.parametrize(
    ("prefix", "said"),
    [
        (("sh", "-c", "echo 'Could not resolve hostname node9' >&2; exit 255"), "resolve hostname"),
        (("/no/such/transport",), "No such file"),
        (("echo", "Welcome"), "Welcome"),
    ],
)
def test_what_the_transport_complains_of_is_told(prefix: tuple[str, ...], said: str) -> None:
    with pytest.raises(InstrumentError, match=f"did not answer: .*{said}"):
        clock_offset(Host(name="gone", exec_prefix=prefix))


def test_a_transport_that_ended_before_it_was_asked_is_heard_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = remote._ping

    def late(process: subprocess.Popen[str], host: Host, complaints: IO[bytes]) -> ClockOffset:
        process.wait()
        return asked(process, host, complaints)

    monkeypatch.setattr(remote, "_ping", late)
    with pytest.raises(InstrumentError, match=r"did not answer: Welcome"):
        clock_offset(Host(name="gone", exec_prefix=("echo", "Welcome")))


def test_a_transport_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "TIMEOUT_S", 0.3)
    deaf = Host(name="deaf", exec_prefix=("sh", "-c", "exec sleep 30"))
    began = time.monotonic()
    with pytest.raises(InstrumentError, match="did not answer"):
        clock_offset(deaf)
    with pytest.raises(InstrumentError, match="did not answer"):
        remote.install(deaf)
    assert time.monotonic() - began < 15


def test_rows_are_moved_by_the_offset_and_words_of_the_instrument_are_left_out() -> None:
    offset = ClockOffset(host="node1", mono_ns=1000, wall_ns=-500, way_ns=10, n=1)
    lines = ["probes: a warning", json.dumps({"mono_ns": 5000, "wall_ns": 7000, "value": 3})]
    assert list(on_our_clock(lines, offset)) == [{"mono_ns": 4000, "wall_ns": 7500, "value": 3}]


def _files(folder: str) -> list[Path]:
    return [path for path in Path(folder).rglob("*") if path.is_file()]


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_probes_and_residency_of_another_host_come_home_on_our_clock(
    tmp_path: Path, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Python looks into its working directory first: elsewhere only the copy is found.
    monkeypatch.chdir(tmp_path)
    remote.install(host)
    copied = [path.relative_to(host.instruments_dir) for path in _files(host.instruments_dir)]
    assert Path("probes/block/disk.py") in copied
    assert not [path for path in copied if {"tests", "__pycache__"} & set(path.parts)]
    recording = Recording.begin(tmp_path / "runs", synthetic_run(SyntheticRun()), "")
    day_ns = 86_400_000_000_000
    offset = ClockOffset(host="node1", mono_ns=-day_ns, wall_ns=0, way_ns=10, n=1)
    watched = (Watched(host=host, block_devices=(), instances=("a",), offset=offset),)
    with Supervisor(tmp_path / "supervisor") as supervisor:
        own = subprocess.Popen(["sleep", "60"])
        plan = {"engines": {"a": own.pid}, "metrics": {"a": "http://127.0.0.1:9/metrics"}}
        plan |= {"rates_hz": {"process": 20, "host": 5}, "nics": [], "iostat": False}
        began_ns = time.monotonic_ns()
        probes = start_probes(supervisor, recording, watched, plan)
        raw = recording.raw("probes-node1.jsonl")
        deadline = time.monotonic() + 20
        while '"process"' not in raw.read_text() and time.monotonic() < deadline:
            time.sleep(0.1)
        stop_probes(supervisor, recording, probes)
        own.kill()
        own.wait()
    rows = _rows(recording.directory / "probes.jsonl")
    assert {row["host"] for row in rows} == {"node1"}
    assert any(row["probe"] == "process" for row in rows)
    assert min(row["mono_ns"] for row in rows) >= began_ns + day_ns
    pool = tmp_path / "pool"
    pool.mkdir()
    (pool / "k.pt").write_bytes(b"kv" * 4096)
    residency(recording, pool, "after_drop", host, offset)
    recording.close()
    (row,) = _rows(recording.directory / "residency.jsonl")
    assert row["path"] == "k.pt"
    assert row["mono_ns"] > began_ns + day_ns


def test_a_pool_is_made_looked_at_and_removed_through_the_prefix(
    tmp_path: Path, host: Host
) -> None:
    pool = KvDirectory(host=host, path=str(tmp_path / "pool with blanks"))
    pool.make()
    for name in ("a.pt", "b.data", "c.tmp"):
        Path(pool.path, name).write_bytes(b"12345")
    assert pool.state() == (2, 10)
    assert pool.sync().ok
    with pytest.raises(SiteError, match="cannot be made on node1"):
        pool.make()
    subprocess.run(pool.words("remove"), check=True)
    assert not Path(pool.path).exists()
