"""The raw streams of a run, kept as evidence: gzip members of JSON lines, one member a flush.

Version history of the format
    1   first form: a line {"format", "version", "clock"}, then one line a capture
    2   a capture names its `path`; without it the path is plain

Bytes stand as Latin-1 text, so `zcat` shows what the server sent. A file is never overwritten; a
torn last member (kill -9, full disk) is dropped when read, every earlier one stands.
"""

from __future__ import annotations

import gzip
import json
import zlib
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from .capture import Capture, Read
from .clock import ClockMap, OffsetSample
from .errors import ClientError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

FORMAT = "load_client.raw"
VERSION = 2
READABLE = (1, 2)
# Level 1 costs a third of the default's time; event streams still shrink to a twentieth.
_GZIP_LEVEL = 1


def encode_batch(captures: Sequence[Capture], clock: ClockMap) -> bytes:
    """One gzip member that holds a batch and the clock map it is to be read with."""
    head = {"format": FORMAT, "version": VERSION, "clock": asdict(clock)}
    lines = [json.dumps(head), *(json.dumps(_plain(capture)) for capture in captures)]
    return gzip.compress(("\n".join(lines) + "\n").encode("ascii"), _GZIP_LEVEL, mtime=0)


def decode_batches(path: Path) -> Iterator[tuple[ClockMap, list[Capture]]]:
    """Every whole batch of a raw file, in order.

    Raises ClientError for a file that is not one of ours or of a version not known here.
    """
    for number, member in enumerate(_members(path.read_bytes())):
        head, *rest = (json.loads(line) for line in member.splitlines())
        if head.get("format") != FORMAT or head.get("version") not in READABLE:
            raise ClientError(
                f"member {number} is not {FORMAT} version {' or '.join(map(str, READABLE))}",
                where=str(path),
                next_step="give a raw/client-*.jsonl.gz that this version of the client wrote",
            )
        yield _clock(head["clock"]), [_capture(line) for line in rest]


def _members(data: bytes) -> Iterator[bytes]:
    while data:
        unpacker = zlib.decompressobj(wbits=31)  # 31: one gzip member, checksum verified
        try:
            member = unpacker.decompress(data)
        except zlib.error:
            return
        if not unpacker.eof:
            return
        yield member
        data = unpacker.unused_data


def _plain(capture: Capture) -> dict[str, Any]:
    plain: dict[str, Any] = {
        item.name: getattr(capture, item.name) for item in fields(capture) if item.name != "reads"
    }
    plain["reads"] = [
        [read.user_ns, read.kernel_wall_ns, read.data.decode("latin-1")] for read in capture.reads
    ]
    return plain


def _capture(plain: dict[str, Any]) -> Capture:
    reads = tuple(
        Read(user_ns, wall_ns, text.encode("latin-1")) for user_ns, wall_ns, text in plain["reads"]
    )
    return Capture(**{**plain, "reads": reads})


def _clock(plain: dict[str, Any]) -> ClockMap:
    return ClockMap(
        first=OffsetSample(**plain["first"]),
        last=OffsetSample(**plain["last"]),
        spread_ns=plain["spread_ns"],
    )
