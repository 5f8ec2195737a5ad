"""How commands reach a host, and what the lab asks of a KV directory there.

Everything goes through the host's exec prefix; without one the command runs here. `ssh` hands its
words to a shell on the other side, so behind it they are quoted into one.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from r8.errors import SiteError
from r8.lab.machine import commands

if TYPE_CHECKING:
    from collections.abc import Sequence

    from r8.lab.machine.commands import CommandResult
    from r8.lab.machine.supervisor import Supervisor
    from r8.lab.site.file import Site
    from r8.lab.site.machines import Host

# LMCache writes `<key>.pt` to a local disk and `<key>.data` behind fs://; nothing else is KV.
KV_SUFFIXES = (".pt", ".data")
# A directory of 30 000 chunk files on an array that is still writing.
LOOK_TIMEOUT_S = 300.0
# Writes count as over when a directory has not changed for this long after a sync.
QUIET_S = 2.0
# What a file system itself needs beside the files.
FILE_SYSTEM_FACTOR = 1.1


def through(prefix: Sequence[str], words: Sequence[str]) -> list[str]:
    """The command that runs `words` behind an exec prefix."""
    if prefix and PurePosixPath(prefix[0]).name == "ssh":
        return [*prefix, shlex.join(words)]
    return [*prefix, *words]


def engine_words(site: Site, words: Sequence[str], host_name: str | None = None) -> list[str]:
    """The command that runs `words` where an engine runs: its host, then its container."""
    host = site.host(host_name or site.engine.host)
    return through(host.exec_prefix, [*site.engine.exec_prefix, *words])


def engine_is_remote(site: Site, host_name: str | None = None) -> bool:
    """Whether an engine runs behind any prefix at all."""
    host = site.host(host_name or site.engine.host)
    return bool(host.exec_prefix or site.engine.exec_prefix)


def free_bytes(host: Host, path: str) -> int:
    """Bytes an ordinary user may still write where a directory of a host lies; 0 when not told."""
    words = ["df", "--output=avail", "--block-size=1", path]
    last = commands.run(through(host.exec_prefix, words)).output.split()[-1:]
    return int(last[0]) if last and last[0].isdigit() else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class KvDirectory:
    """A directory of KV files that this campaign makes and removes, on one host."""

    host: Host
    path: str
    suffixes: tuple[str, ...] = KV_SUFFIXES  # of the files that count; "" is every file

    def words(self, verb: str, *more: str) -> list[str]:
        """The command of one verb, as it is run and as a dry run prints it."""
        names = " -o ".join(f"-name '*{suffix}'" for suffix in self.suffixes)
        script = {
            # Not -p: a directory that is there already is another pool.
            "make": 'mkdir "$1"',
            "look": f"find \"$1\" -type f \\( {names} \\) -printf '%s\\n'",
            "sync": 'sync -f "$1"',
            "now": "date +@%s.%N",
            # By the instant of their last write: names say nothing of whose chunks they hold.
            "read in": f'find "$1" -type f \\( {names} \\) -newermt "$2" ! -newermt "$3" '
            "-exec cat {} + | wc -c",
            "remove": 'rm -rf "$1"',
        }[verb]
        return through(self.host.exec_prefix, ["sh", "-c", script, "r8", self.path, *more])

    def make(self) -> None:
        """Make it; its parent must be there.

        Raises:
            SiteError: it cannot be made, or was there before: a pool that is not empty would be
                read without having been populated.

        """
        self._checked("make", f"the KV directory cannot be made on {self.host.name}")

    def create(self, supervisor: Supervisor, name: str) -> int:
        """Make it, noted for removal before; returns the token to undo it by.

        Raises:
            SiteError: as `make`; what was there before is not removed.

        """
        token = supervisor.on_exit(self.words("remove"), name)
        try:
            self.make()
        except SiteError:
            supervisor.forget(token)
            raise
        return token

    def state(self) -> tuple[int, int]:
        """Number of KV files and their bytes. SiteError when it cannot be looked at."""
        done = self._checked("look", f"the KV directory cannot be looked at on {self.host.name}")
        sizes = [int(line) for line in done.output.split()]
        return len(sizes), sum(sizes)

    def sync(self) -> CommandResult:
        """Write the file system it lies on out to the device."""
        return commands.run(self.words("sync"), timeout_s=LOOK_TIMEOUT_S)

    def now(self) -> str:
        """The instant on the host's own clock, as `find` reads it."""
        return self._checked("now", f"{self.host.name} does not tell its time").output.strip()

    def read_in(self, since: str, until: str) -> CommandResult:
        """Read the KV files last written in an interval into the page cache; prints their bytes."""
        return commands.run(self.words("read in", since, until), timeout_s=LOOK_TIMEOUT_S)

    def _checked(self, verb: str, what: str) -> CommandResult:
        done = commands.run(self.words(verb), timeout_s=LOOK_TIMEOUT_S)
        # A file that was renamed while `find` walked is no failure of the directory.
        if done.ok or (verb == "look" and done.returncode == 1):
            return done
        raise SiteError(
            f"{what}: {done.error}",
            where=done.line,
            next_step="run that command by hand; see the device's kv_dir in the site file",
        )
