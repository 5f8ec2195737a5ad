"""The entry points of R8: `nox -l` lists them."""

from __future__ import annotations

import argparse
from pathlib import Path

import nox
from packaging.requirements import Requirement

nox.needs_version = ">=2024.10.9"
nox.options.default_venv_backend = "venv"
nox.options.sessions = ["lint", "tests"]
nox.options.reuse_existing_virtualenvs = True

PYPROJECT = nox.project.load_toml("pyproject.toml")
JUDGE = PYPROJECT["project"]["dependencies"]
# -s: the progress of a long run belongs on the screen. pytest-benchmark shows the stopwatch only.
SCENARIO = ["pytest", "-s", "-q", "--benchmark-columns=max", "--benchmark-sort=name"]
SCENARIOS = Path(__file__).parent / "r8" / "scenarios"
# One process a core; how they share the tests stands in conftest.py. More than eight would wait for
# the tests that run one after another.
PARALLEL = ["-n", "logical", "--maxprocesses", "8"]
LAB = [*JUDGE, *nox.project.dependency_groups(PYPROJECT, "lab")]


@nox.session
def tests(session: nox.Session) -> None:
    """Unit tests; those that need root, FUSE or the engine say why when they are skipped.

    On every core; arguments go to a plain pytest instead, `-- r8/tests/verdict` for example.
    """
    session.install(*JUDGE, *nox.project.dependency_groups(PYPROJECT, "test"))
    session.run("pytest", *(session.posargs or PARALLEL))


@nox.session
def oldest(session: nox.Session) -> None:
    """The judge's tests with the oldest versions that pyproject.toml allows."""
    judge = {Requirement(one).name: one for one in JUDGE}
    others = nox.project.dependency_groups(PYPROJECT, "test")
    session.install(
        *(one.replace(">=", "==") for one in JUDGE),
        *(one for one in others if Requirement(one).name not in judge),
    )
    packages = PYPROJECT["tool"]["setuptools"]["packages"]
    folders = [Path("r8", "tests", *one.split(".")[1:]) for one in packages if "." in one]
    unlike_judge = "qualify or root or stack or browser"
    session.run("pytest", *PARALLEL, "-m", f"not ({unlike_judge})", *filter(Path.is_dir, folders))


@nox.session
def lint(session: nox.Session) -> None:
    """ruff and mypy --strict over code and tests."""
    session.install(*LAB, *nox.project.dependency_groups(PYPROJECT, "test", "lint"))
    session.run("ruff", "format", "--check", ".")
    session.run("ruff", "check", ".")
    session.run("mypy")


@nox.session
def stack(session: nox.Session) -> None:
    """Build the engine environment (vLLM on CPU, three LMCache versions) without running it."""
    session.install(*LAB)
    session.run("python", "-m", "r8.lab.rehearsal.stack", "ensure", *session.posargs)


def _reproduce(report: str) -> None:
    """A session that runs every scenario file of one report: `test_<report>_<question>.py`."""
    files = sorted(SCENARIOS.glob(f"test_{report}_*.py"))

    def reproduce(session: nox.Session) -> None:
        session.install(*LAB)
        session.run(*SCENARIO, *(f"r8/scenarios/{one.name}" for one in files), *session.posargs)

    names = ", ".join(one.stem.removeprefix(f"test_{report}_") for one in files)
    reproduce.__doc__ = f"{report.upper()}: {names}; -k picks one. No --site: the rehearsal."
    nox.session(name=f"reproduce-{report}")(reproduce)


for one in sorted({path.name.split("_")[1] for path in SCENARIOS.glob("test_r[0-9]*_*.py")}):
    _reproduce(one)


@nox.session(name="cross-check")
def cross_check(session: nox.Session) -> None:
    """Our load client beside `vllm bench serve`: same server, same level, TTFT p50 within 3 %."""
    session.install(*LAB)
    session.run(*SCENARIO, "r8/scenarios/test_cross_check.py", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """Benches: `component` (the disk backend beside fio), `client`, `probes` or `data`."""
    session.install(*LAB)
    named = session.posargs[:1] in (["client"], ["component"], ["probes"], ["data"])
    which, *rest = session.posargs if named else ["component", *session.posargs]
    session.run(*SCENARIO, f"r8/scenarios/test_bench_{which}.py", *rest)


@nox.session(name="gpu-smoke")
def gpu_smoke(session: nox.Session) -> None:
    """Ten minutes on a machine with GPUs: probes, vendors' raw pages, one archive to send in.

    `-- --engine "docker exec -i vllm python3"` names a Python with vLLM; `--replay FILE` shows one.
    """
    session.install(*LAB, *nox.project.dependency_groups(PYPROJECT, "gpu"))
    session.run("python", "-m", "r8.scenarios.gpu_smoke", *session.posargs)


@nox.session
def qualify(session: nox.Session) -> None:
    """The long lists: kills at random instants, full disks, fault interleavings. Resumable.

    Without arguments `oldest` and `mutants` follow.
    """
    session.install(*LAB, *nox.project.dependency_groups(PYPROJECT, "test"))
    tests = ("r8/tests", "load_client/tests", "probes/tests")
    session.run("pytest", "-m", "qualify", *tests, *session.posargs)
    if not session.posargs:
        session.notify("oldest")
        session.notify("mutants")


@nox.session
def mutants(session: nox.Session) -> None:
    """Small faults in forensics, verdicts and SQL, one at a time: do the tests beside notice?"""
    session.install(*LAB, *nox.project.dependency_groups(PYPROJECT, "test"))
    session.run("python", "-m", "r8.tests.mutants", *session.posargs)


@nox.session
def audit(session: nox.Session) -> None:
    """The published figures: audit report and tables made again; `-- --check` compares."""
    session.install(*JUDGE)
    session.run("python", "-m", "r8.cli.published", *(session.posargs or ["--write"]))


@nox.session
def reports(session: nox.Session) -> None:
    """The reports of data/reference/, made again; `-- --check` compares."""
    session.install(*JUDGE)
    session.run("python", "-m", "r8.cli.references", *(session.posargs or ["--write"]))


@nox.session(name="gate-g2")
def gate_g2(session: nox.Session) -> None:
    """Gate G2: R1 on your site, then 10 % of R1 and 83 % of the line. Options as reproduce-r1."""
    session.install(*LAB)
    scenario = "r8/scenarios/test_r1_parallel_read.py"
    # The gate judges what was measured, whatever the scenario's own claims came to.
    session.run("pytest", "-s", "-q", scenario, *session.posargs, success_codes=[0, 1])
    # Where the runs went: elsewhere lies the campaign of another day.
    where = argparse.ArgumentParser(allow_abbrev=False)
    where.add_argument("--runs-root", default="data/runs")
    root = where.parse_known_args(session.posargs)[0].runs_root
    session.run("python", "-m", "r8", "gate", "G2", "--newest", f"{root}/r1-parallel-read")


@nox.session(name="audit-rerun")
def audit_rerun(session: nox.Session) -> None:
    """An auditor's seed draws cells of a sealed bundle; they are run again and compared."""
    session.install(*LAB)
    session.run("python", "-m", "r8.scenarios.audit_rerun", *session.posargs)
