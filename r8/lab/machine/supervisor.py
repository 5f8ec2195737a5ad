"""Everything the lab starts is stopped: also after Ctrl-C, a failed assertion or a killed parent.

A `Supervisor` starts a small process of its own (`python -m r8.lab.machine.supervisor LEDGER`)
that does nothing
but wait for the end of a pipe to its parent. However the parent ends, the pipe ends too, and the
supervisor undoes what the ledger still holds, the last first. It ignores Ctrl-C. Should it be
killed
together with its parent, `leftovers` lists what stayed and `clean` removes it.
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
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Self

from r8.errors import SiteError
from r8.lab.machine import undo_log as ledgers
from r8.lab.machine.process_tree import MARK_PREFIX, Root, end_tree, look_up, members
from r8.lab.machine.undo_log import Ledger, Undo, settle, undo_one

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DEFAULT_GRACE_S = 10.0
_WAIT_STEP_S = 0.03
_READY = b"ready\n"
_CHECKOUT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A started process. `returncode`, `poll` and `wait` are those of `subprocess.Popen`."""

    name: str
    token: int
    root: Root
    popen: subprocess.Popen[bytes]

    @property
    def pid(self) -> int:
        """Process id of the root, also its group and session."""
        return self.popen.pid

    @property
    def returncode(self) -> int | None:
        """Exit code as last polled, None while it runs."""
        return self.popen.returncode

    @property
    def stdin(self) -> IO[bytes] | None:
        """The write end of its standard input when that is a pipe."""
        return self.popen.stdin

    def poll(self) -> int | None:
        """Exit code, None while it runs."""
        return self.popen.poll()

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; subprocess.TimeoutExpired after `timeout` seconds."""
        return self.popen.wait(timeout)


class Supervisor:
    """Context manager: what is started inside it is gone after it, whatever happens."""

    def __init__(self, state_dir: Path) -> None:
        """`state_dir` holds the ledger; it must outlive the processes and mounts it names."""
        self.state_dir = state_dir
        self._handles: list[Process] = []
        self._next_token = 0
        self._ledger: Ledger | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.state_dir.mkdir(parents=True, exist_ok=True)
        path = self.state_dir / f"supervisor-{uuid.uuid4().hex[:12]}.jsonl"
        self._ledger = Ledger(path)
        self._ledger.append({"op": "open", "parent_pid": os.getpid(), "boot": ledgers.boot_id()})
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
            popen = subprocess.Popen(
                list(argv),
                env=full_env,
                cwd=cwd,
                stdin=stdin,
                stdout=output,
                stderr=None if output is None else subprocess.STDOUT,
                start_new_session=True,
            )
        found = look_up(popen.pid)
        root = Root(mark=mark, pid=popen.pid, start_ticks=found.start_ticks if found else None)
        self._note(Undo(token=token, name=name, root=root, grace_s=grace_s))
        handle = Process(name=name, token=token, root=root, popen=popen)
        self._handles.append(handle)
        return handle

    def stop(
        self,
        handle: Process,
        grace_s: float = DEFAULT_GRACE_S,
        *,
        first_signal: int = signal.SIGTERM,
    ) -> int | None:
        """End a process and its offspring now; exit code. SiteError if it survives SIGKILL."""
        left = end_tree(handle.root, grace_s, first_signal)
        if left:
            raise SiteError(
                f"{handle.name}: processes {[process.pid for process in left]} survive SIGKILL",
                where="the process table",
                next_step="look at the device they wait for (state D in ps)",
            )
        with contextlib.suppress(subprocess.TimeoutExpired):
            handle.popen.wait(timeout=1.0)
        self.forget(handle.token)
        return handle.popen.poll()

    def members(self, handle: Process) -> list[int]:
        """Process ids of everything running that came out of `handle`."""
        return [process.pid for process in members(handle.root)]

    def on_exit(self, argv: Sequence[str], name: str = "undo", grace_s: float = 0.0) -> int:
        """Note a command that undoes something. Note it *before* the act: it must bear both."""
        undo = Undo(token=self._token(), name=name, argv=tuple(argv), grace_s=grace_s)
        return self._note(replace(undo, cwd=os.getcwd()))  # noqa: PTH109

    def forget(self, token: int) -> None:
        """An undo that is no longer needed."""
        self._open_ledger().forget(token)

    def undo(self, token: int) -> None:
        """Undo one noted thing now.

        Raises:
            SiteError: it did not work; it stays in the ledger.
        """
        self._undo_these({token})

    def undo_from(self, token: int) -> None:
        """Undo a noted thing and all that was noted after it, the last first.

        For what others may stand on: a file system is unmounted after the engine that has files
        open on it is ended.

        Raises:
            SiteError: something did not work; it stays in the ledger.
        """
        self._undo_these(set(range(token, self._next_token + 1)))

    def _undo_these(self, tokens: set[int]) -> None:
        for entry in reversed(self._open_ledger().open_entries()):
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
        if self._ledger is None or self._process is None:
            return []
        if self._process.stdin is not None:
            self._process.stdin.close()
        while self._process.poll() is None:
            self._reap()
            time.sleep(_WAIT_STEP_S)
        ledger, self._ledger = self._ledger, None
        left = settle(ledger) if ledger.path.exists() else []
        self._reap()
        ledger.close()
        return left

    def _reap(self) -> None:
        for handle in self._handles:
            handle.popen.poll()

    def _note(self, undo: Undo) -> int:
        self._open_ledger().add(undo)
        return undo.token

    def _token(self) -> int:
        self._next_token += 1
        return self._next_token

    def _open_ledger(self) -> Ledger:
        if self._ledger is None:
            raise RuntimeError("a Supervisor is used inside its `with` block")
        return self._ledger


def leftovers(state_dir: Path) -> list[Undo]:
    """What supervisors that were killed together with their parents left behind."""
    found: list[Undo] = []
    for path in sorted(state_dir.glob(ledgers.PATTERN)):
        with contextlib.suppress(BlockingIOError), Ledger(path) as ledger:
            if ledger.claim():
                found += ledger.open_entries()
    return found


def clean(state_dir: Path) -> list[Undo]:
    """Undo all leftovers, the last first; return what could not be undone."""
    left: list[Undo] = []
    for path in sorted(state_dir.glob(ledgers.PATTERN), reverse=True):
        with contextlib.suppress(BlockingIOError), Ledger(path) as ledger:
            if ledger.claim():
                left += settle(ledger)
    return left


def _start_supervisor(path: Path) -> subprocess.Popen[bytes]:
    """Start the supervisor and wait until it holds the ledger and no longer hears Ctrl-C."""
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
    """Wait for the parent's end, then undo what the ledger holds. 1 when something is left."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    (path,) = sys.argv[1:] if argv is None else argv
    with Ledger(Path(path)) as ledger:
        os.write(sys.stdout.fileno(), _READY)
        while os.read(sys.stdin.fileno(), 1):
            pass
        return 1 if settle(ledger) else 0


if __name__ == "__main__":
    sys.exit(main())
