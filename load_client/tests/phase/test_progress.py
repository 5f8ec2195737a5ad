from __future__ import annotations

import io

import pytest

from load_client.phase import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def every_update_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "TERMINAL_EVERY_S", 0)
    monkeypatch.setattr(progress, "PLAIN_EVERY_S", 0)


def test_a_terminal_gets_one_living_line_with_an_eta_once_something_is_done() -> None:
    shown = Terminal()
    bar = progress.PhaseProgress(shown, "measure e0", 4)
    bar.update(0, 4)
    assert "ETA" not in shown.getvalue()
    bar.update(2, 2)
    assert "2/4 done, 2 in flight" in shown.getvalue()
    assert "ETA" in shown.getvalue()
    assert "\n" not in shown.getvalue()
    bar.note("finished")
    assert shown.getvalue().endswith("\r\x1b[Kmeasure e0: finished\n")


def test_elsewhere_progress_is_plain_lines() -> None:
    shown = io.StringIO()
    bar = progress.PhaseProgress(shown, "measure e0", 4)
    bar.update(1, 3)
    assert shown.getvalue().count("\n") == 1
    assert "\r" not in shown.getvalue()


def test_quiet_swallows_progress_and_notes_but_no_warning() -> None:
    shown = Terminal()
    bar = progress.PhaseProgress(shown, "measure e0", 4, quiet=True)
    bar.update(1, 3)
    bar.note("finished")
    assert not shown.getvalue()
    bar.warn("late")
    assert shown.getvalue() == "measure e0: warning: late\n"


def test_words_of_an_engine_are_one_line_that_a_terminal_does_not_obey() -> None:
    shown = Terminal()
    progress.PhaseProgress(shown, "e0", 4).warn("first failure: \x1b[2J\nok \u4e2d")
    assert shown.getvalue() == "e0: warning: first failure: \\x1b[2J\\nok \u4e2d\n"
