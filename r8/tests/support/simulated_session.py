"""A session of days, made up: journals as the instruments write them, at the lab's own rates.

Nothing here was measured. Phases, requests, engine log and certificate facts are those of
`r8.tests.support.run_factory`, stretched to hours; the probes are written by a writer of its own,
because millions of rows are its purpose. Rates and counters are those of the probes' plan: block
device at
10 Hz, two engine processes at 2 Hz, host and engine at 1 Hz: 198 rows a second, 51 million in 72 h.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from r8.tests.support.run_factory import SyntheticRun, build_partial
from r8.tests.support.run_factory_context import engine_rows
from r8.tests.support.run_factory_rows import (
    HOST,
    MEASURE_BEGIN,
    POPULATE,
    SECTOR,
    WALL_OFFSET_NS,
    S,
    run_end,
    topology_rows,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# One level: claims on R1 are of one, and refuse to be judged over several.
ARMS, LEVEL = ("patched", "unpatched"), 16
# Requests of a run beside those of its sessions, which are populated, flushed, measured and warmed.
_PHASES_OF_A_SESSION = 4
# fmt: off
DISK = [
    "reads", "reads_merged", "read_sectors", "read_ms", "writes", "writes_merged",
    "write_sectors", "write_ms", "in_flight", "io_ms", "weighted_io_ms",
]
PROCESS = [
    "read_bytes", "write_bytes", "rchar", "wchar", "syscr", "syscw", "cancelled_write_bytes",
    "rss_bytes", "rss_peak_bytes", "swap_bytes", "cpu_ms", "threads",
]
HOST_COUNTERS = [
    "cpu_user_jiffies", "cpu_nice_jiffies", "cpu_system_jiffies", "cpu_idle_jiffies",
    "cpu_iowait_jiffies", "cpu_irq_jiffies", "cpu_softirq_jiffies", "mem_free_bytes",
    "mem_available_bytes", "mem_cached_bytes", "mem_dirty_bytes", "psi_cpu_some_total_us",
    "psi_io_some_total_us", "psi_io_full_total_us", "psi_mem_some_total_us", "ctxt", "intr",
    "processes", "procs_running", "procs_blocked",
]
# fmt: on
ENGINE_COUNTERS = [f'sim:counter_{n}_total{{engine="0"}}' for n in range(16)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How long the session is, in how many runs, with how many requests in all."""

    hours: float = 72.0
    runs: int = 24
    requests: int = 200_000

    @property
    def run_s(self) -> float:
        """Seconds of one run's cold read."""
        return self.hours * 3600 / self.runs

    @property
    def sessions(self) -> int:
        """Sessions of one run."""
        return max(1, round(self.requests / self.runs / _PHASES_OF_A_SESSION))


def specs(scale: Scale) -> Iterator[SyntheticRun]:
    """The runs of the session: arms block by block."""
    chance = np.random.default_rng(8)
    for number in range(scale.runs):
        block, place = divmod(number, len(ARMS))
        arm = ARMS[place]
        slow = 1.0 if arm == "patched" else 4.0
        ttft_s = tuple(float(one) for one in slow * chance.gamma(9.0, 1.0, scale.sessions))
        yield SyntheticRun(
            campaign_id="simulated",
            arm=arm,
            concurrency=LEVEL,
            block=block,
            order=place,
            ttft_s=ttft_s,
            warm_ttft_s=tuple(one / 20 for one in ttft_s),
            output_tokens=16,
            read_s=scale.run_s,
        )


def write_run(root: Path, spec: SyntheticRun) -> Path:
    """The `.partial` directory of one run of hours; its probes by the simulated writer."""
    partial = build_partial(root, spec, topology_rows(spec) + engine_rows(spec))
    with (partial / "probes.jsonl").open("a") as file:
        for text in _seconds(spec):
            file.write(text)
    return partial


def _seconds(spec: SyntheticRun) -> Iterator[str]:
    """All probes of one second after the other, as their instruments append them."""
    chance = np.random.default_rng(spec.block * 100 + spec.order)
    begin, end = POPULATE[0], run_end(spec)
    disk = _template("disk", ["loop0"], DISK)
    process = _template("process", ["a:100:5000", "a:101:5001"], PROCESS)
    host = _template("host", ["-"], HOST_COUNTERS)
    engine = _template("engine", ["a"], ENGINE_COUNTERS)
    kinds = [(disk, 10, 11), (process, 2, 24), (host, 1, 20), (engine, 1, 16)]
    levels = [np.zeros(width, dtype=np.int64) for _, _, width in kinds]
    for second in range((end - begin) // S):
        at = begin + second * S
        for kind, (template, rate_hz, width) in enumerate(kinds):
            for tick in range(rate_hz):
                levels[kind] += chance.integers(0, 300, width)
                now = at + tick * (S // rate_hz) + int(chance.integers(0, 90_000))
                values = levels[kind].tolist()
                if kind == 0:
                    values[2] = 1000 + _read_bytes(spec, now) // SECTOR
                elif kind == 1:
                    values[0] = 7_000_000 + _read_bytes(spec, now)
                yield template % tuple(
                    part
                    for value in values
                    for part in (value, now, now + WALL_OFFSET_NS, 20_000 + value % 900)
                )


def _read_bytes(spec: SyntheticRun, at: int) -> int:
    """Bytes the device has read until then: evenly through the cold read."""
    share = (at - MEASURE_BEGIN) / (spec.read_s * S)
    return round((spec.device_bytes or 0) * min(1.0, max(0.0, share)))


def _template(probe: str, devices: list[str], counters: list[str]) -> str:
    lines: list[str] = []
    for device in devices:
        for counter in counters:
            names = json.dumps(
                {"probe": probe, "host": HOST, "device": device, "counter": counter}
            ).replace("%", "%%")
            lines.append(
                names[:-1] + ', "value": %d, "text": null, "reason": null, '
                '"mono_ns": %d, "wall_ns": %d, "read_cost_ns": %d, "epoch": 0}\n'
            )
    return "".join(lines)
