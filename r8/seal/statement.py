"""What a seal says: an in-toto Statement about the manifest, in a DSSE envelope.

The predicate is in-toto's test result (v0.1): which claims came out, on which code and patch. The
subject is the manifest, and through it every file of the bundle.
"""

from __future__ import annotations

import base64
import hashlib
import json
from typing import TYPE_CHECKING, Any

from r8.errors import EXIT_REPRODUCED
from r8.evidence.manifest import MANIFEST
from r8.model import Outcome
from r8.seal.archive import refused
from r8.seal.sealed_json import Envelope, sealed_json
from r8.verdict.judge import exit_code

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from r8.model import Verdict

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "https://in-toto.io/attestation/test-result/v0.1"
PAYLOAD_TYPE = "application/vnd.in-toto+json"
ENVELOPE = "statement.dsse.json"
_FAILED = (Outcome.DEVIATES, Outcome.INVALID)


def canonical(value: Any) -> str:
    """JSON with sorted keys: equal values give equal text. Raises ValueError for NaN."""
    return json.dumps(value, sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def statement(
    manifest: bytes, verdicts: Sequence[Verdict], configuration: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """The in-toto Statement of a bundle with this manifest and these verdicts."""
    code = exit_code(verdicts)
    outcomes = {one.outcome for one in verdicts}
    failed = any(outcome in outcomes for outcome in _FAILED)
    return {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": MANIFEST, "digest": {"sha256": hashlib.sha256(manifest).hexdigest()}}],
        "predicateType": PREDICATE_TYPE,
        "predicate": {
            "result": "FAILED" if failed else "PASSED" if code == EXIT_REPRODUCED else "WARNED",
            "configuration": list(configuration),
            "passedTests": _ids(verdicts, (Outcome.REPRODUCED,)),
            "warnedTests": _ids(verdicts, (Outcome.INCONCLUSIVE,)),
            "failedTests": _ids(verdicts, _FAILED),
        },
    }


def _ids(verdicts: Sequence[Verdict], wanted: Sequence[Outcome]) -> list[str]:
    return [one.claim.claim_id for one in verdicts if one.outcome in wanted]


def pae(payload: bytes) -> bytes:
    """DSSE's pre-authentication encoding: the bytes that are signed."""
    kind = PAYLOAD_TYPE.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def envelope(payload: bytes, signatures: Mapping[str, bytes]) -> str:
    """The envelope's text; `signatures` by key id, empty for an unsigned bundle."""
    return canonical(
        {
            "payloadType": PAYLOAD_TYPE,
            "payload": base64.b64encode(payload).decode(),
            "signatures": [
                {"keyid": keyid, "sig": base64.b64encode(signature).decode()}
                for keyid, signature in signatures.items()
            ],
        }
    )


def open_envelope(text: str, where: str) -> tuple[bytes, dict[str, bytes]]:
    """Payload, and signatures by key id; raises BundleError for anything but such an envelope."""
    try:
        value = sealed_json(text, Envelope, what=ENVELOPE, where=where)
        if value["payloadType"] != PAYLOAD_TYPE:
            raise refused("seal-other-payload", where, payload=value["payloadType"])
        payload = base64.b64decode(value["payload"], validate=True)
        signatures = {
            one["keyid"]: base64.b64decode(one["sig"], validate=True) for one in value["signatures"]
        }
    except ValueError as error:
        raise refused("seal-no-envelope", where, error=str(error)) from error
    # Two texts of one envelope would let somebody change the file and not its meaning.
    if envelope(payload, signatures) != text:
        raise refused("seal-not-canonical", where)
    return payload, signatures


def key_id(public: Mapping[str, str]) -> str:
    """A name for a public key: the SHA-256 of its canonical text, in hex."""
    return hashlib.sha256(canonical(dict(public)).encode()).hexdigest()
