"""A device that fails under LMCache: never a wrong byte, never a lost buffer, with the patch."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pytest

from r8.lab.machine.supervisor import Supervisor
from r8.lab.patching import patching
from r8.lab.rehearsal import fallback
from r8.lab.rehearsal.fallback import FUSE, LOOP
from r8.lab.rehearsal.shape import Shape
from r8.tests.support.extents import physical_ranges
from r8.tests.support.faulty_fs import EIO, SHORT, Fault, control_of, faulty_device

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.qualify, pytest.mark.root, pytest.mark.stack]

ROOT = Path(__file__).resolve().parents[3]
STACK = ROOT / ".nox" / "r8-stack"
READER = Path(__file__).with_name("device_fault_reader.py")
VERSIONS = ("0.5.0", "0.5.1", "0.5.6")
CHUNK = 4 << 20
CHUNKS = 6
BAD = 2
QUICK = Shape(read_bandwidth_bytes_per_s=400_000_000, read_latency_ns=1_000_000)


class Reader:
    """The backend in a process of its own, asked to read one path at a time."""

    def __init__(self, tree: Path, directory: Path) -> None:
        python = STACK / "venv" / "bin" / "python"
        self.process = subprocess.Popen(
            [str(python), str(READER), str(directory), str(CHUNK), str(CHUNKS)],
            env=os.environ | {"PYTHONPATH": f"{tree}:{ROOT}", "LMCACHE_TRACK_USAGE": "false"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.paths = [Path(one) for one in self._answer()]

    def _answer(self) -> Any:
        stdout: IO[str] = self.process.stdout  # type: ignore[assignment]
        for line in stdout:
            if line.startswith(("[", "{")):
                return json.loads(line)
        raise AssertionError("the reader ended without an answer")

    def read(self, path: str) -> dict[str, Any]:
        stdin: IO[str] = self.process.stdin  # type: ignore[assignment]
        stdin.write(path + "\n")
        stdin.flush()
        answer: dict[str, Any] = self._answer()
        return answer

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    with Supervisor(tmp_path / "supervisor") as one:
        yield one


def _tree(version: str, tmp_path: Path, *, patched: bool) -> Path:
    tree = tmp_path / f"lmcache-{version}"
    shutil.copytree(STACK / f"lmcache-{version}", tree)
    python = str(STACK / "venv" / "bin" / "python")
    target = patching.PatchTarget(command=(python,), env={"PYTHONPATH": str(tree)})
    (patching.apply if patched else patching.revert)(target)
    return tree


def _read_with(
    fault_kind: str, tree: Path, supervisor: Supervisor, work: Path
) -> list[dict[str, Any]]:
    """What both read paths answer while the device fails under one chunk, then once it is well."""
    with faulty_device(QUICK, supervisor, work, "array", 512 << 20) as device:
        assert device.level is (LOOP if fault_kind == EIO else FUSE)
        control = control_of(device)
        reader = Reader(tree, device.kv_dir)
        try:
            bad = reader.paths[BAD]
            if device.level is LOOP:
                for _, physical, length in physical_ranges(bad):
                    control.inject(Fault(kind=fault_kind, offset=physical, length=length))
            else:
                inside = "/" + str(bad.relative_to(device.kv_dir.parent))
                control.inject(Fault(kind=fault_kind, path=inside, keep_bytes=1000))
            answers = [reader.read("sync"), reader.read("async")]
            assert control.counters()["faults"] > 0, "the fault never happened"
            control.clear_faults()
            return [*answers, reader.read("sync")]
        finally:
            reader.close()


def _without_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short reads reach a reader of files only where no loop device repeats them."""
    found = fallback.capabilities()
    less = tuple(one for one in found if one.name != "loop")
    monkeypatch.setattr(fallback, "capabilities", lambda: less)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", [EIO, SHORT])
def test_a_failing_device_is_a_clean_miss(
    kind: str, version: str, tmp_path: Path, supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == SHORT:
        _without_loop(monkeypatch)
    tree = _tree(version, tmp_path, patched=True)
    sync, prefix, after = _read_with(kind, tree, supervisor, tmp_path / "testbed")
    healthy = ["right"] * CHUNKS
    assert sync["chunks"] == [*healthy[:BAD], "miss", *healthy[BAD + 1 :]], sync
    # The chunk was forgotten with its file: the async path ends before it, and so do later reads.
    assert prefix["chunks"][:BAD] == healthy[:BAD], prefix
    assert "WRONG" not in prefix["chunks"] + after["chunks"]
    assert [one["left"] for one in (sync, prefix, after)] == [True] * 3


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", [EIO, SHORT])
def test_without_the_patch_the_same_fault_is_written_down(
    kind: str, version: str, tmp_path: Path, supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not an opinion, an observation: printed, and it must differ from the patched behaviour."""
    if kind == SHORT:
        _without_loop(monkeypatch)
    tree = _tree(version, tmp_path, patched=False)
    answers = _read_with(kind, tree, supervisor, tmp_path / "testbed")
    print(f"\n{version} unpatched, {kind}: {answers}")
    unclean = [
        one
        for one in answers
        if "exception" in one or "WRONG" in one.get("chunks", []) or not one["left"]
    ]
    assert unclean, answers
