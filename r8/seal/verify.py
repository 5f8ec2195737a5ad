"""Is this bundle whole, unaltered, and does it say what its own rows say? One answer a check.

The order is that of trust: the archive, the bytes, the signature, the runs, and only then whether
what was stated follows from them. A check whose ground failed is not reached, and that is no pass;
rows that nobody vouches for are not even read.
Nothing here uses a network, a subprocess or a clock; the signature check is handed in, because an
ssh signature needs ssh-keygen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb

from r8.errors import EXIT_INVALID, R8Error
from r8.seal import verify_content, verify_seal
from r8.seal.verify_case import Case, Check, Standing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from r8.model import Claim

_CHECKS: tuple[tuple[str, Callable[[Case], str]], ...] = (
    ("archive", verify_seal.archive),
    ("manifest", verify_seal.manifest),
    ("statement", verify_seal.statement),
    ("signature", verify_seal.signature),
    ("runs", verify_content.runs),
    ("contents", verify_content.contents),
    ("completeness", verify_content.complete),
    ("metrics", verify_content.recomputed("metrics", "run_id phase metric statistic")),
    ("certificate", verify_content.recomputed("certificate", "run_id rule_id")),
    ("verdicts", verify_content.recomputed("verdicts", "claim.claim_id")),
    ("predicate", verify_content.predicate),
    ("redaction", verify_content.redaction),
)
# Checks that everything below them stands on; the rest stand beside one another.
_GROUND = {"archive", "manifest", "statement", "signature", "runs"}


def verify(  # each part of a verification is named once
    source: Path,
    workspace: Path,
    claims: Sequence[Claim],
    verifies: Callable[[Mapping[str, str], bytes, bytes], bool],
    *,
    key: Mapping[str, str] | None = None,
    unsigned_allowed: bool = False,
) -> list[Check]:
    """Verify a bundle, or the directory it was unpacked into; one check a line, never an exception.

    Args:
        source: the archive, or a directory that holds `bundle.json`.
        workspace: an empty directory; the archive is unpacked there and nowhere else.
        claims: what the stated verdicts are recomputed from.
        verifies: whether (public key, signature, bytes) belong together.
        key: the public key of who should have sealed it; None takes the bundle's own, and says so.
        unsigned_allowed: accept a bundle that nobody signed, and say so.

    """
    tree = source if source.is_dir() else workspace
    case = Case(
        source=source,
        tree=tree.resolve(),
        claims=claims,
        verifies=verifies,
        key=key,
        unsigned_allowed=unsigned_allowed,
    )
    done: list[Check] = []
    for name, check in _CHECKS:
        testbed = [one for one in done if one.name in _GROUND and one.standing is not Standing.PASS]
        if testbed:
            text = f"not reached: {testbed[0].name} failed"
            done.append(Check(name=name, standing=Standing.NOT_REACHED, text=text))
            continue
        try:
            text, standing = check(case), Standing.PASS
        except R8Error as error:
            text, standing = error.what, Standing.FAIL
        except (OSError, ValueError, KeyError, TypeError, duckdb.Error) as error:
            text, standing = f"unreadable: {type(error).__name__}: {error}", Standing.FAIL
        done.append(Check(name=name, standing=standing, text=text.replace("\n", " ")))
    return done


def exit_code(checks: Sequence[Check]) -> int:
    """0 when every check passed, else 3."""
    return 0 if all(one.standing is Standing.PASS for one in checks) else EXIT_INVALID
