from __future__ import annotations

import time

import pytest

from r8.lab.machine.progress import Progress


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_the_eta_starts_from_the_estimate_and_learns_from_finished_cells(
    clock: list[float],
) -> None:
    progress = Progress(total=4, estimate_s=100.0)
    progress.start("a")
    assert progress.eta_s == 400.0
    clock[0] = 60.0
    progress.finish()
    progress.start("b")
    assert progress.eta_s == 180.0
    clock[0] = 80.0
    assert progress.eta_s == 160.0


def test_a_cell_that_takes_longer_never_makes_the_eta_negative(clock: list[float]) -> None:
    progress = Progress(total=1, estimate_s=10.0)
    progress.start("a")
    clock[0] = 500.0
    assert progress.eta_s == 0.0


def test_elsewhere_than_on_a_terminal_each_step_is_a_plain_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    progress = Progress(total=2, estimate_s=60.0)
    progress.start("block 0 patched c16")
    progress.say("engine start")
    text = capsys.readouterr().err
    assert text.startswith("[1/2] block 0 patched c16: engine start  (elapsed 0:00, ETA ")
    assert "\x1b" not in text
    assert "\r" not in text
