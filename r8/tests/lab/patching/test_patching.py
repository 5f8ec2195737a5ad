"""The patch is applied by exact digest, whole or not at all, and taken back to the byte."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from r8.errors import PatchError
from r8.lab.patching import patching
from r8.lab.patching import series as patch_series
from r8.lab.patching import verbs as patch_verbs
from r8.lab.patching.agent import duplicate_methods

BASE = b"class LocalDiskBackend:\n    def close(self):\n        pass\n"
HOOK = b"\n\nfrom lmcache.v1.storage_backend import r8_parallel_read\n"
MODULE = b"# a reader\n"
TARGET = "v1/storage_backend/local_disk_backend.py"
# The six digests of the published table: four bases, the reports' file, the release's ORIGINAL.
PUBLISHED_DIGESTS = {
    "2b64637da6dfe88f08185ea508b9cb62a9387255a1341d3da74a9b4092d5724e": "base",
    "16bdefbcdf2c4a6ab83d894b7f62d4430ddd451b250651d30f782b250d10c23e": "base",
    "bc32579c0438e86ebad866dc98fc7756752da4a702d3c7d016a1399319d8f946": "foreign",
    "a347a5375cd9341bf0d7971aef9a6113d9674407b8ce119ce8d2ac113fed37a6": "foreign",
    "2722eb93b53f86417b1fa323a3cf4032b7d6e6c59dc62b794ea7e90632e4bd6d": "base",
    "562aef8e1443bda0cdd2270184d601a9796899a20a91b08453a5e98ecc81ce80": "base",
}
# Dies before the n-th system change of the agent, which it gets from standard input.
KILLED_AT = """
import os, signal, sys
left = int(sys.argv[1])
def hook(event, arguments):
    global left
    if event in {"open", "os.rename", "os.remove", "os.chmod", "os.chown", "os.listdir"}:
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
program = compile(sys.stdin.read(), "agent", "exec")
sys.addaudithook(hook)
exec(program)
"""


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@dataclass(frozen=True)
class FakeLMCache:
    """A tree that has the shape of LMCache and the one file that matters."""

    root: Path

    @property
    def target(self) -> Path:
        return self.root / "lmcache" / TARGET

    @property
    def module(self) -> Path:
        return self.target.with_name("r8_parallel_read.py")

    def patch_target(self, *command: str) -> patching.PatchTarget:
        env = {"PYTHONPATH": str(self.root)}
        return patching.PatchTarget(command=command or (sys.executable,), env=env)

    def leftovers(self) -> list[str]:
        kept = {"local_disk_backend.py", "r8_parallel_read.py"}
        return [path.name for path in self.target.parent.iterdir() if path.name not in kept]


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeLMCache:
    series = tmp_path / "series"
    series.mkdir()
    (series / "r8_parallel_read.py").write_bytes(MODULE)
    added = "".join(f"+{line}\n" for line in HOOK.decode()[:-1].split("\n"))
    (series / "fake.diff").write_text(f"--- a\n+++ b\n@@ -3,0 +4,3 @@\n{added}")
    (series / "series.toml").write_text(
        f"""
[patch]
name = "fake"
target = "{TARGET}"
module = "r8_parallel_read.py"
module_sha256 = "{digest(MODULE)}"
[[series]]
name = "fake"
versions = ["9.9"]
what = "the file of 9.9"
base_sha256 = "{digest(BASE)}"
patched_sha256 = "{digest(BASE + HOOK)}"
base_lines = 3
[[foreign]]
name = "theirs"
sha256 = "{digest(b"theirs")}"
what = "another patch"
"""
    )
    monkeypatch.setattr(patching, "read_series", lambda: patch_series.read_series(series))
    found = FakeLMCache(tmp_path / "tree")
    found.target.parent.mkdir(parents=True)
    (found.root / "lmcache" / "__init__.py").write_text("raise RuntimeError('imported')\n")
    found.target.write_bytes(BASE)
    return found


def test_apply_twice_then_revert_twice_gives_the_original_bytes(tree: FakeLMCache) -> None:
    assert patching.status(tree.patch_target()).state == "base"
    for _ in range(2):
        applied = patching.apply(tree.patch_target())
        assert (applied.state, applied.name) == ("patched", "fake")
        assert applied.base_sha256 == digest(BASE)
        assert applied.module_sha256 == digest(MODULE)
        assert tree.target.read_bytes() == BASE + HOOK
    for _ in range(2):
        assert patching.revert(tree.patch_target()).state == "base"
        assert tree.target.read_bytes() == BASE
        assert not tree.module.exists()
    assert tree.leftovers() == []


def test_apply_keeps_the_mode_of_the_file(tree: FakeLMCache) -> None:
    tree.target.chmod(0o640)
    patching.apply(tree.patch_target())
    assert tree.target.stat().st_mode & 0o777 == 0o640


def test_a_stale_compiled_file_does_not_outlive_the_change(tree: FakeLMCache) -> None:
    cached = tree.target.parent / "__pycache__" / "local_disk_backend.cpython-311.pyc"
    cached.parent.mkdir()
    cached.write_bytes(b"old")
    patching.apply(tree.patch_target())
    assert not cached.exists()


@pytest.mark.parametrize("verb", ["apply", "revert"])
def test_a_modified_file_is_refused_and_left_alone(tree: FakeLMCache, verb: str) -> None:
    tree.target.write_bytes(BASE + b"# mine\n")
    with pytest.raises(PatchError, match="not a file of the series") as caught:
        getattr(patching, verb)(tree.patch_target())
    assert "9.9" in caught.value.next_step
    assert tree.target.read_bytes() == BASE + b"# mine\n"
    assert not tree.module.exists()


def test_a_foreign_patch_is_named(tree: FakeLMCache) -> None:
    tree.target.write_bytes(b"theirs")
    found = patching.status(tree.patch_target())
    assert (found.state, found.name, found.what) == ("foreign", "theirs", "another patch")
    with pytest.raises(PatchError, match="another patch"):
        patching.apply(tree.patch_target())


def test_two_methods_of_one_name_are_reported(tree: FakeLMCache) -> None:
    twice = b"class Backend:\n    def get(self):\n        pass\n    def get(self):\n        pass\n"
    tree.target.write_bytes(twice)
    found = patching.status(tree.patch_target())
    assert found.state == "unknown"
    assert found.duplicate_methods == ("Backend.get",)
    assert "Backend.get twice" in found.what


def test_property_setters_are_not_duplicates() -> None:
    source = (
        b"class A:\n    @property\n    def x(self): ...\n    @x.setter\n    def x(self, v): ...\n"
    )
    assert duplicate_methods(source) == []


def test_a_file_that_does_not_parse_is_unknown(tree: FakeLMCache) -> None:
    tree.target.write_bytes(b"class (\n")
    assert patching.status(tree.patch_target()).state == "unknown"


@pytest.mark.parametrize("damage", ["missing", "other"])
def test_a_hook_without_its_module_is_unknown_until_applied_again(
    tree: FakeLMCache, damage: str
) -> None:
    patching.apply(tree.patch_target())
    tree.module.unlink()
    if damage == "other":
        tree.module.write_bytes(b"# older\n")
    assert patching.status(tree.patch_target()).state == "unknown"
    assert patching.apply(tree.patch_target()).state == "patched"


def test_a_module_without_hook_is_harmless_and_cleaned(tree: FakeLMCache) -> None:
    tree.module.write_bytes(MODULE)
    found = patching.status(tree.patch_target())
    assert found.state == "base"
    assert "unused" in found.what
    patching.revert(tree.patch_target())
    assert not tree.module.exists()


@pytest.mark.parametrize("verb", ["apply", "revert"])
def test_killed_before_any_of_its_steps_the_file_has_one_of_two_digests(
    tree: FakeLMCache, verb: str
) -> None:
    steps = 0
    while True:
        steps += 1
        (patching.revert if verb == "apply" else patching.apply)(tree.patch_target())
        program = patching.agent_program(verb, tree.patch_target())
        done = subprocess.run(
            [sys.executable, "-c", KILLED_AT, str(steps)],
            input=program,
            text=True,
            capture_output=True,
            check=False,
        )
        assert tree.target.read_bytes() in {BASE, BASE + HOOK}
        if tree.target.read_bytes() == BASE + HOOK:
            assert tree.module.read_bytes() == MODULE
        if done.returncode != -signal.SIGKILL:
            break
    assert steps > 10, "the agent was not killed at enough steps to say anything"
    patching.revert(tree.patch_target())
    assert tree.leftovers() == []


def test_killed_at_random_times_it_can_always_be_finished(tree: FakeLMCache) -> None:
    dice = random.Random(8)  # noqa: S311 - reproducible, not secret
    for index in range(12):
        verb = ("apply", "revert")[index % 2]
        with subprocess.Popen(
            [sys.executable, "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as agent:
            assert agent.stdin is not None
            agent.stdin.write(patching.agent_program(verb, tree.patch_target()))
            agent.stdin.close()
            time.sleep(dice.uniform(0, 0.12))
            agent.kill()
        assert tree.target.read_bytes() in {BASE, BASE + HOOK}
        assert getattr(patching, verb)(tree.patch_target()).state in {"base", "patched"}


def test_the_agent_runs_behind_an_exec_prefix_that_drops_the_environment(
    tree: FakeLMCache,
) -> None:
    target = tree.patch_target("env", "-i", sys.executable)
    assert patching.apply(target).state == "patched"


def test_a_python_without_lmcache_says_what_to_type(tmp_path: Path) -> None:
    target = patching.PatchTarget(command=(sys.executable, "-S", "-E"), env={"PYTHONPATH": ""})
    with pytest.raises(PatchError, match="no LMCache") as caught:
        patching.status(target)
    assert "--python" in caught.value.next_step


@pytest.mark.parametrize("command", [("/nowhere/python",), ("false",)])
def test_a_python_that_does_not_run_is_one_clear_error(command: tuple[str, ...]) -> None:
    with pytest.raises(PatchError, match="the engine's Python"):
        patching.status(patching.PatchTarget(command=command))


def test_a_tree_without_the_backend_is_refused(tree: FakeLMCache) -> None:
    tree.target.unlink()
    with pytest.raises(PatchError, match="no local disk backend"):
        patching.status(tree.patch_target())


def test_every_published_digest_is_recognised() -> None:
    assert {sha: patching.show(sha).state for sha in PUBLISHED_DIGESTS} == PUBLISHED_DIGESTS


def test_show_names_a_patched_digest_and_refuses_an_unknown_version() -> None:
    entry = patch_series.read_series().entries[0]
    assert patching.show(entry.patched_sha256).state == "patched"
    assert patching.show("0.4.7").name == patching.show("0.5.0").name == "lmcache-0.5.0"
    with pytest.raises(PatchError, match=r"nothing of 0\.5\.3"):
        patching.show("0.5.3")


def test_every_shipped_diff_only_adds_our_lines() -> None:
    series = patch_series.read_series()
    assert len(series.entries) == 4
    for entry in series.entries:
        lines = patching.diff(entry.name).splitlines()
        assert [line[:1] for line in lines[3:]] == ["+"] * len(lines[3:])
        assert "r8_parallel_read.install(LocalDiskBackend)" in entry.hook
    assert len({entry.hook for entry in series.entries}) == 1


def test_a_diff_that_removes_a_line_is_refused(tmp_path: Path) -> None:
    bad = tmp_path / "bad.diff"
    bad.write_text("--- a\n+++ b\n@@ -3,0 +4,2 @@\n+one\n-two\n")
    with pytest.raises(PatchError, match="only adds"):
        patch_series.added_text(bad, 3)


def test_a_module_that_is_not_the_one_of_the_series_is_refused(
    tree: FakeLMCache, tmp_path: Path
) -> None:
    (tmp_path / "series" / "r8_parallel_read.py").write_bytes(b"changed")
    with pytest.raises(PatchError, match="the series says"):
        patching.apply(tree.patch_target())


def run_verb(*words: str) -> int:
    parser = argparse.ArgumentParser()
    patch_verbs.add_verbs(parser.add_subparsers())
    args = parser.parse_args(["patch", *words])
    code: int = args.func(args)
    return code


def test_the_verbs_print_json_or_a_line_and_refuse_an_unknown_file(
    tree: FakeLMCache, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--python", sys.executable, "--lmcache", str(tree.root)]
    assert run_verb("apply", *options, "--json") == 0
    assert json.loads(capsys.readouterr().out)["state"] == "patched"
    assert run_verb("revert", *options) == 0
    assert capsys.readouterr().out.startswith("base: ")
    tree.target.write_bytes(b"x = 1\n")
    with pytest.raises(PatchError):
        run_verb("apply", *options)


def test_show_prints_the_diff(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_verb("show", "0.5.6") == 0
    assert "+r8_parallel_read.install(LocalDiskBackend)" in capsys.readouterr().out
    with pytest.raises(PatchError):
        run_verb("show", "nothing")


@pytest.mark.stack
@pytest.mark.parametrize("version", ["0.5.0", "0.5.1", "0.5.6"])
def test_a_real_tree_goes_to_the_pinned_digest_and_back(version: str, tmp_path: Path) -> None:
    source = os.environ.get(f"R8_LMCACHE_{version.replace('.', '_')}")
    if source is None:
        pytest.skip(f"no LMCache {version}: set R8_LMCACHE_{version.replace('.', '_')}")
    copy = FakeLMCache(tmp_path / "tree")
    subprocess.run(["cp", "-rs", str(Path(source).resolve()), str(copy.root)], check=True)
    original = copy.target.read_bytes()
    before = patching.status(copy.patch_target())
    assert (before.state, before.lmcache_version) == ("base", version)
    assert patching.apply(copy.patch_target()).state == "patched"
    assert patching.show(digest(copy.target.read_bytes())).state == "patched"
    assert patching.revert(copy.patch_target()).state == "base"
    assert copy.target.read_bytes() == original
    assert (Path(source) / "lmcache" / TARGET).read_bytes() == original
