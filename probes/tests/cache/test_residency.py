from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import probes
from probes.block.sysfs import Sysfs
from probes.cache.pagecache import (
    METHODS,
    PAGE_BYTES,
    Method,
    cachestat,
    choose_method,
    evict,
    mincore,
)
from probes.cache.residency import evict_all, measure, summary
from probes.errors import ProbeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from probes.cache.residency import FileResidency

MIB = 1 << 20
NOBODY = 65534
SYSTEM_PYTHON = "/usr/bin/python3"


@pytest.fixture(name="directory")
def _directory(tmp_path: Path) -> Path:
    found = choose_method(tmp_path)
    if found.name is None:
        pytest.skip(f"residency cannot be known in the temporary directory: {found.reason}")
    return tmp_path


def _write(path: Path, size_bytes: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(os.urandom(size_bytes))
    return path


def _rows(directory: Path, **options: Method) -> dict[str, FileResidency]:
    return {
        row.path: row for row in measure(directory, "now", host="here", sysfs=Sysfs(), **options)
    }


def test_a_file_just_written_is_resident_and_after_eviction_none_of_it_is(directory: Path) -> None:
    _write(directory / "a.pt", MIB + 1)
    before = _rows(directory)["a.pt"]
    assert (before.size_bytes, before.resident_bytes) == (MIB + 1, MIB + 1)
    assert (before.self_test, before.reason) == (True, None)
    assert evict_all(directory) == []
    assert _rows(directory)["a.pt"].resident_bytes == 0


@pytest.mark.parametrize("method", METHODS)
def test_both_calls_tell_how_much_of_a_file_was_read(directory: Path, method: str) -> None:
    path = _write(directory / "a.pt", 8 * MIB)
    fd = os.open(path, os.O_RDONLY)
    try:
        evict(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)  # no read-ahead
        os.pread(fd, 16 * PAGE_BYTES, 0)
        try:
            resident = METHODS[method](fd, 8 * MIB)
        except OSError as error:
            pytest.skip(f"{method} is not on this machine: {error}")
        assert 16 * PAGE_BYTES <= resident < 8 * MIB
    finally:
        os.close(fd)


def test_the_two_calls_agree(directory: Path) -> None:
    path = _write(directory / "a.pt", 3 * MIB + 123)
    fd = os.open(path, os.O_RDONLY)
    try:
        assert mincore(fd, 3 * MIB + 123) == cachestat(fd, 3 * MIB + 123) == 3 * MIB + 123
    except OSError as error:
        pytest.skip(f"not both calls are on this machine: {error}")
    finally:
        os.close(fd)


def _blind_as_zero(_fd: int, _size_bytes: int) -> int:
    """A fake method that sees nothing."""
    return 0


def _blind_as_full(_fd: int, size_bytes: int) -> int:
    """A fake method that sees everything, as mincore does for a stranger."""
    return size_bytes


def _absent(_fd: int, _size_bytes: int) -> int:
    """A fake method this kernel does not have."""
    raise OSError(errno.ENOSYS, "Function not implemented")


@pytest.mark.parametrize("blind", [_blind_as_zero, _blind_as_full, _absent])
def test_a_method_that_cannot_see_fails_its_self_test_and_gives_no_number(
    directory: Path, monkeypatch: pytest.MonkeyPatch, blind: Callable[[int, int], int]
) -> None:
    _write(directory / "a.pt", MIB)
    for name in METHODS:
        monkeypatch.setitem(METHODS, name, blind)
    row = _rows(directory)["a.pt"]
    assert (row.resident_bytes, row.method, row.self_test) == (None, None, False)
    assert (row.reason or "").startswith("failed: self-test: cachestat: ")


def test_where_the_first_call_is_missing_the_second_is_used(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(METHODS, "cachestat", _absent)
    found = choose_method(directory)
    assert (found.name, found.self_test) == ("mincore", True)


def test_memory_file_systems_never_evict_and_so_are_unknown() -> None:
    if not Path("/dev/shm").is_dir():
        pytest.skip("no /dev/shm here")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        _write(Path(name) / "a.pt", MIB)
        row = _rows(Path(name))["a.pt"]
    assert (row.resident_bytes, row.self_test, row.device) == (None, False, None)


def test_the_self_test_leaves_nothing_behind(directory: Path) -> None:
    choose_method(directory)
    assert list(directory.iterdir()) == []


def test_files_are_found_at_every_depth_and_nothing_but_regular_files(directory: Path) -> None:
    _write(directory / "b" / "c" / "d.pt", 10)
    _write(directory / "a.pt", 0)
    (directory / "link.pt").symlink_to(directory / "a.pt")
    os.mkfifo(directory / "fifo")
    rows = _rows(directory)
    assert list(rows) == ["a.pt", "b/c/d.pt"]
    assert (rows["a.pt"].size_bytes, rows["a.pt"].resident_bytes) == (0, 0)


def test_every_row_names_the_block_device_of_its_own_file(directory: Path) -> None:
    _write(directory / "a.pt", 10)
    st_dev = directory.stat().st_dev
    expected = Sysfs().name_of(f"{os.major(st_dev)}:{os.minor(st_dev)}")
    assert _rows(directory)["a.pt"].device == expected


def test_a_directory_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProbeError, match="give --dir"):
        _rows(tmp_path / "no")


def test_one_unknown_file_makes_the_total_unknown(directory: Path) -> None:
    _write(directory / "a.pt", MIB)
    known = list(_rows(directory).values())
    unknown = list(_rows(directory, method=Method(name=None, self_test=None, reason="x")).values())
    assert summary(known)["resident_bytes"] == MIB
    total = summary(known + unknown)
    assert (total["resident_bytes"], total["unknown_files"], total["reason"]) == (None, 1, "x")


@pytest.fixture(name="copied")
def _copied() -> Iterator[Path]:
    """A directory anybody may enter, with a copy of the instrument in it."""
    if os.geteuid() != 0:
        pytest.skip("needs root to become another user")
    if not Path(SYSTEM_PYTHON).exists():
        pytest.skip(f"needs {SYSTEM_PYTHON}, an interpreter another user may run")
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        ignored = shutil.ignore_patterns("tests", "__pycache__")
        shutil.copytree(Path(probes.__file__).parent, root / "probes", ignore=ignored)
        for path in (root, *root.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        yield root


def _as_nobody(root: Path, *arguments: str) -> list[dict[str, object]]:
    done = subprocess.run(
        [SYSTEM_PYTHON, "-B", "-m", "probes", *arguments],
        cwd=root,
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        env={},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.root
def test_a_stranger_is_denied_and_told_neither_0_nor_100_percent(copied: Path) -> None:
    kv = copied / "kv"
    kv.mkdir(mode=0o777)
    kv.chmod(0o777)  # the self-test can be made, on a file of the stranger's own
    for name in ("evicted.pt", "resident.pt"):
        _write(kv / name, MIB).chmod(0o644)
    fd = os.open(kv / "evicted.pt", os.O_RDONLY)
    evict(fd)
    os.close(fd)
    rows = _as_nobody(copied, "residency", "--dir", str(kv), "--moment", "now")
    assert [row["resident_bytes"] for row in rows] == [None, None]
    assert all(str(row["reason"]).startswith("denied: ") for row in rows)
    assert {row["self_test"] for row in rows} == {True}


@pytest.mark.root
def test_where_no_self_test_can_be_made_nothing_is_claimed(copied: Path) -> None:
    kv = copied / "kv"
    _write(kv / "a.pt", MIB).chmod(0o644)
    kv.chmod(0o755)
    row = _as_nobody(copied, "residency", "--dir", str(kv), "--moment", "now")[0]
    assert (row["resident_bytes"], row["self_test"]) == (None, None)
    assert str(row["reason"]).startswith("denied: ")


@pytest.mark.root
def test_mincore_is_not_asked_where_it_would_mislead(copied: Path) -> None:
    """As a stranger the kernel would call every page resident."""
    path = _write(copied / "a.pt", MIB)
    path.chmod(0o644)
    program = (
        "import os; from probes.cache.pagecache import mincore\n"
        f"fd = os.open({str(path)!r}, os.O_RDONLY)\n"
        "try: print(mincore(fd, 1048576))\n"
        "except PermissionError: print('\"denied\"')\n"
    )
    done = subprocess.run(
        [SYSTEM_PYTHON, "-B", "-c", program],
        cwd=copied,
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        env={},
        stdout=subprocess.PIPE,
        check=True,
    )
    assert json.loads(done.stdout) == "denied"
