"""The token ids of a session: a pure function of (seed, session, prompt_tokens, vocab).

The first tokens are the digits of the session number, lowest first, in base (high - low): two
sessions differ within them, mostly in the very first token, so no two share a cached prefix. The
rest is drawn from SHAKE-256, which gives the same tokens in every version of Python.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .draws import IdText, drawn_ids, drawn_text, draws, id_text
from .errors import ClientError

if TYPE_CHECKING:
    from collections.abc import Sequence

_SESSION_END = 1 << 31
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
    begin = _begin(session, prompt_tokens, vocab, shared)
    own = prompt_tokens - len(begin)
    return begin + drawn_ids(f"tokens/{seed}/{session}", own, vocab)


def prompt_id_text(
    *,
    seed: int,
    session: int,
    prompt_tokens: int,
    vocab: tuple[int, int],
    shared: Sequence[int] = (),
) -> IdText:
    """`prompt_token_ids` as a request carries them; without ever making a number of each."""
    begin = _begin(session, prompt_tokens, vocab, shared)
    own = drawn_text(f"tokens/{seed}/{session}", prompt_tokens - len(begin), vocab)
    return IdText(b",".join([id_text(begin), own] if own else [id_text(begin)]))


def _begin(
    session: int, prompt_tokens: int, vocab: tuple[int, int], shared: Sequence[int]
) -> list[int]:
    """What stands before a session's drawn ids: the shared ones, and the session's digits."""
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
    return [*shared, *head]


def shared_token_ids(*, seed: int, group: int, count: int, vocab: tuple[int, int]) -> list[int]:
    """The `count` ids with which every prompt of a group begins."""
    return drawn_ids(f"shared/{seed}/{group}", count, vocab)


def turn_token_ids(
    *, seed: int, session: int, turn: int, count: int, vocab: tuple[int, int]
) -> list[int]:
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
) -> list[int]:
    """A trace's prompt: one block an id, cut at `prompt_tokens`; what no id covers is the line's.

    Equal ids give equal tokens, whatever line they stand in.
    """
    tokens: list[int] = []
    for one in hash_ids[: -(-prompt_tokens // block_tokens)]:
        tokens += drawn_ids(f"block/{seed}/{one}", block_tokens, vocab)
    del tokens[prompt_tokens:]
    return tokens + drawn_ids(f"line/{seed}/{line}", prompt_tokens - len(tokens), vocab)


def prompt_words(*, seed: int, session: int, count: int, turn: int = 0) -> list[str]:
    """`count` words of a chat session's turn; the first carries session, seed and turn."""
    mark = f"/{turn}" if turn else ""
    drawn = draws(f"words/{seed}/{session}{mark}", max(0, count - 1))
    return [f"{session}:{seed}{mark}", *(_WORDS[draw % len(_WORDS)] for draw in drawn)][:count]


def shared_words(*, seed: int, group: int, count: int) -> list[str]:
    """`count` words with which every chat text of a group begins."""
    drawn = draws(f"shared-words/{seed}/{group}", count)
    return [_WORDS[draw % len(_WORDS)] for draw in drawn]
