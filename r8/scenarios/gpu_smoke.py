"""`nox -s gpu-smoke`: ten minutes on a machine with GPUs, one small archive to send in.

Every probe samples at its rate for a minute, every vendor's tool is asked for its raw pages, and
where a Python with vLLM is given or found, a tiny engine answers a few prompts meanwhile. The
archive is redacted; look into it before you send it. `--replay FILE` shows what today's parsers
make of one.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from probes import __version__ as probes_version
from probes.catalogue import PROBES
from probes.gpu.ask import ask
from probes.gpu.sources import LIBRARIES, TOOLS
from probes.tool import TIMEOUT_S, ToolRun, run_tool
from r8 import __version__
from r8.console import complain, line, page, table
from r8.crash import guarded
from r8.errors import R8Error, SiteError, UsageError
from r8.lab.instruments.probes import CHECKOUT, process_environment
from r8.lab.machine.hosts import engine_words
from r8.lab.site.file import fill
from r8.lab.site.load import load_site
from r8.scenarios.smoke_archive import Smoke, cards_of, changed, read, write
from r8.seal.archive import GZIP

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

RECORD_S = 60.0
# Together, with the end of a recording, they stay below ten minutes whatever hangs.
PAGES_S = 150.0
IMPORT_S = 60.0
ENGINE_S = 240.0
STOP_S = 30.0
LOG_CHARACTERS = 20_000
ENGINE_SCRIPT = Path(__file__).with_name("smoke_engine.py")
OUT = CHECKOUT / "data" / "runs" / "gpu-smoke"
SHOWN = {
    "vram_used_bytes": "used bytes",
    "vram_total_bytes": "of bytes",
    "gpu_busy_percent": "busy %",
    "power_w": "W",
    "temp_junction_c": "C",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and pack, or show an archive; 0 when there is something to show."""
    args = _parse(argv)
    try:
        if args.replay:
            _show(read(args.replay))
            return 0
        made = _measure(args)
    except R8Error as error:
        complain(str(error), by="gpu-smoke")
        return error.exit_code
    _show(read(made))
    line(f"{made}: {made.stat().st_size} bytes. Look into it (tar xzf), then send it in.")
    return 0


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="gpu-smoke", description=__doc__)
    parser.add_argument("--replay", type=Path, metavar="FILE", help="show an archive")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where to (new, *.tar.gz)")
    parser.add_argument("--seconds", type=float, default=RECORD_S, help="how long to sample")
    engine = parser.add_mutually_exclusive_group()
    engine.add_argument("--engine", metavar="WORDS", help="a Python with vLLM, as one types it")
    engine.add_argument("--site", type=Path, help="a site file: the Python of its engine")
    engine.add_argument("--no-engine", action="store_true", help="no engine, only the tools")
    return parser.parse_args(argv)


def _measure(args: argparse.Namespace) -> Path:
    out = args.out or OUT / f"gpu-smoke-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}{GZIP}"
    if out.exists() or not out.name.endswith(GZIP):
        raise UsageError(f"--out takes a new *{GZIP}", where=str(out), next_step="name another")
    _require_cards()
    runs = _raw_pages()
    line(f"{len(runs)} pages of {len({run.argv[0] for run in runs})} tools")
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        engine, log = _sample(directory, args)
        rows = _rows(directory)
    facts = {
        "r8": __version__,
        "probes": probes_version,
        "kernel": platform.release(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "cpus": os.cpu_count(),
        "engine": engine,
        "sampled": _sampled(rows),
    }
    write(out, facts, runs, [row for row in rows if row["probe"] == "gpu"], log)
    return Path(out)


def _require_cards() -> None:
    """Raises SiteError where no tool is installed and no driver shows a card.

    A tool that is there and shows none is worth its raw page.
    """
    libraries = [(one.name, one.open(Path("/sys"))()) for one in LIBRARIES]
    tools = [(tool.name, run_tool(tool.command)) for tool in TOOLS]
    if any(found.cards for _, found in libraries) or any(not run.reason for _, run in tools):
        return
    names = ", ".join(name for name, _ in (*libraries, *tools))
    raise SiteError(
        f"no GPU here: none of {names} shows a card",
        where=platform.machine(),
        next_step="run it on a machine with GPUs; `python -m probes status` says what is missing",
    )


def _raw_pages() -> list[ToolRun]:
    """What every tool that is here prints, each command once; a hung driver ends the round."""
    found: list[ToolRun] = []
    run = _within(PAGES_S, found)
    for tool in TOOLS:
        if ask(tool, run).runs[0].returncode is not None:
            for argv in tool.also:
                run(argv)
    return [one for one in found if not (one.reason or "").startswith("absent")]


def _within(
    budget_s: float, found: list[ToolRun], clock_s: Callable[[], float] = time.monotonic
) -> Callable[[tuple[str, ...]], ToolRun]:
    """A runner that keeps what it ran, and refuses once the time is used up."""
    until_s = clock_s() + budget_s

    def run(argv: tuple[str, ...]) -> ToolRun:
        left_s = min(TIMEOUT_S, until_s - clock_s())
        if left_s > 0:
            done = run_tool(argv, timeout_s=left_s)
        else:
            done = ToolRun(argv=argv, reason="failed: no time left")
        found.append(done)
        return done

    return run


def _sample(directory: Path, args: argparse.Namespace) -> tuple[dict[str, Any], str]:
    """Record every probe while an engine runs, if there is one; its facts and its log."""
    plan = {"host": "here", "iostat": False, "block_devices": _names("/sys/block"), "nics": _nics()}
    argv = [sys.executable, "-m", "probes", "record", "--out", str(directory)]
    recorder = subprocess.Popen(
        [*argv, "--plan", json.dumps(plan)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=process_environment(),
    )
    begin_s = time.monotonic()
    try:
        engine, log = _engine(args)
        time.sleep(max(0.0, args.seconds - (time.monotonic() - begin_s)))
    finally:
        if recorder.stdin is not None:
            recorder.stdin.close()  # the recorder ends with its input
        try:
            recorder.wait(STOP_S)
        except subprocess.TimeoutExpired:
            recorder.kill()
            recorder.wait()
    return engine, log


def _names(folder: str) -> list[str]:
    virtual = ("loop", "ram", "zram", "nbd", "sr")
    path = Path(folder)
    return (
        sorted(one.name for one in path.iterdir() if not one.name.startswith(virtual))
        if path.is_dir()
        else []
    )


def _nics() -> list[str]:
    """Interfaces with a device behind them; what containers make has none."""
    root = Path("/sys/class/net")
    return sorted(one.name for one in root.iterdir() if (one / "device").exists())


def _engine(args: argparse.Namespace) -> tuple[dict[str, Any], str]:
    """A tiny engine, or the reason why there is none."""
    if args.no_engine:
        return {"reason": "absent: not asked for"}, ""
    words = _python(args)
    look = _run([*words, "-c", "import vllm; print(vllm.__version__)"], IMPORT_S)
    if look.returncode != 0:
        said = look.reason or look.stderr.strip().splitlines()[-1:] or ["no word"]
        why = said if isinstance(said, str) else said[0]
        line(f"no engine: {shlex.join(words)} cannot import vLLM")
        return {"reason": f"absent: no vLLM ({why[:120]})"}, ""
    line(f"vLLM {look.stdout.strip().splitlines()[-1]}: a tiny engine, at most {ENGINE_S:g} s")
    done = _run([*words, "-"], ENGINE_S, ENGINE_SCRIPT.read_text())
    log = (done.stdout + done.stderr)[-LOG_CHARACTERS:]
    try:
        facts = json.loads(done.stdout.strip().splitlines()[-1])
    except (ValueError, IndexError):
        reason = done.reason or f"failed: it ended with code {done.returncode}"
        return {"reason": reason}, log
    return (facts if isinstance(facts, dict) else {"reason": "failed: no facts"}), log


def _python(args: argparse.Namespace) -> list[str]:
    if args.site:
        site = load_site(args.site).site
        return engine_words(site, list(fill(site.engine.python, site.vars, where="engine.python")))
    return shlex.split(args.engine or "python3")


def _run(argv: list[str], timeout_s: float, program: str | None = None) -> ToolRun:
    try:
        done = subprocess.run(
            argv, input=program, capture_output=True, text=True, timeout=timeout_s, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return ToolRun(argv=tuple(argv), reason=f"failed: {type(error).__name__}")
    return ToolRun(
        argv=tuple(argv), returncode=done.returncode, stdout=done.stdout, stderr=done.stderr
    )


def _rows(directory: Path) -> list[dict[str, Any]]:
    path = directory / "probes.jsonl"
    lines = path.read_text().splitlines() if path.is_file() else []
    rows = []
    for one in lines:
        try:
            rows.append(json.loads(one))
        except ValueError:
            continue  # the last line of a recorder that was killed
    return rows


def _sampled(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """What every probe gave at its rate; the rows of others than GPUs stay at home."""
    found: dict[str, dict[str, Any]] = {}
    for probe in PROBES:
        own = [row for row in rows if row["probe"] == probe.name]
        missed = [
            row["value"]
            for row in rows
            if row["probe"] == "self" and row["device"].split()[0] == probe.name
            if row["counter"] == "missed_ticks"
        ]
        found[probe.name] = {
            "rate_hz": probe.rate_hz,
            "looks": len({row["mono_ns"] for row in own}),
            "numbers": sum(row["value"] is not None for row in own),
            "reasons": sum(row["reason"] is not None for row in own),
            "missed_ticks": max(missed, default=None),
        }
    return found


def _show(smoke: Smoke) -> None:
    """Cards as today's parsers see them, beside what the machine saw; then what was sampled."""
    now = [asdict(one) for one in cards_of(smoke.pages)]
    rows = [[one["source"], one["card"]["device"], *_cells(one["card"])] for one in now]
    page(table(rows, ["source", "card", *SHOWN.values()], widths=[None, None, *[24] * len(SHOWN)]))
    for run in smoke.pages.values():
        if run.reason:
            line(f"{shlex.join(run.argv)}: {run.reason}")
    for difference in changed(smoke):
        line(f"other than where it was made: {difference}")
    counted = Counter(row["device"] for row in smoke.rows if row["value"] is not None)
    line(f"GPU rows: {', '.join(f'{name} {count}' for name, count in sorted(counted.items()))}")
    columns = ("rate_hz", "looks", "numbers", "reasons", "missed_ticks")
    sampled = [[name, *map(one.get, columns)] for name, one in smoke.facts["sampled"].items()]
    page(table(sampled, ["probe", *columns]))
    line(f"engine: {json.dumps(smoke.facts['engine'])}")


def _cells(card: dict[str, Any]) -> list[str]:
    """Numbers, and reasons where there is none; the one reason of a lost card once."""
    if not card["values"]:
        return ["; ".join(dict.fromkeys(card["reasons"].values()))]
    cells = []
    for quantity in SHOWN:
        value = card["values"].get(quantity)
        said = card["reasons"].get(quantity, "") if value is None else f"{value:.15g}"
        cells.append(said)
    return cells


if __name__ == "__main__":
    sys.exit(guarded(main, "gpu-smoke"))
