"""The token ids of a session: a pure function of (seed, session, prompt_tokens, vocab).

The first tokens are the digits of the session number, lowest first, in base (high - low): two
sessions differ within them, mostly in the very first token, so no two share a cached prefix. The
rest is drawn from SHAKE-256, which gives the same tokens in every version of Python.
"""

from __future__ import annotations

import struct
from hashlib import shake_256

from .errors import ClientError

_SESSION_END = 1 << 31
_DRAW_BYTES = 4
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
    *, seed: int, session: int, prompt_tokens: int, vocab: tuple[int, int]
) -> list[int]:
    """Exactly `prompt_tokens` ids in [low, high); raises ClientError when too few to be unique."""
    low, high = vocab
    digits = session_digits(vocab)
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
    draws = _draws(f"tokens/{seed}/{session}", prompt_tokens - digits)
    return head + [low + (draw * width >> 32) for draw in draws]


def prompt_words(*, seed: int, session: int, count: int) -> list[str]:
    """`count` words of a chat session's text; the first carries session and seed."""
    draws = _draws(f"words/{seed}/{session}", max(0, count - 1))
    return [f"{session}:{seed}", *(_WORDS[draw % len(_WORDS)] for draw in draws)][:count]


def _draws(key: str, count: int) -> tuple[int, ...]:
    """`count` unsigned 32-bit integers, little-endian on every machine."""
    stream = shake_256(key.encode("ascii")).digest(_DRAW_BYTES * count)
    return struct.unpack(f"<{count}I", stream)
