"""Every LMCache a campaign uses: brought into each arm's patch state, left as it was found."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from r8.errors import PatchError, SiteError
from r8.lab.instruments.probes import CHECKOUT
from r8.lab.patching import patching
from r8.lab.patching.patching import PatchTarget
from r8.model import PatchState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from r8.lab.patching.patching import PatchStatus
    from r8.lab.site.arms import Arm
    from r8.lab.testbed import Testbed

# The verb that brings an LMCache back into the state it was found in; others are never touched.
_BACK = {"base": "revert", "patched": "apply"}


def targets(testbed: Testbed, instances: Sequence[str], env: dict[str, str]) -> list[PatchTarget]:
    """The LMCache that engines of this environment import, one a host."""
    return [
        PatchTarget(command=tuple(testbed.python(host=host)), env=env)
        for host in testbed.site.hosts_of(instances)
    ]


@dataclass(slots=True, kw_only=True)
class PatchStates:
    """Every LMCache this campaign touches, and what it was before."""

    testbed: Testbed
    instances: tuple[str, ...]
    _found: dict[tuple[tuple[str, ...], str], tuple[PatchTarget, str, int | None]] = field(
        default_factory=dict
    )

    def set(self, arm: Arm, env: dict[str, str]) -> PatchState:
        """Bring LMCache into the state the arm names, on every host.

        Raises:
            PatchError: an LMCache that no digest of the series knows.
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
            self._found[key] = (target, before.state, self._note_undo(target, before.state))
        now = patching.apply(target) if arm.is_patched else patching.revert(target)
        return _as_state(now, arm)

    def _note_undo(self, target: PatchTarget, state: str) -> int | None:
        """Let the supervisor restore an LMCache that others may use, if this process is killed."""
        if state not in _BACK:
            return None
        # Reverting has the agent's own timeout: killed earlier, it would run on behind its prefix.
        words, patience_s = undo_argv(target, state), patching.AGENT_TIMEOUT_S
        return self.testbed.supervisor.on_exit(words, "LMCache as it was found", patience_s)

    def restore(self) -> None:
        """Leave every LMCache as this campaign found it."""
        for target, state, token in self._found.values():
            if token is not None:
                getattr(patching, _BACK[state])(target)
                self.testbed.supervisor.forget(token)


def undo_argv(target: PatchTarget, state: str) -> list[str]:
    """The command that brings an LMCache back into the state `base` or `patched`."""
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
    wanted = arm.treatment.lmcache
    if wanted is not None and version != wanted:
        raise SiteError(
            f"the engine imports LMCache {version}, the arm names {wanted}",
            where=now.path,
            next_step="correct lmcache of that arm, or build that version: nox -s stack",
        )
    return PatchState(
        lmcache_version=version,
        target_sha256=now.target_sha256,
        base_sha256=base_sha256,
        module_sha256=now.module_sha256 if arm.is_patched else None,
    )
