"""Runs under the engine's Python: stores chunks, waits for a line, reads them, tells what came.

PYTHONPATH=<lmcache tree>:<checkout> <engine python> device_fault_reader.py DIR CHUNK_BYTES CHUNKS
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
from pathlib import Path

from r8.lab.component.rig import DiskRig, evict_page_cache


def main() -> None:
    """Print the chunk files, then for each path which chunks came right, wrong or not at all."""
    directory, size, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    with DiskRig(directory, chunk_bytes=size, pool_chunks=2 * count, extra_config={}) as rig:
        before = rig.allocated()
        digests = []
        for number in range(count):
            payload = os.urandom(size)
            digests.append(hashlib.sha256(payload).digest())
            rig.store(number, payload)
        print(json.dumps([rig.path(number) for number in range(count)]), flush=True)
        for line in sys.stdin:
            for number in range(count):
                # The patch forgets a broken chunk together with its file.
                with contextlib.suppress(FileNotFoundError):
                    evict_page_cache(rig.path(number))
            answer: dict[str, object] = {}
            try:
                buffers = rig.read(list(range(count)), path=line.strip())
                buffers += [None] * (count - len(buffers))
                answer["chunks"] = [
                    "miss"
                    if buffer is None
                    else "right"
                    if hashlib.sha256(buffer.byte_array).digest() == digest
                    else "WRONG"
                    for buffer, digest in zip(buffers, digests, strict=True)
                ]
                rig.release(buffers)
            except Exception as error:  # noqa: BLE001 - an exception out of the backend is a finding
                answer["exception"] = repr(error)
            answer["left"] = rig.allocated() == before
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
