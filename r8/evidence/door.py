"""The one door: every byte of somebody's evidence is opened here.

A stranger's directory can hold anything: pipes that never answer, devices without an end, links to
elsewhere, a million names. What is opened here is a regular file, reached from its directory
without following a link, within budgets, and hashed while it is read. What DuckDB and pyarrow open
by name is a copy with a plain name in a directory of ours (`home`), whatever a stranger called his.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import os
import re
import shutil
import stat
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from r8.errors import EvidenceError, SiteError
from r8.evidence.budgets import BUDGETS, Budgets

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

# A pipe without a writer must not stop us, nor a terminal become ours.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC
_BLOCK_BYTES = 1 << 20
_KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFBLK: "a block device",
    stat.S_IFCHR: "a character device",
    stat.S_IFDIR: "a directory",
}
# What DuckDB would take for a pattern, were it in the name of our own directory.
_PATTERN = re.compile(r"[*?\[\]{}]")


def files(root: Path, budgets: Budgets = BUDGETS) -> dict[str, int]:
    """Size of every regular file below `root`, by its relative name, in sorted order.

    Raises EvidenceError for anything but regular files and directories, a name that cannot be
    printed, and more files, bytes or levels than the budgets allow.
    """
    found: dict[str, int] = {}
    total = 0
    for name, entry in _entries(root, budgets):
        status = entry.stat(follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            continue
        if not stat.S_ISREG(status.st_mode):
            raise _irregular(name, status, root)
        found[_printable(name, root)] = status.st_size
        total += status.st_size
        budgets.require("files", len(found), where=str(root))
        budgets.require("file_bytes", status.st_size, where=f"{root}/{name}")
        budgets.require("run_bytes", total, where=str(root))
    return dict(sorted(found.items()))


def folders_with(root: Path, name: str) -> list[Path]:
    """Directories below `root`, itself among them, that hold a file `name`; sorted.

    No link is followed and nothing is opened but directories. Raises EvidenceError beyond the
    budgets; a `root` that is no directory holds nothing.
    """
    if not root.is_dir():
        return []
    return sorted(
        (root / place).parent
        for place, entry in _entries(root.resolve(), BUDGETS)
        if entry.name == name and not entry.is_dir(follow_symlinks=False)
    )


def folders(root: Path, suffix: str) -> list[Path]:
    """Directories below `root` whose name ends in `suffix`; sorted. Walks as `folders_with`."""
    if not root.is_dir():
        return []
    return sorted(
        root / place
        for place, entry in _entries(root.resolve(), BUDGETS)
        if entry.name.endswith(suffix) and entry.is_dir(follow_symlinks=False)
    )


def _printable(name: str, root: Path) -> str:
    """The name; half of a character is not printable either."""
    if not name.isprintable():
        raise EvidenceError(
            f"the file name {name!a} cannot be printed",
            where=str(root),
            next_step="ask for the directory with plain names",
        )
    return name


def _entries(root: Path, budgets: Budgets) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Everything below `root`, with its relative name; a link is an entry, never a way."""
    count = 0
    pending = [""]
    while pending:
        folder = pending.pop()
        with _opened(root, folder, _FOLDER) as descriptor, os.scandir(descriptor) as found:
            for entry in found:
                count += 1
                budgets.require("entries", count, where=str(root))
                name = f"{folder}/{entry.name}" if folder else entry.name
                if entry.is_dir(follow_symlinks=False):
                    budgets.require("depth", name.count("/") + 1, where=f"{root}/{name}")
                    pending.append(name)
                yield name, entry


@contextlib.contextmanager
def _opened(root: Path, name: str, flags: int) -> Iterator[int]:
    """A descriptor of `name` below `root`; no component of it may be a link."""
    steps = [str(root), *name.split("/")] if name else [str(root)]
    descriptor: int | None = None
    try:
        try:
            for step in steps[:-1]:
                above, descriptor = descriptor, os.open(step, _FOLDER, dir_fd=descriptor)
                if above is not None:
                    os.close(above)
            above, descriptor = descriptor, os.open(steps[-1], flags, dir_fd=descriptor)
            if above is not None:
                os.close(above)
        except OSError as error:
            raise EvidenceError(
                f"{name or root.name} cannot be opened: {error.strerror or error}",
                where=str(root),
                next_step="only regular files are read, and no link is followed; ls -l shows both",
            ) from error
        yield descriptor
    finally:
        if descriptor is not None:
            os.close(descriptor)


@contextlib.contextmanager
def opened(path: Path, name: str = "") -> Iterator[BinaryIO]:
    """The regular file `path`, or `name` below the directory `path`, open for reading.

    Raises EvidenceError for a link, a pipe or whatever else is no regular file.
    """
    root, name = (path, name) if name else (path.parent, path.name)
    with _opened(root, name, _FILE) as descriptor:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise _irregular(name, status, root)
        with open(descriptor, "rb", buffering=0, closefd=False) as file:
            yield file


def read(path: Path, name: str = "", *, limit: str, budgets: Budgets = BUDGETS) -> bytes:
    """All bytes of a file as `opened`; raises EvidenceError beyond the budget `limit`."""
    with opened(path, name) as file:
        data = bytearray()
        for block in _blocks(file, path / name):
            data += block
            budgets.require(limit, len(data), where=str(path / name))
    return bytes(data)


def digest(path: Path, name: str = "", *, copy: Path | None = None) -> str:
    """SHA-256 of a file as `opened`, in hex; the same bytes are written to the new file `copy`.

    A file below `home` is nobody's but ours: its copy is another name of it.
    """
    summed = hashlib.sha256()
    count = 0
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(opened(path, name))
        if copy is not None and _linked(path / name, copy):
            copy = None
        out = None if copy is None else stack.enter_context(_created(copy))
        for block in _blocks(file, path / name):
            count += len(block)
            BUDGETS.require("file_bytes", count, where=str(path / name))  # it may grow meanwhile
            summed.update(block)
            if out is not None:
                out.write(block)
    return summed.hexdigest()


def _blocks(file: BinaryIO, path: Path) -> Iterator[bytes]:
    try:
        while block := file.read(_BLOCK_BYTES):
            yield block
    except OSError as error:
        raise EvidenceError(
            f"{path.name} cannot be read: {error.strerror or error}",
            where=str(path.parent),
            next_step="fetch the directory again from where it was made",
        ) from error


def _linked(path: Path, copy: Path) -> bool:
    if not path.is_relative_to(home()):
        return False
    try:
        copy.hardlink_to(path)
    except OSError:  # the file system has no hard links
        return False
    return True


@contextlib.contextmanager
def _created(path: Path) -> Iterator[BinaryIO]:
    try:
        with path.open("xb") as file:
            yield file
    except OSError as error:
        raise _no_room(error) from error


@functools.cache
def home() -> Path:
    """The directory of this process for copies of evidence: mode 0700, removed at its end.

    Raises SiteError when there is no place for one.
    """
    try:
        folder = Path(tempfile.mkdtemp(prefix="r8-evidence-")).resolve()
    except OSError as error:
        raise _no_room(error) from error
    atexit.register(_remove, folder, os.getpid())
    if _PATTERN.search(str(folder)):
        raise SiteError(
            "the directory for temporary files has a name that DuckDB takes for a pattern",
            where=str(folder),
            next_step="set TMPDIR to a directory without * ? [ ] { } in its path",
        )
    return folder


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() == owner:  # a fork shares the directory with whoever made it
        shutil.rmtree(folder, ignore_errors=True)


def _no_room(error: OSError) -> SiteError:
    return SiteError(
        f"no room for a copy of the evidence: {error.strerror or error}",
        where=tempfile.gettempdir(),
        next_step="set TMPDIR to a directory with as much free space as the runs take",
    )


def _irregular(name: str, status: os.stat_result, root: Path) -> EvidenceError:
    kind = _KINDS.get(stat.S_IFMT(status.st_mode), "no file")
    return EvidenceError(
        f"{name} is {kind}, not a regular file",
        where=str(root),
        next_step="a run holds regular files and directories alone; ask for it again",
    )
