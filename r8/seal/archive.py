"""Bundles as archives: written the same to the byte each time, unpacked without trusting a name.

A bundle is a tar of plain files below `r8-bundle/`, sorted by name, without owners and times, and
compressed by Zstandard or gzip as its suffix says. Whatever else an archive can hold (links,
devices, names that climb out, members larger than their bytes could be) is refused before
anything of it is written.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import tarfile
import zlib
from pathlib import PurePosixPath
from typing import IO, TYPE_CHECKING, Any, cast

import pyarrow as pa

from r8.errors import BundleError, UsageError
from r8.message import Message

if TYPE_CHECKING:
    from collections.abc import Iterable
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
# Ten blocks of three arms and four levels with forty files each are 5 000.
MAX_MEMBERS = 100_000
_MODE = 0o644


class _Budget:
    """A decompressed stream that ends in an error once it is larger than its archive allows."""

    def __init__(self, file: IO[bytes], limit_bytes: int, where: str) -> None:
        self._file = file
        self._left = limit_bytes
        self._where = where
        self.digest = hashlib.sha256()

    def read(self, size: int) -> bytes:
        """At most `size` bytes; raises BundleError beyond the limit."""
        data = self._file.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise refused("seal-archive-grows", self._where, times=MAX_RATIO)
        self.digest.update(data)
        return data

    @property
    def left(self) -> int:
        """Bytes it may still give."""
        return self._left


class _Sink:
    """Somewhere to write a tar whose digest alone is wanted."""

    def __init__(self) -> None:
        self.digest = hashlib.sha256()

    def write(self, data: bytes) -> int:
        """Count it in."""
        self.digest.update(data)
        return len(data)


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


def pack(tree: Path, files: Iterable[str], out: Path, suffix: str) -> None:
    """Write the files of `tree` (relative names) as one archive; on the disk when it returns."""
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


def unpack(bundle: Path, target: Path) -> None:
    """Unpack into the empty directory `target`; nothing is written anywhere else.

    Raises BundleError naming the member that is not a plain file of a bundle, or saying that the
    archive is torn, grows beyond its bytes, or is not the archive R8 writes for these files.
    """
    where = bundle.name
    check_suffix(bundle)
    limit = SLACK_BYTES + MAX_RATIO * bundle.stat().st_size
    try:
        with _decompressed(bundle) as file:
            stream = _Budget(file, limit, where)
            names = _read_tar(stream, target, where)
            while stream.read(_BLOCK_BYTES):
                pass
    except (tarfile.TarError, OSError, EOFError, ValueError, zlib.error) as error:
        raise refused("seal-archive-torn", where, error=str(error)) from error
    again = _Sink()
    _write_tar(target, names, cast("IO[bytes]", again))
    if again.digest.digest() != stream.digest.digest():
        raise refused("seal-archive-other-bytes", where)


def refused(entry: str, where: str, **facts: Fact) -> BundleError:
    """The one error of a bundle that is not as it was sealed, by its entry of the catalogues."""
    return BundleError(
        Message(id=entry, facts=facts),
        where=where,
        next_step="fetch the bundle again from whoever sealed it",
    )


def _decompressed(bundle: Path) -> IO[bytes]:
    if bundle.name.endswith(GZIP):
        return cast("IO[bytes]", gzip.open(bundle, "rb"))
    return cast("IO[bytes]", pa.CompressedInputStream(pa.OSFile(str(bundle), "rb"), "zstd"))


def _write_tar(tree: Path, files: Iterable[str], out: IO[bytes]) -> None:
    # A stream of its own block size: the end of a tar is padded to it.
    with tarfile.open(mode="w|", fileobj=out, format=tarfile.PAX_FORMAT) as tar:
        for name in sorted(files):
            path = tree / name
            member = tarfile.TarInfo(f"{TOP}/{name}")
            member.size = path.stat().st_size
            member.mode = _MODE
            with path.open("rb") as file:
                tar.addfile(member, file)


def _read_tar(stream: _Budget, target: Path, where: str) -> list[str]:
    names: list[str] = []
    with tarfile.open(mode="r|", fileobj=cast("IO[bytes]", stream)) as tar:
        for member in tar:
            name = _safe_name(member, where)
            if names and name <= names[-1]:
                raise refused("seal-member-twice", where, member=name)
            if len(names) >= MAX_MEMBERS:
                raise refused("seal-members-too-many", where, most=MAX_MEMBERS)
            if member.size > stream.left:
                raise refused("seal-member-grows", where, member=name, size_bytes=member.size)
            _write_member(tar, member, target / name)
            names.append(name)
        _drain(tar)
    return names


def _drain(tar: tarfile.TarFile) -> None:
    """Read what follows the last member through the tar's own buffer, so that it is hashed."""
    rest = cast("Any", tar.fileobj)
    while rest.read(_BLOCK_BYTES):
        pass


def _safe_name(member: tarfile.TarInfo, where: str) -> str:
    """The member's name below the top folder; raises BundleError for anything but a plain file."""
    shown = member.name[:200]
    if not member.isreg() or member.issparse():
        raise refused("seal-member-no-file", where, member=shown)
    path = PurePosixPath(member.name)
    plain = path.as_posix() == member.name and "\\" not in member.name and "\0" not in member.name
    if path.is_absolute() or ".." in path.parts or not plain:
        raise refused("seal-member-climbs-out", where, member=shown)
    if len(path.parts) < 2 or path.parts[0] != TOP:  # noqa: PLR2004 - the top folder and a file
        raise refused("seal-member-elsewhere", where, member=shown, top=TOP)
    return PurePosixPath(*path.parts[1:]).as_posix()


def _write_member(tar: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    source = tar.extractfile(member)
    if source is None:
        raise tarfile.ReadError(f"no data for {member.name}")
    left = member.size
    with path.open("xb") as file:
        while block := source.read(min(_BLOCK_BYTES, left)):
            file.write(block)
            left -= len(block)
    if left:
        raise tarfile.ReadError(f"{member.name} ends {left} bytes early")
