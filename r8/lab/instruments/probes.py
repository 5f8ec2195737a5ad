"""Running the probes as processes of their own, here and on other hosts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from r8.errors import InstrumentError
from r8.lab.machine import remote
from r8.lab.machine.commands import CommandResult, run
from r8.lab.machine.hosts import engine_is_remote, engine_words, through

if TYPE_CHECKING:
    from collections.abc import Sequence

    from r8.lab.instruments.recording import Recording
    from r8.lab.machine.hosts import KvDirectory
    from r8.lab.machine.remote import ClockOffset
    from r8.lab.machine.supervisor import Process, Supervisor
    from r8.lab.site.file import Site
    from r8.lab.site.machines import Host

# Stands for the tool's command in `gpus --behind` (`probes/gpu/behind.py`).
TOOL_HERE = "GPU_TOOL"
CHECKOUT = Path(__file__).resolve().parents[3]
PROBE_STOP_S = 10.0
# Headers are a few per cent of the wire: 8 GiB give their share to far below the 1 % it is held to.
WIRE_CALIBRATION_BYTES = 8 << 30
# Adapter counters are read as often as the disks' where a network carries the KV.
PROBE_RATES_HZ = {"disk": 10, "process": 10, "host": 1, "engine": 1, "nic": 10}
# What every run is sampled by; `engines`, `metrics` and `nics` are the run's own.
PROBE_PLAN: dict[str, Any] = {"rates_hz": PROBE_RATES_HZ, "iostat": True}
# Probe samples before and after a window: byte balances use the last one before and first after.
SETTLE_S = 1.5


def process_environment() -> dict[str, str]:
    """The instruments are found from the checkout, whatever directory R8 was started in."""
    return os.environ | {"PYTHONPATH": str(CHECKOUT), "PYTHONUNBUFFERED": "1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What is sampled on one host; `offset` None: the host R8 runs on."""

    host: Host
    block_devices: tuple[str, ...]
    instances: tuple[str, ...]
    offset: ClockOffset | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Probes:
    """The probes of one run: a process on each host."""

    processes: tuple[tuple[Process, Host, ClockOffset | None], ...]


def start_probes(
    supervisor: Supervisor, recording: Recording, hosts: tuple[Watched, ...], plan: dict[str, Any]
) -> Probes:
    """Start sampling on every host; ends by itself when this process dies: its input closes.

    `plan` is `PROBE_PLAN` with the run's `engines` (process ids by instance), `metrics` (pages, of
    engines alone), `nics`, and where no block device holds the files, `nfs_dirs`.
    """
    processes = []
    for watched in hosts:
        mine = plan | {"host": watched.host.name, "block_devices": list(watched.block_devices)}
        mine["engines"] = {one: plan["engines"][one] for one in watched.instances}
        metrics = plan["metrics"]
        mine["metrics"] = {one: metrics[one] for one in watched.instances if one in metrics}
        start = _start_here if watched.offset is None else _start_there
        processes.append(
            (start(supervisor, recording, watched.host, mine), watched.host, watched.offset)
        )
        if watched.offset is not None:
            recording.event("clock_offset", **watched.offset.facts())
    return Probes(processes=tuple(processes))


def _start_here(
    supervisor: Supervisor, recording: Recording, _host: Host, plan: dict[str, Any]
) -> Process:
    plan_path = recording.raw("plan-probes.json")
    plan_path.write_text(json.dumps(plan, indent=1, sort_keys=True))
    return supervisor.spawn(
        "probes",
        probes_argv(recording.directory),
        env=process_environment(),
        cwd=CHECKOUT,
        log_path=recording.raw("probes.log"),
        stdin=subprocess.PIPE,
    )


def probes_argv(directory: Path) -> list[str]:
    """The words that sample on this host, by the plan that lies in the run's raw/."""
    argv = [sys.executable, "-m", "probes", "record"]
    return [*argv, "--plan", str(directory / "raw" / "plan-probes.json"), "--out", str(directory)]


def _start_there(
    supervisor: Supervisor, recording: Recording, host: Host, plan: dict[str, Any]
) -> Process:
    return supervisor.spawn(
        f"probes-{host.name}",
        remote_probes_argv(host, plan),
        log_path=recording.raw(f"probes-{host.name}.jsonl"),
        stdin=subprocess.PIPE,
    )


def remote_probes_argv(host: Host, plan: dict[str, Any]) -> list[str]:
    """The words that sample on another host, rows to standard output."""
    there = json.dumps(plan | {"host": host.name, "iostat": False})
    return remote.instrument_argv(host, ["probes", "record", "--plan", there])


def stop_probes(supervisor: Supervisor, recording: Recording, probes: Probes) -> None:
    """Stop sampling in the way that leaves whole files, and bring other hosts' rows home.

    Raises:
        InstrumentError: probes had ended before, or ended badly: the series has a hole.

    """
    bad = []
    for process, host, offset in probes.processes:
        code = _stop_one(supervisor, process, by_input=offset is not None)
        if code != 0:
            bad.append(f"{process.name} ended with code {code}")
        if offset is not None:
            _bring_home(recording, recording.raw(f"probes-{host.name}.jsonl"), offset)
    if bad:
        raise InstrumentError(
            f"the {'; '.join(bad)}",
            where="raw/probes.log of the run",
            next_step="read it, then run `python -m probes status` on that host",
        )


def _stop_one(supervisor: Supervisor, process: Process, *, by_input: bool) -> int | None:
    """Exit code; a probe behind a prefix is told by the end of its input, ours by a signal."""
    code = process.poll()
    if code is None:
        if by_input and process.stdin is not None:
            process.stdin.close()
        else:
            process.send_signal(signal.SIGINT)
        try:
            code = process.wait(timeout=PROBE_STOP_S)
        except subprocess.TimeoutExpired:
            code = None
    supervisor.stop(process, grace_s=1.0)
    if process.stdin is not None:
        process.stdin.close()
    return code


def _bring_home(recording: Recording, source: Path, offset: ClockOffset) -> None:
    with source.open() as lines:
        for row in remote.on_our_clock(lines, offset):
            recording.append("probes", row)


def drop(
    recording: Recording,
    drops: Sequence[list[str]],
    directory: KvDirectory | None,
    offset: ClockOffset | None = None,
) -> None:
    """Drop the page caches, then look what is left in them of every file of a directory."""
    recording.event("drop_begin")
    recording.event("drop_end", **drop_caches(drops))
    if directory is not None:
        residency(recording, Path(directory.path), "after_drop", directory.host, offset)
    recording.event("cold_checked")


def drop_caches(drops: Sequence[list[str]]) -> dict[str, Any]:
    """Run the drop of every host; how the worst one ended."""
    done = [run(command) for command in drops]
    worst = next((one for one in done if not one.ok), done[0])
    line = "; ".join(one.line for one in done)
    return {"rc": worst.returncode, "command": line, "error": worst.error}


def residency(
    recording: Recording,
    kv_dir: Path,
    moment: str,
    host: Host,
    offset: ClockOffset | None = None,
) -> None:
    """Record the page-cache residency of every KV file, on the host that holds the directory."""
    said = instrument(residency_argv(kv_dir, moment, recording.directory, host))
    if offset is not None:
        for row in remote.on_our_clock(said.splitlines(), offset):
            recording.append("residency", row)


def residency_argv(kv_dir: Path, moment: str, directory: Path, host: Host) -> list[str]:
    """The words that look: into the journal here, to standard output on another host."""
    words = ["probes", "residency", "--host", host.name, "--dir", str(kv_dir), "--moment", moment]
    if host.exec_prefix:
        return remote.instrument_argv(host, words)
    return [sys.executable, "-m", *words, "--out", str(directory / "residency.jsonl")]


def environment(recording: Recording, moment: str, host: Host | None = None) -> None:
    """Capture what a host is like; at the end, also what is no longer as at the begin.

    A host behind a prefix is captured without the comparison: both files lie in raw/.
    """
    out = recording.raw(f"environment-{moment}.json")
    words = ["probes", "environment"]
    if host is not None and host.exec_prefix:
        there = f"{host.instruments_dir}/{recording.run.run_id}-{moment}.json"
        argv = remote.instrument_argv(host, [*words, "--out", there])
        facts: dict[str, Any] = json.loads(instrument(argv))
        out.write_text(instrument(through(host.exec_prefix, ["cat", there])))
        recording.event("environment", moment=moment, file=out.name, host=host.name, **facts)
        return
    argv = [sys.executable, "-m", *words]
    facts = json.loads(instrument([*argv, "--out", str(out)]))
    before = recording.raw("environment-begin.json")
    if moment == "end" and before.is_file():
        done = _run([*argv, "--diff", str(before), str(out)])
        facts["changes"] = json.loads(done.output) if done.returncode in {0, 1} else None
    recording.event("environment", moment=moment, file=out.name, **facts)


def calibrate_wire(
    recording: Recording, nics: tuple[str, ...], kv_device: str, host: Host | None = None
) -> None:
    """Read a known number of bytes past every cache, between two marks, while the probes sample.

    Without an interface to calibrate nothing is read. What cannot be read (no permission, too
    small) is recorded as such; judging is not done here.
    """
    if not nics:
        return
    words = ["probes", "read", "--path", f"/dev/{kv_device}"]
    words += ["--bytes", str(WIRE_CALIBRATION_BYTES)]
    argv = [sys.executable, "-m", *words]
    if host is not None and host.exec_prefix:
        argv = remote.instrument_argv(host, words)
    time.sleep(SETTLE_S)
    recording.event("wire_calibration_begin", device=kv_device)
    done = _run(argv)
    facts = json.loads(done.output) if done.ok else {"error": done.error}
    recording.event("wire_calibration_end", device=kv_device, **facts)
    time.sleep(SETTLE_S)


def gpus(site: Site) -> dict[str, Any]:
    """Every card once, as the vendors' tools show it where the engine runs.

    Raises:
        InstrumentError: the probes could not be run here; a tool that fails is a reason.

    """
    argv = [sys.executable, "-m", "probes", "gpus"]
    if engine_is_remote(site):
        argv += ["--behind", json.dumps(engine_words(site, [TOOL_HERE]))]
    found: dict[str, Any] = json.loads(instrument(argv))
    return found


def topology(path: Path, host: Host | None = None) -> dict[str, Any]:
    """Which device a path lies on, down to its members; on a host behind a prefix, there."""
    words = ["probes", "topology", "--path", str(path)]
    argv = [sys.executable, "-m", *words]
    if host is not None and host.exec_prefix:
        argv = remote.instrument_argv(host, words)
    answer = json.loads(instrument(argv))
    if not isinstance(answer, dict):
        raise InstrumentError(
            "the topology probe did not answer with an object",
            where=str(path),
            next_step="run `python -m probes topology --path` on it by hand",
        )
    return answer


def instrument(argv: list[str]) -> str:
    """Run an instrument to its end; returns what it printed.

    Raises:
        InstrumentError: it failed.

    """
    done = _run(argv)
    if not done.ok:
        raise InstrumentError(
            f"an instrument failed: {done.error}", where=done.line, next_step="run it by hand"
        )
    return done.output


def _run(argv: list[str]) -> CommandResult:
    words = ["env", f"PYTHONPATH={process_environment()['PYTHONPATH']}", *argv]
    return run(words, timeout_s=300.0)
