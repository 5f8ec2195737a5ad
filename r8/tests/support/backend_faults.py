"""Faults under LMCache's LocalDiskBackend: every one a clean miss, every healthy chunk right.

    PYTHONPATH=<lmcache> <engine python> r8/tests/support/backend_faults.py --dir D --seed 1 --json

`--interleavings N` mixes faults, read paths, O_DIRECT, pins and concurrent readers from a seed and
stops at the first violation; `--observe` runs each fault alone and says what the backend does with
it, which is how the unpatched versions are described. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

if not __package__:
    # As in component/bench.py: the checkout in, this folder out.
    sys.path[0] = str(Path(__file__).resolve().parents[3])

os.environ.setdefault("LMCACHE_TRACK_USAGE", "false")
from r8.lab.component.rig import DiskRig
from r8.tests.support.backend_trial import (
    CHANGES,
    CHUNK_BYTES,
    CHUNKS,
    FAULTS,
    SEGMENT_BYTES,
    ReadHooks,
    Trial,
)

# LMCache's own reader dead-locks under some faults; a read of 2 MB takes milliseconds.
HANG_S = 10.0


def interleave(rig: DiskRig, hooks: ReadHooks, index: int, seed: int) -> Trial:
    """One mixed trial; its problems are empty when all is well."""
    trial = Trial(rig, hooks, index * CHUNKS, seed)
    rig.disk.use_odirect = trial.dice.choice([False, True])
    paths = trial.dice.choice([["sync"], ["async"], ["sync", "async"]])
    # Nobody can tell a file changed before a second reader came from one that was stored so.
    faults = FAULTS if len(paths) == 1 else [one for one in FAULTS if one not in CHANGES]
    for number in trial.dice.sample(trial.numbers, trial.dice.randint(1, 3)):
        trial.plant(number, trial.dice.choice(faults))
    pinned = trial.dice.choice([False, True])
    try:
        if pinned:
            _look_up(trial)
        _read_by(trial, paths)
        if pinned:
            _end_request(trial)
        trial.expect_clean()
        hooks.rules.clear()
        trial.withdraw_changed()
        _read_by(trial, ["sync"])
        trial.expect_clean()
    except Exception as error:  # noqa: BLE001 - an exception out of the backend is the finding
        trial.problems.append(f"exception: {error!r}")
    if not trial.problems:
        trial.forget()
    return trial


def _look_up(trial: Trial) -> None:
    for number in trial.numbers:
        trial.rig.disk.contains(trial.rig.key(number), pin=True)
    # LMCache's own remove() leaves keys behind that trip a later touch_cache().
    if "evicted" in trial.faults.values():
        trial.rig.disk.touch_cache()


def _end_request(trial: Trial) -> None:
    trial.rig.disk.touch_cache()
    for number in trial.numbers:
        trial.rig.disk.unpin(trial.rig.key(number))


def _read_by(trial: Trial, paths: list[str]) -> None:
    """Read by one path, or by both at once; with two readers a fault may hit only one of them."""
    errors: list[BaseException] = []

    def one(path: str) -> None:
        try:
            padded = trial.read(path)
            if len(paths) == 1:
                trial.expect_misses(path, padded)
            trial.rig.release(padded)
        except BaseException as error:  # noqa: BLE001 - handed to the caller below
            errors.append(error)

    threads = [threading.Thread(target=one, args=(path,), daemon=True) for path in paths]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG_S)
        if thread.is_alive():
            raise TimeoutError(f"a read by {paths} hangs")
    for error in errors:
        raise error


def observe(rig: DiskRig, hooks: ReadHooks, index: int, fault: str, path: str) -> dict[str, Any]:
    """One fault in the middle one of the chunks; what comes of it, in a few words each."""
    trial = Trial(rig, hooks, index * CHUNKS, index)
    faulty = trial.numbers[CHUNKS // 2]
    trial.plant(faulty, fault)
    if fault in {"eio", "short", "evicted", "replaced", "rewritten"}:
        hooks.rules[rig.path(faulty)].offset = 0
    saw: dict[str, Any] = {"fault": fault, "path": path, "exception": None, "chunk": None}
    done = threading.Event()

    def one() -> None:
        try:
            padded = trial.read(path)
            buffer = padded[CHUNKS // 2]
            wrong = any("wrong bytes" in problem for problem in trial.problems)
            saw["chunk"] = "miss" if buffer is None else "WRONG BYTES" if wrong else "right bytes"
            rig.release(padded)
        except BaseException as error:  # noqa: BLE001 - that is what is being observed
            saw["exception"] = type(error).__name__
        done.set()

    threading.Thread(target=one, daemon=True).start()
    saw["hangs"] = not done.wait(HANG_S)
    hooks.rules.clear()
    count, _ = rig.allocated()
    saw["buffers_left"] = count - trial.buffers_before[0]
    saw["lock_held"] = not rig.disk.disk_lock.acquire(timeout=1)
    if not saw["lock_held"]:
        keys = list(rig.disk.dict)
        saw["pins_left"] = sum(rig.disk.dict[key].pin_count for key in keys)
        rig.disk.disk_lock.release()
    return saw


def main(arguments: list[str] | None = None) -> int:
    """Exit 0 when nothing is violated (or only observed), 1 otherwise."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--dir", type=Path, required=True)
    parser.add_argument("--interleavings", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--observe", action="store_true", help="each fault alone, judged by nobody")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    options.dir.mkdir(parents=True, exist_ok=True)
    result = _observe_all(options) if options.observe else _interleave_all(options)
    print(json.dumps(result) if options.json else json.dumps(result, indent=1), flush=True)
    # Readers that hang hold locks that an orderly exit would wait for.
    os._exit(1 if result.get("violations") else 0)


def _rig(directory: Path) -> DiskRig:
    extra = {"r8_segment_bytes": SEGMENT_BYTES}
    return DiskRig(directory, chunk_bytes=CHUNK_BYTES, pool_chunks=4 * CHUNKS, extra_config=extra)


def _interleave_all(options: argparse.Namespace) -> dict[str, Any]:
    planted: dict[str, int] = {}
    violations: list[str] = []
    rig = _rig(options.dir)
    with ReadHooks(sys.modules[type(rig.disk).__module__]) as hooks:
        start = rig.allocated()
        for index in range(options.interleavings):
            trial = interleave(rig, hooks, index, options.seed * 1_000_003 + index)
            violations += [f"interleaving {index}: {problem}" for problem in trial.problems]
            for fault in trial.faults.values():
                planted[fault] = planted.get(fault, 0) + 1
            if violations:
                # The backend may hold its lock or have lost buffers: the rest would say nothing.
                break
    return {
        "interleavings": index + 1,
        "seed": options.seed,
        "planted": planted,
        "violations": violations,
        "allocated_before": start,
        "allocated_after": rig.allocated(),
    }


def _observe_all(options: argparse.Namespace) -> dict[str, Any]:
    observed = []
    for index, (path, fault) in enumerate((p, f) for p in ("sync", "async") for f in FAULTS):
        # A backend of its own: one that hangs keeps its lock.
        rig = _rig(options.dir / f"{path}-{fault}")
        with ReadHooks(sys.modules[type(rig.disk).__module__]) as hooks:
            observed.append(observe(rig, hooks, index, fault, path))
    return {"observed": observed}


if __name__ == "__main__":
    sys.exit(main())
