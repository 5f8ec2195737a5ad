"""The JSON files of a bundle as a stranger may have written them: strict, and each of its form.

What is not of the form that R8 writes is refused by its file and place, before anything looks in.
"""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

import msgspec

from r8.evidence.strict_json import strict_json
from r8.seal.archive import refused

Signer = dict[str, str]


class Patch(TypedDict):
    """A patch in bundle.json, as far as the statement names it."""

    lmcache_version: str
    module_sha256: str | None
    target_sha256: str


class Bundle(TypedDict):
    """What bundle.json has to say of the R8 that sealed it; the rest is compared, not read."""

    r8_version: str
    judge_sha256: str
    claims_sha256: str
    patches: list[Patch]


class Stated(TypedDict):
    """Rows of stated.json; each is compared with one that was computed."""

    metrics: list[dict[str, Any]]
    certificate: list[dict[str, Any]]
    verdicts: list[dict[str, Any]]


class Redaction(TypedDict):
    """What redaction.json says was taken out."""

    pseudonyms: dict[str, int]
    withheld_files: dict[str, int]
    withheld_plan_digests: int
    manifests_before: dict[str, str]


class Subject(TypedDict):
    """What a statement is about."""

    name: str
    digest: dict[str, str]


class Statement(TypedDict):
    """An in-toto Statement, as far as it is read before it is made again and compared."""

    subject: Annotated[list[Subject], msgspec.Meta(min_length=1, max_length=1)]


class Signature(TypedDict):
    """One signature of an envelope, in base64."""

    keyid: str
    sig: str


class Envelope(TypedDict):
    """A DSSE envelope; the payload in base64."""

    payloadType: str
    payload: str
    signatures: list[Signature]


def sealed_json(
    data: bytes | str, form: Any, *, what: str, where: str, limit: str = "json_bytes"
) -> Any:
    """The whole value of a JSON text that has this form at least.

    Raises EvidenceError for no strict JSON or more bytes than the budget `limit`, BundleError for
    another form.
    """
    value = strict_json(data, what=what, where=where, limit=limit)
    try:
        msgspec.convert(value, form)
    except msgspec.ValidationError as error:
        raise refused("seal-unreadable", where, file=what, error=str(error)) from error
    return value
