"""`nox -s qualify` runs every long test there is, and no long test runs without it."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MARK = "qualify"


def marked(folder: Path) -> list[Path]:
    """Test files that mark a test, or all of theirs, as long."""
    return [
        path
        for path in sorted(folder.rglob("test_*.py"))
        if any(
            isinstance(node, ast.Attribute) and node.attr == MARK
            for node in ast.walk(ast.parse(path.read_text()))
        )
    ]


def session_folders() -> list[str]:
    """Folders that the session hands to pytest."""
    tree = ast.parse((ROOT / "noxfile.py").read_text())
    (session,) = [
        one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef) and one.name == MARK
    ]
    words = [node.value for node in ast.walk(session) if isinstance(node, ast.Constant)]
    return [str(word) for word in words if isinstance(word, str) and (ROOT / word).is_dir()]


def test_the_session_reaches_every_long_test() -> None:
    folders = [ROOT / name for name in session_folders()]
    found = [path for top in ("r8", "load_client", "probes") for path in marked(ROOT / top)]
    assert len(found) > len(folders) > 1
    assert [path for path in found if not any(path.is_relative_to(one) for one in folders)] == []
    for name in ("r8/tests/qualify", "load_client/tests"):
        assert any(path.is_relative_to(ROOT / name) for path in found), name


def test_instruments_tests_are_in_the_session_as_in_a_bare_pytest() -> None:
    """Whoever marks a test of an instrument as long finds it run."""
    options = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    instruments = {one for one in options["testpaths"] if not one.startswith("r8/")}
    assert instruments == {"load_client/tests", "probes/tests"}
    assert instruments <= set(session_folders())
    assert "not qualify" in options["addopts"]


def test_a_long_test_outside_the_session_would_be_seen(tmp_path: Path) -> None:
    path = tmp_path / "test_long.py"
    path.write_text("import pytest\n\npytestmark = pytest.mark.qualify\n")
    (tmp_path / "test_short.py").write_text("def test_x():\n    pass\n")
    assert marked(tmp_path) == [path]
