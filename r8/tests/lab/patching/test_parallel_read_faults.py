"""The patched backend of every LMCache version under faults; the unpatched one as it is."""

from __future__ import annotations

import atexit
import csv
import functools
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

from r8.lab.patching import patching
from r8.lab.patching.series import SERIES_DIR

pytestmark = pytest.mark.stack

ROOT = Path(__file__).resolve().parents[4]
FAULTS = ROOT / "r8" / "tests" / "support" / "backend_faults.py"
CHECKS = ROOT / "r8" / "tests" / "support" / "parallel_read_checks.py"
BENCH = ROOT / "r8" / "lab" / "component" / "bench.py"
VERSIONS = ("0.5.0", "0.5.1", "0.5.6")
TIMEOUT_S = 300


def engine_python() -> str:
    stack = os.environ.get("R8_STACK")
    if stack is None:
        pytest.skip("no engine environment: set R8_STACK, or run `nox -s stack`")
    return str(Path(stack) / "bin" / "python")


@functools.cache
def base_tree(version: str) -> Path:
    """An unpatched copy, by links: a rehearsal may have the shared tree patched at this moment."""
    name = f"R8_LMCACHE_{version.replace('.', '_')}"
    if name not in os.environ:
        pytest.skip(f"no LMCache {version}: set {name}, or run `nox -s stack`")
    home = Path(tempfile.mkdtemp(prefix="r8-base-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    copy = home / version
    subprocess.run(["cp", "-rs", str(Path(os.environ[name]).resolve()), str(copy)], check=True)
    target = patching.PatchTarget(command=(engine_python(),), env={"PYTHONPATH": str(copy)})
    assert patching.revert(target).state == "base"
    return copy


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Patched copies, made when asked for; everything but the two files is a link."""
    made: dict[str, Path] = {}
    folder = tmp_path_factory.mktemp("trees")

    def patched(version: str) -> Path:
        copy = folder / version
        subprocess.run(["cp", "-rs", str(base_tree(version)), str(copy)], check=True)
        target = patching.PatchTarget(command=(engine_python(),), env={"PYTHONPATH": str(copy)})
        assert patching.apply(target).state == "patched"
        return copy

    class Made(dict[str, Path]):
        def __missing__(self, version: str) -> Path:
            self[version] = made[version] = patched(version)
            return made[version]

    return Made()


def run(tree: Path, script: Path, *words: str) -> tuple[int, dict[str, Any]]:
    done = subprocess.run(
        [engine_python(), str(script), *words],
        env={**os.environ, "PYTHONPATH": str(tree)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.stdout, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return done.returncode, found


@pytest.mark.parametrize("version", VERSIONS)
def test_200_mixed_faults_are_clean_misses(
    version: str, trees: dict[str, Path], tmp_path: Path
) -> None:
    words = ("--dir", str(tmp_path), "--interleavings", "200", "--seed", "7", "--json")
    code, found = run(trees[version], FAULTS, *words)
    assert found["violations"] == []
    assert found["allocated_after"] == found["allocated_before"]
    assert len(found["planted"]) == 9
    assert code == 0


def test_the_same_mixture_finds_wrong_bytes_in_the_unpatched_backend(tmp_path: Path) -> None:
    words = ("--dir", str(tmp_path), "--interleavings", "20", "--seed", "2", "--json")
    code, found = run(base_tree("0.5.6"), FAULTS, *words)
    assert code == 1
    assert any("wrong bytes" in problem for problem in found["violations"])


@pytest.mark.parametrize("version", VERSIONS)
def test_the_unpatched_backend_does_what_the_readme_says(version: str, tmp_path: Path) -> None:
    _, found = run(base_tree(version), FAULTS, "--dir", str(tmp_path), "--observe", "--json")
    saw = {(one["path"], one["fault"]): outcome(one) for one in found["observed"]}
    with (SERIES_DIR / "observed-unpatched.csv").open(encoding="utf-8") as handle:
        rows = [row for row in csv.DictReader(handle) if row["lmcache"] == version]
    assert saw == {(row["path"], row["fault"]): row["outcome"] for row in rows}


@pytest.mark.parametrize("version", VERSIONS)
def test_every_fault_alone_is_a_miss_in_the_patched_backend(
    version: str, trees: dict[str, Path], tmp_path: Path
) -> None:
    _, found = run(trees[version], FAULTS, "--dir", str(tmp_path), "--observe", "--json")
    assert {outcome(one) for one in found["observed"]} == {"miss"}


def outcome(one: dict[str, Any]) -> str:
    """One observation in the words of `observed-unpatched.csv`."""
    if one["hangs"]:
        return "hangs"
    said = f"raises {one['exception']}" if one["exception"] else str(one["chunk"]).lower()
    if one["buffers_left"]:
        said += f", leaves {one['buffers_left']} buffers and {one['pins_left']} pins"
    return said


@pytest.mark.parametrize("version", VERSIONS)
def test_the_installed_reader_behaves(version: str, trees: dict[str, Path], tmp_path: Path) -> None:
    _, found = run(trees[version], CHECKS, str(tmp_path))
    assert {name: saw for name, saw in found.items() if saw != "ok"} == {}
    assert len(found) == 13


def test_the_bench_compares_every_buffer_and_counts_what_the_disk_gave(
    trees: dict[str, Path], tmp_path: Path
) -> None:
    words = ("--dir", str(tmp_path / "kv"), "--state", "patched", "--chunks", "4")
    code, found = run(trees["0.5.0"], BENCH, *words, "--chunk-bytes", "1048576")
    assert code == 0
    assert (found["read_bytes"], found["misses"], found["sha256_ok"]) == (4 << 20, 0, True)
    assert found["buffers_left"] == 0
    assert list((tmp_path / "kv").iterdir()) == []


def test_the_bench_refuses_a_tree_in_another_state_than_its_arm(tmp_path: Path) -> None:
    done = subprocess.run(
        [engine_python(), str(BENCH), "--dir", str(tmp_path), "--state", "patched"],
        env={**os.environ, "PYTHONPATH": str(base_tree("0.5.0"))},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 4
    assert "r8 patch apply" in done.stderr
