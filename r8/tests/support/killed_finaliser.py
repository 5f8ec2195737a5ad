"""Finalise a run and be killed by SIGKILL, again and again: a program of its own for the tests.

    python -m r8.tests.support.killed_finaliser calls TEMPLATE.partial WORK_DIR
    python -m r8.tests.support.killed_finaliser instants TEMPLATE.partial WORK_DIR COUNT

`calls` kills a fresh finaliser before its first call that touches the disk, then another before the
second, and so on until one gets through. `instants` kills at random instants. After every kill:
no unsealed directory may pass for a run, and finalising again must give the whole run. Prints one
JSON object; any broken promise is a traceback and exit code 1. Every victim is a fork, so that it
dies as a process does, with nothing tidied up.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from r8.errors import EvidenceError
from r8.evidence.door import home
from r8.evidence.finalise import finalise
from r8.evidence.reader import find_runs, read_run

if TYPE_CHECKING:
    from collections.abc import Callable

# What the finaliser touches the disk with.
_CALLS: tuple[tuple[Any, str], ...] = (
    *((os, name) for name in ("fsync", "rename", "replace", "write", "mkdir", "unlink", "rmdir")),
    *((shutil, name) for name in ("copyfile", "copytree", "rmtree")),
    (Path, "write_text"),
    (pq.ParquetWriter, "write_table"),
    (pq.ParquetWriter, "close"),
)


def die_before_call(number: int) -> None:
    """Kill this process just before its `number`-th call that touches the disk, from 1."""
    left = [number]

    def guarded(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **kwargs)

        return call

    for owner, name in _CALLS:
        setattr(owner, name, guarded(getattr(owner, name)))


def fork(action: Callable[[], None]) -> int:
    """Start `action` in a fork; its pid. The fork exits 0, or 1 after a traceback."""
    home()  # one for all of them: a fork that ends in _exit would leave its own behind
    pid = os.fork()
    if pid:
        return pid
    try:
        action()
    except BaseException:  # noqa: BLE001 - a fork must not return into the parent's stack
        sys.excepthook(*sys.exc_info())
        os._exit(1)
    os._exit(0)


def check_nothing_half_written_is_read(root: Path) -> None:
    """Whatever is found as a run must be one; what is not sealed must be refused."""
    for path in find_runs(root):
        read_run(path)
    for path in root.iterdir():
        if path.suffix in {".partial", ".finalising", ".spent"}:
            try:
                read_run(path)
            except EvidenceError:
                continue
            raise RuntimeError(f"{path} passed for a run")


def check_recovers(root: Path, partial: Path, template: Path) -> None:
    """Finalise again: the run is whole and alone."""
    check_nothing_half_written_is_read(root)
    evidence = read_run(finalise(partial, complete=True))
    lines = (template / "probes.jsonl").read_text().count("\n")
    if not evidence.run.complete or evidence.table("probes").num_rows != lines:
        raise RuntimeError("the run lost rows")
    left = [path.name for path in root.iterdir()]
    if left != [evidence.path.name]:
        raise RuntimeError(f"left behind: {left}")


def one_round(template: Path, root: Path, victim: Callable[[Path], int]) -> bool:
    """Kill one finaliser, check, repeat it; True when the victim died."""
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    partial = root / template.name
    shutil.copytree(template, partial)
    _, status = os.waitpid(victim(partial), 0)
    _, again = os.waitpid(fork(lambda: check_recovers(root, partial, template)), 0)
    if again or (status and not os.WIFSIGNALED(status)):
        raise SystemExit(1)
    return os.WIFSIGNALED(status)


def kill_at_every_call(template: Path, root: Path) -> int:
    """Kill before call 1, 2, 3.. until a finaliser survives; the number of kills."""
    number = 1

    def victim(partial: Path) -> int:
        def action() -> None:
            die_before_call(number)
            finalise(partial, complete=True)

        return fork(action)

    while one_round(template, root, victim):
        number += 1
    return number - 1


def kill_at_instants(template: Path, root: Path, count: int) -> int:
    """Kill `count` finalisers at random instants; how many were still alive."""
    moments = random.Random(20)  # noqa: S311 - repeatable, not secret

    def victim(partial: Path) -> int:
        def action() -> None:
            finalise(partial, complete=True)

        pid = fork(action)
        time.sleep(moments.uniform(0, 0.06))
        os.kill(pid, signal.SIGKILL)
        return pid

    return sum(one_round(template, root, victim) for _ in range(count))


def main() -> None:
    """Run the mode the command line names."""
    mode, template, root = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    pa.set_cpu_count(1)  # a fork has no threads but its own
    if mode == "calls":
        kills = kill_at_every_call(template, root)
    else:
        kills = kill_at_instants(template, root, int(sys.argv[4]))
    print(json.dumps({"kills": kills}))


if __name__ == "__main__":
    main()
