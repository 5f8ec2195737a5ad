"""`r8 clean` says what it undid, what it could not undo, and ends accordingly."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from r8.cli.main import main
from r8.errors import EXIT_USAGE
from r8.lab.machine import undo_log
from r8.lab.machine.supervisor import Supervisor
from r8.lab.machine.undo_log import Undo, UndoLog

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def _left_behind(runs_root: Path, *commands: tuple[str, ...]) -> None:
    state = runs_root / ".supervisor"
    state.mkdir(parents=True)
    with UndoLog(state / undo_log.PATTERN.replace("*", "killed")) as log:
        for token, argv in enumerate(commands, start=1):
            log.add(Undo(token=token, name=argv[0], argv=argv, cwd=str(runs_root)))


def test_what_was_undone_is_told_and_the_next_time_nothing_is_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mounted = tmp_path / "mounted"
    mounted.touch()
    _left_behind(tmp_path, ("rm", str(mounted)))
    assert main(["clean", "--runs-root", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("undone: ")
    assert not mounted.exists()
    assert main(["clean", "--runs-root", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("nothing was left behind")


def test_what_could_not_be_undone_is_not_called_undone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(undo_log, "_UNDO_PAUSE_S", 0.0)
    _left_behind(tmp_path, ("true",), ("false",))
    assert main(["clean", "--runs-root", str(tmp_path)]) == EXIT_USAGE
    told = capsys.readouterr()
    assert [line.startswith("undone: ") for line in told.out.splitlines()] == [True]
    assert "false" not in told.out
    assert told.err.startswith("r8: not undone: ")
    assert main(["clean", "--runs-root", str(tmp_path), "--json"]) == EXIT_USAGE
    found = json.loads(capsys.readouterr().out)
    assert (len(found["undone"]), len(found["left"])) == (0, 1)


def test_a_command_that_gives_an_engine_its_grace_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut short it would be tried again, find its pid file gone, and call the engine ended."""
    monkeypatch.setattr(undo_log, "_UNDO_TIMEOUT_S", 0.3)
    monkeypatch.setattr(undo_log, "_UNDO_PAUSE_S", 0.0)
    words = ("sh", "-c", "echo begun >> log; sleep 1; echo ended >> log")
    with Supervisor(tmp_path / "supervisor") as supervisor:
        monkeypatch.chdir(tmp_path)
        supervisor.undo(supervisor.on_exit(words, "engine a", grace_s=20.0))
    assert (tmp_path / "log").read_text().split() == ["begun", "ended"]
    entry = Undo(token=1, name="engine a", argv=words, cwd=str(tmp_path), grace_s=20.0)
    with UndoLog(tmp_path / "log") as log:
        log.add(entry)
        assert log.open_entries() == [entry]
