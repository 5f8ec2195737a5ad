"""A worker that loads a model with the `safetensors` library; runs under the engine's Python.

    python load_safetensors.py --device cpu --answers FILE < orders

An order names a directory: every `*.safetensors` in it is read, tensor by tensor, into memory of
its own on the device (`cpu`: host memory, not a mapping of the file), and let go after the answer.
With `serve_until_ns` the loaded weights then answer small products until that instant, as an engine
would that is switched away from it: `serve_ns` is the time from the first answer it could give.
The library opens, maps and reads; nothing here does. The protocol is that of
`r8/lab/transfer/worker_pool.py`.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import torch
from safetensors import __version__ as safetensors_version
from safetensors import safe_open

if not __package__:
    # A script of the engine's Python: the checkout is not on its path.
    sys.path[0] = str(Path(__file__).resolve().parents[4])
from r8.lab.transfer.tools.worker import SERVE_PAUSE_S, options, outcome, serve

SERVE_WIDTH = 64


def _read_bytes() -> int:
    """What the kernel says this process had read from block devices."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["read_bytes"])


def _load(directory: Path, device: str) -> tuple[list[torch.Tensor], int]:
    """Every tensor of every shard, and the number of shards."""
    shards = sorted(directory.glob("*.safetensors"))
    if not shards:
        raise FileNotFoundError(f"no *.safetensors in {directory}")
    tensors = []
    for shard in shards:
        with safe_open(shard, framework="pt", device=device) as opened:
            for name in opened.keys():  # noqa: SIM118 - no dict: it has no iterator of its own
                tensor = opened.get_tensor(name)
                # On the CPU the library hands out a view of its mapping, unread until it is used.
                tensors.append(tensor.clone() if tensor.device.type == "cpu" else tensor)
    if tensors[0].device.type != "cpu":
        torch.accelerator.synchronize()
    return tensors, len(shards)


def _serve(tensors: list[torch.Tensor], until_ns: int) -> int:
    """Answers given until the instant: each a product of what was loaded, on its device."""
    answered = 0
    while time.monotonic_ns() < until_ns:
        weight = tensors[answered % len(tensors)].flatten()[: SERVE_WIDTH * SERVE_WIDTH]
        square = weight.float().reshape(-1, 1)
        float((square * square).sum().cpu())
        answered += 1
        time.sleep(SERVE_PAUSE_S)
    return answered


def _carry_out(order: dict[str, Any], device: str) -> dict[str, Any]:
    before = _read_bytes()
    begin_ns = time.monotonic_ns()
    tensors, files = _load(Path(order["path"]), device)
    end_ns = time.monotonic_ns()
    size = sum(one.numel() * one.element_size() for one in tensors)
    row: dict[str, Any] = {
        "begin_ns": begin_ns,
        "end_ns": end_ns,
        "bytes": size,
        "files": files,
        "own_read_bytes": _read_bytes() - before,
    }
    until_ns = order.get("serve_until_ns")
    if until_ns is not None:
        row["answered"] = _serve(tensors, int(until_ns))
        row["serve_end_ns"] = max(time.monotonic_ns(), end_ns)
        row["serve_until_ns"] = until_ns
    return row


def _let_go(device: str) -> None:
    """Give an accelerator back what was loaded on it: its allocator keeps what was freed.

    Loaders that follow one another on one device would fill it with models that are gone.
    """
    kind = torch.device(device).type
    if kind != "cpu":
        getattr(torch, kind).empty_cache()


def _answer(order: dict[str, Any], device: str) -> dict[str, Any]:
    row = outcome(lambda one: _carry_out(one, device), order)
    # Only here nothing holds what was loaded, also where loading failed halfway.
    try:
        _let_go(device)
    except Exception as error:  # noqa: BLE001 - a device that failed fails here too: the row counts
        row["let_go_error"] = f"{type(error).__name__}: {error}"
    return row


def main() -> int:
    """Serve orders on one device."""
    given = options(__doc__)
    # Loaders stand beside each other: one must not take the cores of all.
    torch.set_num_threads(1)
    torch.zeros(SERVE_WIDTH, device=given.device).sum().item()
    facts = {"torch": torch.__version__, "safetensors": safetensors_version, "device": given.device}
    return serve(given.answers, facts, lambda order: _answer(order, given.device))


if __name__ == "__main__":
    sys.exit(main())
