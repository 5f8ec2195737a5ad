"""The packages of this instrument import one way, by relative imports and the standard library."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

import probes

ROOT = Path(probes.__file__).parent
# From the ground up: each may import those before it, and itself.
ORDER = (
    *("errors", "samples", "epochs", "kernel_files", "tool", "plan", "probe"),
    *("block", "network", "process", "engine", "cache", "gpu", "host"),
    *("catalogue", "record", "status", "cli", "__main__"),
)
MODULES = sorted(path.relative_to(ROOT) for path in ROOT.rglob("*.py") if "tests" not in path.parts)


def breaches(place: Path, source: str) -> set[str]:
    """What a module imports and must not: packages above its own, or anything not at hand."""
    package = place.parts[0].removesuffix(".py")
    below = set(ORDER[: ORDER.index(package) + 1])
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = {alias.name.partition(".")[0] for alias in node.names}
            found |= names - sys.stdlib_module_names
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found |= {str(node.module).partition(".")[0]} - sys.stdlib_module_names
        elif isinstance(node, ast.ImportFrom) and node.level == len(place.parts):
            heads = [str(node.module)] if node.module else [alias.name for alias in node.names]
            found |= {head.partition(".")[0] for head in heads} - below - {"__version__"}
    return found


@pytest.mark.parametrize("place", MODULES, ids=str)
def test_a_module_imports_what_lies_below_it(place: Path) -> None:
    if place.name != "__init__.py":
        assert breaches(place, (ROOT / place).read_text(encoding="utf-8")) == set()


def test_an_import_upwards_and_one_of_another_project_would_be_seen() -> None:
    place = Path("block/disk.py")
    assert breaches(place, "from ..gpu.card import Card\nfrom ..samples import Sample\n") == {"gpu"}
    assert breaches(place, "from .. import cli\nfrom .sysfs import Sysfs\n") == {"cli"}
    assert breaches(place, "import numpy.linalg\nfrom r8 import units\nimport os\n") == {
        *("numpy", "r8")
    }
