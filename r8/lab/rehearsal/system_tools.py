"""Tools of the system the rehearsal stands on, and the Debian packages they come from."""

from __future__ import annotations

import ctypes.util
import os
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

OPT_OUT = "R8_NO_APT"
_APT_TIMEOUT_S = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A program or library, the package it comes from, and what is lost without it."""

    name: str
    package: str
    without: str
    library: str | None = None

    @property
    def present(self) -> bool:
        """Whether this machine has it."""
        if self.library is not None and ctypes.util.find_library(self.library) is None:
            return False
        return shutil.which(self.name) is not None


TOOLS = (
    Tool(
        name="fusermount3",
        package="fuse3",
        library="fuse3",
        without="the device cannot be shaped: the rehearsal uses the machine's own disk",
    ),
    Tool(
        name="mkfs.xfs",
        package="xfsprogs",
        without="no block device of its own: the rehearsal uses a FUSE mount",
    ),
    Tool(name="fio", package="fio", without="readers of our own measure the device's ceiling"),
    Tool(name="iostat", package="sysstat", without="no second witness beside /proc/diskstats"),
)


def system_tools() -> list[Tool]:
    """The tools that are missing."""
    return [tool for tool in TOOLS if not tool.present]


def ensure_system_tools(say: Callable[[str], None]) -> list[Tool]:
    """Install what is missing where that is allowed; say it; return what is still missing.

    Only root with apt-get installs, and not with R8_NO_APT=1. Elsewhere the line to type is said,
    and what will be lost.
    """
    missing = system_tools()
    if not missing:
        return []
    packages = [tool.package for tool in missing]
    line = f"apt-get install -y --no-install-recommends {' '.join(packages)}"
    allowed = os.geteuid() == 0 and os.environ.get(OPT_OUT) != "1"
    if allowed and shutil.which("apt-get") is not None:
        say(f"as root: {line}   ({OPT_OUT}=1 forbids this)")
        _apt(["update", "-qq"])
        _apt(line.split()[1:])
        missing = system_tools()
    else:
        say(f"missing {', '.join(tool.name for tool in missing)}; type: sudo {line}")
    for tool in missing:
        say(f"without {tool.name}: {tool.without}")
    return missing


def _apt(arguments: list[str]) -> bool:
    """Whether apt-get went through; its failure only means that the tool stays missing."""
    try:
        done = subprocess.run(
            ["apt-get", *arguments],
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
            capture_output=True,
            timeout=_APT_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
