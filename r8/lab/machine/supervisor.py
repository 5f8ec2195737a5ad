"""Everything the lab starts is stopped: also after Ctrl-C, a failed assertion or a killed parent.

A `Supervisor` starts a small process of its own (`python -m r8.lab.machine.supervisor LOG`) that
does nothing but wait for the end of a pipe to its parent. However the parent ends, the pipe ends
too, and the process undoes what the log still holds, the last first. It ignores Ctrl-C. Should it
be killed together with its parent, `leftovers` lists what stayed and `clean` removes it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Self

from r8.crash import guarded
from r8.errors import SiteError
from r8.lab.machine.process_tree import MARK_PREFIX, Root, end_tree, look_up
from r8.lab.machine.undo_log import PATTERN, Undo, UndoLog, boot_id, settle, undo_one

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DEFAULT_GRACE_S = 10.0
_WAIT_STEP_S = 0.03
_READY = b"ready\n"
_CHECKOUT = Path(__file__).resolve().parents[3]


class Process(subprocess.Popen[bytes]):
    """A started process: `pid` is also its group and session."""

    name: str
    token: int
    root: Root


class Supervisor:
    """Context manager: what is started inside it is gone after it, whatever happens."""

    def __init__(self, state_dir: Path) -> None:
        """`state_dir` holds the log; it must outlive the processes and mounts it names."""
        self.state_dir = state_dir
        self._started: list[Process] = []
        self._next_token = 0
        self._log: UndoLog | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.state_dir.mkdir(parents=True, exist_ok=True)
        path = self.state_dir / f"supervisor-{uuid.uuid4().hex[:12]}.jsonl"
        self._log = UndoLog(path)
        self._log.append({"op": "open", "parent_pid": os.getpid(), "boot": boot_id()})
        self._process = _start_supervisor(path)
        return self

    def __exit__(self, exc_type: object, *_exc: object) -> None:
        left = self.close()
        if left and exc_type is None:
            raise SiteError(
                f"not undone: {'; '.join(map(str, left))}",
                where=str(self.state_dir),
                next_step="end what still uses it, then start again: the next start cleans up",
            )

    def spawn(
        self,
        name: str,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        log_path: Path | None = None,
        cwd: Path | None = None,
        stdin: int | IO[bytes] | None = subprocess.DEVNULL,
        grace_s: float = DEFAULT_GRACE_S,
    ) -> Process:
        """Start `argv` in a session of its own, noted for being ended with all its offspring.

        Standard output and error are appended to `log_path`, or inherited. `env` is the whole
        environment, default this process's own.

        Raises:
            SiteError: the program is not there.
        """
        mark = uuid.uuid4().hex[:12]
        full_env = {**(os.environ if env is None else env), f"{MARK_PREFIX}{mark}": "1"}
        if shutil.which(argv[0], path=full_env.get("PATH")) is None:
            raise SiteError(
                f"{name}: program {argv[0]} not found",
                where="PATH",
                next_step="install it or correct the site's command",
            )
        # Noted before the start: a parent killed in between leaves a mark the supervisor can find.
        token = self._note(Undo(token=self._token(), name=name, root=Root(mark=mark)))
        with contextlib.ExitStack() as stack:
            output = None if log_path is None else stack.enter_context(log_path.open("ab"))
            process = Process(
                list(argv),
                env=full_env,
                cwd=cwd,
                stdin=stdin,
                stdout=output,
                stderr=None if output is None else subprocess.STDOUT,
                start_new_session=True,
            )
        found = look_up(process.pid)
        root = Root(mark=mark, pid=process.pid, start_ticks=found.start_ticks if found else None)
        self._note(Undo(token=token, name=name, root=root, grace_s=grace_s))
        process.name, process.token, process.root = name, token, root
        self._started.append(process)
        return process

    def stop(self, started: Process, grace_s: float = DEFAULT_GRACE_S) -> int | None:
        """End a process and its offspring now; exit code. SiteError if it survives SIGKILL."""
        left = end_tree(started.root, grace_s)
        if left:
            raise SiteError(
                f"{started.name}: processes {[process.pid for process in left]} survive SIGKILL",
                where="the process table",
                next_step="see with ps which device they wait for (state D)",
            )
        with contextlib.suppress(subprocess.TimeoutExpired):
            started.wait(timeout=1.0)
        self.forget(started.token)
        return started.poll()

    def on_exit(self, argv: Sequence[str], name: str = "undo", grace_s: float = 0.0) -> int:
        """Note a command that undoes something; it must also work when that never happened.

        Note it *before* the act.
        """
        undo = Undo(token=self._token(), name=name, argv=tuple(argv), grace_s=grace_s)
        return self._note(replace(undo, cwd=os.getcwd()))  # noqa: PTH109

    def forget(self, token: int) -> None:
        """An undo that is no longer needed."""
        self._open_log().forget(token)

    def undo(self, token: int) -> None:
        """Undo one noted thing now.

        Raises:
            SiteError: it did not work; it stays in the log.
        """
        self._undo_these({token})

    def undo_from(self, token: int) -> None:
        """Undo a noted thing and all that was noted after it, the last first.

        For what others may stand on: a file system is unmounted after the engine that has files
        open on it is ended.

        Raises:
            SiteError: something did not work; it stays in the log.
        """
        self._undo_these(set(range(token, self._next_token + 1)))

    def _undo_these(self, tokens: set[int]) -> None:
        for entry in reversed(self._open_log().open_entries()):
            if entry.token not in tokens:
                continue
            if problem := undo_one(entry):
                raise SiteError(
                    f"{entry} failed: {problem}",
                    where=str(self.state_dir),
                    next_step="end what still uses it and run that command",
                )
            self.forget(entry.token)
        self._reap()

    def close(self) -> list[Undo]:
        """Let the supervisor undo everything and wait for it; return what could not be undone."""
        if self._log is None or self._process is None:
            return []
        if self._process.stdin is not None:
            self._process.stdin.close()
        while self._process.poll() is None:
            self._reap()
            time.sleep(_WAIT_STEP_S)
        log, self._log = self._log, None
        with log:
            left = settle(log) if log.path.exists() else []
        self._reap()
        return left

    def _reap(self) -> None:
        for started in self._started:
            started.poll()

    def _note(self, undo: Undo) -> int:
        self._open_log().add(undo)
        return undo.token

    def _token(self) -> int:
        self._next_token += 1
        return self._next_token

    def _open_log(self) -> UndoLog:
        if self._log is None:
            raise RuntimeError("a Supervisor is used inside its `with` block")
        return self._log


def leftovers(state_dir: Path) -> list[Undo]:
    """What supervisors that were killed together with their parents left behind."""
    found: list[Undo] = []
    for path in sorted(state_dir.glob(PATTERN)):
        with contextlib.suppress(BlockingIOError), UndoLog(path) as log:
            if log.claim():
                found += log.open_entries()
    return found


def clean(state_dir: Path) -> list[Undo]:
    """Undo all leftovers, the last first; return what could not be undone."""
    left: list[Undo] = []
    for path in sorted(state_dir.glob(PATTERN), reverse=True):
        with contextlib.suppress(BlockingIOError), UndoLog(path) as log:
            if log.claim():
                left += settle(log)
    return left


def _start_supervisor(path: Path) -> subprocess.Popen[bytes]:
    """Start the process and wait until it holds the log and no longer hears Ctrl-C."""
    process = subprocess.Popen(
        [sys.executable, "-m", "r8.lab.machine.supervisor", str(path.resolve())],
        cwd=_CHECKOUT,
        # Without the marks of an outer supervisor, which would end this one too early.
        env={k: v for k, v in os.environ.items() if not k.startswith(MARK_PREFIX)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    if process.stdout is None or process.stdout.readline() != _READY:
        process.kill()
        raise SiteError(
            "the supervisor process did not start",
            where=str(path),
            next_step=f"try: {sys.executable} -m r8.lab.machine.supervisor {path}",
        )
    process.stdout.close()
    return process


def main(argv: Sequence[str] | None = None) -> int:
    """Wait for the parent's end, then undo what the log holds. 1 when something is left."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    (path,) = sys.argv[1:] if argv is None else argv
    with UndoLog(Path(path)) as log:
        os.write(sys.stdout.fileno(), _READY)
        while os.read(sys.stdin.fileno(), 1):
            pass
        return 1 if settle(log) else 0


if __name__ == "__main__":
    sys.exit(guarded(main, "supervisor"))
