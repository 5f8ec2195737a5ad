"""Archives that R8 never writes, each small and made here: what a stranger's bundle may be."""

from __future__ import annotations

import gzip
import tarfile
from typing import TYPE_CHECKING

import pyarrow as pa

from r8.seal.archive import TOP

if TYPE_CHECKING:
    from pathlib import Path

BLOCK, RECORD = tarfile.BLOCKSIZE, tarfile.RECORDSIZE
SCREEN = "\x1b[2J\x1b[H\x1b[32mPASS everything; verified; exit code 0\x1b[0m\x1b[8m"
# Zeros that pack a thousand to one.
BOMB_BYTES = 64 << 20


def member(
    name: str,
    data: bytes = b"",
    kind: bytes = tarfile.REGTYPE,
    *,
    size: int | None = None,
    pax: dict[str, str] | None = None,
    mtime: int = 0,
) -> bytes:
    """A header, records before it and the data; `size` may lie."""
    info = tarfile.TarInfo(name)
    info.type, info.mtime = kind, mtime
    info.size = len(data) if size is None else size
    info.pax_headers = pax or {}
    return info.tobuf(tarfile.PAX_FORMAT) + data + bytes(-len(data) % BLOCK)


def plain(name: str, data: bytes = b"") -> bytes:
    """A member below the top folder."""
    return member(f"{TOP}/{name}", data)


def ended(*members: bytes) -> bytes:
    """Members as a whole tar."""
    tar = b"".join(members) + bytes(2 * BLOCK)
    return tar + bytes(-len(tar) % RECORD)


def zstd(data: bytes) -> bytes:
    """Compressed as R8 does."""
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as out:
        out.write(data)
    return bytes(sink.getvalue())


def gz(data: bytes) -> bytes:
    """Compressed as R8 does."""
    return gzip.compress(data, mtime=0)


def _pax_digits() -> bytes:
    """CVE-2024-6232: the length of a record in 80 000 digits; 209 bytes packed, 20 s on 3.11.7."""
    record = b"1" * 80_000
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.XHDTYPE, len(record)
    return info.tobuf(tarfile.USTAR_FORMAT) + record + bytes(-len(record) % BLOCK)


def _bomb_of_records() -> bytes:
    """A pax record that claims 8 GiB less a byte."""
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.XHDTYPE, (8 << 30) - 1
    return info.tobuf(tarfile.USTAR_FORMAT)


def _huge_window() -> bytes:
    """The header of a Zstandard frame that wants 2 GiB to be decoded."""
    return b"\x28\xb5\x2f\xfd" + bytes([0x00, (31 - 10) << 3]) + b"\x01\x00\x00"


def _named_gzip(data: bytes) -> bytes:
    """gzip with 4 MiB of file name in its header."""
    packed = gz(data)
    return packed[:3] + b"\x08" + packed[4:10] + b"a" * (4 << 20) + b"\0" + packed[10:]


ONE = plain("a", b"x")
ZEROS = plain("a", bytes(BOMB_BYTES))
# Name of the file: its bytes, and what the step `archive` says of it.
HOSTILE: dict[str, tuple[bytes, str]] = {
    "t6-fifo.tar.gz": (gz(ended(member(f"{TOP}/a", kind=tarfile.FIFOTYPE))), "not a plain file"),
    "t9-long.tar.gz": (gz(ended(plain("a/" * 1500 + "a"))), "not a plain file"),
    "t11-esc.tar.gz": (gz(ended(plain(SCREEN))), "has no plain name"),
    "empty-record.tar.gz": (gz(ended(ONE, member("x", kind=tarfile.XHDTYPE))), "not a plain file"),
    "t13-paxdigits-80000.tar.gz": (gz(ended(_pax_digits(), ONE)), "not a plain file"),
    "records.tar.gz": (gz(_bomb_of_records() + bytes(BOMB_BYTES)), "not a plain file"),
    "comment.tar.gz": (
        gz(ended(member(f"{TOP}/a", pax={"comment": "hidden"}))),
        "header of member a is not the one R8 writes",
    ),
    "time.tar.gz": (gz(ended(member(f"{TOP}/a", mtime=7))), "is not the one R8 writes"),
    "sparse.tar.gz": (gz(ended(member(f"{TOP}/a", kind=tarfile.GNUTYPE_SPARSE))), "not a plain"),
    "long-link.tar.gz": (gz(ended(member("x", b"y" * 99, tarfile.GNUTYPE_LONGNAME))), "plain file"),
    "deep.tar.gz": (gz(ended(plain("a/" * 8 + "a"))), "has no plain name"),
    "wide.tar.gz": (gz(ended(plain("a" * 129))), "has no plain name"),
    "dot.tar.gz": (gz(ended(plain("a/./b"))), "has no plain name"),
    "empty-part.tar.gz": (gz(ended(plain("a//b"))), "has no plain name"),
    "star.tar.gz": (gz(ended(plain("runs/*"))), "has no plain name"),
    "hive.tar.gz": (gz(ended(plain("runs/resident_bytes=1/a"))), "has no plain name"),
    "claims.tar.gz": (gz(ended(member(f"{TOP}/a", size=1 << 32))), "more than its archive can"),
    "below-a-file.tar.gz": (gz(ended(plain("a"), plain("a/b"))), "twice or out of order"),
    "backwards.tar.gz": (gz(ended(plain("b"), plain("a"))), "twice or out of order"),
    "padding.tar.gz": (gz(ended(ONE[:-1] + b"y")), "no file of the bundle"),
    "behind.tar.gz": (gz(ended(ONE)[:-1] + b"y"), "no file of the bundle"),
    "second-end.tar.gz": (gz(ended(ONE) + bytes(RECORD)), "no file of the bundle"),
    "no-end.tar.gz": (gz(ONE), "it ends early"),
    "half.tar.gz": (gz(ended(ONE))[:-20], "torn or not one"),
    "two.tar.gz": (gz(ended(ONE)) + gz(b"more"), "no file of the bundle"),
    "trailing.tar.gz": (gz(ended(ONE)) + b"garbage", "torn or not one"),
    "trailing.tar.zst": (zstd(ended(ONE)) + b"garbage", "torn or not one"),
    "bomb.tar.gz": (gz(ended(ZEROS)), "more than its archive can hold"),
    "bomb.tar.zst": (zstd(ended(ZEROS)), "more than its archive can hold"),
    "zeros.tar.gz": (gz(bytes(BOMB_BYTES)), "no file of the bundle"),
    "window.tar.zst": (_huge_window(), "torn or not one"),
    "named.tar.gz": (_named_gzip(ended(ONE))[: 2 << 20], "torn or not one"),
    "checksum.tar.gz": (gz(ended(ONE))[:-8] + bytes(8), "torn or not one"),
    "members.tar.gz": (gz(b"".join(plain(f"{n:04}") for n in range(64))), "more than 63 members"),
}


def write(folder: Path) -> None:
    """Every archive as a file."""
    for name, (data, _) in HOSTILE.items():
        (folder / name).write_bytes(data)
