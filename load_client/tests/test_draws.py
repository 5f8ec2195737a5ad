"""Drawn ids are those of the plain formula, as numbers and as text."""

from __future__ import annotations

from hashlib import shake_256

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from load_client import draws
from load_client.draws import drawn_ids, drawn_text, id_text
from load_client.prompts import prompt_id_text, prompt_token_ids

VOCABS = st.tuples(st.integers(0, 10**10), st.integers(1, (1 << 32) - 1)).map(
    lambda pair: (pair[0] % (1 << 31), pair[0] % (1 << 31) + pair[1] % (1 << 31) + 1)
)


def plainly(key: str, count: int, vocab: tuple[int, int]) -> list[int]:
    low, high = vocab
    stream = shake_256(key.encode()).digest(4 * count)
    drawn = [int.from_bytes(stream[4 * i : 4 * i + 4], "little") for i in range(count)]
    return [low + (draw * (high - low) >> 32) for draw in drawn]


def commas(ids: list[int]) -> bytes:
    return ",".join(map(str, ids)).encode()


@settings(max_examples=300, deadline=None, derandomize=True)
@given(key=st.text("abc/0", min_size=1), count=st.integers(0, 70), vocab=VOCABS)
@example(key="a", count=999, vocab=(0, 1))
@example(key="a", count=999, vocab=(0, 1001))
@example(key="a", count=999, vocab=(0, 151_936))
@example(key="a", count=999, vocab=(35, 130))
@example(key="a", count=998, vocab=(1000, 2000))
@example(key="a", count=999, vocab=(99_999, 100_001))
@example(key="a", count=999, vocab=(0, 100_000_000))
@example(key="a", count=999, vocab=(0, 100_000_001))
def test_ids_and_their_text_are_those_of_the_formula(
    key: str, count: int, vocab: tuple[int, int]
) -> None:
    ids = plainly(key, count, vocab)
    assert drawn_ids(key, count, vocab) == ids
    assert drawn_text(key, count, vocab) == id_text(ids) == commas(ids)


def test_the_comparison_finds_a_zero_that_stayed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the examples above are worth."""
    monkeypatch.setattr(draws, "len", lambda text: 6, raising=False)  # as if low were as long
    assert drawn_text("a", 99, (35, 130_000)) != commas(plainly("a", 99, (35, 130_000)))


@pytest.mark.parametrize("shared", [[], [7, 123_456]])
@pytest.mark.parametrize("own", [0, 1, 50])
def test_a_prompts_text_is_that_of_its_ids(shared: list[int], own: int) -> None:
    words = {"seed": 3, "session": 70_000, "vocab": (1000, 31_000), "shared": shared}
    tokens = len(shared) + 3 + own
    ids = prompt_token_ids(prompt_tokens=tokens, **words)  # type: ignore[arg-type]
    assert len(ids) == tokens
    assert prompt_id_text(prompt_tokens=tokens, **words) == commas(ids)  # type: ignore[arg-type]
