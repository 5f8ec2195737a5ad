"""Two hosts of one machine: network namespaces with an sshd each, and one device between them.

What only other hosts have - another network, commands that go through a shell, environments and
pids that stay behind - is there; a kernel, a clock and a disk of their own are not.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from r8.lab.machine.commands import run
from r8.lab.rehearsal import stack
from r8.lab.rehearsal.build import CONNECTOR, STACK_DIR, model_argv
from r8.tests.qualify.rehearse import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

NODES = ("node0", "node1")
LMCACHE = "0.5.0"
# R3's model of the rehearsal: 32 KiB of KV a token.
MODEL = {"layers": 4, "kv_heads": 8, "head_dim": 128, "hidden": 768, "seed": 8}
IMAGE_BYTES = 4 << 30
SSHD = Path("/usr/sbin/sshd")
SSHD_START_S = 10.0
TEMPLATE = Path(__file__).with_name("ssh_nodes.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """Where the hosts are reached, and what a site file says of them."""

    root: Path
    site: Path


def _must(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(words)}: {done.stderr.strip()}"
    return done.stdout.strip()


@contextlib.contextmanager
def nodes() -> Iterator[Nodes]:
    """Both hosts, ready to be logged in to; everything is taken down again afterwards."""
    if os.geteuid() != 0 or not SSHD.exists() or shutil.which("ip") is None:
        pytest.skip("needs root, sshd (openssh-server) and ip (iproute2)")
    stack.ensure(STACK_DIR, [LMCACHE])
    root = Path(tempfile.mkdtemp(prefix="r8-ssh-", dir="/tmp"))
    with contextlib.ExitStack() as undo:
        undo.callback(shutil.rmtree, root, ignore_errors=True)
        _pool(root, undo)
        _keys(root)
        for number, node in enumerate(NODES):
            _node(root, number, node, undo)
        config = _ssh_config(root)
        for node in NODES:
            _wait(config, node)
        yield Nodes(root=root, site=_site(root, config))


def _pool(root: Path, undo: contextlib.ExitStack) -> None:
    """An XFS on a loop device over an image; both hosts have it at the same place."""
    image, mount = root / "pool.img", root / "pool"
    with image.open("wb") as file:
        file.truncate(IMAGE_BYTES)
    mount.mkdir()
    loop = _must("losetup", "--find", "--show", str(image))
    undo.callback(subprocess.run, ["losetup", "--detach", loop], check=False)
    _must("mkfs.xfs", "-q", loop)
    _must("mount", loop, str(mount))
    undo.callback(subprocess.run, ["umount", str(mount)], check=False)


def _keys(root: Path) -> None:
    for name in ("host", "user"):
        _must("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(root / name))
    Path("/run/sshd").mkdir(exist_ok=True)  # where sshd locks its unprivileged half in


def _address(number: int) -> str:
    return f"10.83.{number}.2"


def _node(root: Path, number: int, node: str, undo: contextlib.ExitStack) -> None:
    """A network namespace, a pair of interfaces to it, and an sshd that listens in it."""
    space, outside, inside = f"r8-{node}", f"r8{node}o", f"r8{node}i"
    _must("ip", "netns", "add", space)
    undo.callback(subprocess.run, ["ip", "netns", "delete", space], check=False)
    _must("ip", "link", "add", outside, "type", "veth", "peer", "name", inside, "netns", space)
    _must("ip", "addr", "add", f"10.83.{number}.1/30", "dev", outside)
    _must("ip", "link", "set", outside, "up")
    for words in (
        f"addr add {_address(number)}/30 dev {inside}",
        f"link set {inside} up",
        "link set lo up",
    ):
        _must("ip", "-n", space, *words.split())
    config = root / f"sshd-{node}"
    config.write_text(
        f"ListenAddress {_address(number)}\nPort 22\nHostKey {root}/host\nPidFile none\n"
        f"AuthorizedKeysFile {root}/user.pub\nStrictModes no\nUsePAM no\n"
        "PermitRootLogin prohibit-password\nMaxStartups 100\nMaxSessions 100\n"
    )
    listen = ["ip", "netns", "exec", space, str(SSHD), "-D", "-f", str(config)]
    server = subprocess.Popen(listen, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    undo.callback(server.wait)
    undo.callback(server.terminate)


def _ssh_config(root: Path) -> Path:
    config = root / "ssh_config"
    hosts = [f"Host {node}\n  HostName {_address(number)}\n" for number, node in enumerate(NODES)]
    config.write_text(
        "".join(hosts) + f"Host *\n  User root\n  IdentityFile {root}/user\n  BatchMode yes\n"
        f"  StrictHostKeyChecking accept-new\n  UserKnownHostsFile {root}/known_hosts\n"
        "  IdentitiesOnly yes\n  LogLevel ERROR\n"
    )
    return config


def _wait(config: Path, node: str) -> None:
    deadline = time.monotonic() + SSHD_START_S
    while not run(["ssh", "-F", str(config), node, "true"]).ok:
        assert time.monotonic() < deadline, f"{node} lets nobody in"
        time.sleep(0.2)


def _site(root: Path, config: Path) -> Path:
    """The template with the places of this testbed; the LMCache tree and connector are copies."""
    python = stack.stack_python(STACK_DIR)
    shutil.copytree(stack.overlay(STACK_DIR, LMCACHE), root / "lmcache")
    connector = ROOT / "r8" / "lab" / "rehearsal" / "cpu_connector.py"
    shutil.copy(connector, root / "lmcache" / CONNECTOR)
    made = run(model_argv([str(python)], root / "model", MODEL), timeout_s=300.0)
    assert made.ok, made.error
    text = TEMPLATE.read_text()
    for word, value in {
        "@ROOT@": str(root),
        "@SSH_CONFIG@": str(config),
        "@PYTHON@": str(python),
        "@ADDRESS_0@": _address(0),
        "@ADDRESS_1@": _address(1),
    }.items():
        text = text.replace(word, value)
    path = root / "site.toml"
    path.write_text(text)
    return path
