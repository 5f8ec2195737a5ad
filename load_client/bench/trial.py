"""One run of one client against one null server: its report, the truth, its CPU and memory."""

from __future__ import annotations

import os
import resource
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..calibration.measure import inverted_cdf
from ..calibration.null_process import start_null_server
from ..calibration.null_server import Script
from .contestants import ROOT, BurstCell, Contestant, StreamReport, write_prompts

if TYPE_CHECKING:
    from collections.abc import Sequence

SERVER_CPUS, CLIENT_CPUS = (0,), (1,)
_SAMPLE_S = 0.2
# From before the first byte to after the last write: what a burst costs, set-up aside.
_BEFORE_NS, _AFTER_NS = 200_000_000, 300_000_000
_LIMIT_S = 240.0
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(slots=True)
class ProcessUsage:
    """CPU time and memory of a process tree, sampled at 5 Hz."""

    root: int
    samples: list[tuple[int, float]] = field(default_factory=list)  # monotonic ns, CPU s
    peak_bytes: int = 0
    over: threading.Event = field(default_factory=threading.Event)

    def watch(self) -> None:
        """Sample until `over`."""
        while not self.over.wait(_SAMPLE_S):
            cpu_s, resident = 0.0, 0
            for process in _tree(self.root):
                used = _used(process)
                cpu_s, resident = cpu_s + used[0], resident + used[1]
            self.samples.append((time.monotonic_ns(), cpu_s))
            self.peak_bytes = max(self.peak_bytes, resident)

    def between(self, begin_ns: int, end_ns: int) -> float:
        """CPU seconds inside a window, by the samples nearest to its ends."""
        before = [cpu_s for at_ns, cpu_s in self.samples if at_ns <= begin_ns]
        inside = [cpu_s for at_ns, cpu_s in self.samples if at_ns <= end_ns]
        return max(inside, default=0.0) - max(before, default=0.0)


def run_trial(contestant: Contestant, cell: BurstCell) -> dict[str, Any]:
    """Figures of one run, in nanoseconds, seconds and bytes; `failed` says why there are none."""
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        out = Path(directory)
        write_prompts(cell, out)
        with start_null_server(_script(cell)) as server:
            os.sched_setaffinity(server.process.pid, SERVER_CPUS)
            spent_s, usage, code = _client(contestant, cell, server.url, out)
            server.stop()
            truth = {one["number"]: one for one in server.answer()}
        try:
            said = contestant.read(out)
            return _figures(cell, said, truth, usage) | {"cpu_total_s": spent_s}
        except (OSError, ValueError, KeyError, TypeError) as damage:
            tail = (out / "stderr").read_text(errors="replace")[-300:]
            return {"failed": f"code {code}, {damage!r}: {tail}"}


def _script(cell: BurstCell) -> Script:
    return Script(
        requests=0,
        prompt_tokens=1,
        ttft_ns=cell.ttft_ms * 1_000_000,
        chunks=cell.chunks,
        interval_ns=cell.interval_ms * 1_000_000,
    )


def _client(
    contestant: Contestant, cell: BurstCell, url: str, out: Path
) -> tuple[float, ProcessUsage, int | str]:
    words = ["taskset", "-c", ",".join(map(str, CLIENT_CPUS))]
    words += contestant.command(cell, url, out)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with (out / "stderr").open("wb") as said:
        client = subprocess.Popen(words, cwd=ROOT, stdout=said, stderr=said)
        usage = ProcessUsage(client.pid)
        watcher = threading.Thread(target=usage.watch)
        watcher.start()
        code: int | str
        try:
            code = client.wait(_LIMIT_S)
        except subprocess.TimeoutExpired:
            code = "no end"
            for process in _tree(client.pid)[::-1]:
                os.kill(process, 9)
            client.wait()
        usage.over.set()
        watcher.join()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent_s, usage, code


def _figures(
    cell: BurstCell,
    said: Sequence[StreamReport],
    truth: dict[int, dict[str, Any]],
    usage: ProcessUsage,
) -> dict[str, Any]:
    if len(said) < cell.concurrency:
        return {"failed": f"{len(said)} of {cell.concurrency} streams reported"}
    streams = [truth[one.number] for one in said]
    errors, lasts = [], []
    for one, true in zip(said, streams, strict=True):
        first_byte_ns, writes_ns = true["first_byte_ns"], true["writes_ns"]
        errors.append(abs(one.ttft_ns - (writes_ns[0] - first_byte_ns)))
        if one.last_ns is not None:
            lasts.append(abs(one.last_ns - (writes_ns[-1] - first_byte_ns)))
    lags = _chunk_lags(said, streams)
    begins = [true["first_byte_ns"] for true in streams]
    begin_ns = min(begins) - _BEFORE_NS
    # A client that is late works on after the server's last write: its burst ends with its own last
    # chunk, else being late would make it cheap.
    ends = [true["writes_ns"][-1] for true in streams]
    ends += [
        true["first_byte_ns"] + one.last_ns
        for one, true in zip(said, streams, strict=True)
        if one.last_ns is not None
    ]
    end_ns = max(ends) + _AFTER_NS
    return {
        "ttft_error_p50_ns": inverted_cdf(errors, 0.5),
        "ttft_error_p95_ns": inverted_cdf(errors, 0.95),
        "ttft_error_max_ns": max(errors),
        "last_error_p95_ns": inverted_cdf(lasts, 0.95) if lasts else None,
        "chunk_lag_p50_ns": inverted_cdf(lags, 0.5) if lags else None,
        "chunk_lag_p99_ns": inverted_cdf(lags, 0.99) if lags else None,
        "chunks_per_s": _chunks_per_s(streams) if lags else None,
        "skew_ns": max(begins) - min(begins),
        "cpu_window_s": usage.between(begin_ns, end_ns),
        "peak_bytes": usage.peak_bytes,
    }


def _chunk_lags(said: Sequence[StreamReport], streams: Sequence[dict[str, Any]]) -> list[int]:
    """Arrival by the client less hand-over by the server, of every content chunk.

    Raises ValueError when a client that reports chunks reports more or fewer than were sent.
    """
    pairs = [
        zip(one.arrivals_ns, true["writes_ns"], strict=True)
        for one, true in zip(said, streams, strict=True)
        if one.arrivals_ns
    ]
    return [arrival_ns - write_ns for pair in pairs for arrival_ns, write_ns in pair]


def _chunks_per_s(streams: Sequence[dict[str, Any]]) -> int | None:
    """Chunks handed over a second while all streams were under way; None where they never were."""
    begin_ns = max(true["writes_ns"][0] for true in streams)
    end_ns = min(true["writes_ns"][-1] for true in streams)
    if end_ns <= begin_ns:
        return None
    count = sum(begin_ns < at_ns <= end_ns for true in streams for at_ns in true["writes_ns"])
    return int(count * 1_000_000_000 // (end_ns - begin_ns))


def _tree(root: int) -> list[int]:
    found = [root]
    for process in found:
        try:
            tasks = Path(f"/proc/{process}/task").iterdir()
            for task in tasks:
                found += map(int, (task / "children").read_text().split())
        except OSError:
            continue
    return found


def _used(process: int) -> tuple[float, int]:
    """CPU seconds (its ended children included) and resident bytes."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0, 0
    return sum(map(int, fields[11:15])) / _TICKS, int(fields[21]) * _PAGE
