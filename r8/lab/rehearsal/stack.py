"""The engine environment of the rehearsal: vLLM's CPU build, torch, and several LMCaches beside it.

    python -m r8.lab.rehearsal.stack ensure [--lmcache 0.5.0 0.5.1 0.5.6] [--dir .nox/r8-stack]

`DIR/venv` holds everything of `stack-lock.txt`, without LMCache; `DIR/lmcache-VERSION` holds one
LMCache each, put in front by PYTHONPATH, so that one environment serves every arm. Each step is
noted once it is done, so an interrupted `ensure` goes on where it stopped and a finished one is
over in a second. What pip says goes to `DIR/logs`.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from r8.crash import guarded
from r8.errors import R8Error, SiteError
from r8.lab.rehearsal.system_tools import ensure_system_tools
from r8.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

DEFAULT_DIR = Path(".nox/r8-stack")
DEFAULT_LMCACHE = ("0.5.0", "0.5.1", "0.5.6")
LOCK = Path(__file__).with_name("stack-lock.txt")
TORCH_CPU_INDEX = "https://download.pytorch.org/whl/cpu"
# The engine's packages need pkg_resources, which setuptools gave up at 78.
SETUPTOOLS = "setuptools<78"
# What a CUDA build of torch asks for; a CPU build asks for none of it.
CUDA_REQUIREMENTS = ("nvidia-", "cuda-", "triton")
_STAMP = "done.json"


def stack_python(directory: Path = DEFAULT_DIR) -> Path:
    """The interpreter that runs the engine."""
    return directory / "venv" / "bin" / "python"


def overlay(directory: Path, version: str) -> Path:
    """The directory that holds this LMCache and nothing else."""
    return directory / f"lmcache-{version}"


def is_ready(directory: Path, versions: Sequence[str]) -> bool:
    """Whether `ensure` would have nothing to do."""
    done = _Done(directory)
    steps = {"venv", "torch", "packages", *(f"imports-{version}" for version in versions)}
    return all(done.has(step) for step in steps)


def ensure(directory: Path = DEFAULT_DIR, versions: Sequence[str] = DEFAULT_LMCACHE) -> None:
    """Build what is missing, then import it.

    Raises:
        SiteError: a step failed; the message names its log.
    """
    directory = directory.absolute()
    (directory / "logs").mkdir(parents=True, exist_ok=True)
    ensure_system_tools(_say)
    with _alone_in(directory):
        _ensure_alone(directory, versions)
    _say(f"ready: {stack_python(directory)}")


@contextlib.contextmanager
def _alone_in(directory: Path) -> Iterator[None]:
    """One builder at a time: two pips in one environment spoil it."""
    with (directory / "lock").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say(f"another `ensure` works on {directory}: waiting for it")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _ensure_alone(directory: Path, versions: Sequence[str]) -> None:
    done = _Done(directory)
    if not done.has("venv"):
        _say(f"environment {directory / 'venv'}")
        _run(directory, "venv", [sys.executable, "-m", "venv", "--clear", str(directory / "venv")])
        _pip(directory, "venv", "install", SETUPTOOLS)
        done.note("venv")
    if not done.has("torch"):
        arguments, why = _torch_arguments(directory)
        _say(f"torch: {why}")
        _pip(directory, "torch", "install", "--no-deps", *arguments)
        done.note("torch")
    if not done.has("packages"):
        _say(f"{len(_locked())} packages of {LOCK.name} (about 2.3 GB installed)")
        _pip(directory, "packages", "install", "--no-deps", "-r", str(LOCK))
        done.note("packages")
    for version in versions:
        if not done.has(f"lmcache-{version}"):
            _install_overlay(directory, version)
            done.note(f"lmcache-{version}")
        if not done.has(f"imports-{version}"):
            _check_imports(directory, version)
            done.note(f"imports-{version}")


def _install_overlay(directory: Path, version: str) -> None:
    """Into a directory of another name first: half an LMCache must never be imported."""
    _say(f"LMCache {version}")
    target = overlay(directory, version)
    half = target.with_suffix(f"{target.suffix}.partial")
    shutil.rmtree(half, ignore_errors=True)
    shutil.rmtree(target, ignore_errors=True)
    arguments = ("--no-deps", "--target", str(half), f"lmcache=={version}")
    _pip(directory, f"lmcache-{version}", "install", *arguments)
    half.rename(target)


def _check_imports(directory: Path, version: str) -> None:
    """Import the engine with this LMCache in front.

    Raises:
        SiteError: something of it does not import, or another LMCache came in front.
    """
    code = (
        "import torch, vllm, lmcache, importlib.metadata as m;"
        "print(m.version('lmcache'), torch.version.cuda, lmcache.__file__)"
    )
    log = _run(
        directory,
        f"imports-{version}",
        [str(stack_python(directory)), "-c", code],
        env={"PYTHONPATH": str(overlay(directory, version)), "HF_HUB_OFFLINE": "1"},
    )
    found = log.read_text().strip().splitlines()[-1]
    path = str(overlay(directory, version))
    if not found.startswith(f"{version} None ") or path not in found:
        raise SiteError(
            f"expected LMCache {version} and a CPU torch, found: {found}",
            where=str(directory),
            next_step=f"remove {directory} and build it again",
        )


def _torch_arguments(directory: Path) -> tuple[list[str], str]:
    """What pip is to install as torch, so that it is the CPU build, and why.

    Ordinary x86 machines get a CUDA build from the default index, several GB of it; pip is asked
    what it would take before anything is fetched.
    """
    pinned = next(line for line in _locked() if line.startswith("torch=="))
    plain = pinned.partition("+")[0]
    report = directory / "logs" / "torch-report.json"
    report.unlink(missing_ok=True)
    arguments = ["--dry-run", "--ignore-installed", "--no-deps", "--report", str(report), plain]
    try:
        _pip(directory, "torch-look", "install", *arguments)
        why = why_not_cpu(json.loads(report.read_text()))
    except (SiteError, OSError, ValueError) as error:
        why = f"pip could not say what it would take ({type(error).__name__})"
    if why is None:
        return [plain], f"{plain} of the default index is a CPU build"
    return ["--index-url", TORCH_CPU_INDEX, pinned], f"{why}; from {TORCH_CPU_INDEX}"


def why_not_cpu(report: dict[str, object]) -> str | None:
    """From pip's report: None when what it would install as torch is a CPU build, else why not."""
    installs = report.get("install")
    if not isinstance(installs, list) or not installs:
        return "pip would install nothing"
    metadata = installs[0]["metadata"]
    wanted = [str(line) for line in metadata.get("requires_dist", ())]
    cuda = [line.split()[0] for line in wanted if line.startswith(CUDA_REQUIREMENTS)]
    if cuda and "+cpu" not in metadata["version"]:
        return f"the default index gives {metadata['version']}, which wants {cuda[0]}"
    return None


def _locked() -> list[str]:
    return [line for line in LOCK.read_text().splitlines() if line and not line.startswith("#")]


class _Done:
    """The steps done in a directory, by lock and interpreter: either changed, all are undone."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / _STAMP
        lock = hashlib.sha256(LOCK.read_bytes()).hexdigest()
        self._key = f"{lock} {sys.version_info.major}.{sys.version_info.minor}"

    def has(self, step: str) -> bool:
        return step in self._steps()

    def note(self, step: str) -> None:
        steps = sorted({*self._steps(), step})
        half = self._path.with_suffix(".partial")
        half.write_text(json.dumps({"key": self._key, "steps": steps}))
        half.replace(self._path)

    def _steps(self) -> list[str]:
        try:
            found = json.loads(self._path.read_text())
        except (OSError, ValueError):
            return []
        return list(found["steps"]) if found["key"] == self._key else []


def _pip(directory: Path, step: str, *arguments: str) -> None:
    _run(directory, step, [str(stack_python(directory)), "-m", "pip", *arguments])


def _run(directory: Path, step: str, argv: list[str], env: dict[str, str] | None = None) -> Path:
    """Run with everything said going to the step's log; returns the log.

    Raises:
        SiteError: it failed; the last line that is no warning is quoted.
    """
    log = directory / "logs" / f"{step}.log"
    began_ns = time.monotonic_ns()
    with log.open("wb") as output:
        done = subprocess.run(
            argv,
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", **(env or {})},
            check=False,
        )
    if done.returncode != 0:
        lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
        said = [line for line in lines if not line.startswith("WARNING")] or lines or ["no output"]
        raise SiteError(
            f"step {step} failed: {said[-1][:300]}",
            where=str(log),
            next_step="look into that log; the same command goes on where it stopped",
        )
    elapsed_s = (time.monotonic_ns() - began_ns) / NS_PER_S
    if elapsed_s > 1:
        _say(f"  {step} took {elapsed_s:.0f} s")
    return log


def _say(text: str) -> None:
    print(f"[stack] {text}", flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Build or complete the environment; exit code 4 with one line when a step fails."""
    parser = argparse.ArgumentParser(prog="stack", description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    ensuring = verbs.add_parser("ensure", help="build what is missing")
    ensuring.add_argument("--lmcache", nargs="+", default=list(DEFAULT_LMCACHE))
    ensuring.add_argument("--dir", type=Path, default=DEFAULT_DIR)
    args = parser.parse_args(argv)
    try:
        ensure(args.dir, args.lmcache)
    except R8Error as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(guarded(main, "stack"))
