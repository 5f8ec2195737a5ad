"""The long lists: run by `nox -s qualify`, resumable, never by a bare `pytest`.

A test that passed on the same content of the checkout is not run again: what has passed is kept
beside the environments, with the digest of every source file it stood on.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
STATE = ROOT / ".nox" / "qualify.json"
# What a long test's outcome depends on; documents and reports may change without a new run.
SOURCES = ("r8", "load_client", "probes", "patches", "data/queries", "data/sites")


def _digest() -> str:
    """Digest of every source file, by the names git knows."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *SOURCES],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout
    whole = hashlib.sha256()
    for name in sorted(filter(None, listed.split(b"\0"))):
        path = ROOT / name.decode()
        if path.is_file():
            whole.update(name + hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()


class Resume:
    """Skips what passed on the same sources, and notes what passes now."""

    def __init__(self) -> None:
        self.digest = _digest()
        found = json.loads(STATE.read_text()) if STATE.is_file() else {}
        self.passed: set[str] = set(found.get(self.digest, []))

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        if item.nodeid in self.passed:
            pytest.skip(f"passed before on the same sources ({self.digest[:12]})")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self.passed.add(report.nodeid)
            STATE.parent.mkdir(exist_ok=True)
            STATE.write_text(json.dumps({self.digest: sorted(self.passed)}, indent=1))


def pytest_configure(config: pytest.Config) -> None:
    """Resume only when long tests were asked for."""
    if config.getoption("-m") == "qualify":
        config.pluginmanager.register(Resume(), "r8-resume")
