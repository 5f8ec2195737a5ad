"""`nox -s gate-g2` judges the campaign it has just run, wherever its runs were told to go."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[3]


def _noxfile(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The noxfile, with as much of nox as it needs to be read."""

    def session(function: Callable[..., Any] | None = None, **_named: str) -> Any:
        return function if function is not None else lambda one: one

    table: dict[str, dict[str, list[str]]] = {"project": {"dependencies": []}}
    nox = ModuleType("nox")
    project = SimpleNamespace(load_toml=lambda _path: table, dependency_groups=lambda *_: [])
    vars(nox).update(session=session, Session=object, options=SimpleNamespace(), project=project)
    monkeypatch.setitem(sys.modules, "nox", nox)
    spec = importlib.util.spec_from_file_location("noxfile", ROOT / "noxfile.py")
    assert spec is not None
    assert spec.loader is not None
    noxfile = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(noxfile)
    return noxfile


@pytest.mark.parametrize(
    ("options", "folder"),
    [
        ([], "data/runs/r1-parallel-read"),
        (["--site", "f.toml", "--runs-root", "/scratch/runs"], "/scratch/runs/r1-parallel-read"),
        (["--runs-root=/scratch/runs", "--smoke"], "/scratch/runs/r1-parallel-read"),
    ],
)
def test_the_gate_looks_where_the_runs_went(
    options: list[str], folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[tuple[str, ...]] = []
    session = SimpleNamespace(
        posargs=options, install=lambda *_: None, run=lambda *words, **_: ran.append(words)
    )
    _noxfile(monkeypatch).gate_g2(session)
    measured, judged = ran
    assert set(options) <= set(measured)
    assert judged[-1] == folder
