from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from r8.errors import SiteError
from r8.lab.rehearsal import stack, system_tools

if TYPE_CHECKING:
    from collections.abc import Callable


def report(version: str, requires: list[str]) -> dict[str, object]:
    return {"install": [{"metadata": {"version": version, "requires_dist": requires}}]}


def test_a_torch_that_wants_nvidia_packages_is_not_the_cpu_build() -> None:
    why = stack.why_not_cpu(
        report("2.13.0", ["filelock", "nvidia-cublas-cu12==12.6.4.1; platform_system == 'Linux'"])
    )
    assert why is not None
    assert "nvidia-cublas-cu12==12.6.4.1;" in why


@pytest.mark.parametrize("version", ["2.13.0", "2.13.0+cpu"])
def test_a_torch_that_wants_none_is_taken_as_it_is(version: str) -> None:
    assert stack.why_not_cpu(report(version, ["filelock", "sympy>=1.13"])) is None


def test_an_empty_report_is_no_cpu_build() -> None:
    assert stack.why_not_cpu({"install": []}) == "pip would install nothing"


def test_the_lock_pins_every_package_and_leaves_lmcache_to_the_overlays() -> None:
    lines = stack.LOCK.read_text().splitlines()
    assert all("==" in line for line in lines)
    assert not [line for line in lines if line.startswith("lmcache")]
    assert "torch==2.13.0+cpu" in lines


class FakeRun:
    """Stands in for subprocess.run: notes what was asked, and makes what pip would make."""

    def __init__(self, *, cuda: bool = False, fail_at: str | None = None) -> None:
        self.asked: list[list[str]] = []
        self.cuda = cuda
        self.fail_at = fail_at

    def __call__(
        self, argv: list[str], *, stdout: object = None, env: dict[str, str], **_rest: object
    ) -> subprocess.CompletedProcess[bytes]:
        self.asked.append(argv)
        words = " ".join(argv)
        if self.fail_at is not None and self.fail_at in words:
            stdout.write(b"WARNING: noise\nERROR: no such wheel\n")  # type: ignore[attr-defined]
            return subprocess.CompletedProcess(argv, 1)
        if "--report" in argv:
            wants = ["nvidia-cudnn"] if self.cuda else []
            Path(argv[argv.index("--report") + 1]).write_text(json.dumps(report("2.13.0", wants)))
        if "--target" in argv:
            Path(argv[argv.index("--target") + 1]).mkdir()
        if "-c" in argv:
            path = env["PYTHONPATH"]
            version = path.rpartition("-")[2]
            stdout.write(f"{version} None {path}/lmcache/x\n".encode())  # type: ignore[attr-defined]
        return subprocess.CompletedProcess(argv, 0)

    def has_asked(self, words: str) -> bool:
        return any(words in " ".join(argv) for argv in self.asked)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Callable[..., FakeRun]:
    def install(**how: object) -> FakeRun:
        run = FakeRun(**how)  # type: ignore[arg-type]
        monkeypatch.setattr("r8.lab.rehearsal.stack.subprocess.run", run)
        monkeypatch.setattr(stack, "ensure_system_tools", lambda _say: [])
        return run

    return install


def test_a_second_ensure_asks_for_nothing(tmp_path: Path, fake: Callable[..., FakeRun]) -> None:
    first = fake()
    stack.ensure(tmp_path, ["0.5.0", "0.5.6"])
    assert first.has_asked("lmcache==0.5.6")
    assert stack.is_ready(tmp_path, ["0.5.0", "0.5.6"])
    second = fake()
    stack.ensure(tmp_path, ["0.5.0", "0.5.6"])
    assert second.asked == []
    assert not stack.is_ready(tmp_path, ["0.5.1"])


def test_a_cuda_torch_sends_pip_to_the_cpu_index(
    tmp_path: Path, fake: Callable[..., FakeRun]
) -> None:
    run = fake(cuda=True)
    stack.ensure(tmp_path, ["0.5.0"])
    assert run.has_asked(f"--index-url {stack.TORCH_CPU_INDEX} torch==2.13.0+cpu")


def test_a_cpu_torch_leaves_the_default_index_alone(
    tmp_path: Path, fake: Callable[..., FakeRun]
) -> None:
    run = fake()
    stack.ensure(tmp_path, ["0.5.0"])
    assert not run.has_asked(stack.TORCH_CPU_INDEX)


def test_a_failed_step_quotes_pip_names_its_log_and_is_taken_up_again(
    tmp_path: Path, fake: Callable[..., FakeRun]
) -> None:
    fake(fail_at="lmcache==0.5.1")
    with pytest.raises(SiteError, match=r"no such wheel.*lmcache-0\.5\.1\.log"):
        stack.ensure(tmp_path, ["0.5.0", "0.5.1"])
    run = fake()
    stack.ensure(tmp_path, ["0.5.0", "0.5.1"])
    assert not run.has_asked("torch==")
    assert run.has_asked("lmcache==0.5.1")
    assert not stack.overlay(tmp_path, "0.5.1.partial").exists()


def test_an_environment_of_another_lock_is_built_anew(
    tmp_path: Path, fake: Callable[..., FakeRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake()
    stack.ensure(tmp_path, ["0.5.0"])
    other = tmp_path / "other-lock.txt"
    other.write_text("torch==2.14.0+cpu\n")
    monkeypatch.setattr(stack, "LOCK", other)
    assert not stack.is_ready(tmp_path, ["0.5.0"])


def test_another_lmcache_in_front_is_an_error(
    tmp_path: Path, fake: Callable[..., FakeRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = fake()

    def wrong(argv: list[str], **rest: object) -> object:
        if "-c" in argv:
            rest["stdout"].write(b"0.4.9 None /usr/lib/lmcache\n")  # type: ignore[attr-defined]
            return subprocess.CompletedProcess(argv, 0)
        return run(argv, **rest)  # type: ignore[arg-type]

    monkeypatch.setattr("r8.lab.rehearsal.stack.subprocess.run", wrong)
    with pytest.raises(SiteError, match=r"expected LMCache 0\.5\.0"):
        stack.ensure(tmp_path, ["0.5.0"])


def test_two_builders_take_turns(tmp_path: Path, fake: Callable[..., FakeRun]) -> None:
    run = fake()
    (tmp_path / "logs").mkdir()
    with stack._alone_in(tmp_path):
        other = threading.Thread(target=stack.ensure, args=(tmp_path, ["0.5.0"]))
        other.start()
        other.join(timeout=0.3)
        assert other.is_alive()
        assert run.asked == []
    other.join(timeout=10)
    assert stack.is_ready(tmp_path, ["0.5.0"])


def lacking(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    hidden = {*names}
    monkeypatch.setattr(shutil, "which", lambda name: None if name in hidden else name)
    monkeypatch.setattr("ctypes.util.find_library", lambda name: name)


@pytest.mark.parametrize(("uid", "opt_out"), [(1000, None), (0, "1")])
def test_without_root_or_leave_the_line_to_type_is_said_and_nothing_is_installed(
    monkeypatch: pytest.MonkeyPatch, uid: int, opt_out: str | None
) -> None:
    lacking(monkeypatch, "fio", "mkfs.xfs")
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    monkeypatch.delenv(system_tools.OPT_OUT, raising=False)
    if opt_out is not None:
        monkeypatch.setenv(system_tools.OPT_OUT, opt_out)
    monkeypatch.setattr(system_tools, "_apt", lambda _argv: pytest.fail("it was installed"))
    said: list[str] = []
    left = system_tools.ensure_system_tools(said.append)
    assert [tool.name for tool in left] == ["mkfs.xfs", "fio"]
    assert "sudo apt-get install -y --no-install-recommends xfsprogs fio" in said[0]
    assert any("uses a FUSE mount" in line for line in said)


def test_root_installs_what_is_missing_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    lacking(monkeypatch, "fio")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.delenv(system_tools.OPT_OUT, raising=False)
    asked: list[list[str]] = []

    def apt(argv: list[str]) -> bool:
        asked.append(argv)
        lacking(monkeypatch)
        return True

    monkeypatch.setattr(system_tools, "_apt", apt)
    said: list[str] = []
    assert system_tools.ensure_system_tools(said.append) == []
    assert asked[-1] == ["install", "-y", "--no-install-recommends", "fio"]
    assert "as root" in said[0]


def test_nothing_is_said_where_nothing_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    lacking(monkeypatch)
    said: list[str] = []
    assert system_tools.ensure_system_tools(said.append) == []
    assert said == []
