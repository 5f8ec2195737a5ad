"""What nobody foresaw ends in one line and code 70, at every door; code 1 stays DEVIATES."""

from __future__ import annotations

import argparse
import runpy
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

from r8 import crash
from r8.errors import EXIT_CODES, EXIT_INTERNAL, EXIT_INTERRUPTED

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
# Every module that a person or a session starts, with words that it takes.
ENTRY_POINTS = {
    "r8": ["explain", "C1"],
    "r8.cli.published": [],
    "r8.cli.references": [],
    "r8.scenarios.audit_rerun": ["bundle.tar.gz", "--seed", "1"],
    "r8.lab.rehearsal.stack": ["ensure"],
    "r8.scenarios.gpu_smoke": [],
    "r8.lab.machine.supervisor": [],
    "load_client": ["plan"],
    "probes": ["status"],
}
# Started by R8 alone, often without R8 beside them: whoever starts them keeps their standard error,
# and takes every code but 0 for a failure.
PROGRAMS = {
    "r8.lab.component.bench",
    "r8.lab.rehearsal.bench_serve",
    "r8.lab.rehearsal.shaped_fs",
    "r8.lab.rehearsal.teardown",
    "r8.lab.rehearsal.tiny_model",
    "r8.lab.transfer.tools.load_engine",
    "r8.lab.transfer.tools.load_safetensors",
    "r8.lab.transfer.tools.write_checkpoint",
    "r8.scenarios.smoke_engine",
    "load_client.bench",
    "load_client.bench.aiohttp_client",
    "load_client.bench.tokenizer_maker",
    "load_client.bench.urllib_client",
    "load_client.bench.vllm_client",
    "load_client.calibration.null_server",
}


def boom(*_: object, **__: object) -> NoReturn:
    raise ZeroDivisionError("planted\x1b[2J")


def recursing() -> int:
    return recursing()


def interrupted() -> int:
    raise KeyboardInterrupt


def out_of_memory() -> int:
    raise MemoryError


@pytest.mark.parametrize(
    ("main", "code", "said"),
    [
        (lambda: 5, 5, ""),
        (interrupted, EXIT_INTERRUPTED, ""),
        (boom, EXIT_INTERNAL, r"ZeroDivisionError: planted\x1b[2J"),
        (recursing, EXIT_INTERNAL, "RecursionError: maximum recursion depth"),
        (out_of_memory, EXIT_INTERNAL, "MemoryError"),
    ],
    ids=["none", "interrupt", "error", "recursion", "memory"],
)
def test_an_error_is_one_line_and_its_traceback_a_file(
    main: Callable[[], int],
    code: int,
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert crash.guarded(main, "r8", folder=str(tmp_path)) == code
    err = capsys.readouterr().err
    assert err.count("\n") == bool(said)
    files = list(tmp_path.iterdir())
    assert len(files) == bool(said)
    if said:
        assert err.startswith(f"r8: internal error, of R8 and not of its input: {said}")
        assert str(files[0]) in err
        assert "\x1b" not in err
        assert "Traceback (most recent call last)" in files[0].read_text()
        assert files[0].stat().st_mode & 0o077 == 0


def test_debugging_prints_the_traceback_instead(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(crash.DEBUG, "1")
    assert crash.guarded(boom, "r8", folder=str(tmp_path)) == EXIT_INTERNAL
    err = capsys.readouterr().err
    assert "Traceback (most recent call last)" in err
    assert "\x1b" not in err
    assert list(tmp_path.iterdir()) == []


def test_nowhere_to_write_is_still_code_70(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert crash.guarded(boom, "r8", folder=str(tmp_path / "gone")) == EXIT_INTERNAL
    assert capfd.readouterr().err == "r8: internal error, and no room to say which\n"


@pytest.mark.parametrize("module", sorted(set(ENTRY_POINTS) - {"r8.lab.machine.supervisor"}))
def test_an_error_planted_in_an_entry_point_ends_with_70(
    module: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(argparse.ArgumentParser, "parse_known_args", boom)
    monkeypatch.setattr("r8.cli.entry.limited", lambda main: main(str(tmp_path)))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(sys, "argv", [module, *ENTRY_POINTS[module]])
    for name in (module, f"{module}.__main__"):
        if name in sys.modules and name != "r8":
            monkeypatch.delitem(sys.modules, name)
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(module, run_name="__main__")
    assert ended.value.code == EXIT_INTERNAL
    err = capsys.readouterr().err
    # The instruments' standard error is kept with the run: it has the whole traceback.
    assert ("Traceback" in err) is (module in {"load_client", "probes"})


def test_an_error_planted_in_a_verb_of_the_lab_ends_with_70(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("r8.lab.verbs.clean_up", boom, raising=False)
    monkeypatch.setattr("r8.cli.main._parse", boom)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["r8", "status"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("r8", run_name="__main__")
    assert ended.value.code == EXIT_INTERNAL
    assert capsys.readouterr().err.count("\n") == 1


def test_the_supervisor_ends_with_70() -> None:
    """It takes signals for itself, so in a process of its own; without words it has no log."""
    argv = [sys.executable, "-m", "r8.lab.machine.supervisor"]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == EXIT_INTERNAL
    assert "ValueError" in done.stderr
    Path(done.stderr.partition("traceback: ")[2].partition(";")[0]).unlink()


def test_every_module_that_can_be_started_is_known_here() -> None:
    started = set()
    for top in ("r8", "load_client", "probes"):
        for path in (ROOT / top).rglob("*.py"):
            place = path.relative_to(ROOT)
            if "tests" in place.parts:
                continue
            if path.name == "__main__.py":
                started.add(".".join(place.parent.parts))
            elif '__name__ == "__main__"' in path.read_text():
                started.add(".".join(place.with_suffix("").parts))
    assert started == set(ENTRY_POINTS) | PROGRAMS


def test_the_readme_has_every_exit_code_and_no_other() -> None:
    table = README.partition("| exit code | meaning |\n|---|---|\n")[2].partition("\n\n")[0]
    rows = [row.strip("| ").split(" | ") for row in table.splitlines()]
    assert {int(code): meaning for code, meaning in rows} == EXIT_CODES
