"""A child that reads, and a parent that has read nothing: what the child leaves, the parent clears.

The child is forked before any library is loaded. It has limits and a directory for temporary files
of its own, and stays in the terminal's process group: what is typed reaches it as before.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from r8.cli.limits import beyond, chosen, enforce
from r8.errors import EXIT_INTERNAL, EXIT_KILLED, R8Error, SiteError

if TYPE_CHECKING:
    from collections.abc import Callable

# Sent to the parent alone they are meant for the child, after whose end there is work to do.
_PASSED_ON = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT}
_PR_SET_PDEATHSIG = 1


def limited(main: Callable[[str], int]) -> int:
    """The exit code of `main`, run in a child; in the child it is returned as well.

    `main` is given a directory for what shall outlast it: the child's own is cleared. A child that
    a signal of `_PASSED_ON` ended takes the parent with it.
    """
    try:
        limits = chosen()
        folder = _folder()
    except R8Error as error:
        return _complain(error)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # an ignored one loses the child's exit code
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD, *_PASSED_ON})
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        _die_with(parent)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.environ["TMPDIR"], tempfile.tempdir = folder, folder
        # Arrow's own pools reserve a gigabyte, which counts as written.
        os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
        enforce(limits)
        return main(str(Path(folder).parent))
    try:
        code = _waited(child)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if code >= 0:
        return code
    number = signal.Signals(-code)
    if number in _PASSED_ON:
        signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.kill(parent, number)
    if number == signal.SIGXCPU:
        return _complain(beyond("cpu_seconds", limits["cpu_seconds"]))
    return _ended_by(number, limits["data_bytes"])


def _folder() -> str:
    try:
        return tempfile.mkdtemp(prefix="r8-")
    except OSError as error:
        raise SiteError(
            f"no place for temporary files: {error.strerror or error}",
            where=os.environ.get("TMPDIR", "/tmp"),  # noqa: S108 - a name to show
            next_step="set TMPDIR to a directory that can be written",
        ) from error


def _die_with(parent: int) -> None:
    """A child whose parent is killed outright ends as well."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(EXIT_KILLED)


def _waited(child: int) -> int:
    """Wait for the child's end; returns its exit code, or the signal that ended it below 0."""
    while True:
        found = signal.sigwaitinfo({signal.SIGCHLD, *_PASSED_ON})
        if found.si_signo == signal.SIGCHLD:
            pid, status = os.waitpid(child, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
        elif found.si_code <= 0:  # of a process; what the terminal sends, the child has already
            os.kill(child, found.si_signo)


def _complain(error: R8Error) -> int:
    sys.stderr.write(f"r8: {error}\n")
    return error.exit_code


def _ended_by(number: signal.Signals, data_bytes: int | None) -> int:
    if number == signal.SIGKILL:
        why = "by somebody, or by the system for want of memory -> dmesg says which"
        sys.stderr.write(f"r8: killed, {why}\n")
        return EXIT_KILLED
    why = f"a fault of a library or of R8, or memory beyond data_bytes = {data_bytes}"
    sys.stderr.write(f"r8: ended by {number.name}, {why} -> SECURITY.md says how to report it\n")
    return EXIT_INTERNAL
