"""What runs inside the engine's own Python: find LMCache, then status, apply or revert.

R8 sends this file over standard input (`<exec prefix> python3 -`) with a call of `main` appended,
so it needs the standard library only and the Python the engine has (3.9 or newer). It never
imports LMCache. The answer is one line on standard output: `ANSWER_MARK` and a JSON object.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import fcntl
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

ANSWER_MARK = "R8-PATCH-ANSWER "
# Property setters and overloads repeat a name on purpose.
REPEATING_DECORATORS = {"setter", "getter", "deleter", "overload"}


class Refusal(Exception):  # noqa: N818 - it is an answer, not a failure of this program
    """What happened, where, and what to type next."""

    def __init__(self, what: str, where: str, next_step: str) -> None:
        super().__init__(what)
        self.parts = {"what": what, "where": where, "next_step": next_step}


def find_package(search: list[str]) -> Path:
    """The directory of the `lmcache` package the engine would import; `search` goes first."""
    # "" is R8's own working directory here, which the engine knows nothing of.
    sys.path[:] = search + [entry for entry in sys.path if entry]
    spec = importlib.util.find_spec("lmcache")
    if spec is None or not spec.submodule_search_locations:
        raise Refusal(
            "this Python has no LMCache",
            sys.executable,
            "name the engine's own Python with --python, or a directory with --lmcache",
        )
    return Path(next(iter(spec.submodule_search_locations)))


def find_version(package: Path) -> str | None:
    """The version of the distribution beside `package`; None for bare sources."""
    for found in importlib.metadata.distributions(path=[str(package.parent)]):
        if (found.metadata["Name"] or "").lower() == "lmcache":
            return found.version
    return None


def duplicate_methods(source: bytes) -> list[str]:
    """Every `Class.method` that one class defines twice, so that the last silently wins."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.ClassDef):
            continue
        seen = set()
        for item in node.body:
            if not isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            marks = {getattr(mark, "attr", getattr(mark, "id", "")) for mark in item.decorator_list}
            if marks & REPEATING_DECORATORS:
                continue
            if item.name in seen:
                found.append(f"{node.name}.{item.name}")
            seen.add(item.name)
    return found


def sha256(data: bytes) -> str:
    """The digest in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


class LMCache:
    """One LMCache, seen through the series R8 sent."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.request = request
        package = find_package(request["search"])
        self.version = find_version(package)
        self.target = package / request["target"]
        self.module = self.target.with_name(request["module"])
        if not self.target.is_file():
            raise Refusal(
                "this LMCache has no local disk backend",
                str(self.target),
                "use a version of the series: " + self.known_versions(),
            )

    def known_versions(self) -> str:
        """The versions of the series, for messages."""
        return ", ".join(version for one in self.request["series"] for version in one["versions"])

    def status(self) -> dict[str, Any]:
        """Its patch state, in the fields of R8's PatchStatus."""
        source = self.target.read_bytes()
        digest = sha256(source)
        module_digest = sha256(self.module.read_bytes()) if self.module.is_file() else None
        entry = self.entry(digest)
        status: dict[str, Any] = {
            "state": "unknown",
            "name": None,
            "lmcache_version": self.version,
            "path": str(self.target),
            "target_sha256": digest,
            "base_sha256": entry["base_sha256"] if entry else None,
            "module_sha256": module_digest,
            "what": f"not a file of the series, which knows LMCache {self.known_versions()}",
            "duplicate_methods": [],
        }
        # A file that does not even parse is unknown too; it must not end the program.
        with contextlib.suppress(SyntaxError, ValueError):
            status["duplicate_methods"] = duplicate_methods(source)
        if status["duplicate_methods"]:
            twice = ", ".join(status["duplicate_methods"])
            status["what"] += f"; it defines {twice} twice, as a patch put on with fuzz leaves it"
        if entry:
            status.update(self._series_state(entry, digest, module_digest))
        for other in self.request["foreign"]:
            if other["sha256"] == digest:
                status.update(state="foreign", name=other["name"], what=other["what"])
        return status

    def _series_state(
        self, entry: dict[str, Any], digest: str, module_digest: str | None
    ) -> dict[str, Any]:
        if digest == entry["base_sha256"]:
            idle = f"; {self.module.name} lies beside it, unused" if module_digest else ""
            state, what = "base", f"{entry['what']}, unpatched{idle}"
        elif module_digest == self.request["module_sha256"]:
            state, what = "patched", f"{entry['what']}, patched by R8"
        else:
            problem = "missing" if module_digest is None else "of another digest"
            state, what = "unknown", f"{entry['what']}, with R8's hook, but its module is {problem}"
        return {"state": state, "name": entry["name"], "what": what}

    def entry(self, digest: str) -> dict[str, Any] | None:
        """The entry that has `digest` before or after; None when there is none."""
        series: list[dict[str, Any]] = self.request["series"]
        return next((one for one in series if digest in _digests(one)), None)

    def known_entry(self) -> dict[str, Any]:
        """The entry of the target as it is now; refuses every other file."""
        status = self.status()
        entry = self.entry(status["target_sha256"])
        if entry is None:
            raise Refusal(
                f"LMCache {self.version or 'of no stated version'}: {status['what']}"
                f" (SHA-256 {status['target_sha256']})",
                status["path"],
                f"reinstall LMCache ({self.known_versions()}) and run `r8 patch apply` again;"
                " a new version needs an entry in series.toml",
            )
        return entry

    def apply(self) -> None:
        """Module first, then the hook: there is never a hook without what it imports."""
        entry = self.known_entry()
        module = base64.b64decode(self.request["module_base64"])
        if not self.module.is_file() or self.module.read_bytes() != module:
            self._replace(self.module, module)
        source = self.target.read_bytes()
        if sha256(source) == entry["base_sha256"]:
            patched = source + entry["hook"].encode()
            self._check(patched, entry["patched_sha256"])
            self._replace(self.target, patched)

    def revert(self) -> None:
        """The hook first, then the module; the bytes are those LMCache came with."""
        entry = self.known_entry()
        source = self.target.read_bytes()
        if sha256(source) == entry["patched_sha256"]:
            base = source[: -len(entry["hook"].encode())]
            self._check(base, entry["base_sha256"])
            self._replace(self.target, base)
        if self.module.is_file():
            self.module.unlink()
            _sync_directory(self.module.parent)

    def _check(self, result: bytes, expected_sha256: str) -> None:
        twice = duplicate_methods(result)
        if sha256(result) != expected_sha256 or twice:
            raise Refusal(
                f"the result would have SHA-256 {sha256(result)}, not {expected_sha256}"
                + (f", and define {', '.join(twice)} twice" if twice else ""),
                str(self.target),
                "nothing was changed; take patches/ from a clean checkout",
            )

    def _replace(self, path: Path, data: bytes) -> None:
        """Whole or not at all: written beside, made durable, renamed."""
        for cached in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
            cached.unlink()
        temporary = path.with_name(f".{path.name}.r8-{os.getpid()}.tmp")
        try:
            with temporary.open("wb") as handle:
                handle.write(data)
                handle.flush()
                os.fsync(handle.fileno())
            shutil.copymode(self.target, temporary)
            owner = self.target.stat()
            with contextlib.suppress(PermissionError):
                os.chown(temporary, owner.st_uid, owner.st_gid)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        _sync_directory(path.parent)

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """One patcher at a time, and nothing left over from one that was killed."""
        handle = os.open(self.target.parent, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            for stale in self.target.parent.glob(".*.r8-*.tmp"):
                stale.unlink()
            yield
        finally:
            os.close(handle)


def _digests(entry: dict[str, Any]) -> tuple[str, str]:
    return entry["base_sha256"], entry["patched_sha256"]


def _sync_directory(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Do what the request's `verb` says; {"status": ...} or {"refusal": ...}."""
    try:
        found = LMCache(request)
        if request["verb"] != "status":
            with found.alone():
                getattr(found, request["verb"])()
        return {"status": found.status()}
    except Refusal as refusal:
        return {"refusal": refusal.parts}
    except OSError as error:
        where = str(error.filename or sys.executable)
        what = f"{request['verb']} failed: {error.strerror or error}"
        next_step = "run it as the user who owns this LMCache, with room on its disk"
        return {"refusal": {"what": what, "where": where, "next_step": next_step}}


def main(request: dict[str, Any]) -> None:
    """Answer on standard output."""
    print(ANSWER_MARK + json.dumps(answer(request)), flush=True)
