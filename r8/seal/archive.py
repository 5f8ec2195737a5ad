"""Bundles as archives: written the same to the byte each time, read back in that one form alone.

A bundle is a tar of plain files below `r8-bundle/`, sorted by name, without owners and times, and
compressed by Zstandard or gzip as its suffix says. It is not read by Python's `tarfile`, which
understands far more than this (links, devices, sparse files, records of any length) and took 20 s
for 209 bytes before CVE-2024-6232 was mended: the header of each member has to be, byte for byte,
the one that R8 writes for its name and size, and what is between and after members has to be zeros.
"""

from __future__ import annotations

import gzip
import os
import re
import tarfile
from typing import IO, TYPE_CHECKING, cast

import pyarrow as pa

from r8.errors import BundleError, SiteError, UsageError
from r8.evidence import door
from r8.evidence.budgets import BUDGETS, GIB
from r8.message import Message

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from r8.message import Fact

TOP = "r8-bundle"
ZSTD, GZIP = ".tar.zst", ".tar.gz"
SUFFIXES = (ZSTD, GZIP)
_BLOCK_BYTES = 1 << 20
# Server logs and JSON compress 5 to 30 times and Parquet not at all; a member that claims a hundred
# times the whole archive is made to fill a disk. The slack keeps tiny bundles of long logs legal.
MAX_RATIO = 100
SLACK_BYTES = 16 << 20
# 72 hours of three arms are 0.5 GB; a whole bundle may be as large as the largest run.
MAX_BYTES = 16 * GIB
# Ten blocks of three arms and nine levels with 45 files each are 12 150.
MAX_MEMBERS = 50_000
# The deepest honest name: runs/<scenario>/<run>/raw/rendezvous/<file>, 130 characters.
MAX_LEVELS = 8
MAX_NAME_CHARS = 400
_PART = re.compile(r"[A-Za-z0-9._-]{1,128}")
_MODE = 0o644
# A header is one block. A name of more than 100 characters stands in two blocks before it.
_HEADER_BYTES = tarfile.BLOCKSIZE
_LONG_NAME = re.compile(rb"[0-9]{3} path=([^\n\0]+)\n\0+")
_SIZE = re.compile(rb"[0-7]{11}\0")


class _Stream:
    """A decompressed tar that ends in an error once it is larger than its archive allows."""

    def __init__(self, file: IO[bytes], where: str, *, limit_bytes: int) -> None:
        self._file = file
        self._where = where
        self._limit_bytes = limit_bytes
        self.taken_bytes = 0

    @property
    def left_bytes(self) -> int:
        """Bytes it may still give."""
        return self._limit_bytes - self.taken_bytes

    def take(self, size: int) -> bytes:
        """Exactly `size` bytes; raises BundleError when they are not there, or too many."""
        data = self._read(size)
        self.taken_bytes += len(data)
        if len(data) < size:
            raise refused("seal-archive-torn", self._where, error="it ends early")
        if self.left_bytes < 0:
            raise refused("seal-archive-grows", self._where, most_bytes=self._limit_bytes)
        return data

    def take_zeros(self, size: int) -> None:
        """Fewer than two records of zeros; anything else is a byte of no file."""
        if self.take(size).strip(b"\0"):
            raise refused("seal-archive-other-bytes", self._where)

    def require_end(self) -> None:
        """Nothing may follow."""
        if self._read(1):
            raise refused("seal-archive-other-bytes", self._where)

    def _read(self, size: int) -> bytes:
        try:
            return self._file.read(size)
        except (OSError, pa.ArrowInvalid) as error:
            raise refused("seal-archive-torn", self._where, error=str(error)) from error


def check_suffix(path: Path) -> None:
    """Raises UsageError for a name R8 cannot pack."""
    if not path.name.endswith(SUFFIXES):
        raise UsageError(
            f"a bundle is named *{ZSTD} or *{GZIP}", where=str(path), next_step="rename it"
        )
    if path.name.endswith(ZSTD) and not pa.Codec.is_available("zstd"):
        raise UsageError(
            "this machine has no Zstandard", where=str(path), next_step=f"name it *{GZIP}"
        )


def pack(tree: Path, files: Sequence[str], out: Path, suffix: str) -> None:
    """Write the files of `tree` (relative names) as one archive; on the disk when it returns.

    Raises UsageError for files that nobody could unpack again: see the limits above.
    """
    for name in files:
        if _fault(f"{TOP}/{name}"):
            raise UsageError(
                f"the file name {name!a} cannot travel in a bundle",
                where=str(tree),
                next_step=f"names are A-Z a-z 0-9 . _ - in at most {MAX_LEVELS} levels",
            )
    if suffix == GZIP:
        # Without a name and a time in its header the same content gives the same bytes.
        with (
            out.open("wb") as file,
            gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed,
        ):
            _write_tar(tree, files, cast("IO[bytes]", packed))
    else:
        with (
            pa.OSFile(str(out), "wb") as sink,
            pa.CompressedOutputStream(sink, "zstd") as packed,
        ):
            _write_tar(tree, files, cast("IO[bytes]", packed))
    with out.open("rb") as written:
        os.fsync(written.fileno())
    # A header is at most three blocks; whatever is left over ends the tar.
    blocks = sum(4 - -(tree / name).stat().st_size // tarfile.BLOCKSIZE for name in files)
    size_bytes = blocks * tarfile.BLOCKSIZE
    if len(files) > MAX_MEMBERS or size_bytes > _limit_bytes(out):
        raise UsageError(
            f"{len(files)} files of {size_bytes} bytes are more than a bundle may hold",
            where=str(tree),
            next_step="seal fewer runs in one bundle",
        )


def unpack(bundle: Path, target: Path) -> None:
    """Unpack into the empty directory `target`; nothing is written anywhere else.

    Raises BundleError naming the member that is not a plain file of a bundle, or saying that the
    archive is torn, grows beyond its bytes, or is not the archive R8 writes for these files;
    SiteError when there is no room for them.
    """
    where = bundle.name
    check_suffix(bundle)
    codec = "gzip" if bundle.name.endswith(GZIP) else "zstd"
    with (
        door.opened(bundle.resolve()) as file,
        pa.CompressedInputStream(pa.PythonFile(file, mode="r"), codec) as plain,
    ):
        _read_tar(
            _Stream(cast("IO[bytes]", plain), where, limit_bytes=_limit_bytes(bundle)),
            target,
            where,
        )


def _limit_bytes(bundle: Path) -> int:
    """The most that an archive of this size may unpack to."""
    return min(MAX_BYTES, SLACK_BYTES + MAX_RATIO * bundle.stat().st_size)


def refused(entry: str, where: str, **facts: Fact) -> BundleError:
    """The one error of a bundle that is not as it was sealed, by its entry of the catalogues."""
    return BundleError(
        Message(id=entry, facts=facts),
        where=where,
        next_step="fetch the bundle again from whoever sealed it",
    )


def _write_tar(tree: Path, files: Iterable[str], out: IO[bytes]) -> None:
    # A stream of its own block size: the end of a tar is padded to it.
    with tarfile.open(mode="w|", fileobj=out, format=tarfile.PAX_FORMAT) as tar:
        for name in sorted(files):
            path = tree / name
            with path.open("rb") as file:
                tar.addfile(_info(name, path.stat().st_size), file)


def _info(name: str, size: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(f"{TOP}/{name}")
    info.size = size
    info.mode = _MODE
    return info


def _read_tar(stream: _Stream, target: Path, where: str) -> None:
    last, count = "", 0
    while (member := _read_header(stream, where)) is not None:
        name, size = member
        count += 1
        if name <= last:
            raise refused("seal-member-twice", where, member=name)
        if count > MAX_MEMBERS:
            raise refused("seal-members-too-many", where, most=MAX_MEMBERS)
        if size > min(stream.left_bytes, BUDGETS.file_bytes):
            raise refused("seal-member-grows", where, member=name, size_bytes=size)
        _write_member(stream, target / name, size, where)
        stream.take_zeros(-size % tarfile.BLOCKSIZE)
        last = name
    # One block of zeros was read; the tar ends with two, and fills its record.
    whole = -(-(stream.taken_bytes + tarfile.BLOCKSIZE) // tarfile.RECORDSIZE) * tarfile.RECORDSIZE
    stream.take_zeros(whole - stream.taken_bytes)
    stream.require_end()


def _read_header(stream: _Stream, where: str) -> tuple[str, int] | None:
    """Name below the top folder and size of the next member; None after the last one.

    Raises BundleError for any header but the one R8 writes for a file of that name and size.
    """
    found = header = stream.take(_HEADER_BYTES)
    if not header.strip(b"\0"):
        return None
    long = None
    if header[156:157] == tarfile.XHDTYPE:
        record, header = stream.take(_HEADER_BYTES), stream.take(_HEADER_BYTES)
        found += record + header
        long = _LONG_NAME.fullmatch(record)
    spelled = long[1] if long else header[:100].rstrip(b"\0")
    member = spelled.decode("ascii", "backslashreplace")
    if header[156:157] != tarfile.REGTYPE:
        raise refused("seal-member-no-file", where, member=member[:200])
    if fault := _fault(member):
        raise refused(fault, where, member=member[:200], top=TOP, levels=MAX_LEVELS)
    name = member.removeprefix(f"{TOP}/")
    size = int(header[124:135], 8) if _SIZE.fullmatch(header[124:136]) else 0
    if found != _info(name, size).tobuf(tarfile.PAX_FORMAT):
        raise refused("seal-member-other-header", where, member=name)
    return name, size


def _fault(member: str) -> str | None:
    """What is wrong with a member's name, by its entry of the catalogues."""
    top, *parts = member.split("/")
    if top == "" or ".." in parts:
        return "seal-member-climbs-out"
    if top != TOP or not parts:
        return "seal-member-elsewhere"
    odd = [one for one in parts if one == "." or not _PART.fullmatch(one)]
    if odd or len(parts) > MAX_LEVELS or len(member) > MAX_NAME_CHARS:
        return "seal-member-name"
    return None


def _write_member(stream: _Stream, path: Path, size: int, where: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            for start in range(0, size, _BLOCK_BYTES):
                file.write(stream.take(min(_BLOCK_BYTES, size - start)))
    except (FileExistsError, NotADirectoryError) as error:
        raise refused("seal-member-twice", where, member=path.name) from error
    except OSError as error:
        raise SiteError(
            f"no room to unpack a bundle: {error.strerror or error}",
            where=str(path.parent),
            next_step="set TMPDIR to a directory with as much free space as the bundle takes",
        ) from error
