"""The LMCache trees of a campaign: brought into each arm's state, left as they were found."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from r8.errors import PatchError, SiteError
from r8.lab.instruments.probes import CHECKOUT
from r8.lab.patching import patching
from r8.model import PatchState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from r8.lab.campaign.testbed import Testbed
    from r8.lab.machine.supervisor import Supervisor
    from r8.lab.patching.patching import PatchStatus, PatchTarget
    from r8.lab.site.file import Arm

# What brings a tree back into the state it was found in; a foreign one is never touched.
_BACK = {"base": "revert", "patched": "apply"}


def targets(testbed: Testbed, instances: Sequence[str], env: dict[str, str]) -> list[PatchTarget]:
    """The trees the engines of this environment import, one a host."""
    return [
        patching.PatchTarget(command=tuple(testbed.python(host)), env=env)
        for host in testbed.site.hosts_of(instances)
    ]


@dataclass(slots=True, kw_only=True)
class PatchStates:
    """Every LMCache tree this campaign touches, and what it was before."""

    testbed: Testbed
    supervisor: Supervisor
    instances: tuple[str, ...]
    _found: dict[tuple[tuple[str, ...], str], tuple[PatchTarget, str, int | None]] = field(
        default_factory=dict
    )

    def set(self, arm: Arm, env: dict[str, str]) -> PatchState:
        """Bring LMCache into the state the arm names, on every host.

        Raises:
            PatchError: a tree no digest of the series knows.
            SiteError: another LMCache than the arm names, or hosts that differ.

        """
        states = [
            self._set_one(target, arm) for target in targets(self.testbed, self.instances, env)
        ]
        if len(set(states)) > 1:
            raise SiteError(
                f"the hosts import different LMCache files: "
                f"{', '.join(sorted({one.target_sha256[:12] for one in states}))}",
                where="engine.python on every host",
                next_step="install the same LMCache everywhere",
            )
        return states[0]

    def _set_one(self, target: PatchTarget, arm: Arm) -> PatchState:
        before = patching.status(target)
        key = (target.command, target.env.get("PYTHONPATH", ""))
        if key not in self._found:
            self._found[key] = (target, before.state, self._note_way_back(target, before.state))
        now = patching.apply(target) if arm.patch == "patched" else patching.revert(target)
        return _as_state(now, arm)

    def _note_way_back(self, target: PatchTarget, state: str) -> int | None:
        """Let the supervisor bring the tree back, which may be somebody's own, if we cannot."""
        if state not in _BACK:
            return None
        words, patience_s = way_back_argv(target, state), patching.AGENT_TIMEOUT_S
        return self.supervisor.on_exit(words, "LMCache as it was found", patience_s)

    def restore(self) -> None:
        """Leave every tree as this campaign found it."""
        for target, state, token in self._found.values():
            if state in _BACK:
                (patching.revert if _BACK[state] == "revert" else patching.apply)(target)
            if token is not None:
                self.supervisor.forget(token)


def way_back_argv(target: PatchTarget, state: str) -> list[str]:
    """The command that brings a tree back into the state `base` or `patched`."""
    words = ["patch", _BACK[state], "--python", shlex.join(target.command)]
    if path := target.env.get("PYTHONPATH"):
        words += ["--lmcache", path]
    return ["env", f"PYTHONPATH={CHECKOUT}", sys.executable, "-m", "r8", *words]


def _as_state(now: PatchStatus, arm: Arm) -> PatchState:
    version, base_sha256 = now.lmcache_version, now.base_sha256
    if version is None or base_sha256 is None:
        raise PatchError(
            f"{now.what}: neither patched nor a base the series knows",
            where=now.path,
            next_step="install an LMCache of patches/lmcache-parallel-read/series.toml",
        )
    if arm.lmcache is not None and version != arm.lmcache:
        raise SiteError(
            f"the engine imports LMCache {version}, the arm names {arm.lmcache}",
            where=now.path,
            next_step="mend arms.<name>.lmcache, or let R8 build the tree: nox -s stack",
        )
    return PatchState(
        expected=arm.patch,
        lmcache_version=version,
        target_sha256=now.target_sha256,
        base_sha256=base_sha256,
        module_sha256=now.module_sha256 if arm.patch == "patched" else None,
    )
