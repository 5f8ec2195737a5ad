"""The child that reads: its limits, its directory, its signals, and what is told of its end."""

from __future__ import annotations

import errno
import fcntl
import os
import pty
import resource
import signal
import subprocess
import sys
import termios
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from r8.cli import entry, limits
from r8.cli.help_map import LAB_VERBS, PEOPLE
from r8.errors import EXIT_INTERNAL, EXIT_INVALID, EXIT_KILLED, EXIT_USAGE, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[3]
MIB = 1 << 20
# A program whose child does one thing; what libraries cost is not measured here.
PROGRAM = """
import os, pathlib, resource, signal, sys, tempfile, time
from r8.cli.limited import limited
from r8.cli.limits import behind
# As a shell starts it: whatever started the tests (nohup, `&`) may ignore these.
signal.signal(signal.SIGINT, signal.default_int_handler)
for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT):
    signal.signal(number, signal.SIG_DFL)
def kill(number):
    os.kill(os.getpid(), number)
def leave():
    pathlib.Path(tempfile.gettempdir(), "left").write_text("behind")
def show(what):
    print(what, flush=True)
def rest():
    leave()
    try:
        show("ready")
        for _ in range(600):  # a signal just before a sleep is heard after it
            time.sleep(0.1)
        show("survived")
    except KeyboardInterrupt:
        return 130
def child(folder):
    try:
        return eval(sys.argv[1])
    except (MemoryError, OSError) as error:
        show(behind(error))
        return 3
sys.exit(limited(child))
"""


@pytest.fixture(autouse=True)
def _no_limits_of_ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    for one in limits.LIMITS.values():
        monkeypatch.delenv(one.variable, raising=False)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    yield
    assert list(tmp_path.iterdir()) == []


def started(what: str, **options: object) -> subprocess.Popen[str]:
    argv = [sys.executable, "-c", PROGRAM, what]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": ROOT}
    process: subprocess.Popen[str] = subprocess.Popen(argv, **(pipes | options))  # type: ignore[call-overload]
    return process


def ended(what: str, **variables: str) -> tuple[int, str, str]:
    process = started(what, env={**os.environ, **variables})
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


@pytest.mark.parametrize("code", [0, 1, 5, 70, 130])
def test_an_exit_code_passes_through(code: int) -> None:
    assert ended(f"leave() or {code}") == (code, "", "")


@pytest.mark.parametrize(
    ("what", "variable", "name"),
    [
        ("[one for one in iter(int, 1)]", "R8_CPU_SECONDS=1", "cpu_seconds = 1"),
        ("bytearray(200 << 20)", "R8_DATA_BYTES=104857600", "data_bytes = 104857600"),
        ("leave()", "R8_WRITTEN_BYTES=5", "written_bytes = 5"),
        ("[open('/dev/null') for _ in range(20)]", "R8_OPEN_FILES=10", "open_files = 10"),
    ],
    ids=["cpu", "data", "written", "files"],
)
def test_a_budget_that_is_hit_is_one_line_with_its_name(
    what: str, variable: str, name: str
) -> None:
    variable, _, most = variable.partition("=")
    code, out, err = ended(what, **{variable: most})
    assert code == EXIT_INVALID
    said = out + err
    assert f"more than the budget {name} allows" in said
    assert f"{variable}={2 * int(most)}" in said
    assert said.count("\n") == 1


def test_within_its_budgets_the_same_passes() -> None:
    code, out, _ = ended("show(len(bytearray(50 << 20)))", R8_DATA_BYTES="104857600")
    assert (code, out) == (0, f"{50 * MIB}\n")


def test_the_child_has_every_limit_and_a_directory_of_its_own(tmp_path: Path) -> None:
    what = "show([tempfile.gettempdir(), os.environ['TMPDIR'], os.stat(tempfile.gettempdir())"
    what += ".st_mode & 0o777, folder, resource.getrlimit(resource.RLIMIT_CORE)[0]]"
    what += "+ [resource.getrlimit(kind)[0] for kind in "
    what += f"{[one.kind for one in limits.LIMITS.values()]}])"
    code, out, err = ended(what)
    assert (code, err) == (0, "")
    own, variable, mode, outside, core, *found = eval(out)  # noqa: S307 - what our program printed
    assert own == variable
    assert own.startswith(f"{tmp_path}/r8-")
    assert (mode, outside, core) == (0o700, str(tmp_path), 0)
    assert found == [one.most for one in limits.LIMITS.values()]


def test_a_smaller_limit_that_was_there_stays(tmp_path: Path) -> None:
    low = 100
    process = started(
        "show(resource.getrlimit(resource.RLIMIT_NOFILE))",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (50, low)),
    )
    assert process.communicate(timeout=60)[0] == f"({low}, {low})\n"


@pytest.mark.parametrize(
    ("number", "code", "says"),
    [
        (signal.SIGKILL, EXIT_KILLED, "r8: killed, "),
        (signal.SIGSEGV, EXIT_INTERNAL, "r8: ended by SIGSEGV, "),
        (signal.SIGABRT, EXIT_INTERNAL, "r8: ended by SIGABRT, "),
        (signal.SIGTERM, -signal.SIGTERM, ""),
    ],
)
def test_a_child_that_a_signal_ended_is_told_in_words(
    number: signal.Signals, code: int, says: str
) -> None:
    found, _, err = ended(f"leave() or kill({int(number)})")
    assert found == code
    assert err.startswith(says)
    assert err.count("\n") == bool(says)


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGINT, 130),
        (signal.SIGTERM, -signal.SIGTERM),
        (signal.SIGHUP, -signal.SIGHUP),
    ],
)
def test_what_the_parent_alone_is_sent_ends_the_child_first(
    number: signal.Signals, code: int
) -> None:
    process = started("rest()")
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (code, "")


def test_a_child_does_not_outlive_a_parent_that_is_killed(tmp_path: Path) -> None:
    with started("rest()") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.kill()
        assert process.stdout.read() == ""  # until nobody holds its other end
    for path in (*tmp_path.rglob("left"), *tmp_path.iterdir()):  # nobody is left to clear it
        path.unlink() if path.is_file() else path.rmdir()


def test_ctrl_c_of_a_terminal_reaches_the_child_once() -> None:
    """The terminal is the child's: it is asked there, and ended there."""
    what = "show(sys.stdin.isatty()) or show(input('? ').upper()) or rest()"
    terminal, theirs = pty.openpty()
    process = started(
        what,
        **dict.fromkeys(("stdin", "stdout", "stderr"), theirs),
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(theirs)
    assert b"True" in _until(terminal, b"? ")
    os.write(terminal, b"select\n")
    assert b"SELECT" in _until(terminal, b"ready")
    os.write(terminal, b"\x03")
    assert b"Traceback" not in _until(terminal, b"")
    assert process.wait(timeout=60) == 130
    os.close(terminal)


def _until(terminal: int, wanted: bytes) -> bytes:
    said = b""
    while not wanted or wanted not in said:
        try:
            data = os.read(terminal, 4096)
        except OSError:  # nobody is at the other side any more
            return said
        if not data:
            return said
        said += data
    return said


@pytest.mark.parametrize("text", ["0", "-1", "x", "1.5", "", "9" * 30, "\u0661"])
def test_a_limit_that_is_no_number_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("R8_CPU_SECONDS", text)
    with pytest.raises(UsageError, match="R8_CPU_SECONDS is no number above 0"):
        limits.chosen()


def test_limits_are_chosen_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert limits.chosen() == {one.name: one.most for one in limits.LIMITS.values()}
    monkeypatch.setenv("R8_CPU_SECONDS", "1")
    monkeypatch.setenv("R8_DATA_BYTES", limits.UNLIMITED)
    found = limits.chosen()
    assert (found["cpu_seconds"], found["data_bytes"]) == (1, None)


def test_a_wrong_limit_is_a_usage_error_of_one_line() -> None:
    code, out, err = ended("0", R8_OPEN_FILES="many")
    assert (code, out, err.count("\n")) == (EXIT_USAGE, "", 1)


def test_an_error_of_the_system_without_a_limit_is_nobodys_budget() -> None:
    assert limits.behind(FileNotFoundError(errno.ENOENT, "gone")) is None
    if resource.getrlimit(resource.RLIMIT_DATA)[0] == resource.RLIM_INFINITY:
        assert limits.behind(MemoryError()) is None


def test_every_verb_that_reads_is_limited_and_no_verb_of_the_lab(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(entry, "_verb", lambda: 0)
    monkeypatch.setattr(entry, "limited", lambda _: 1)
    verbs = {verb for _, _, names in PEOPLE for verb in names}
    for words, code in (
        *(([verb, "x"], int(verb not in LAB_VERBS)) for verb in verbs),
        (["--", "judge", "x"], 1),
        ([], 0),
        (["--help"], 0),
        (["--version"], 0),
    ):
        monkeypatch.setattr(sys, "argv", ["r8", *words])
        assert entry.main() == code, words


def test_nothing_heavy_is_loaded_before_the_fork() -> None:
    code = "import sys, r8.cli.entry; print({'duckdb', 'pyarrow', 'numpy'} & {*sys.modules})"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"
