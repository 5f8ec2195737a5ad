"""A session of 72 hours fits its budgets: the bench `data`, as a condition."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.qualify
ROOT = Path(__file__).resolve().parents[3]
BENCH = "r8/scenarios/test_bench_data.py"


def test_72_hours_fit_their_bytes_seconds_and_memory() -> None:
    """A process of its own: what it costs is measured, and this one holds much already."""
    argv = [sys.executable, "-m", "pytest", "-s", "-q", BENCH]
    done = subprocess.run(argv, cwd=ROOT, check=False, capture_output=True, text=True)
    print(done.stdout)
    assert done.returncode == 0, done.stdout[-4000:]
