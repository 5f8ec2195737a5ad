"""JSON as R8 reads it from strangers: what two readers could take for different things is refused.

No key twice, no NaN or infinity, no integer beyond 64 bits, no half of a surrogate pair, and no
more bytes or levels than the budgets allow.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import TYPE_CHECKING, Any, NoReturn

from r8.errors import EvidenceError
from r8.evidence.budgets import BUDGETS
from r8.model import INT64_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable


def strict_json(data: bytes | str, *, what: str, where: str, limit: str = "json_bytes") -> Any:
    """The value of a JSON text; raises EvidenceError naming `what` when it is none.

    `limit` is the budget of its bytes.
    """
    BUDGETS.require(limit, len(data), where=where)
    try:
        text = data if isinstance(data, str) else data.decode()
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_no_number)
        _check(value)
    except (ValueError, RecursionError) as error:
        why = "nested too deep" if isinstance(error, RecursionError) else str(error)
        raise EvidenceError(
            f"{what} is not JSON that R8 reads: {why}",
            where=where,
            next_step="fetch the run directory again; R8 writes no such JSON",
        ) from error
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        ((twice, _),) = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"key {twice[:100]!r} is there twice")
    return found


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number")


def _check(value: Any) -> None:
    """Depth and leaves, level by level: a stack would be as deep as the value."""
    level, depth = [value], 0
    while level:
        if depth >= BUDGETS.json_depth and any(isinstance(one, dict | list) for one in level):
            raise ValueError(f"nested deeper than the budget json_depth = {BUDGETS.json_depth}")
        below: list[Any] = []
        for one in level:
            below += _parts(one)
        level, depth = below, depth + 1


def _parts(value: Any) -> Iterable[Any]:
    """What an object or a list holds; raises ValueError for a leaf that is refused."""
    if isinstance(value, dict):
        return [*value, *value.values()]
    if isinstance(value, list):
        return value
    if isinstance(value, str):
        value.encode()  # half of a surrogate pair: UnicodeEncodeError is a ValueError
    elif isinstance(value, int) and abs(value) > INT64_MAX:
        raise ValueError("an integer has more than 64 bits")
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError("a number is infinite")
    return ()
