"""The packages of this instrument import downwards only, and nothing that is not installed."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
# From the ground up; the modules beside the packages stand before and behind them.
GROUND = ("errors", "clock", "processes")
ORDER = (*GROUND, "stream", "record", "wire", "workload", "phase", "calibration", "bench", "cli")


def breaches(package: str, source: str, depth: int) -> set[str]:
    """What a module imports that stands above its package, or that is no part of Python."""
    wrong: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            wrong |= {one.name for one in node.names if not _standard(one.name)}
        elif isinstance(node, ast.ImportFrom) and node.level > depth:
            head = (node.module or "").split(".")[0]
            if ORDER.index(head) > ORDER.index(package):
                wrong.add(head)
        elif isinstance(node, ast.ImportFrom) and not node.level and not _standard(node.module):
            wrong.add(str(node.module))
    return wrong


def _standard(name: str | None) -> bool:
    return str(name).split(".")[0] in sys.stdlib_module_names


def test_packages_import_downwards_only() -> None:
    found: dict[str, set[str]] = {}
    for path in sorted(HERE.rglob("*.py")):
        parts = path.relative_to(HERE).parts
        package = parts[0].removesuffix(".py")
        if package not in {"tests", "__init__", "__main__"}:
            wrong = breaches(package, path.read_text(encoding="utf-8"), len(parts) - 1)
            found |= {"/".join(parts): wrong} if wrong else {}
    assert found == {}


def test_an_import_upwards_and_a_package_that_is_not_installed_are_seen() -> None:
    assert breaches("wire", "from ..workload.plan import LoadPlan\n", 1) == {"workload"}
    assert breaches("wire", "from ..record import capture\n", 1) == set()
    assert breaches("wire", "from .link import Link\n", 1) == set()
    assert breaches("clock", "from .cli import main\n", 0) == {"cli"}
    assert breaches("wire", "import requests\nfrom yarl import URL\n", 1) == {"requests", "yarl"}
