"""Running the load client and the probes as processes of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from r8.errors import InstrumentError
from r8.lab.commands import CommandResult, run

if TYPE_CHECKING:
    from r8.lab.keeper import Keeper, Process
    from r8.lab.recording import Recording

CHECKOUT = Path(__file__).resolve().parents[2]
PROBE_STOP_S = 10.0
# The load client exits 1 when requests failed: their rows are evidence, so it is no error here.
CLIENT_SOME_FAILED = 1
# Headers are a few per cent of the wire: 8 GiB give their share to far below the 1 % it is held to.
WIRE_CALIBRATION_BYTES = 8 << 30
# Adapter counters are read as often as the disks' where a network carries the KV.
NIC_RATE_HZ = 10
PROBE_RATES_HZ = {"disk": 10, "process": 10, "host": 1, "engine": 1}


def _environment() -> dict[str, str]:
    """The instruments are found from the checkout, whatever directory R8 was started in."""
    return os.environ | {"PYTHONPATH": str(CHECKOUT), "PYTHONUNBUFFERED": "1"}


def run_load(recording: Recording, name: str, plan: dict[str, Any], *, timeout_s: float) -> int:
    """Run one load phase to its end and keep its plan; returns how the client ended (0 or 1).

    Raises:
        InstrumentError: the client could not work at all.

    """
    plan_path = recording.raw(f"plan-{name}.json")
    plan_path.write_text(json.dumps(plan, indent=1, sort_keys=True))
    argv = [sys.executable, "-m", "load_client", "run", "--quiet"]
    argv += ["--plan", str(plan_path), "--out", str(recording.directory)]
    try:
        done = subprocess.run(
            argv,
            env=_environment(),
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
    if done.returncode not in {0, CLIENT_SOME_FAILED}:
        raise InstrumentError(
            f"the load client ended with code {done.returncode}: {done.stderr.strip()[-400:]}",
            where=str(plan_path),
            next_step="mend what it names; the plan can be run alone with python -m load_client",
        )
    return done.returncode


def start_probes(keeper: Keeper, recording: Recording, plan: dict[str, Any]) -> Process:
    """Start sampling; ends by itself when this process dies, because its standard input closes."""
    plan_path = recording.raw("plan-probes.json")
    plan_path.write_text(json.dumps(plan, indent=1, sort_keys=True))
    argv = [sys.executable, "-m", "probes", "record"]
    argv += ["--plan", str(plan_path), "--out", str(recording.directory)]
    return keeper.spawn(
        "probes",
        argv,
        env=_environment(),
        cwd=CHECKOUT,
        log_path=recording.raw("probes.log"),
        stdin=subprocess.PIPE,
    )


def stop_probes(keeper: Keeper, process: Process) -> None:
    """Stop sampling in the way that leaves whole files.

    Raises:
        InstrumentError: the probes had ended before, or ended badly: the series has a hole.

    """
    early = process.poll()
    if early is None:
        process.popen.send_signal(signal.SIGINT)
        try:
            early = process.wait(timeout=PROBE_STOP_S)
        except subprocess.TimeoutExpired:
            early = None
    keeper.stop(process, grace_s=1.0)
    if process.stdin is not None:
        process.stdin.close()
    if early != 0:
        raise InstrumentError(
            f"the probes ended with code {early}",
            where="raw/probes.log of the run",
            next_step="read it, then run `python -m probes status` on this host",
        )


def residency(recording: Recording, kv_dir: Path, moment: str) -> None:
    """Record the page-cache residency of every KV file."""
    argv = [sys.executable, "-m", "probes", "residency", "--dir", str(kv_dir)]
    argv += ["--moment", moment, "--out", str(recording.directory / "residency.jsonl")]
    _instrument(argv)


def environment(recording: Recording, moment: str) -> None:
    """Capture what the host is like; at the end, also what is no longer as at the begin."""
    out = recording.raw(f"environment-{moment}.json")
    argv = [sys.executable, "-m", "probes", "environment"]
    facts: dict[str, Any] = json.loads(_instrument([*argv, "--out", str(out)]))
    before = recording.raw("environment-begin.json")
    if moment == "end" and before.is_file():
        done = _run([*argv, "--diff", str(before), str(out)])
        facts["changes"] = json.loads(done.output) if done.returncode in {0, 1} else None
    recording.event("environment", moment=moment, file=out.name, **facts)


def calibrate_wire(
    recording: Recording, nics: tuple[str, ...], kv_device: str, *, settle_s: float
) -> None:
    """Read a known number of bytes past every cache, between two marks, while the probes sample.

    Without an interface to calibrate nothing is read. What cannot be read (no permission, too
    small) is recorded as such; judging is not done here.
    """
    if not nics:
        return
    time.sleep(settle_s)
    recording.event("wire_calibration_begin", device=kv_device)
    argv = [sys.executable, "-m", "probes", "read", "--path", f"/dev/{kv_device}"]
    done = _run([*argv, "--bytes", str(WIRE_CALIBRATION_BYTES)])
    facts = json.loads(done.output) if done.ok else {"error": done.error}
    recording.event("wire_calibration_end", device=kv_device, **facts)
    time.sleep(settle_s)


def topology(path: Path) -> dict[str, Any]:
    """Which device a path lies on, down to its members."""
    answer = json.loads(
        _instrument([sys.executable, "-m", "probes", "topology", "--path", str(path)])
    )
    if not isinstance(answer, dict):
        raise InstrumentError(
            "the topology probe did not answer with an object",
            where=str(path),
            next_step="run `python -m probes topology --path` on it by hand",
        )
    return answer


def calibrate_client(out: Path, concurrency: int, request_bytes: int) -> dict[str, Any]:
    """Measure the load client against its own null server; returns its calibration row."""
    argv = [sys.executable, "-m", "load_client", "calibrate", "--out", str(out)]
    argv += ["--concurrency", str(concurrency), "--request-bytes", str(request_bytes)]
    _instrument(argv)
    row: dict[str, Any] = json.loads(out.read_text().splitlines()[-1])
    return row


def _run(argv: list[str]) -> CommandResult:
    words = ["env", f"PYTHONPATH={_environment()['PYTHONPATH']}", *argv]
    return run(words, timeout_s=300.0)


def _instrument(argv: list[str]) -> str:
    done = _run(argv)
    if not done.ok:
        raise InstrumentError(
            f"an instrument failed: {done.error}", where=done.line, next_step="run it by hand"
        )
    return done.output
