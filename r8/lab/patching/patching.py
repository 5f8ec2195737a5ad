"""Status, apply and revert of the LMCache patch, wherever the engine's Python runs.

The same agent runs for a local Python and for one inside a container: its text goes over standard
input to the command of the `PatchTarget`, so nothing of R8 has to be installed there.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import os
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from r8.errors import PatchError
from r8.lab.patching import agent
from r8.lab.patching.series import diff_path, read_series

if TYPE_CHECKING:
    from collections.abc import Mapping

PatchState = Literal["base", "patched", "foreign", "unknown"]
# A digest and a rename take milliseconds; a container runtime that is starting up may take longer.
AGENT_TIMEOUT_S = 120
STDERR_SHOWN_CHARS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchTarget:
    """The engine's own Python, with its exec prefix, and what is added to its environment.

    `PYTHONPATH` in `env` chooses the LMCache, also where a prefix drops the environment.
    """

    command: tuple[str, ...]
    env: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchStatus:
    """Patch state of one LMCache; `name` is the series entry, `what` says it in words.

    `base_sha256` is the digest of the unpatched file, None for a file the series does not know;
    `module_sha256` that of the reader module found beside it, None when there is none.
    """

    state: PatchState
    name: str | None
    path: str
    target_sha256: str
    what: str
    lmcache_version: str | None = None
    base_sha256: str | None = None
    module_sha256: str | None = None
    duplicate_methods: tuple[str, ...] = ()


def status(target: PatchTarget) -> PatchStatus:
    """The patch state now. Raises PatchError when there is no LMCache."""
    return _run("status", target)


def apply(target: PatchTarget) -> PatchStatus:
    """Patch by exact digest; what is patched stays so. Raises PatchError on any other file."""
    return _run("apply", target)


def revert(target: PatchTarget) -> PatchStatus:
    """Back to the bytes LMCache came with. Raises PatchError on a file of no known digest."""
    return _run("revert", target)


def show(version_or_sha256: str) -> PatchStatus:
    """What the series knows of an LMCache version or a file digest; `path` is the diff.

    Raises PatchError when it knows nothing.
    """
    series = read_series()
    for entry in series.entries:
        patched = version_or_sha256 == entry.patched_sha256
        if patched or version_or_sha256 in {entry.name, entry.base_sha256, *entry.versions}:
            return PatchStatus(
                state="patched" if patched else "base",
                name=entry.name,
                path=str(diff_path(entry.name)),
                target_sha256=entry.patched_sha256 if patched else entry.base_sha256,
                base_sha256=entry.base_sha256,
                module_sha256=series.module_sha256 if patched else None,
                what=f"{entry.what}, {'patched by R8' if patched else 'unpatched'}",
            )
    for other in series.foreign:
        if version_or_sha256 in {other.name, other.sha256}:
            return PatchStatus(
                state="foreign",
                name=other.name,
                path="",
                target_sha256=other.sha256,
                what=other.what,
            )
    known = ", ".join(version for entry in series.entries for version in entry.versions)
    raise PatchError(
        f"the series knows nothing of {version_or_sha256}",
        where="series.toml",
        next_step=f"name a version it knows ({known}) or the SHA-256 of a file",
    )


def diff(name: str) -> str:
    """The diff of one entry, as `show` names it; raises PatchError for a file that has none."""
    path = diff_path(name)
    if not path.is_file():
        raise PatchError(
            f"there is no diff for {name}", where=str(path), next_step="see `r8 patch show VERSION`"
        )
    return path.read_text(encoding="utf-8")


def agent_program(verb: str, target: PatchTarget) -> str:
    """The text sent to the engine's Python."""
    series = read_series()
    search = [entry for entry in target.env.get("PYTHONPATH", "").split(os.pathsep) if entry]
    request = {
        "verb": verb,
        "search": search,
        "target": series.target,
        "module": series.module,
        "module_sha256": series.module_sha256,
        "module_base64": base64.b64encode(series.module_bytes).decode(),
        "series": [dataclasses.asdict(entry) for entry in series.entries],
        "foreign": [dataclasses.asdict(other) for other in series.foreign],
    }
    with open(agent.__file__, encoding="utf-8") as handle:  # noqa: PTH123
        source = handle.read()
    return f"{source}\n\nmain(json.loads({json.dumps(request)!r}))\n"


def _run(verb: str, target: PatchTarget) -> PatchStatus:
    where = " ".join(target.command)
    command = target.command if target.command[-1:] == ("-",) else (*target.command, "-")
    try:
        done = subprocess.run(
            command,
            input=agent_program(verb, target),
            env={**os.environ, **target.env},
            capture_output=True,
            text=True,
            timeout=AGENT_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PatchError(
            f"the engine's Python did not run: {error}",
            where=where,
            next_step="check --python, or the exec prefix in the site file",
        ) from error
    return _status_of(_answer_in(done.stdout, done.stderr, where))


def _answer_in(stdout: str, stderr: str, where: str) -> dict[str, Any]:
    for line in reversed(stdout.splitlines()):
        if line.startswith(agent.ANSWER_MARK):
            found: dict[str, Any] = json.loads(line.removeprefix(agent.ANSWER_MARK))
            return found
    said = stderr.strip()[-STDERR_SHOWN_CHARS:] or "no output"
    raise PatchError(
        f"the engine's Python gave no answer: {said}",
        where=where,
        next_step="run that command by hand; it must be Python 3.9 or newer",
    )


def _status_of(found: dict[str, Any]) -> PatchStatus:
    if "refusal" in found:
        refusal = found["refusal"]
        raise PatchError(refusal["what"], where=refusal["where"], next_step=refusal["next_step"])
    fields = found["status"]
    return PatchStatus(**{**fields, "duplicate_methods": tuple(fields["duplicate_methods"])})
