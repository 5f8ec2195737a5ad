"""Is this bundle whole, unaltered, and does it say what its own rows say? One answer a step.

The order is that of trust: the archive, the bytes, the signature, the runs, and only then whether
what was stated follows from them. A step is not reached when one that it rests on failed, and that
is no pass; rows that nobody vouches for are not even read.
Nothing here uses a network, a subprocess or a clock; the signature check is handed in, because an
ssh signature needs ssh-keygen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import duckdb

from r8.errors import EXIT_INVALID, BundleError, R8Error, SiteError
from r8.evidence import door
from r8.evidence.manifest import MANIFEST, parse_manifest, relative_files, sha256_file
from r8.message import Answer, Message
from r8.seal import contents
from r8.seal.archive import unpack
from r8.seal.bundle import SIGNER
from r8.seal.contents import BundleCase, Unknown
from r8.seal.sealed_json import Statement, sealed_json
from r8.seal.statement import ENVELOPE, key_id, open_envelope, pae

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from r8.model import Claim

# What lies outside the manifest beside itself: the statement about it.
OUTSIDE = {ENVELOPE}
# Digits of a digest or key that a person is shown.
_DIGITS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of a verification: held, refuted, or unknown: not reached, or evidence withheld."""

    name: str
    answer: Answer
    reasons: tuple[Message, ...]


def verify(
    source: Path,
    workspace: Path,
    claims: Sequence[Claim],
    verifies: Callable[[Mapping[str, str], bytes, bytes], bool],
    *,
    key: Mapping[str, str] | None = None,
    unsigned_allowed: bool = False,
) -> list[Step]:
    """Verify a bundle, or the directory it was unpacked into; every step.

    Nothing in a bundle makes it raise; SiteError says that there is no room to look at it.

    Args:
        source: the archive, or a directory that holds `bundle.json`.
        workspace: an empty directory; the bundle is unpacked or copied there, and only read there.
        claims: what the stated verdicts are recomputed from.
        verifies: whether (public key, signature, bytes) belong together.
        key: the public key of who should have sealed it; None takes the bundle's own, and says so.
        unsigned_allowed: accept a bundle that nobody signed, and say so.

    """
    case = BundleCase(
        source=source,
        tree=workspace.resolve(),
        claims=claims,
        verifies=verifies,
        key=key,
        unsigned_allowed=unsigned_allowed,
    )
    done: list[Step] = []
    for name, check in _STEPS:
        missing = [one for one in done if one.name in _RESTED_ON and one.answer is not Answer.HELD]
        if missing:
            why = Message(id="seal-not-reached", facts={"step": missing[0].name})
            done.append(Step(name=name, answer=Answer.UNKNOWN, reasons=(why,)))
        else:
            done.append(_done(name, check, case))
    return done


def _done(
    name: str, check: Callable[[BundleCase], Sequence[Message] | Unknown], case: BundleCase
) -> Step:
    try:
        found = check(case)
        if isinstance(found, Unknown):
            return Step(name=name, answer=Answer.UNKNOWN, reasons=found.reasons)
        return Step(name=name, answer=Answer.HELD, reasons=tuple(found))
    except BundleError as error:
        why = error.reason
    except SiteError:  # no room: that is no fault of the bundle
        raise
    except R8Error as error:
        why = Message(id="seal-evidence-refused", facts={"error": error.what})
    except (OSError, ValueError, KeyError, TypeError, duckdb.Error) as error:
        facts = {"kind": type(error).__name__, "error": str(error)}
        why = Message(id="seal-step-failed", facts=facts)
    return Step(name=name, answer=Answer.REFUTED, reasons=(why,))


def exit_code(steps: Sequence[Step]) -> int:
    """3 when a step failed, else 0: what a redaction withheld is unknown, and no failure.

    A step that was not reached comes after one that failed.
    """
    return EXIT_INVALID if any(one.answer is Answer.REFUTED for one in steps) else 0


def _archive(case: BundleCase) -> list[Message]:
    """Unpack it; every member is a plain file of a bundle. A directory is copied."""
    if case.source.is_dir():
        for name in door.files(case.source):
            copy = case.tree / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            door.digest(case.source, name, copy=copy)
        return [Message(id="seal-a-directory")]
    unpack(case.source, case.tree)
    return [Message(id="seal-unpacked", facts={"files": len(relative_files(case.tree))})]


def _manifest(case: BundleCase) -> list[Message]:
    """Every file has the digest the manifest lists, and no file is besides."""
    listed = parse_manifest(case.tree)
    present = set(relative_files(case.tree)) - OUTSIDE
    for name in sorted(present - set(listed)):
        raise case.refused("seal-file-unlisted", file=name)
    for name, digest in listed.items():
        if name not in present:
            raise case.refused("seal-file-missing", file=name)
        if sha256_file(case.tree / name) != digest:
            raise case.refused("seal-file-differs", file=name)
    return [Message(id="seal-digests", facts={"files": len(listed)})]


def _statement(case: BundleCase) -> list[Message]:
    """The statement in the envelope is about this manifest."""
    text = (case.tree / ENVELOPE).read_text(encoding="utf-8")
    case.payload, _ = open_envelope(text, case.source.name)
    said = sealed_json(case.payload, Statement, what=ENVELOPE, where=case.source.name)
    (subject,) = said["subject"]
    manifest, named = sha256_file(case.tree / MANIFEST), subject["digest"].get("sha256", "")
    if subject["name"] != MANIFEST or named != manifest:
        raise case.refused(
            "seal-other-manifest", named=named[:_DIGITS], manifest=manifest[:_DIGITS]
        )
    return [Message(id="seal-statement", facts={"manifest": manifest[:_DIGITS]})]


def _signature(case: BundleCase) -> list[Message]:
    """The envelope is signed by the key that was given, or by the one inside."""
    text = (case.tree / ENVELOPE).read_text(encoding="utf-8")
    payload, signatures = open_envelope(text, case.source.name)
    if not signatures:
        if case.unsigned_allowed and case.key is None:
            return [Message(id="seal-unsigned-accepted")]
        raise case.refused("seal-unsigned")
    own = contents.read_json(case, SIGNER)
    public = case.key or own
    wanted = key_id(public)[:_DIGITS]
    if (found := signatures.get(key_id(public))) is None:
        raise case.refused("seal-other-key", key=next(iter(signatures))[:_DIGITS], wanted=wanted)
    if len(signatures) > 1 or not case.verifies(public, found, pae(payload)):
        raise case.refused("seal-bad-signature", key=wanted)
    signed = Message(id="seal-signed", facts={"kind": public["kind"], "key": wanted})
    return [signed, Message(id="seal-key-given" if case.key else "seal-key-inside")]


_STEPS: tuple[tuple[str, Callable[[BundleCase], Sequence[Message] | Unknown]], ...] = (
    ("archive", _archive),
    ("manifest", _manifest),
    ("statement", _statement),
    ("signature", _signature),
    ("runs", contents.runs),
    ("contents", contents.contents),
    ("completeness", contents.complete),
    ("metrics", contents.recomputed("metrics", "run_id phase metric statistic")),
    ("certificate", contents.recomputed("certificate", "run_id rule_id")),
    ("verdicts", contents.recomputed("verdicts", "claim.claim_id")),
    ("predicate", contents.predicate),
    ("withheld", contents.withheld),
    ("redaction", contents.redaction),
)
# Steps that everything below them rests on; the others do not depend on one another.
_RESTED_ON = {"archive", "manifest", "statement", "signature", "runs"}
