"""What a simulated session of days weighs and costs: steps, each in a process of its own.

A step's wall time, CPU time and peak memory are the kernel's own account of its process. A budget
of time is judged by the smaller of wall and CPU time: other work on the machine adds to the wall
time alone, and on a machine that is free the CPU time of two cores bounds it from above.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from r8.evidence.manifest import MANIFEST
from r8.schema import TABLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

# The budgets of the design, for 72 hours, 50 million probe rows and 200,000 requests on two cores.
PARQUET_BYTES_MAX = 500_000_000
VIEWS_S_MAX = 3.0
REPORT_S_MAX = 60.0
VERIFY_S_MAX = 30.0
PEAK_BYTES_MAX = 2_000_000_000
VERIFIED_BYTES = 500_000_000
# What the views are asked. `metrics` is every metric of every run at once.
QUESTIONS = {
    "metrics": "SELECT count(*), count(value) FROM metrics",
    "TTFT by arm and level": "SELECT arm, level, quantile_disc(ttft_ns, 0.5), count(*) FROM ttft "
    "WHERE phase = 'measure' GROUP BY ALL",
    "inter-token latency": "SELECT phase, quantile_disc(gap_ns, 0.99) FROM content_gaps GROUP BY 1",
    "bytes of every phase": "SELECT probe, device, sum(read_bytes) FROM phase_reads GROUP BY ALL",
    "fastest interval of a device": "SELECT device, max(read_bytes_per_s) FROM device_series "
    "GROUP BY 1",
}
# Answered by what the files compute while they are read: timed from before that.
WHOLE = ("metrics", "bytes of every phase")
WIDE_TABLES = ("requests", "chunks", "probes")
_FINALISE = "import sys, pathlib; from r8.evidence.finalise import finalise; "
_FINALISE += "finalise(pathlib.Path(sys.argv[1]), complete=True)"
_ASK = """
import json, sys, time, resource, duckdb
from r8.resources import query_names, query_text
views, question, whole, runs = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]
connection = duckdb.connect()
connection.execute("SET enable_progress_bar = false")
connection.execute("SET VARIABLE r8_run_dirs = " + repr(runs))
before, begin = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
for name in query_names():
    connection.execute(query_text(name))
    if name == "tables" and views:
        connection.execute(views)
if not whole:
    before, begin = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
rows = connection.execute(question).fetchall()
wall, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_SELF)
cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
print(json.dumps([wall, cpu, sorted(map(str, rows))]))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one process took."""

    wall_s: float
    cpu_s: float
    peak_bytes: int
    output: str

    @property
    def judged_s(self) -> float:
        """What a budget is compared with."""
        return min(self.wall_s, self.cpu_s)


def run(argv: Sequence[str]) -> Cost:
    """Run a command to its end; raises CalledProcessError when it fails."""
    begin = time.perf_counter()
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, argv, output)
    return Cost(
        wall_s=time.perf_counter() - begin,
        cpu_s=usage.ru_utime + usage.ru_stime,
        peak_bytes=usage.ru_maxrss * 1024,
        output=output,
    )


def finalised(partial: Path) -> Cost:
    """Seal one run."""
    return run([sys.executable, "-c", _FINALISE, str(partial)])


def asked(question: str, runs: Iterable[Path], views: str = "") -> Cost:
    """One question in a fresh process; wall and CPU time are those of the question alone.

    Those of `WHOLE` include reading the SQL files.
    """
    whole = "whole" if question in {QUESTIONS[name] for name in WHOLE} else ""
    argv = [sys.executable, "-c", _ASK, views, question, whole, *map(str, runs)]
    process = run(argv)
    wall_s, cpu_s, rows = json.loads(process.output.strip().splitlines()[-1])
    return Cost(wall_s=wall_s, cpu_s=cpu_s, peak_bytes=process.peak_bytes, output="\n".join(rows))


def r8(*arguments: str) -> Cost:
    """One `r8` command."""
    return run([sys.executable, "-m", "r8", *arguments])


def parquet_bytes(runs: Iterable[Path]) -> int:
    """What the tables of these runs take."""
    return sum(path.stat().st_size for one in runs for path in one.glob("*.parquet"))


def sealed_runs(root: Path) -> list[Path]:
    """Run directories below `root`, sorted."""
    return sorted(path.parent for path in root.rglob(MANIFEST))


def views_over_json(journals: dict[str, Path]) -> str:
    """The wide tables as views over journals (run id -> directory of JSON lines)."""
    return "".join(
        f"CREATE OR REPLACE {_kind(name)} {name} AS "  # noqa: S608 - our own names
        + " UNION ALL ".join(
            f"SELECT '{run_id}' AS run_id, * FROM read_json('{folder}/{name}.jsonl', "  # noqa: S608
            f"format = 'newline_delimited', columns = {{{_columns(name, text=False)}}})"
            for run_id, folder in journals.items()
        )
        + ";"
        for name in WIDE_TABLES
    )


def _kind(name: str) -> str:
    """What tables.sql makes of it."""
    return "TABLE" if name == "requests" else "VIEW"


def views_over_csv(folder: Path) -> str:
    """The wide tables as views over one CSV file each."""
    return "".join(
        f"CREATE OR REPLACE {_kind(name)} {name} AS FROM read_csv('{folder}/{name}.csv', "
        f"header = true, auto_detect = false, delim = ',', quote = '\"', escape = '\"', "
        f"columns = {{run_id: 'VARCHAR', {_columns(name, text=True)}}});"
        for name in WIDE_TABLES
    )


def write_csv(folder: Path, runs: Iterable[Path]) -> None:
    """The wide tables of these runs as CSV."""
    import duckdb  # noqa: PLC0415 - the caller's process shall not hold it while others are timed

    named = [str(one) for one in runs]
    with duckdb.connect() as connection:
        for name in WIDE_TABLES:
            files = [f"{one}/{name}.parquet" for one in named]
            connection.execute(f"COPY (FROM read_parquet({files})) TO '{folder}/{name}.csv'")


def _columns(name: str, *, text: bool) -> str:
    types = {"int64": "BIGINT", "float64": "DOUBLE", "bool": "BOOLEAN"}
    types |= dict.fromkeys(("string", "name"), "VARCHAR")
    lists = "VARCHAR" if text else "BIGINT[]"  # CSV has no lists
    columns = [one for one in TABLES[name].columns if one.name != "run_id"]
    return ", ".join(f"{one.name}: '{types.get(one.type, lists)}'" for one in columns)
