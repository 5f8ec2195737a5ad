"""Checks of the seal itself: the archive, the bytes, the statement and its signature."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from r8.evidence.manifest import MANIFEST, parse_manifest, relative_files, sha256_file
from r8.seal.archive import refused, unpack
from r8.seal.bundle import SIGNER
from r8.seal.statement import ENVELOPE, key_id, open_envelope, pae

if TYPE_CHECKING:
    from r8.seal.verify_case import Case

# What lies outside the manifest beside itself: the statement about it.
OUTSIDE = {ENVELOPE}


def archive(case: Case) -> str:
    """Unpack it; every member is a plain file of a bundle."""
    if case.source.is_dir():
        return "a directory, not an archive: nothing to unpack"
    unpack(case.source, case.tree)
    return f"{len(relative_files(case.tree))} plain files, none outside, no byte besides"


def manifest(case: Case) -> str:
    """Every file has the digest the manifest lists, and no file is besides."""
    listed = parse_manifest(case.tree)
    present = set(relative_files(case.tree)) - OUTSIDE
    for name in sorted(present - set(listed)):
        raise refused(f"{name} is not in the manifest", case.source.name)
    for name, digest in listed.items():
        if name not in present:
            raise refused(f"{name} is missing", case.source.name)
        if sha256_file(case.tree / name) != digest:
            raise refused(f"{name} differs from its manifest", case.source.name)
    return f"{len(listed)} digests of {len(listed)} files"


def statement(case: Case) -> str:
    """The statement in the envelope is about this manifest."""
    text = (case.tree / ENVELOPE).read_text(encoding="utf-8")
    case.payload, _ = open_envelope(text, case.source.name)
    subject = json.loads(case.payload)["subject"][0]
    manifest = sha256_file(case.tree / MANIFEST)
    if subject["name"] != MANIFEST or subject["digest"]["sha256"] != manifest:
        raise refused(
            f"the statement is about another manifest, {subject['digest']['sha256'][:12]}, and "
            f"not {manifest[:12]}: an old seal on new content",
            case.source.name,
        )
    return f"in-toto test result about manifest {manifest[:12]}"


def signature(case: Case) -> str:
    """The envelope is signed by the key that was given, or by the one inside."""
    text = (case.tree / ENVELOPE).read_text(encoding="utf-8")
    payload, signatures = open_envelope(text, case.source.name)
    if not signatures:
        if case.unsigned_allowed and case.key is None:
            return "UNSIGNED, and accepted so: nothing says who sealed it"
        raise refused("nobody signed this bundle", case.source.name)
    own = json.loads((case.tree / SIGNER).read_text(encoding="utf-8"))
    public = case.key or own
    if (found := signatures.get(key_id(public))) is None:
        raise refused(
            f"signed by key {next(iter(signatures))[:12]}, not by {key_id(public)[:12]}",
            case.source.name,
        )
    if len(signatures) > 1 or not case.verifies(public, found, pae(payload)):
        raise refused(
            f"the signature does not belong to the statement and key {key_id(public)[:12]}",
            case.source.name,
        )
    whose = "the key you gave" if case.key else "the key in the bundle: give --key to know whose"
    return f"{public['kind']} signature by {key_id(public)[:12]}, {whose}"
