"""What a good answer says against itself: marks for people and for rules, no reason to fail it.

held     all of it came at once: a proxy, or the server, kept the stream back until its end, and
the first token came no earlier than the last
surplus  its events hold more token ids than its usage counts
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..stream.deltas import TOKEN_KINDS

if TYPE_CHECKING:
    from .rows import ChunkRows, Row

HELD, SURPLUS = "held", "surplus"
# 20,000 events a second for one reader: no engine decodes so fast, and an emptied buffer arrives in
# less.
HELD_GAP_NS = 50_000


def marks_of(row: Row, chunks: ChunkRows) -> tuple[str, ...]:
    """The marks of one answer; none where it failed."""
    if row["outcome"] != "ok":
        return ()
    marks = (HELD, _held(row, chunks)), (SURPLUS, _surplus(row, chunks))
    return tuple(name for name, applies in marks if applies)


def _held(row: Row, chunks: ChunkRows) -> bool:
    span_ns = row["last_content_ns"] - row["first_content_ns"]
    # Most streams take longer than their events could, of whatever kind: nothing is counted then.
    if span_ns >= HELD_GAP_NS * len(chunks.kinds):
        return False
    events = _token_events(chunks)
    if events == 1:
        return bool(row["output_tokens"] > 1)
    return bool(span_ns < HELD_GAP_NS * (events - 1))


def _surplus(row: Row, chunks: ChunkRows) -> bool:
    ids = row["output_token_ids"]
    return bool((_token_events(chunks) if ids is None else len(ids)) > row["output_tokens"])


def _token_events(chunks: ChunkRows) -> int:
    return sum(map(chunks.kinds.count, TOKEN_KINDS))
