"""Imports go one way: instruments alone, the lab above evidence, the judge above all of it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OURS = {"r8", "load_client", "probes"}
MAX_MODULE_LINES = 300

# Each room may import the rooms named after it, and itself.
GROUND = {"errors", "units"}
RECORDS = GROUND | {"model", "schema", "resources"}
EVIDENCE = RECORDS | {"journal", "enginelog", "finalise", "evidence", "database"}
JUDGE_READS = EVIDENCE | {"metrics", "intervals", "forensics", "claims"}
PUBLISHED = {"arithmetic", "ledger", "audit"}
ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "units": set(),
    "model": GROUND,
    "schema": GROUND,
    "resources": GROUND,
    "journal": RECORDS,
    "enginelog": RECORDS,
    "evidence": RECORDS | {"journal"},
    "parquet_layout": RECORDS,
    "finalise": RECORDS | {"journal", "enginelog", "evidence", "parquet_layout"},
    "database": RECORDS | {"evidence"},
    "dictionary": EVIDENCE,
    "metrics": EVIDENCE,
    "intervals": RECORDS,
    "forensics": EVIDENCE | {"metrics"},
    "claims": RECORDS,
    "verdict": JUDGE_READS,
    "report": JUDGE_READS | {"verdict"},
    "arithmetic": GROUND,
    "ledger": RECORDS | {"arithmetic"},
    "audit": RECORDS | {"arithmetic", "ledger"},
    "checklist": RECORDS | PUBLISHED,
    "diff": JUDGE_READS | PUBLISHED | {"verdict"},
    "gates": JUDGE_READS | PUBLISHED | {"verdict", "diff"},
    "charts": JUDGE_READS | {"verdict"},
    "html": JUDGE_READS | {"verdict", "charts"},
    "rerun": JUDGE_READS,
    "seal": JUDGE_READS | {"verdict", "parquet_layout"},
    "verify": JUDGE_READS | {"verdict", "seal"},
    "console": RECORDS,
    "doors": EVIDENCE,
    "lab": (EVIDENCE - {"database"}) | {"console"},
}
DOORS = {"cli", "__main__", "scenarios", "doors_map"}


def _room(path: Path) -> str:
    """The room a module of r8 belongs to: its first folder, or the stem less a `_part` suffix."""
    parts = path.relative_to(ROOT / "r8").parts
    if len(parts) > 1:
        return parts[0]
    stem = parts[0].removesuffix(".py")
    return next((room for room in (*ALLOWED, *DOORS) if stem == room), _parent_room(stem))


def _parent_room(stem: str) -> str:
    if stem.endswith("_verbs"):
        return "cli"
    heads = [room for room in ALLOWED if stem.startswith(f"{room}_")]
    return max(heads, key=len) if heads else stem


def _modules(folder: str) -> list[Path]:
    return sorted(
        path
        for path in (ROOT / folder).rglob("*.py")
        if "tests" not in path.relative_to(ROOT).parts
    )


def imported_rooms(source: str) -> set[str]:
    """Names of our packages, or of rooms of r8, that a module's text imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            head, _, rest = name.partition(".")
            if head == "r8":
                found.add(rest.partition(".")[0] or "r8")
            elif head in OURS:
                found.add(head)
    return found


def breaches(room: str, source: str) -> set[str]:
    """What a module of that room imports and must not."""
    rooms = {_parent_room(name) for name in imported_rooms(source)} - {"__version__", room}
    return rooms - ALLOWED[room]


@pytest.mark.parametrize("path", _modules("r8"), ids=lambda path: str(path.relative_to(ROOT)))
def test_modules_of_r8_import_one_way(path: Path) -> None:
    room = _room(path)
    if room in DOORS or (path.name == "__init__.py" and room == "__init__"):
        return
    assert breaches(room, path.read_text()) == set()


# What reads a clock, starts a process or opens a connection; only `lab` and `doors` may.
WORLDLY = {"subprocess", "socket", "ssl", "urllib", "http", "ftplib", "time", "datetime", "asyncio"}


def worldly(source: str) -> set[str]:
    """Modules that a module's text imports and that reach beyond files."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
    return {name.partition(".")[0] for name in names} & WORLDLY


@pytest.mark.parametrize("path", _modules("r8"), ids=lambda path: str(path.relative_to(ROOT)))
def test_the_judge_has_no_network_no_subprocess_and_no_clock(path: Path) -> None:
    room = _room(path)
    # A journal is written by the lab; how long its rows wait for the disk is its own business.
    if room not in {"lab", "doors", "scenarios", "journal"}:
        assert worldly(path.read_text()) == set()


def test_a_judge_that_asks_the_network_would_be_seen() -> None:
    assert worldly("import urllib.request\nfrom time import time\n") == {"urllib", "time"}


@pytest.mark.parametrize("folder", ["load_client", "probes"])
def test_instruments_import_nothing_of_ours(folder: str) -> None:
    for path in _modules(folder):
        assert imported_rooms(path.read_text()) <= {folder}, path


def test_the_judge_never_reaches_into_the_lab() -> None:
    assert breaches("verdict", "from r8.lab import cell\n") == {"lab"}


def test_the_lab_cannot_know_what_is_expected() -> None:
    assert breaches("lab", "from r8 import claims\nimport r8.verdict\n") == {"claims", "verdict"}


def test_instruments_that_import_the_judge_would_be_seen() -> None:
    assert imported_rooms("from r8.errors import R8Error\n") == {"errors"}


@pytest.mark.parametrize("folder", ["r8", "load_client", "probes"])
def test_no_module_outgrows_its_reader(folder: str) -> None:
    long = {
        str(path.relative_to(ROOT)): lines
        for path in _modules(folder)
        if (lines := len(path.read_text().splitlines())) > MAX_MODULE_LINES
    }
    assert long == {}


def test_the_top_level_is_the_one_in_the_readme() -> None:
    shown = {
        path.name
        for path in ROOT.iterdir()
        if path.is_dir() and not path.name.startswith(".") and not path.name.endswith("egg-info")
    }
    assert shown - {"build", "dist"} == {
        "r8",
        "patches",
        "probes",
        "load_client",
        "data",
        "reports",
    }
