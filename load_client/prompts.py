"""The token ids of a session: a pure function of (seed, session, prompt_tokens, vocab).

The first tokens are the digits of the session number, lowest first, in base (high - low): two
sessions differ within them, mostly in the very first token, so no two share a cached prefix. The
rest is drawn from SHAKE-256, which gives the same tokens in every version of Python.
"""

from __future__ import annotations

import struct
import sys
from array import array
from functools import lru_cache
from hashlib import shake_256
from typing import TYPE_CHECKING

from .errors import ClientError

if TYPE_CHECKING:
    from collections.abc import Sequence

_SESSION_END = 1 << 31
_DRAW_BYTES = 4
_DRAW_BITS = 8 * _DRAW_BYTES
_DRAW_END = 1 << _DRAW_BITS
_WORDS = (
    *("amber", "basin", "cedar", "delta", "ember", "fjord", "grove", "harbor", "inlet", "jetty"),
    *("kernel", "lagoon", "meadow", "nectar", "orchard", "prairie", "quarry", "ridge", "summit"),
    *("tundra", "umbra", "valley", "willow", "yonder", "zephyr", "anchor", "beacon", "canyon"),
    *("dune", "estuary", "forest", "glacier"),
)


def session_digits(vocab: tuple[int, int]) -> int:
    """How many leading tokens carry the session."""
    low, high = vocab
    digits, reach = 1, high - low
    while reach < _SESSION_END:
        digits, reach = digits + 1, reach * (high - low)
    return digits


def prompt_token_ids(
    *,
    seed: int,
    session: int,
    prompt_tokens: int,
    vocab: tuple[int, int],
    shared: Sequence[int] = (),
) -> list[int]:
    """Exactly `prompt_tokens` ids in [low, high), the `shared` ones first.

    Raises ClientError when too few are left to tell sessions apart.
    """
    low, high = vocab
    digits = session_digits(vocab)
    prompt_tokens -= len(shared)
    if prompt_tokens < digits:
        raise ClientError(
            f"{prompt_tokens} prompt tokens cannot tell sessions apart, {digits} are needed",
            where=f"prompt_tokens with vocab [{low}, {high})",
            next_step="ask for a longer prompt or a wider vocab",
        )
    width, rest = high - low, session
    head: list[int] = []
    for _ in range(digits):
        head.append(low + rest % width)
        rest //= width
    own = _tokens(f"tokens/{seed}/{session}", prompt_tokens - digits, vocab)
    return [*shared, *head, *own]


def shared_token_ids(*, seed: int, group: int, count: int, vocab: tuple[int, int]) -> list[int]:
    """The `count` ids with which every prompt of a group begins."""
    return _tokens(f"shared/{seed}/{group}", count, vocab)


def turn_token_ids(
    *, seed: int, session: int, turn: int, count: int, vocab: tuple[int, int]
) -> list[int]:
    """What the user of a session says in a further turn (from 1)."""
    return _tokens(f"turn/{seed}/{session}/{turn}", count, vocab)


def trace_token_ids(
    *,
    seed: int,
    line: int,
    hash_ids: Sequence[int],
    block_tokens: int,
    prompt_tokens: int,
    vocab: tuple[int, int],
) -> list[int]:
    """A trace's prompt: one block an id, cut at `prompt_tokens`; what no id covers is the line's.

    Equal ids give equal tokens, whatever line they stand in.
    """
    tokens: list[int] = []
    for one in hash_ids[: -(-prompt_tokens // block_tokens)]:
        tokens += _tokens(f"block/{seed}/{one}", block_tokens, vocab)
    del tokens[prompt_tokens:]
    return tokens + _tokens(f"line/{seed}/{line}", prompt_tokens - len(tokens), vocab)


def prompt_words(*, seed: int, session: int, count: int, turn: int = 0) -> list[str]:
    """`count` words of a chat session's turn; the first carries session, seed and turn."""
    mark = f"/{turn}" if turn else ""
    draws = _draws(f"words/{seed}/{session}{mark}", max(0, count - 1))
    return [f"{session}:{seed}{mark}", *(_WORDS[draw % len(_WORDS)] for draw in draws)][:count]


def shared_words(*, seed: int, group: int, count: int) -> list[str]:
    """`count` words with which every chat text of a group begins."""
    draws = _draws(f"shared-words/{seed}/{group}", count)
    return [_WORDS[draw % len(_WORDS)] for draw in draws]


def _tokens(key: str, count: int, vocab: tuple[int, int]) -> list[int]:
    """`low + (draw * (high - low) >> 32)` of every draw.

    All draws are one large integer. Every second one stands alone in 64 bits once its neighbours
    are masked out, so that one multiplication makes all their products: none reaches the next, both
    factors being below 2**32. Then the others. A burst of a thousand prompts takes millions of
    tokens, and a loop over them four times as long.
    """
    low, high = vocab
    pairs = (count + 1) // 2
    lower, upper = _lanes(_DRAW_END - 1, 0, pairs), _lanes(0, _DRAW_END - 1, pairs)
    lift = _lanes(0, low, pairs)
    draws = int.from_bytes(_stream(key, count), "little")
    evens = (draws & lower) * (high - low) + lift
    odds = (draws >> _DRAW_BITS & lower) * (high - low) + lift
    numbers = evens >> _DRAW_BITS & lower | odds & upper
    tokens = array("I", numbers.to_bytes(2 * _DRAW_BYTES * pairs, "little"))
    if sys.byteorder == "big":
        tokens.byteswap()
    return tokens[:count].tolist()


@lru_cache(maxsize=16)
def _lanes(lower: int, upper: int, count: int) -> int:
    """`count` lanes of 64 bits, the same halves in each."""
    return int.from_bytes(struct.pack("<II", lower, upper) * count, "little")


def _draws(key: str, count: int) -> tuple[int, ...]:
    """`count` unsigned 32-bit integers, little-endian on every machine."""
    return struct.unpack(f"<{count}I", _stream(key, count))


def _stream(key: str, count: int) -> bytes:
    return shake_256(key.encode("ascii")).digest(_DRAW_BYTES * count)
