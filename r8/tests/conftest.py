"""Where the engine environment is, for tests that need it."""

from __future__ import annotations

import os
from pathlib import Path

STACK = Path(__file__).resolve().parents[2] / ".nox" / "r8-stack"


def pytest_configure() -> None:
    """Point stack tests at the environment `nox -s stack` builds, unless told otherwise."""
    if (STACK / "venv").is_dir():
        os.environ.setdefault("R8_STACK", str(STACK / "venv"))
        for version in ("0.5.0", "0.5.1", "0.5.6"):
            overlay = STACK / f"lmcache-{version}"
            if overlay.is_dir():
                os.environ.setdefault(f"R8_LMCACHE_{version.replace('.', '_')}", str(overlay))
