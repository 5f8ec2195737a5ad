"""Drawn ids are those of the plain formula."""

from __future__ import annotations

import json
from hashlib import shake_256

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from load_client.workload import token_generator
from load_client.workload.token_generator import drawn_ids, prompt_token_ids

VOCABS = st.lists(st.integers(0, 10**8), min_size=2, max_size=2, unique=True).map(
    lambda pair: (min(pair), max(pair))
)


def plainly(key: str, count: int, vocab: tuple[int, int]) -> list[int]:
    low, high = vocab
    stream = shake_256(key.encode()).digest(4 * count)
    drawn = [int.from_bytes(stream[4 * i : 4 * i + 4], "little") for i in range(count)]
    return [low + (draw * (high - low) >> 32) for draw in drawn]


def plain_text(key: str, count: int, vocab: tuple[int, int]) -> bytes:
    return ",".join(map(str, plainly(key, count, vocab))).encode()


@settings(max_examples=150, derandomize=True)
@given(key=st.text("abc/0", min_size=1), count=st.integers(0, 70), vocab=VOCABS)
@example(key="a", count=999, vocab=(0, 1))
@example(key="a", count=999, vocab=(0, 1001))
@example(key="a", count=999, vocab=(0, 151_936))
@example(key="a", count=999, vocab=(35, 130))
@example(key="a", count=998, vocab=(1000, 2000))
@example(key="a", count=999, vocab=(99_999, 100_001))
@example(key="a", count=999, vocab=(0, 100_000_000))
def test_ids_are_those_of_the_formula(key: str, count: int, vocab: tuple[int, int]) -> None:
    assert drawn_ids(key, count, vocab) == plain_text(key, count, vocab)


def test_the_comparison_finds_a_zero_that_stayed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the examples above are worth: `low` is taken for as long as `high`."""
    monkeypatch.setattr(token_generator, "len", lambda _text: 6, raising=False)
    assert drawn_ids("a", 99, (35, 130_000)) != plain_text("a", 99, (35, 130_000))


@pytest.mark.parametrize("shared", [0, 2])
@pytest.mark.parametrize("own", [0, 1, 50])
def test_a_prompt_is_what_is_shared_then_its_session_then_draws(shared: int, own: int) -> None:
    vocab = (1000, 31_000)
    tokens = shared + 3 + own
    found = prompt_token_ids(
        seed=3, session=70_000, vocab=vocab, group=4, shared=shared, prompt_tokens=tokens
    )
    session = [1000 + 70_000 % 30_000, 1000 + 70_000 // 30_000, 1000]
    assert json.loads(b"[%s]" % found) == [
        *plainly("shared/3/4", shared, vocab),
        *session,
        *plainly("tokens/3/70000", own, vocab),
    ]
