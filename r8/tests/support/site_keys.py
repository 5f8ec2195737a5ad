"""Comparability keys of the site files that travel with R8."""

from __future__ import annotations

import tomllib
from pathlib import Path

SITES = Path(__file__).resolve().parents[3] / "data" / "sites"


def shipped_site_keys() -> list[dict[str, str]]:
    """The `[comparability]` of every file in data/sites."""
    paths = sorted(SITES.glob("*.toml"))
    return [tomllib.loads(path.read_text(encoding="utf-8"))["comparability"] for path in paths]
