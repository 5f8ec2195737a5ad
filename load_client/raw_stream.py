"""The raw streams of a run, kept as evidence: gzip members, one a flush, each with its clock map.

Version history of the format
    1   first form: a line {"format", "version", "clock"}, then one line a capture
    2   a capture names its `path`; without it the path is plain
    3   a capture's `reads` are columns (sizes, instants), and behind its line stand the bytes that
        arrived, as many as `sizes` say, and a line end; before, they stood in the line as Latin-1

So `zcat` shows what the server sent. A file is never overwritten; a torn last member (kill -9, full
disk) is dropped when read, every earlier one stands.
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
VERSION = 3
READABLE = (1, 2, 3)
_VERBATIM = 3
# Level 1 costs a third of the default's time; event streams still shrink to a twentieth.
_GZIP_LEVEL = 1


def encode_batch(captures: Sequence[Capture], clock: ClockMap) -> bytes:
    """One gzip member that holds a batch and the clock map it is to be read with."""
    head = {"format": FORMAT, "version": VERSION, "clock": asdict(clock)}
    parts = [json.dumps(head).encode("ascii"), b"\n"]
    for capture in captures:
        parts += [json.dumps(_plain(capture)).encode("ascii"), b"\n"]
        parts += [read.data for read in capture.reads]
        parts.append(b"\n")
    return gzip.compress(b"".join(parts), _GZIP_LEVEL, mtime=0)


def decode_batches(path: Path) -> Iterator[tuple[ClockMap, list[Capture]]]:
    """Every whole batch of a raw file, in order.

    Raises ClientError for a file that is not one of ours or of a version not known here.
    """
    for number, member in enumerate(_members(path.read_bytes())):
        line, _, rest = member.partition(b"\n")
        head = json.loads(line)
        if head.get("format") != FORMAT or head.get("version") not in READABLE:
            raise ClientError(
                f"member {number} is not {FORMAT} version {' or '.join(map(str, READABLE))}",
                where=str(path),
                next_step="give a raw/client-*.jsonl.gz that this version of the client wrote",
            )
        verbatim = head["version"] >= _VERBATIM
        yield _clock(head["clock"]), list(_verbatim(rest) if verbatim else _in_lines(rest))


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
    plain["reads"] = {
        "sizes": [len(read.data) for read in capture.reads],
        "user_ns": [read.user_ns for read in capture.reads],
        "kernel_wall_ns": [read.kernel_wall_ns for read in capture.reads],
    }
    return plain


def _verbatim(rest: bytes) -> Iterator[Capture]:
    at = 0
    while at < len(rest):
        line_end = rest.index(b"\n", at)
        plain, at = json.loads(rest[at:line_end]), line_end + 1
        reads: list[Read] = []
        columns = (plain["reads"][name] for name in ("sizes", "user_ns", "kernel_wall_ns"))
        for size, user_ns, wall_ns in zip(*columns, strict=True):
            reads.append(Read(user_ns, wall_ns, rest[at : at + size]))
            at += size
        at += 1
        yield Capture(**{**plain, "reads": tuple(reads)})


def _in_lines(rest: bytes) -> Iterator[Capture]:
    """Captures as versions 1 and 2 kept them."""
    for plain in map(json.loads, rest.splitlines()):
        reads = (Read(at, wall_ns, text.encode("latin-1")) for at, wall_ns, text in plain["reads"])
        yield Capture(**{**plain, "reads": tuple(reads)})


def _clock(plain: dict[str, Any]) -> ClockMap:
    return ClockMap(
        first=OffsetSample(**plain["first"]),
        last=OffsetSample(**plain["last"]),
        spread_ns=plain["spread_ns"],
    )
