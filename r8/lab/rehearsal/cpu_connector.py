"""What LMCache lacks on a CPU: the copy between vLLM's paged KV cache and LMCache's buffers.

Loaded inside the engine through vLLM's own `kv_connector_module_path`, with nothing of vLLM or
LMCache edited; runs with LMCache 0.5.0, 0.5.1 and 0.5.6. vLLM's CPU attention lays keys and values
out inside a block as its instruction set likes, so whole blocks are moved as opaque bytes, and a
chunk that is not whole blocks is refused.

With R8_KV_CHECK=/path/file.jsonl every buffer stored or handed to the engine is hashed: one line
{op, sha256, bytes, start, end, req_id, mono_ns} a chunk. Without it nothing is added to a copy.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from typing import TYPE_CHECKING, Any

import lmcache.v1.gpu_connector as lmcache_connectors
import torch
from lmcache.utils import EngineType
from lmcache.v1.gpu_connector.gpu_connectors import GPUConnectorInterface
from vllm.distributed.kv_transfer.kv_connector.v1 import lmcache_connector as vllm_side

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

CHECK_VARIABLE = "R8_KV_CHECK"


class PagedCpuConnector(GPUConnectorInterface):  # type: ignore[misc]  # LMCache is not typed
    """Copies chunks of tokens between vLLM's blocks and LMCache's memory objects.

    A layer's cache is [blocks, heads, block tokens, 2 x head size], or in older vLLM
    [2, blocks, heads, block tokens, head size]; `_block_axis` is where the blocks are counted.
    """

    def __init__(self, metadata: Any) -> None:
        """`metadata.kv_shape` is (layers, 2, chunk tokens, KV heads, head size)."""
        layers, keys_and_values, _, heads, head_size = metadata.kv_shape
        self._layers = layers
        self._token_shape = (keys_and_values, layers, heads * head_size)
        self._caches: list[torch.Tensor] = []
        self._block_axis = 0
        self._block_tokens = 0
        check_path = os.environ.get(CHECK_VARIABLE)
        self._check: _Check | None = _Check(check_path) if check_path else None

    def get_shape(self, num_tokens: int) -> torch.Size:
        """Shape of the buffer LMCache is to reserve for `num_tokens` tokens."""
        keys_and_values, layers, width = self._token_shape
        return torch.Size([keys_and_values, layers, num_tokens, width])

    def from_gpu(self, memory_obj: Any, start: int, end: int, **facts: Any) -> None:
        """Copy tokens [start, end) out of vLLM's blocks into the buffer."""
        blocks, buffers = self._prepare(memory_obj, start, end, facts)
        for cache, buffer in zip(self._caches, buffers, strict=True):
            torch.index_select(cache, self._block_axis, blocks, out=buffer)
        if self._check:
            self._check.note("store", memory_obj, start, end, facts)

    def to_gpu(self, memory_obj: Any, start: int, end: int, **facts: Any) -> None:
        """Copy the buffer into vLLM's blocks, those already computed there excepted."""
        if self._check:
            self._check.note("load", memory_obj, start, end, facts)
        blocks, buffers = self._prepare(memory_obj, start, end, facts)
        computed = int(facts.get("vllm_cached_tokens", 0))
        skipped = min(end - start, max(0, computed - start)) // self._block_tokens
        wanted = blocks[skipped:]
        for cache, buffer in zip(self._caches, buffers, strict=True):
            part = buffer.narrow(self._block_axis, skipped, len(wanted))
            cache.index_copy_(self._block_axis, wanted, part)

    def batched_from_gpu(
        self, memory_objs: Sequence[Any], starts: Sequence[int], ends: Sequence[int], **facts: Any
    ) -> None:
        """`from_gpu` for each chunk."""
        _for_each(self.from_gpu, memory_objs, starts, ends, facts)

    def batched_to_gpu(
        self, memory_objs: Sequence[Any], starts: Sequence[int], ends: Sequence[int], **facts: Any
    ) -> None:
        """`to_gpu` for each chunk."""
        _for_each(self.to_gpu, memory_objs, starts, ends, facts)

    def initialize_kvcaches_ptr(self, **facts: Any) -> None:
        """Take vLLM's layer caches as they are: their layout is opaque here."""
        if "kvcaches" in facts:
            self._caches = list(facts["kvcaches"])

    def _prepare(
        self, memory_obj: Any, start: int, end: int, facts: dict[str, Any]
    ) -> tuple[torch.Tensor, list[torch.Tensor]]:
        """Block numbers of the chunk, and the buffer cut into one view a layer."""
        self.initialize_kvcaches_ptr(**facts)
        if len(self._caches) != self._layers:
            raise ValueError(f"{len(self._caches)} layer caches, the model has {self._layers}")
        first = self._caches[0]
        self._block_axis = first.dim() - 4
        self._block_tokens = first.shape[-2]
        slots = facts["slot_mapping"][start:end]
        blocks = _whole_blocks(slots, end - start, self._block_tokens)
        shape = list(first.shape)
        shape[self._block_axis] = len(blocks)
        return blocks, list(memory_obj.tensor.view(-1).view(self._layers, *shape).unbind(0))


class _Check:
    """Appends one line a chunk to the check file."""

    def __init__(self, path: str) -> None:
        self._handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def note(self, op: str, memory_obj: Any, start: int, end: int, facts: dict[str, Any]) -> None:
        raw = memory_obj.tensor.view(-1).view(torch.uint8).numpy()
        line = {
            "op": op,
            "sha256": hashlib.sha256(raw).hexdigest(),
            "bytes": raw.nbytes,
            "start": start,
            "end": end,
            "req_id": facts.get("req_id"),
            "mono_ns": time.monotonic_ns(),
        }
        os.write(self._handle, (json.dumps(line) + "\n").encode())


def _whole_blocks(slots: torch.Tensor, tokens: int, block_tokens: int) -> torch.Tensor:
    """Numbers of the blocks these slots fill.

    Raises:
        ValueError: they begin or end inside a block.
    """
    heads = slots[::block_tokens]
    if len(slots) != tokens or tokens % block_tokens or bool((heads % block_tokens).any()):
        raise ValueError(f"a chunk of {tokens} tokens is not whole blocks of {block_tokens}")
    return (heads // block_tokens).long()


def _for_each(
    copy: Callable[..., None],
    memory_objs: Sequence[Any],
    starts: Sequence[int],
    ends: Sequence[int],
    facts: dict[str, Any],
) -> None:
    for memory_obj, start, end in zip(memory_objs, starts, ends, strict=True):
        copy(memory_obj, start, end, **facts)


_create_elsewhere = lmcache_connectors.CreateGPUConnector


def _create(config: Any, metadata: Any, engine: Any, *args: Any, **kwargs: Any) -> Any:
    if engine == EngineType.VLLM and lmcache_connectors.torch_device_type == "cpu":
        return PagedCpuConnector(metadata)
    return _create_elsewhere(config, metadata, engine, *args, **kwargs)


lmcache_connectors.CreateGPUConnector = _create


class LMCacheConnectorV1(vllm_side.LMCacheConnectorV1):  # type: ignore[misc]  # vLLM skipped
    """vLLM's own connector under its own name; importing this module is what matters."""
