"""Sealing runs: one archive with the runs, what R8 says of them, and a signed statement over all.

r8-bundle/
  bundle.json             what is inside, which code and patch, and what was planned
  stated.json             metrics, certificate and verdicts as computed at sealing
  redaction.json          what was taken out, when something was
  signer.json             the public key
  CITATION.cff            how to cite R8
  runs/<scenario>/<run>/  the run directories, each with its own manifest
  reference/...           reference runs the verdicts used
  MANIFEST.sha256         digest of everything above
  statement.dsse.json     in-toto Statement about the manifest, signed
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import shutil
import tempfile
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from r8 import __version__
from r8.errors import BundleError, UsageError
from r8.evidence import door
from r8.evidence.budgets import BUDGETS
from r8.evidence.manifest import MANIFEST, manifest_text, sha256_file
from r8.evidence.reader import read_run
from r8.message import Message
from r8.metrics.measure import measurements
from r8.model import KvRun
from r8.resources import data_path, published_path
from r8.seal.archive import SUFFIXES, check_suffix, pack
from r8.seal.leftovers import digests_in, left_in
from r8.seal.plan import plans_of, require_declared
from r8.seal.redact import begin, redact
from r8.seal.statement import ENVELOPE, canonical, envelope, key_id, pae, statement
from r8.seal.texts import texts_of
from r8.sensitive import secrets_in
from r8.verdict.judge import judge_session
from r8.verdict.session import open_session

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    from r8.evidence.reader import Evidence
    from r8.message import Fact
    from r8.model import Claim, Verdict
    from r8.seal.redact import Redaction

    class Signing(Protocol):
        """A private key of r8.seal.keys."""

        @property
        def public(self) -> dict[str, str]:
            """Kind and public key."""

        def sign(self, payload: bytes) -> bytes:
            """The signature of these bytes."""


FORMAT = 1
BUNDLE, STATED, REDACTION, SIGNER = "bundle.json", "stated.json", "redaction.json", "signer.json"
CITATION = "CITATION.cff"
RUNS, REFERENCE = "runs", "reference"
# What the claims of a verdict are made of.
CLAIM_FILES = (
    *("figures.csv", "figures-added.csv", "relations.toml", "reports.toml", "claims-*.toml"),
)
_PACKAGE = Path(__file__).resolve().parents[1]
# Packages of r8 that judge nothing.
_NOT_JUDGE = {"lab", "scenarios", "tests"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Statements:
    """What R8 says of runs: everything a verifier recomputes."""

    stated: dict[str, Any]
    verdicts: tuple[Verdict, ...]


def seal(  # what a seal is made of, each named once
    evidences: Sequence[Evidence],
    claims: Sequence[Claim],
    out: Path,
    signing: Signing | None,
    *,
    references: Sequence[Evidence] = (),
    redacted: bool = False,
    also: Sequence[str] = (),
) -> Path:
    """Seal runs into `out`; returns it, on disk and whole.

    Args:
        evidences: the runs, already checked.
        claims: what they are judged by.
        out: `*.tar.zst` or `*.tar.gz`; never overwritten.
        signing: the key; None makes an unsigned bundle.
        references: reference runs for claims of equivalence; they go into the bundle.
        redacted: what is declared travels alone, with pseudonyms for names.
        also: further words to replace.

    Raises:
        UsageError: no runs, a bad name, or the file is there already.
        BundleError: a run whose plan is not the one its campaign declared, or that holds a secret,
            or still names somebody after its redaction.

    """
    check_suffix(out)
    if out.exists():
        raise UsageError("a bundle is never overwritten", where=str(out), next_step="name another")
    if not evidences:
        raise UsageError("there is nothing to seal", where=str(out), next_step="name runs")
    require_declared(evidences)
    _refuse_secrets([*evidences, *references])
    suffix = next(one for one in SUFFIXES if out.name.endswith(one))
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=".r8-seal-") as folder:
        tree = Path(folder) / "tree"
        tree.mkdir()
        done = begin([*evidences, *references], claims, also) if redacted else None
        _fill(tree, evidences, references, done)
        files = _state(tree, claims, signing)
        if done is not None:
            _refuse_names(tree, done.names.known)
        packed = Path(folder) / "packed"
        pack(tree, files, packed, suffix)
        packed.rename(out)
    return out


def _refuse_secrets(evidences: Sequence[Evidence]) -> None:
    """Refuse runs in which a secret stands: a bundle is for strangers, redacted or not."""
    found = [
        (one, text.file, text.line + line - 1, kind)
        for one in evidences
        for text in texts_of(one.path)
        for line, kind in secrets_in(text.text)
    ]
    if found:
        one, file, line, kind = found[0]
        facts: dict[str, Fact] = {"file": file, "line": line, "kind": kind, "n": len(found)}
        raise BundleError(
            Message(id="seal-secret-found", facts={"run": one.run.run_id} | facts),
            where=str(one.path),
            next_step="make the secret void, take it out of the site file, the engine's command or "
            "the text it came from, and record the run again; a recorded run is not edited",
        )


def run_paths(tree: Path, folder: str) -> list[Path]:
    """Run directories of an unpacked bundle below `runs` or `reference`, sorted."""
    found = door.folders_with(tree / folder, MANIFEST)
    return [path for path in found if path.parents[1] == tree / folder]


def state(
    evidences: Sequence[Evidence], claims: Sequence[Claim], references: Sequence[Evidence] = ()
) -> Statements:
    """Metrics, certificate and verdicts of runs, as plain JSON values."""
    session = open_session(evidences)
    reference = open_session(references) if references else None
    verdicts = judge_session(session, claims, reference)
    stated = {
        "metrics": [asdict(one) for one in measurements(session.connection)],
        "certificate": [asdict(one) for one in session.findings],
        "verdicts": [asdict(one) for one in verdicts],
    }
    return Statements(stated=_plain(stated), verdicts=verdicts)


def inventory(tree: Path, evidences: Sequence[Evidence]) -> dict[str, Any]:
    """`bundle.json`, from what lies in the tree; a verifier makes it again and compares."""
    runs = [
        {
            "path": one.path.relative_to(tree.resolve()).as_posix(),
            "run_id": one.run.run_id,
            "scenario": one.run.scenario,
            "arm": one.run.arm,
            "level": f"c{one.run.concurrency}",
            "block": one.run.block,
            "complete": one.run.complete,
            "manifest_sha256": sha256_file(one.path / MANIFEST),
        }
        for one in evidences
    ]
    kv = [one.run for one in evidences if isinstance(one.run, KvRun)]
    patches = {canonical(asdict(run.patch)) for run in kv if run.patch}
    return {
        "format": FORMAT,
        "r8_version": __version__,
        "judge_sha256": judge_digest(),
        "claims_sha256": claims_digest(),
        "plans": _plain([asdict(plan) for plan in plans_of(evidences)]),
        "runs": runs,
        "patches": [json.loads(text) for text in sorted(patches)],
        "redacted": (tree / REDACTION).is_file(),
    }


def judge_digest() -> str:
    """One SHA-256 over the judge's code and queries, the same in a checkout and a wheel."""
    files = {
        path.relative_to(_PACKAGE).as_posix(): path
        for path in _PACKAGE.rglob("*.py")
        if path.relative_to(_PACKAGE).parts[0] not in _NOT_JUDGE
    }
    queries = data_path("queries", "metrics.sql").parent
    files |= {f"queries/{path.name}": path for path in queries.glob("*.sql")}
    return _digest_of(files)


def claims_digest() -> str:
    """One SHA-256 over the published figures, what is known of them, and the claims they make."""
    folder = published_path("figures.csv").parent
    paths = [path for pattern in CLAIM_FILES for path in folder.glob(pattern)]
    return _digest_of({path.name: path for path in paths})


def _digest_of(files: dict[str, Path]) -> str:
    lines = [f"{sha256_file(path)}  {name}\n" for name, path in sorted(files.items())]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _fill(
    tree: Path,
    evidences: Sequence[Evidence],
    references: Sequence[Evidence],
    done: Redaction | None,
) -> None:
    for folder, group in ((RUNS, evidences), (REFERENCE, references)):
        for one in sorted(group, key=lambda one: one.run.run_id):
            if done is None:
                target = tree / folder / one.run.scenario / one.run.run_id
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copytree(one.path, target)
            else:
                redact(one, tree / folder, done)
    if done is not None:
        (tree / REDACTION).write_text(done.record())


def _refuse_names(tree: Path, known: frozenset[str]) -> None:
    """Refuse what a verifier would: runs that still name somebody after their redaction."""
    digests = digests_in([*tree.rglob(MANIFEST), tree / BUNDLE, tree / REDACTION]) | known
    for text in texts_of(tree):
        if text.file in {SIGNER, CITATION, ENVELOPE}:
            continue  # whose key it is they want to be known; the others are R8's own
        for kind, found in left_in(text.text, digests):
            raise BundleError(
                Message(
                    id="seal-name-left", facts={"kind": kind, "found": found, "file": text.file}
                ),
                where=str(tree),
                next_step="seal again with --redact-also and that word",
            )


def _state(tree: Path, claims: Sequence[Claim], signing: Signing | None) -> list[str]:
    """Write everything but the runs; returns every file name of the bundle."""
    evidences = [read_run(path) for path in run_paths(tree, RUNS)]
    references = [read_run(path) for path in run_paths(tree, REFERENCE)]
    inside = inventory(tree, evidences)
    said = state(evidences, claims, references)
    (tree / BUNDLE).write_text(canonical(inside))
    stated = canonical(said.stated)
    BUDGETS.require("stated_bytes", len(stated.encode()), where=str(tree / STATED))
    (tree / STATED).write_text(stated)
    (tree / CITATION).write_text(citation(), encoding="utf-8")
    public = None if signing is None else signing.public
    if public is not None:
        (tree / SIGNER).write_text(canonical(public))
    (tree / MANIFEST).write_text(manifest_text(tree))
    payload = canonical(
        statement((tree / MANIFEST).read_bytes(), said.verdicts, configuration(inside))
    ).encode()
    signatures = {}
    if signing is not None and public is not None:
        signatures = {key_id(public): signing.sign(pae(payload))}
    (tree / ENVELOPE).write_text(envelope(payload, signatures))
    return sorted(path.relative_to(tree).as_posix() for path in tree.rglob("*") if path.is_file())


def configuration(inside: dict[str, Any]) -> list[dict[str, Any]]:
    """What the results depend on, as in-toto resource descriptors."""
    code = [
        {"name": f"r8 {inside['r8_version']}", "digest": {"sha256": inside["judge_sha256"]}},
        {"name": "published figures and claims", "digest": {"sha256": inside["claims_sha256"]}},
    ]
    patches = [
        {
            "name": f"LMCache {patch['lmcache_version']}, "
            + ("patched" if patch["module_sha256"] else "unpatched"),
            "digest": {"sha256": patch["target_sha256"]},
        }
        for patch in inside["patches"]
    ]
    return code + patches


def citation() -> str:
    """CITATION.cff of the checkout, or of the installed distribution."""
    path = _PACKAGE.parent / CITATION
    if path.is_file():
        return path.read_text(encoding="utf-8")
    with contextlib.suppress(metadata.PackageNotFoundError):
        text = metadata.distribution("r8-evidence").read_text(f"licenses/{CITATION}")
        if text is not None:
            return text
    raise UsageError(
        "CITATION.cff is not part of this R8",
        where=str(_PACKAGE),
        next_step="run from a complete checkout, or reinstall the wheel",
    )


def _plain(value: Any) -> Any:
    """JSON values only: an infinity is text, a tuple is a list."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return str(value) if isinstance(value, str) else value
