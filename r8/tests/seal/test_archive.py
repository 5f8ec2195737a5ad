"""Archives in any form but R8's own are refused, within a second and a bounded memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from r8.errors import BundleError, EvidenceError, SiteError, UsageError
from r8.report.words import render
from r8.seal import archive
from r8.seal.archive import GZIP, pack, unpack
from r8.seal.texts import texts_of
from r8.tests.seal import hostile_archives as hostile

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MIB = 1 << 20
# What each may take beyond a process that has only imported R8, and in CPU time.
EXTRA_BYTES_MAX = 64 * MIB
CPU_S_MAX = 1.0


def refused(bundle: Path, target: Path) -> str:
    with pytest.raises((BundleError, EvidenceError)) as caught:
        unpack(bundle, target)
    error = caught.value
    return render(error.reason) if isinstance(error, BundleError) else error.what


@pytest.mark.parametrize("name", hostile.HOSTILE, ids=str)
def test_a_hostile_archive_is_refused_by_what_it_is(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "MAX_MEMBERS", 63)
    data, says = hostile.HOSTILE[name]
    (tmp_path / name).write_bytes(data)
    (tmp_path / "out").mkdir()
    said = refused(tmp_path / name, tmp_path / "out")
    assert says in said
    assert len(said) < 400
    assert {path.name for path in tmp_path.iterdir()} == {name, "out"}


PROGRAM = """
import json, pathlib, resource, sys, tempfile
from r8.errors import R8Error
from r8.seal.archive import unpack
used = lambda: resource.getrusage(resource.RUSAGE_SELF)
before, took = used(), {}
for path in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    begun = used().ru_utime + used().ru_stime
    with tempfile.TemporaryDirectory() as folder:
        try:
            unpack(path, pathlib.Path(folder))
        except R8Error:
            took[path.name] = used().ru_utime + used().ru_stime - begun
print(json.dumps([(used().ru_maxrss - before.ru_maxrss) * 1024, took]))
"""


def test_all_of_them_together_take_little_memory_and_each_little_time(tmp_path: Path) -> None:
    hostile.write(tmp_path)
    (tmp_path / "members.tar.gz").unlink()  # only a smaller limit refuses it
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True, check=True
    )
    extra_bytes, took = json.loads(done.stdout)
    assert set(took) == set(hostile.HOSTILE) - {"members.tar.gz"}
    assert extra_bytes < EXTRA_BYTES_MAX
    assert max(took.values()) < CPU_S_MAX, took


@pytest.mark.parametrize("form", [hostile.gz, hostile.zstd], ids=["gz", "zst"])
def test_what_r8_writes_is_read_back(tmp_path: Path, form: Callable[[bytes], bytes]) -> None:
    """Empty files, whole blocks, a byte more, and names on both sides of a tar's 100 characters."""
    suffix = GZIP if form is hostile.gz else archive.ZSTD
    tree, out = tmp_path / "tree", tmp_path / "out"
    sizes = {"empty": 0, "block": 512, "more": 513, "large": 2 * MIB + 1}
    names = [f"{'d' * 80}/{'n' * count}" for count in (9, 10)]  # with the top folder 100 and 101
    names.append("/".join(["d" * 49] * 7 + ["n" * 40]))  # 400 characters, 8 levels
    for name, size in {**sizes, **dict.fromkeys(names, 3)}.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_bytes(b"x" * size)
    files = [*sizes, *names]
    pack(tree, files, tmp_path / f"b{suffix}", suffix)
    out.mkdir()
    unpack(tmp_path / f"b{suffix}", out)
    assert {name: (out / name).read_bytes() for name in files} == {
        name: (tree / name).read_bytes() for name in files
    }


@pytest.mark.parametrize("name", ["a b", "é", "a/../b", "d/" * 8 + "n", "x" * 129])
def test_a_name_that_no_verifier_would_take_is_not_sealed(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot travel"):
        pack(tmp_path, [name], tmp_path / "b.tar.gz", GZIP)


def test_more_than_a_verifier_would_unpack_is_not_sealed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_bytes(bytes(2 * MIB))
    monkeypatch.setattr(archive, "MAX_BYTES", 3 * MIB)
    pack(tmp_path, ["a"], tmp_path / "b.tar.gz", GZIP)
    monkeypatch.setattr(archive, "MAX_BYTES", 2 * MIB)
    with pytest.raises(UsageError, match="more than a bundle may hold"):
        pack(tmp_path, ["a"], tmp_path / "c.tar.gz", GZIP)


def test_the_bytes_of_all_members_together_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = hostile.ended(*(hostile.plain(f"{n}", bytes(MIB)) for n in range(4)))
    (tmp_path / "b.tar.gz").write_bytes(hostile.gz(data))
    for most, name in ((len(data), "whole"), (3 * MIB, "part")):
        monkeypatch.setattr(archive, "MAX_BYTES", most)
        (tmp_path / name).mkdir()
        if most == len(data):
            unpack(tmp_path / "b.tar.gz", tmp_path / name)
        else:
            assert "more than its archive can" in refused(tmp_path / "b.tar.gz", tmp_path / name)


def test_no_room_is_no_fault_of_the_bundle(tmp_path: Path) -> None:
    (tmp_path / "b.tar.gz").write_bytes(hostile.gz(hostile.ended(hostile.plain("a/b", b"x"))))
    with pytest.raises(SiteError, match="no room to unpack"):
        unpack(tmp_path / "b.tar.gz", tmp_path / ("x" * 250) / ("y" * 256))


def test_a_pipe_that_is_called_a_bundle_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "b.tar.gz")
    with pytest.raises(EvidenceError, match="a pipe"):
        unpack(tmp_path / "b.tar.gz", tmp_path)


def test_packed_text_is_read_within_a_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What `seal` reads of raw/: a file that inflates without an end, and a line without one."""
    path = tmp_path / "client.raw.gz"
    path.write_bytes(hostile.gz(b"one line\n" * 10_000))
    assert "".join(one.text for one in texts_of(tmp_path)) == "one line\n" * 10_000
    monkeypatch.setattr("r8.seal.texts._BLOCK_CHARS", 100)
    found = list(texts_of(tmp_path))
    assert "".join(one.text for one in found) == "one line\n" * 10_000
    assert all(one.line == 1 + 12 * place for place, one in enumerate(found))
    monkeypatch.setattr("r8.seal.texts.LINE_CHARS_MAX", 1000)
    path.write_bytes(hostile.gz(bytes(MIB)))
    with pytest.raises(EvidenceError, match="a line of more than 1000"):
        list(texts_of(tmp_path))
    path.write_bytes(hostile.gz(b"x\n" * 9)[:-9])
    with pytest.raises(EvidenceError, match="no whole gzip"):
        list(texts_of(tmp_path))
