"""Running the load client: one process and one clock for all instances, its plan kept."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from r8.errors import InstrumentError
from r8.lab.instruments.probes import CHECKOUT, instrument, process_environment

if TYPE_CHECKING:
    from pathlib import Path

    from r8.lab.instruments.recording import Recording

# The load client exits 1 when requests failed: their rows are evidence, so it is no error here.
SOME_FAILED = 1


def run_load(recording: Recording, name: str, plan: dict[str, Any], *, timeout_s: float) -> int:
    """Run one load phase to its end and keep its plan; returns how the client ended (0 or 1).

    Raises:
        InstrumentError: the client could not work at all.

    """
    plan_path = recording.raw(f"plan-{name}.json")
    plan_path.write_text(json.dumps(plan, indent=1, sort_keys=True))
    try:
        done = subprocess.run(
            client_argv(plan_path, recording.directory),
            env=process_environment(),
            cwd=CHECKOUT,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise InstrumentError(
            f"the load client did not end within {timeout_s:g} s",
            where=str(plan_path),
            next_step="look at the engine's log beside it; raise request_timeout_s if it worked",
        ) from error
    if done.returncode not in {0, SOME_FAILED}:
        raise InstrumentError(
            f"the load client ended with code {done.returncode}: {done.stderr.strip()[-400:]}",
            where=str(plan_path),
            next_step="correct what it names; the plan can be run alone with python -m load_client",
        )
    return done.returncode


# The load client runs beside R8, on a host that no site file need name.
CLIENT_HOST = "client"


def client_argv(plan_path: Path, directory: Path) -> list[str]:
    """The words that run the load client on a plan."""
    argv = [sys.executable, "-m", "load_client", "run", "--quiet"]
    return [*argv, "--plan", str(plan_path), "--out", str(directory)]


def calibrate_client(out: Path, concurrency: int, request_bytes: int) -> dict[str, Any]:
    """Measure the load client against its own null server; returns its calibration row."""
    argv = [sys.executable, "-m", "load_client", "calibrate", "--out", str(out)]
    argv += ["--concurrency", str(concurrency), "--request-bytes", str(request_bytes)]
    instrument(argv)
    row: dict[str, Any] = json.loads(out.read_text().splitlines()[-1])
    return row | {"host": CLIENT_HOST}
