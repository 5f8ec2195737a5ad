"""The doors of R8: `nox -l` lists them. No logic here."""

from __future__ import annotations

import nox

nox.needs_version = ">=2024.10.9"
nox.options.default_venv_backend = "venv"
nox.options.sessions = ["lint", "tests"]
nox.options.reuse_existing_virtualenvs = True

PYPROJECT = nox.project.load_toml("pyproject.toml")
JUDGE = PYPROJECT["project"]["dependencies"]
LAB = [*JUDGE, *nox.project.dependency_groups(PYPROJECT, "lab")]


def _engine(session: nox.Session) -> None:
    """Build the engine environment of the rehearsal, or find it built."""
    session.run("python", "-m", "r8.lab.rehearsal.stack", "ensure", *_lmcache(session))


def _lmcache(session: nox.Session) -> list[str]:
    versions = ["0.5.0", "0.5.1", "0.5.6"] if session.name in {"stack", "tests"} else ["0.5.0"]
    return ["--lmcache", *versions]


@nox.session
def tests(session: nox.Session) -> None:
    """Unit tests; those that need root, FUSE or the engine say why when they are skipped."""
    session.install(*JUDGE, *nox.project.dependency_groups(PYPROJECT, "test"))
    session.run("pytest", *session.posargs)


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
    _engine(session)


@nox.session(name="reproduce-r1")
def reproduce_r1(session: nox.Session) -> None:
    """R1, the parallel-read patch: measure, prove, judge. Without --site: the rehearsal."""
    session.install(*LAB)
    session.run("python", "-m", "r8.lab.reproduce", "r1-parallel-read", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """Component benches: the LMCache disk backend beside fio, on a shaped device and unshaped."""
    session.install(*LAB)
    session.run("python", "-m", "r8.lab.bench", *session.posargs)


@nox.session
def qualify(session: nox.Session) -> None:
    """The long lists: kills at random instants, full disks, fault interleavings. Resumable."""
    session.install(*LAB, *nox.project.dependency_groups(PYPROJECT, "test"))
    session.run("python", "-m", "r8.lab.qualify", *session.posargs)
