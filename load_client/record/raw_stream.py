"""The raw streams of a run, kept as evidence: gzip members, one a flush, each with its clock map.

Version history of the format
    1   first form: a line {"format", "version", "clock"}, then one line a capture
    2   a capture names its `path`; without it the path is plain
    3   a capture's `reads` are columns (sizes, instants), and behind its line stand the bytes that
        arrived, as many as `sizes` say, and a line end; before, they stood in the line as Latin-1

So `zcat` shows what the server sent. The files are raw/client-*.raw.gz. Older ones are named
.jsonl.gz, and some of those hold version 3: a reader goes by the first line, not by the name.
A file is never overwritten. A torn last member (kill -9, full disk) is dropped when it is read; all
members before it are kept.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import asdict, fields
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

from ..clock import ClockMap, OffsetSample
from ..errors import ClientError
from .capture import Capture, Reads

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

FORMAT = "load_client.raw"
SUFFIX = ".raw.gz"
VERSION = 3
READABLE = (1, 2, 3)
_VERBATIM = 3
# Level 1 costs a third of the default's time; event streams still shrink to a twentieth.
_GZIP_LEVEL = 1
_GZIP_WBITS = 31  # one gzip member, its checksum verified when read
_COLUMNS = ("sizes", "user_ns", "kernel_wall_ns")
_PLAIN = [item.name for item in fields(Capture) if item.name != "reads"]
_ENCODE = json.JSONEncoder().encode


def encode_batch(captures: Sequence[Capture], clock: ClockMap) -> bytes:
    """One gzip member that holds a batch and the clock map it is to be read with."""
    head = {"format": FORMAT, "version": VERSION, "clock": asdict(clock)}
    packer = zlib.compressobj(_GZIP_LEVEL, wbits=_GZIP_WBITS)
    parts = [packer.compress(_ENCODE(head).encode("ascii") + b"\n")]
    for capture in captures:
        line = _ENCODE(_plain(capture)).encode("ascii")
        parts.append(packer.compress(b"".join([line, b"\n", *capture.reads.data, b"\n"])))
    return b"".join([*parts, packer.flush()])


def decode_batches(path: Path) -> Iterator[tuple[ClockMap, list[Capture]]]:
    """Every whole batch of a raw file, in order.

    Raises ClientError for a file of another kind or of an unknown version.
    """
    for number, member in enumerate(_members(path.read_bytes())):
        line, _, rest = member.partition(b"\n")
        head = json.loads(line)
        if head.get("format") != FORMAT or head.get("version") not in READABLE:
            raise ClientError(
                f"member {number} is not {FORMAT} version {' or '.join(map(str, READABLE))}",
                where=str(path),
                next_step=f"give a raw/client-*{SUFFIX} that this version of the client wrote",
            )
        verbatim = head["version"] >= _VERBATIM
        yield _clock(head["clock"]), list(_verbatim(rest) if verbatim else _in_lines(rest))


def _members(data: bytes) -> Iterator[bytes]:
    while data:
        unpacker = zlib.decompressobj(_GZIP_WBITS)
        try:
            member = unpacker.decompress(data)
        except zlib.error:
            return
        if not unpacker.eof:
            return
        yield member
        data = unpacker.unused_data


def _plain(capture: Capture) -> dict[str, Any]:
    reads = capture.reads
    columns = (list(map(len, reads.data)), reads.user_ns, reads.kernel_wall_ns)
    plain = {name: getattr(capture, name) for name in _PLAIN}
    return plain | {"reads": dict(zip(_COLUMNS, columns, strict=True))}


def _verbatim(rest: bytes) -> Iterator[Capture]:
    at = 0
    while at < len(rest):
        line_end = rest.index(b"\n", at)
        plain, at = json.loads(rest[at:line_end]), line_end + 1
        sizes, user_ns, walls_ns = (plain["reads"][name] for name in _COLUMNS)
        borders = list(accumulate(sizes, initial=at))
        data = [rest[begin:end] for begin, end in pairwise(borders)]
        at = borders[-1] + 1
        yield Capture(**{**plain, "reads": Reads(user_ns, walls_ns, data)})


def _in_lines(rest: bytes) -> Iterator[Capture]:
    """Captures as versions 1 and 2 kept them."""
    for plain in map(json.loads, rest.splitlines()):
        rows = plain["reads"]
        columns = ([row[0] for row in rows], [row[1] for row in rows])
        reads = Reads(*columns, [row[2].encode("latin-1") for row in rows])
        yield Capture(**{**plain, "reads": reads})


def _clock(plain: dict[str, Any]) -> ClockMap:
    return ClockMap(
        first=OffsetSample(**plain["first"]),
        last=OffsetSample(**plain["last"]),
        spread_ns=plain["spread_ns"],
    )
