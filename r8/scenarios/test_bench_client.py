"""The load client beside its peers on one null server that knows the truth.

`nox -s bench -- client` runs ours and the standard library's way; `--arms all` first installs the
peers into an environment of their own, `--arms aiohttp,vllm` names some of them. Ratios come first:
absolute times of a shared machine mean little. `--blocks` is the number of interleaved rounds,
`--smoke` one round of the smallest cell.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = ROOT / ".nox" / "bench-peers"
ENGINES = ROOT / ".nox" / "r8-stack"
CELLS = "16x30,32x30,256x30,1024x30,16x250,32x250,256x250,1024x250"
SMOKE_CELLS = "16x30"
ROUNDS = 3
OPTIONS = ("--smoke", "--arms", "--blocks", "--order-seed")
DEFAULT_CLIENTS = "ours,urllib"
LIMIT_S = 3 * 3600.0
MS = 1_000_000
# The bars of this instrument: far below the millisecond that a TTFT is printed to.
ERROR_P50_MAX_NS = 50_000
ERROR_P95_MAX_NS = 250_000
ERROR_MAX_NS = 3 * MS  # isolated 2.5 ms outliers are the machine's
# From 256 streams on the peers are late by whole queues; below, by their set-up alone.
MANY_STREAMS = 256
P95_SHARE_FEW, P95_SHARE_MANY = 1 / 20, 1 / 200
# Sending is cheap once everything is rendered; parsing waits until the burst is over.
CPU_CELL, CPU_BURST_SHARE, CPU_WHOLE_SHARE = "N=1024, 30 KB", 0.75, 0.8
SKEW_SHARE_MANY, SKEW_SHARE_ELSE = 0.75, 1.1
LAST_CELL, LAST_SHARE = "N=1024, 30 KB", 1 / 100
# All chunks, not only the last: ours alone, for no peer keeps the instant of each.
CHUNKS_PER_S_MIN = 50_000
CHUNK_P50_MAX_NS, CHUNK_P99_MAX_NS = 50_000, 100_000
RSS_MAX_BYTES = {"N=32, 30 KB": 40 << 20, "N=1024, 30 KB": 150 << 20, "N=1024, 250 KB": 640 << 20}


@dataclass(frozen=True, slots=True)
class Bench:
    """What was measured: cell name -> client -> one result a round."""

    cells: dict[str, dict[str, list[dict[str, Any]]]]

    def ours(self, cell: str, figure: str) -> list[float]:
        """Our figure, one value a round."""
        return [one[figure] for one in self.cells[cell]["ours"]]

    def best_peer(self, cell: str, figure: str) -> list[float | None]:
        """The smallest of the peers' figures in each round; None where no peer has one."""
        peers = [results for name, results in self.cells[cell].items() if name != "ours"]
        rounds = range(len(self.cells[cell]["ours"]))
        values = [[one[i][figure] for one in peers if one[i].get(figure)] for i in rounds]
        return [min(some, default=None) for some in values]

    def share(self, cell: str, figure: str) -> float:
        """Ours of the best peer's, the median of the rounds; no peer at all is a failure."""
        pairs = zip(self.ours(cell, figure), self.best_peer(cell, figure), strict=True)
        found = [own / peer for own, peer in pairs if peer is not None]
        assert found, f"{cell}: no peer has {figure}"
        return median(found)


def _vllm_python() -> list[str]:
    found = sorted(ENGINES.glob("**/bin/python"))
    return ["--vllm-python", str(found[0])] if found else []


@pytest.fixture(scope="module")
def bench(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """All cells, all clients, in interleaved rounds; the tables are printed."""
    config = request.config
    smoke = config.getoption("--smoke")
    clients = config.getoption("--arms") or DEFAULT_CLIENTS
    out = tmp_path_factory.mktemp("bench") / "client.json"
    words = [sys.executable, "-m", "load_client.bench", "--clients", clients, "--out", str(out)]
    words += ["--rounds", str(1 if smoke else config.getoption("--blocks") or ROUNDS)]
    words += ["--cells", SMOKE_CELLS if smoke else CELLS, "--environment", str(ENVIRONMENT)]
    words += ["--seed", str(config.getoption("--order-seed")), *_vllm_python()]
    if set(clients.split(",")) - {"ours", "urllib"}:
        words.append("--install")
    subprocess.run(words, cwd=ROOT, check=True, timeout=LIMIT_S)
    return Bench(json.loads(out.read_text())["cells"])


def test_every_run_of_ours_reported_every_stream(bench: Bench) -> None:
    """A round without figures would pass every other bar."""
    failed = {
        cell: one["failed"]
        for cell, results in bench.cells.items()
        for one in results["ours"]
        if "failed" in one
    }
    assert not failed


def test_ttft_is_exact_to_a_twentieth_of_a_millisecond(bench: Bench) -> None:
    """Medians of the rounds for p50 and p95, the worst round for the maximum."""
    for cell in bench.cells:
        assert median(bench.ours(cell, "ttft_error_p50_ns")) <= ERROR_P50_MAX_NS, cell
        assert median(bench.ours(cell, "ttft_error_p95_ns")) <= ERROR_P95_MAX_NS, cell
        assert max(bench.ours(cell, "ttft_error_max_ns")) <= ERROR_MAX_NS, cell


def test_ttft_is_far_more_exact_than_that_of_the_best_peer_of_the_same_round(bench: Bench) -> None:
    """At most 1/20 of the best peer's p95 for few streams, 1/200 for many."""
    for cell in bench.cells:
        share = P95_SHARE_MANY if _streams(cell) >= MANY_STREAMS else P95_SHARE_FEW
        assert bench.share(cell, "ttft_error_p95_ns") <= share, cell


def test_the_last_chunk_of_fifty_thousand_a_second_is_exact(bench: Bench) -> None:
    """1024 streams of 50 chunks a second."""
    if LAST_CELL not in bench.cells:
        pytest.skip(f"{LAST_CELL} was not measured (--smoke)")
    assert bench.share(LAST_CELL, "last_error_p95_ns") <= LAST_SHARE


def test_every_chunk_of_fifty_thousand_a_second_is_exact(bench: Bench) -> None:
    """Medians of the rounds, each over all content chunks; offered by the server's own instants."""
    if LAST_CELL not in bench.cells:
        pytest.skip(f"{LAST_CELL} was not measured (--smoke)")
    assert median(bench.ours(LAST_CELL, "chunks_per_s")) >= CHUNKS_PER_S_MIN
    assert median(bench.ours(LAST_CELL, "chunk_lag_p50_ns")) <= CHUNK_P50_MAX_NS
    assert median(bench.ours(LAST_CELL, "chunk_lag_p99_ns")) <= CHUNK_P99_MAX_NS


def test_a_burst_costs_less_than_with_the_best_peer(bench: Bench) -> None:
    """CPU of the burst and of the whole process."""
    if CPU_CELL not in bench.cells:
        pytest.skip(f"{CPU_CELL} was not measured (--smoke)")
    assert bench.share(CPU_CELL, "cpu_window_s") <= CPU_BURST_SHARE
    assert bench.share(CPU_CELL, "cpu_total_s") <= CPU_WHOLE_SHARE


def test_a_burst_leaves_as_closely_together_as_with_the_best_peer(bench: Bench) -> None:
    """First bytes at the server's socket; closer for many streams of 30 KB."""
    for cell in bench.cells:
        many = _streams(cell) >= MANY_STREAMS and "30 KB" in cell
        limit = SKEW_SHARE_MANY if many else SKEW_SHARE_ELSE
        assert bench.share(cell, "skew_ns") <= limit, cell


def _streams(cell: str) -> int:
    return int(cell.removeprefix("N=").split(",")[0])


def test_memory_stays_small(bench: Bench) -> None:
    """Resident memory of the whole process tree, at its peak."""
    for cell, limit in RSS_MAX_BYTES.items():
        if cell in bench.cells:
            assert max(bench.ours(cell, "peak_bytes")) <= limit, cell
