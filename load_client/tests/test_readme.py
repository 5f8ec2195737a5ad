"""The commands, files and stamps that the README of this package names exist."""

from __future__ import annotations

import re
import shlex
from fnmatch import fnmatch
from pathlib import Path

import pytest

from load_client.cli import command_line
from load_client.record import capture

from .support.runs import good, plan, run
from .support.scripted_server import scripted

README = (Path(__file__).resolve().parents[1] / "README.md").read_text(encoding="ascii")
COMMANDS = re.findall(r"^    python -m load_client (.+)$", README, re.MULTILINE)
FILES = re.findall(r"^\| `DIR/(\S+)` \|", README, re.MULTILINE)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_one(command: str) -> None:
    assert command_line().parse_args(shlex.split(command)).command


def test_every_file_of_a_run_is_named_and_every_named_file_is_left(tmp_path: Path) -> None:
    with scripted(good) as server:
        run(plan(server.url), tmp_path)
    left = [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()]
    assert [name for name in left if not any(fnmatch(name, one) for one in FILES)] == []
    assert [one for one in FILES if not any(fnmatch(name, one) for name in left)] == []


def test_every_stamp_is_named() -> None:
    names = {capture.stamp_of(clock, way) for clock in ("kernel", "user") for way in capture.WAYS}
    words = set(re.findall(r"`(-?[a-z-]+)`", README))
    assert {re.sub(r"^(kernel|user)(?=-)", "", name) for name in names} <= words
