"""What the probes cost: all of them at the lab's rates, beside iostat and a psutil loop.

`nox -s bench -- probes`. The limit is of one core; the length is an environment variable so that a
short look is possible, and the figures say how long it was.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import psutil
import pytest
from tabulate import tabulate

from r8.lab.instruments.probes import CHECKOUT, PROBE_RATES_HZ

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SECONDS = float(os.environ.get("R8_BENCH_PROBES_S", "600"))
# A benchmark on 64 cores loses 0.03 % to one probe at this share; more could be seen in a TTFT.
OPTIONS = ()
CPU_SHARE_MAX = 0.02
# A page of an engine has some 45 kB: as long a page as this one is served.
PAGE_SERIES = 450
PSUTIL_LOOP = """
import os, psutil, sys, time
end = time.monotonic() + float(sys.argv[1]); due = time.monotonic()
engine = psutil.Process(int(sys.argv[2]))
while time.monotonic() < end:
    psutil.disk_io_counters(perdisk=True, nowrap=False)
    psutil.net_io_counters(pernic=True, nowrap=False)
    [child.io_counters() for child in (engine, *engine.children(recursive=True))]
    psutil.virtual_memory(); psutil.cpu_times()
    due += 0.1
    time.sleep(max(0.0, due - time.monotonic()))
print(time.process_time())
"""


class _Page(BaseHTTPRequestHandler):
    """A stand-in for an engine's metrics page."""

    protocol_version = "HTTP/1.1"
    page = b"".join(
        b'r8:stand_in_total{engine="0",model_name="tiny",series="%d"} %d.0\n' % (n, n)
        for n in range(PAGE_SERIES)
    )

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.page)))
        self.end_headers()
        self.wfile.write(self.page)

    def log_message(self, *_args: object) -> None:
        """Nothing on the terminal."""


@pytest.fixture(name="metrics_url")
def _metrics_url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/metrics"
        server.shutdown()


@pytest.fixture(name="engine_pid")
def _engine_pid() -> Iterator[int]:
    """A tree of four processes, as an engine has."""
    script = "for i in 1 2 3; do sleep 100000 & done; wait"
    process = subprocess.Popen(["sh", "-c", script], start_new_session=True)
    yield process.pid
    os.killpg(process.pid, 15)
    process.wait()


def _probes(out: Path, url: str, pid: int) -> tuple[float, dict[str, int], int]:
    """CPU seconds of the recorder and its iostat, missed ticks by probe, and rows written."""
    # As the lab watches: the disks that are media, not every loop device there is.
    disks = [n for n in sorted(os.listdir("/sys/block")) if not re.match("loop|ram|zram", n)]  # noqa: PTH208
    nets = [name for name in sorted(os.listdir("/sys/class/net")) if name != "lo"]  # noqa: PTH208
    plan = {
        "block_devices": disks,
        "engines": {"a": pid},
        "metrics": {"a": url},
        "rates_hz": PROBE_RATES_HZ | {"nic": 1, "gpu": 1, "nvme": 2, "topology": 0.2},
        "nics": nets[:1],
        "iostat": shutil.which("iostat") is not None,
    }
    out.mkdir()
    plan_path = out / "plan.json"
    plan_path.write_text(json.dumps(plan))
    argv = [sys.executable, "-m", "probes", "record", "--plan", str(plan_path)]
    argv += ["--out", str(out), "--for", str(SECONDS)]
    cpu_s = _cpu_s(lambda: subprocess.run(argv, cwd=CHECKOUT, check=True, stdin=subprocess.DEVNULL))
    rows = [json.loads(line) for line in (out / "probes.jsonl").read_text().splitlines()]
    missed = {row["device"]: row["value"] for row in rows if row["counter"] == "missed_ticks"}
    return cpu_s, missed, len(rows)


def _cpu_s(run: Callable[[], object]) -> float:
    """CPU seconds of the children that ended in `run`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_all_probes_cost_less_than_two_percent_of_a_core_and_miss_no_tick(
    tmp_path: Path, metrics_url: str, engine_pid: int
) -> None:
    """Runs the three one after the other for the same time, so that none pays for another."""
    cpu_s, missed, rows = _probes(tmp_path / "probes", metrics_url, engine_pid)
    short_s = min(SECONDS, 60.0)
    psutil_argv = [sys.executable, "-c", PSUTIL_LOOP, str(short_s), str(engine_pid)]
    psutil_s = _cpu_s(lambda: subprocess.run(psutil_argv, check=True, capture_output=True))
    table = [["probes", SECONDS, cpu_s / SECONDS], ["psutil loop", short_s, psutil_s / short_s]]
    if shutil.which("iostat"):
        argv = ["iostat", "-xyt", "-o", "JSON", "1", str(int(short_s))]
        iostat_s = _cpu_s(lambda: subprocess.run(argv, check=True, capture_output=True))
        table.append(["iostat at 1 Hz", short_s, iostat_s / short_s])
    shown = [[name, f"{seconds:.0f}", f"{share:.2%}"] for name, seconds, share in table]
    cores = psutil.cpu_count()
    print("\n" + tabulate(shown, ["what", "seconds", f"of one core (of {cores})"]))
    print(f"{rows} rows, {rows / SECONDS:.0f} a second; missed ticks {missed}")
    print(f"load average over a minute: {os.getloadavg()[0]:.2f}")
    assert missed, "the recorder did not say what it missed"
    assert set(missed.values()) == {0}, missed
    assert cpu_s / SECONDS < CPU_SHARE_MAX
