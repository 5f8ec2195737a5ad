"""Stand-ins for what a cluster has: docker, the engine's Python, rocm-smi, iostat, a cache drop.

They record the words they were called with, and act just enough for a campaign to go through. They
prove command text and the order of things, never a measurement: nothing here is evidence.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from r8.lab.patching.agent import ANSWER_MARK

if TYPE_CHECKING:
    import pytest

SERVER = Path(__file__).with_name("standin_server.py")
ROOT = Path(__file__).resolve().parents[3]

_RECORD = """\
#!{python}
import json, os, subprocess, sys
words = [os.path.basename(sys.argv[0]), *sys.argv[1:]]
with open({log!r}, "a") as log:
    log.write(json.dumps(words) + "\\n")
rest = sys.argv[1:]
"""
_DOCKER = """
if rest == ["top", "vllm", "-eo", "pid,args"]:
    print("PID COMMAND")
    for pid in sorted(int(name) for name in os.listdir("/proc") if name.isdigit()):
        try:
            args = open("/proc/%d/cmdline" % pid).read().split("\\0")
        except OSError:
            continue
        if {server!r} in args:
            print(pid, "python3 -m vllm.entrypoints.openai.api_server", *args[2:])
elif rest[:3] == ["exec", "-i", "vllm"]:
    os.execvp(rest[3], rest[3:])
else:
    sys.exit("docker stand-in: only exec -i vllm and top")
"""
_PYTHON = """
if rest == ["-"]:
    program = sys.stdin.read()
    state = {state!r}
    for verb in ("apply", "revert"):
        if '"verb": "' + verb + '"' in program.replace("\\\\", ""):
            open(state, "w").write("patched" if verb == "apply" else "base")
    now = open(state).read() if os.path.exists(state) else "base"
    status = dict(state=now, name="standin", lmcache_version="0.5.0", path="/standin/lmcache",
                  target_sha256=("b" if now == "patched" else "a") * 64, base_sha256="a" * 64,
                  module_sha256="c" * 64, what="a stand-in", duplicate_methods=[])
    print({mark!r} + json.dumps(dict(status=status)))
elif rest[:2] == ["-m", "vllm.entrypoints.openai.api_server"]:
    os.execv({python!r}, [{python!r}, {server!r}, *rest[2:]])
else:
    os.execv({python!r}, [{python!r}, *rest])
"""
_ROCM = """
sys.stdout.write("device,PCI Bus,VRAM Total Memory (B),VRAM Total Used Memory (B)\\n")
sys.stdout.write("card0,0000:0C:00.0,206141652992,297000000\\n")
"""
_IOSTAT = """
real = {real!r}
os.execv(real, [real, *rest]) if real else sys.exit(127)
"""
_NOTHING = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standins:
    """Where the stand-ins stand, and what they were asked to do."""

    folder: Path
    log: Path
    dying: Path  # the server ends as soon as this file is there

    def calls(self, name: str) -> list[list[str]]:
        """The words one of them was called with, in order."""
        if not self.log.exists():
            return []
        lines = [json.loads(line) for line in self.log.read_text().splitlines()]
        return [words[1:] for words in lines if words[0] == name]


def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Standins:
    """Put the stand-ins before everything else on PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    log, dying = tmp_path / "calls.jsonl", tmp_path / "die"
    facts = {
        "python": sys.executable,
        "log": str(log),
        "state": str(tmp_path / "patch-state"),
        "mark": ANSWER_MARK,
        "server": str(SERVER),
        "real": shutil.which("iostat"),
    }
    bodies = {
        "docker": _DOCKER,
        "python3": _PYTHON,
        "rocm-smi": _ROCM,
        "iostat": _IOSTAT,
        "r8-drop-caches": _NOTHING,
    }
    for name, body in bodies.items():
        path = folder / name
        head = _RECORD.format(**facts)
        path.write_text(head + (body.format(**facts) if "{" in body else body))
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("R8_STANDIN_DIE", str(dying))
    return Standins(folder=folder, log=log, dying=dying)


def standin_site(tmp_path: Path, ports: dict[int, int]) -> Path:
    """The published platform's file, its directories and ports moved into this test."""
    text = (ROOT / "data" / "sites" / "mi308x-480b.toml").read_text()
    for name in ("array", "nvme"):
        (tmp_path / name).mkdir()
        text = text.replace(f"/mnt/{name}/r8", str(tmp_path / name))
    # Enough for fio's words and rows; a walk measures nothing.
    small = "fio = { read_bytes = 8388608, queue_depth = 4, threads = 1, seconds = 2 }\n"
    text = text.replace('name = "array"\n', f'name = "array"\n{small}', 1)
    text = text.replace('name = "local"\n', f'name = "local"\n{small}', 1)
    for line in ('block_device = "md0" ', "link_bytes_per_s", "nics = "):
        text = "\n".join(row for row in text.splitlines() if not row.startswith(line)) + "\n"
    for old, new in ports.items():
        text = text.replace(f"port = {old}", f"port = {new}")
    text = text.replace('name = "node0"\n', 'name = "node0"\ndrop_caches = ["r8-drop-caches"]\n', 1)
    text = text.replace("prompt_tokens = 30300", "prompt_tokens = 600")
    text = text.replace("stop_grace_s = 30.0", "stop_grace_s = 3.0")
    path = tmp_path / "site.toml"
    path.write_text(text)
    return path


def free_ports(count: int) -> list[int]:
    """So many different ports of this host that were free a moment ago."""
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in held:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in held]


def free_port() -> int:
    """A port of this host that was free a moment ago."""
    return free_ports(1)[0]
