"""Token ids drawn from SHAKE-256, as numbers or as the text a request carries.

A burst of a thousand prompts takes millions of ids, so none is looked at alone. All draws of a
prompt are one large integer; every second one stands alone in 64 bits once its neighbours are
masked out, so that one multiplication makes all their products: none reaches the next, both factors
being below 2**32.
"""

from __future__ import annotations

import struct
import sys
from array import array
from functools import lru_cache
from hashlib import shake_256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_DRAW_BYTES, _DRAW_BITS = 4, 32
_DRAW_MASK = (1 << _DRAW_BITS) - 1
_DIGITS_MAX = 8  # two ids of as many, each with a digit before it, fit into 64 bits


class IdText(bytes):
    """Token ids as JSON writes them, with commas between."""

    __slots__ = ()


def draws(key: str, count: int) -> tuple[int, ...]:
    """`count` unsigned 32-bit integers, little-endian on every machine."""
    return struct.unpack(f"<{count}I", _stream(key, count))


def drawn_ids(key: str, count: int, vocab: tuple[int, int]) -> list[int]:
    """`low + (draw * (high - low) >> 32)` of every draw."""
    evens, odds = _halves(key, count, vocab)
    return _array("I", evens | odds << _DRAW_BITS, _pairs(count))[:count].tolist()


def drawn_text(key: str, count: int, vocab: tuple[int, int]) -> IdText:
    """The same ids, written two by two.

    The decimal digits of 9 * 10**13 + 123456 * 10**7 + 9 * 10**6 + 654 are two ids, each behind a 9
    where its comma belongs: half as many numbers are made and written. Zeros before a shorter id
    are taken away at the end, one from every id at a time.
    """
    low, high = vocab
    digits, pairs = len(str(high - 1)), _pairs(count)
    if digits > _DIGITS_MAX:
        return id_text(drawn_ids(key, count, vocab))
    field = 10 ** (digits + 1)
    evens, odds = _halves(key, count, vocab)
    marks = _lanes(9 * (field + 1) * 10**digits, pairs)
    numbers = _array("Q", evens * field + odds + marks, pairs)
    text = bytearray(_format(b"", pairs) % tuple(numbers))
    text[:: digits + 1] = b"," * (2 * pairs)
    listed = bytes(text[: count * (digits + 1)])
    for _ in range(digits - len(str(low))):
        listed = b",".join(listed.split(b",0"))
    return IdText(listed[1:])


def id_text(ids: Sequence[int]) -> IdText:
    """Any ids, written by one format."""
    return IdText(_format(b",", len(ids)) % tuple(ids))


def _halves(key: str, count: int, vocab: tuple[int, int]) -> tuple[int, int]:
    """The ids at even and at odd places, one in every 64 bits; a surplus one is `low`."""
    low, high = vocab
    pairs = _pairs(count)
    lower, lift = _lanes(_DRAW_MASK, pairs), _lanes(low, pairs)
    drawn = int.from_bytes(_stream(key, count), "little")
    evens = ((drawn & lower) * (high - low) >> _DRAW_BITS & lower) + lift
    odds = ((drawn >> _DRAW_BITS & lower) * (high - low) >> _DRAW_BITS & lower) + lift
    return evens, odds


def _pairs(count: int) -> int:
    return (count + 1) // 2


def _array(code: str, lanes: int, count: int) -> array[int]:
    numbers = array(code, lanes.to_bytes(2 * _DRAW_BYTES * count, "little"))
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


@lru_cache(maxsize=16)
def _lanes(number: int, count: int) -> int:
    """The same number in each of `count` lanes of 64 bits."""
    return int.from_bytes(struct.pack("<Q", number) * count, "little")


@lru_cache(maxsize=8)
def _format(between: bytes, count: int) -> bytes:
    return between.join([b"%d"] * count)


def _stream(key: str, count: int) -> bytes:
    return shake_256(key.encode("ascii")).digest(_DRAW_BYTES * count)
