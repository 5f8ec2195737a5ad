"""A rank that writes checkpoints with the `safetensors` library; runs under the engine's Python.

    python write_checkpoint.py --device cpu --answers FILE < orders

Orders, by their key `do`:

    prepare  make this rank's weights in memory: `rank`, `bytes`, `tensor_bytes`, `seed`
    save     write them below `directory`: `layout`, `shard_bytes`, `fsync`, `rendezvous`, `peers`
    read     load what this rank wrote below `directory`, and hash it

A checkpoint is written into `<directory>.partial`. Every rank writes its files there, flushes each
and its directory; rank 0 waits until all ranks did, flushes the directory, renames it and flushes
its parent. So a checkpoint has its name only when all of it is on the device. A rank that fails
says so to the others; one that is killed is missed by its process. The protocol is that of
`r8/lab/transfer/worker_pool.py`.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from safetensors import __version__ as safetensors_version
from safetensors import safe_open

if not __package__:
    # A script of the engine's Python: the checkout is not on its path.
    sys.path[0] = str(Path(__file__).resolve().parents[4])
from r8.lab.transfer.tools.worker import options, outcome, serve

FULL_EACH = "full-each"
PARTIAL = ".partial"
# Rank 0 looks so often whether the others are done: far below a hundredth of any save.
LOOK_S = 0.002
_HALF_BYTES = 2

Tensors = dict[str, Any]
Digest = Any  # what hashlib makes


class RankError(Exception):
    """Another rank did not finish its part."""


def make_tensors(order: dict[str, Any]) -> Tensors:
    """Random half-precision weights of this rank alone, `bytes` in all."""
    source = np.random.default_rng([int(order["seed"]), int(order["rank"])])
    left = int(order["bytes"])
    found: Tensors = {}
    while left > 0:
        size = min(left, int(order["tensor_bytes"]))
        halves = source.integers(0, 1 << 16, size=size // _HALF_BYTES, dtype=np.uint16)
        # Finite whatever was drawn: the exponent's top bit is taken out.
        found[f"layer.{len(found):05d}.weight"] = (halves & 0xBFFF).view(np.float16)
        left -= size
    return found


def add_to(total: Digest, tensors: Tensors) -> None:
    """Names and bytes of tensors, in the order of their names."""
    for name in sorted(tensors):
        total.update(name.encode())
        total.update(np.ascontiguousarray(tensors[name]).reshape(-1).view(np.uint8).data)


def digest_of(tensors: Tensors) -> str:
    """SHA-256 over names and bytes of all tensors, in the order of their names."""
    total = hashlib.sha256()
    add_to(total, tensors)
    return total.hexdigest()


def pieces(tensors: Tensors, shard_bytes: int) -> list[list[str]]:
    """Names of the tensors of each file: as many as fit, at least one."""
    found: list[list[str]] = []
    room = 0
    for name in sorted(tensors):
        size = tensors[name].nbytes
        if not found or size > room:
            found.append([])
            room = shard_bytes
        found[-1].append(name)
        room -= size
    return found


def part_of(directory: Path, layout: str, rank: int) -> tuple[Path, str]:
    """Where one rank's files lie, and how their names begin."""
    if layout == FULL_EACH:
        return directory / f"rank-{rank}", "model"
    return directory, f"rank-{rank}"


def sync_path(path: Path) -> None:
    """Bring a file or a directory to its device; OSError when it cannot be brought there."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def save(tensors: Tensors, order: dict[str, Any]) -> dict[str, Any]:
    """Write this rank's part, wait for the others where this is rank 0, and commit."""
    final, rank, flushed = Path(order["directory"]), int(order["rank"]), bool(order["fsync"])
    partial = final.with_name(final.name + PARTIAL)
    folder, head = part_of(partial, order["layout"], rank)
    folder.mkdir(parents=True, exist_ok=True)
    names = pieces(tensors, int(order["shard_bytes"]))
    paths = []
    for number, piece in enumerate(names, start=1):
        path = folder / f"{head}-{number:05d}-of-{len(names):05d}.safetensors"
        # File by file: fetching from the accelerator is a part of saving, and memory is finite.
        safetensors.numpy.save_file(_from_device({name: tensors[name] for name in piece}), path)
        if flushed:
            sync_path(path)
        paths.append(path)
    if flushed:
        sync_path(folder)
    size = sum(path.stat().st_size for path in paths)
    payload = sum(one.nbytes for one in tensors.values())
    synced = {"synced_files": len(paths) if flushed else 0, "synced_directories": int(flushed)}
    _tell(order, "done")
    if rank == 0:
        _wait_for_all(order)
        if flushed:
            sync_path(partial)
        partial.rename(final)
        if flushed:
            sync_path(final.parent)
            synced["synced_directories"] += 2
    told = {"bytes": payload, "file_bytes": size, "files": len(paths)}
    return {**told, "committed": rank == 0, **synced}


def _tell(order: dict[str, Any], word: str) -> None:
    rendezvous = Path(order["rendezvous"])
    (rendezvous / f"{order['order']}-{order['rank']}-{word}").touch()


def _wait_for_all(order: dict[str, Any]) -> None:
    rendezvous, waiting = Path(order["rendezvous"]), dict(order["peers"])
    while waiting:
        for rank, pid in list(waiting.items()):
            alive = Path(f"/proc/{pid}").exists()  # before its word: it may end right after it
            if (rendezvous / f"{order['order']}-{rank}-done").exists():
                del waiting[rank]
            elif (rendezvous / f"{order['order']}-{rank}-failed").exists():
                raise RankError(f"rank {rank} failed: the checkpoint is not committed")
            elif not alive or _is_zombie(pid):
                raise RankError(f"rank {rank} (pid {pid}) is gone: the checkpoint is not committed")
        time.sleep(LOOK_S)


def _is_zombie(pid: int) -> bool:
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return True
    return words[0] == "Z"


def read(order: dict[str, Any]) -> dict[str, Any]:
    """Load every tensor this rank wrote, from its files, and hash them."""
    folder, head = part_of(Path(order["directory"]), order["layout"], int(order["rank"]))
    paths = sorted(folder.glob(f"{head}-*.safetensors"))
    if not paths:
        raise FileNotFoundError(f"no {head}-*.safetensors in {folder}")
    total, payload = hashlib.sha256(), 0
    # Tensors were dealt to files in the order of their names: hashed one by one, never all held.
    for path in paths:
        with safe_open(path, framework="numpy") as opened:
            for name in sorted(opened.keys()):
                tensor = opened.get_tensor(name)
                add_to(total, {name: tensor})
                payload += tensor.nbytes
    size = sum(path.stat().st_size for path in paths)
    told = {"bytes": payload, "file_bytes": size, "files": len(paths)}
    return {**told, "sha256": total.hexdigest()}


class Rank:
    """This process: its weights, in host memory or on an accelerator."""

    def __init__(self, device: str) -> None:
        """Nothing is prepared yet; `device` is a torch device, `cpu` is host memory."""
        self._device = device
        self._tensors: Tensors = {}

    def answer(self, order: dict[str, Any]) -> dict[str, Any]:
        """One order; the others are told when saving failed."""
        row = outcome(self._carry_out, order)
        if row["outcome"] != "ok" and order["do"] == "save":
            _tell(order, "failed")
        return {**row, "rank": order["rank"]}

    def _carry_out(self, order: dict[str, Any]) -> dict[str, Any]:
        begin_ns = time.monotonic_ns()
        row = self._do(order)
        return {"begin_ns": begin_ns, "end_ns": time.monotonic_ns(), **row}

    def _do(self, order: dict[str, Any]) -> dict[str, Any]:
        if order["do"] == "prepare":
            made = make_tensors(order)
            size, digest = sum(one.nbytes for one in made.values()), digest_of(made)
            self._tensors = _to_device(made, self._device)
            return {"bytes": size, "files": 0, "sha256": digest}
        if order["do"] == "read":
            return read(order)
        chosen = {name: self._tensors[name] for name in sorted(self._tensors)[: order["tensors"]]}
        row = save(chosen, order)
        end_ns = time.monotonic_ns()
        if order["tensors"] is not None:
            row["sha256"] = digest_of(_from_device(chosen))
        return {"end_ns": end_ns, **row}


def _to_device(tensors: Tensors, device: str) -> Tensors:
    if device == "cpu":
        return tensors
    # Only where there is an accelerator: importing it takes seconds of every start.
    import torch  # noqa: PLC0415

    return {name: torch.from_numpy(one).to(device) for name, one in tensors.items()}


def _from_device(tensors: Tensors) -> Tensors:
    return {
        name: one if isinstance(one, np.ndarray) else one.cpu().numpy()
        for name, one in tensors.items()
    }


def main() -> int:
    """Serve orders for one rank."""
    given = options(__doc__)
    facts = {"safetensors": safetensors_version, "numpy": np.__version__, "device": given.device}
    return serve(given.answers, facts, Rank(given.device).answer)


if __name__ == "__main__":
    sys.exit(main())
