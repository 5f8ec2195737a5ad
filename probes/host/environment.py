"""The host's hardware and settings at the begin and at the end of a run, and their differences.

Everything is optional: a missing file or tool is recorded as unavailable, with its reason, and
never stops a run. `stable` is what must not change while something is measured; `volatile` and the
raw texts of the tools are context.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..errors import ProbeError
from ..gpu.snapshot import memory_in_use, take_snapshots
from ..tool import run_tool
from .files import STABLE, VOLATILE, Value, read_section
from .identity import identities_of
from .tools import tool_commands

if TYPE_CHECKING:
    from .identity import Identities

FORMAT = 1
_DEVICE_MOUNT = re.compile(r"^/dev/(?!loop)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One fact that differs between two captures."""

    section: str
    fact: str
    before: str | None  # None: it was not there
    after: str | None


def capture(*, root: Path = Path("/"), tools: bool = True) -> dict[str, Any]:
    """The whole capture, ready for JSON."""
    identities = identities_of(root / "etc")
    stable: dict[str, Any] = {one.name: read_section(one, root, identities) for one in STABLE}
    stable["mounts"] = _mounts(root)
    volatile = {one.name: read_section(one, root, identities) for one in VOLATILE}
    snapshots = take_snapshots() if tools else []
    gpus = memory_in_use(snapshots, root / "sys")
    raw = {name: asdict(run_tool(argv)) for name, argv in tool_commands(root)} if tools else {}
    shown = [asdict(snapshot) for snapshot in snapshots]
    return {
        "format": FORMAT,
        "probes": __version__,
        "effective_uid": os.geteuid(),
        "mono_ns": time.monotonic_ns(),
        "wall_ns": time.time_ns(),
        "stable": _hidden(stable, identities),
        "volatile": _hidden(volatile, identities),
        "gpus": gpus,
        "gpu_snapshots": _hidden(shown, identities),
        "tools": _hidden(raw, identities),
    }


def summary(found: dict[str, Any]) -> dict[str, Any]:
    """The part of a capture that events carry: digests by section, what is missing, GPU memory."""
    stable: dict[str, Any] = found["stable"]
    digests = {name: _digest(value) for name, value in sorted(stable.items())}
    tools = found["tools"]
    missing = sorted(name for name, row in tools.items() if row["reason"] is not None)
    return {
        "sections": digests,
        "unavailable": sorted(
            name for name, value in stable.items() if isinstance(value, dict) and _is_absent(value)
        ),
        "tools_missing": missing,
        "gpus": found["gpus"],
    }


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[Difference]:
    """Stable facts that changed, appeared or went, by section and fact."""
    found = []
    for section in sorted({*before["stable"], *after["stable"]}):
        old, new = (_flat(one["stable"].get(section)) for one in (before, after))
        for fact in sorted({*old, *new}):
            if old.get(fact) != new.get(fact):
                pair = {"before": old.get(fact), "after": new.get(fact)}
                found.append(Difference(section=section, fact=fact, **pair))
    return found


def load_capture(path: Path) -> dict[str, Any]:
    """Read a capture back. Raises ProbeError when the file is not one."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ProbeError(
            f"cannot read the capture: {error}", where=str(path), next_step="take it again"
        ) from error
    if not isinstance(found, dict) or not isinstance(found.get("stable"), dict):
        raise ProbeError(
            "this is not an environment capture",
            where=str(path),
            next_step="give a file of `environment --out`",
        )
    if found.get("format") != FORMAT:
        raise ProbeError(
            f"capture format {found.get('format')!r}, this probe reads {FORMAT}",
            where=str(path),
            next_step="compare it with the probes that wrote it",
        )
    return found


def _mounts(root: Path) -> Value | dict[str, Value]:
    """File systems on block devices with their options; loop devices come and go."""
    try:
        text = (root / "proc" / "self" / "mounts").read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        return {"unavailable": f"absent: {error.strerror}"}
    rows = [line.split() for line in text.splitlines() if _DEVICE_MOUNT.match(line)]
    return {row[1]: " ".join((row[0], *row[2:4])) for row in rows if len(row) >= 4}  # noqa: PLR2004


def _hidden(value: Any, identities: Identities) -> Any:
    if isinstance(value, str):
        return identities.within(value)
    if isinstance(value, dict):
        return {key: _hidden(item, identities) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_hidden(item, identities) for item in value]
    return value


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _is_absent(value: dict[str, Any]) -> bool:
    return set(value) == {"unavailable"}


def _flat(value: object) -> dict[str, str]:
    """Facts as text, so that an unavailable one compares as well."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        return {"-": str(value)}
    return {key: item if isinstance(item, str) else json.dumps(item) for key, item in value.items()}
