"""The token ids and words of prompts: pure functions of a seed and of what they are for.

A session's first tokens are the digits of its number, lowest first, in base (high - low): two
sessions differ within them, mostly in the very first token, so no two share a cached prefix. The
rest is drawn from SHAKE-256, which gives the same tokens in every version of Python.

Token ids are texts as JSON writes them, with commas between; nothing needs them as numbers.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from hashlib import shake_256
from typing import TYPE_CHECKING

from ..errors import ClientError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# Two ids of as many digits, each with a digit before it, fit into 64 bits.
ID_DIGITS_MAX = 8
_SESSION_END = 1 << 31
_DRAW_BYTES, _DRAW_BITS = 4, 32
_DRAW_MASK = (1 << _DRAW_BITS) - 1
_WORDS = (
    *("amber", "basin", "cedar", "delta", "ember", "fjord", "grove", "harbor", "inlet", "jetty"),
    *("kernel", "lagoon", "meadow", "nectar", "orchard", "prairie", "quarry", "ridge", "summit"),
    *("tundra", "umbra", "valley", "willow", "yonder", "zephyr", "anchor", "beacon", "canyon"),
    *("dune", "estuary", "forest", "glacier"),
)


def drawn_ids(key: str, count: int, vocab: tuple[int, int]) -> bytes:
    """`count` times `low + (draw * (high - low) >> 32)`, a draw being 32 bits of the key's stream.

    A burst of a thousand prompts takes millions of ids, so none is computed alone. All draws of a
    prompt are one large integer. Every second draw stands alone in 64 bits once its neighbours are
    masked out, so one multiplication makes all their products: both factors are below 2**32, and no
    product reaches the next. Then two ids become one number: the digits of 9123456 and 9000654 in a
    row are two ids, each behind a 9 where its comma belongs. At last the zeros before shorter ids
    are taken away, one from every id at a time.
    """
    low, high = vocab
    digits, pairs = len(str(high - 1)), (count + 1) // 2
    drawn = int.from_bytes(_stream(key, count), "little")
    mask = _lanes(_DRAW_MASK, pairs)
    evens = (drawn & mask) * (high - low) >> _DRAW_BITS & mask
    odds = (drawn >> _DRAW_BITS & mask) * (high - low) >> _DRAW_BITS & mask
    field = 10 ** (digits + 1)
    both = evens * field + odds + _lanes((9 * 10**digits + low) * (field + 1), pairs)
    numbers = struct.unpack(f"<{pairs}Q", both.to_bytes(2 * _DRAW_BYTES * pairs, "little"))
    text = bytearray(b"%d" * pairs % numbers)
    text[:: digits + 1] = b"," * (2 * pairs)
    listed = bytes(text[: count * (digits + 1)])
    for _ in range(digits - len(str(low))):
        listed = b",".join(listed.split(b",0"))
    return listed[1:]


def joined_ids(*parts: bytes) -> bytes:
    """Ids behind one another; parts may be empty."""
    return b",".join(filter(None, parts))


def written_ids(ids: Iterable[int]) -> bytes:
    """The text of some numbers."""
    return b",".join([b"%d" % one for one in ids])


@lru_cache(maxsize=16)
def _lanes(number: int, count: int) -> int:
    """The same number in each of `count` lanes of 64 bits."""
    return int.from_bytes(struct.pack("<Q", number) * count, "little")


def _stream(key: str, count: int) -> bytes:
    return shake_256(key.encode("ascii")).digest(_DRAW_BYTES * count)


def session_digits(vocab: tuple[int, int]) -> int:
    """How many leading tokens carry the session."""
    low, high = vocab
    digits, reach = 1, high - low
    while reach < _SESSION_END:
        digits, reach = digits + 1, reach * (high - low)
    return digits


def prompt_token_ids(
    *, seed: int, session: int, prompt_tokens: int, vocab: tuple[int, int], group: int, shared: int
) -> bytes:
    """Exactly `prompt_tokens` ids in [low, high), the first `shared` ones those of the group.

    Raises ClientError when too few are left to tell sessions apart.
    """
    low, high = vocab
    width, digits, own = high - low, session_digits(vocab), prompt_tokens - shared
    if own < digits:
        raise ClientError(
            f"{own} prompt tokens cannot tell sessions apart, {digits} are needed",
            where=f"prompt_tokens with vocab [{low}, {high})",
            next_step="ask for a longer prompt or a wider vocab",
        )
    return joined_ids(
        drawn_ids(f"shared/{seed}/{group}", shared, vocab),
        written_ids(low + session // width**place % width for place in range(digits)),
        drawn_ids(f"tokens/{seed}/{session}", own - digits, vocab),
    )


def turn_token_ids(
    *, seed: int, session: int, turn: int, count: int, vocab: tuple[int, int]
) -> bytes:
    """What the user of a session says in a further turn (from 1)."""
    return drawn_ids(f"turn/{seed}/{session}/{turn}", count, vocab)


def trace_token_ids(
    *,
    seed: int,
    line: int,
    hash_ids: Sequence[int],
    block_tokens: int,
    prompt_tokens: int,
    vocab: tuple[int, int],
) -> bytes:
    """A trace's prompt: one block an id, cut at `prompt_tokens`; tokens beyond all ids are its own.

    Equal ids give equal tokens, whatever line they stand in.
    """
    parts: list[bytes] = []
    left = prompt_tokens
    for one in hash_ids:
        parts.append(drawn_ids(f"block/{seed}/{one}", min(left, block_tokens), vocab))
        left -= min(left, block_tokens)
    return joined_ids(*parts, drawn_ids(f"line/{seed}/{line}", left, vocab))


def prompt_words(*, seed: int, session: int, count: int, turn: int = 0) -> list[str]:
    """`count` words of a chat session's turn; the first carries session, seed and turn."""
    mark = f"/{turn}" if turn else ""
    drawn = _drawn_words(f"words/{seed}/{session}{mark}", max(0, count - 1))
    return [f"{session}:{seed}{mark}", *drawn][:count]


def shared_words(*, seed: int, group: int, count: int) -> list[str]:
    """`count` words with which every chat text of a group begins."""
    return _drawn_words(f"shared-words/{seed}/{group}", count)


def _drawn_words(key: str, count: int) -> list[str]:
    drawn = struct.unpack(f"<{count}I", _stream(key, count))
    return [_WORDS[draw % len(_WORDS)] for draw in drawn]
