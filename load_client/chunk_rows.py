"""Rows of chunks.jsonl, kept as columns: one object a request instead of one a chunk."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .deltas import Columns

TOKEN_KINDS = ("content", "reasoning")


@dataclass(frozen=True, slots=True)
class ChunkRows:
    """The chunk rows of one request, in order; `tokens` is None where the server did not say."""

    request_id: str
    arrivals_ns: Sequence[int]
    kinds: Sequence[str]
    tokens: Sequence[int | None]
    event_bytes: Sequence[int]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Row by row."""
        columns = zip(self.arrivals_ns, self.kinds, self.tokens, self.event_bytes, strict=True)
        for seq, (arrival_ns, kind, tokens, event_bytes) in enumerate(columns):
            yield {
                "request_id": self.request_id,
                "seq": seq,
                "arrival_ns": arrival_ns,
                "kind": kind,
                "tokens": tokens,
                "event_bytes": event_bytes,
            }

    def __len__(self) -> int:
        """How many."""
        return len(self.kinds)

    def lines(self) -> str:
        """The same rows as JSON lines, in a quarter of the time a JSON encoder takes for them."""
        begin = f'{{"request_id":{json.dumps(self.request_id)},"seq":'
        columns = zip(self.arrivals_ns, self.kinds, self.tokens, self.event_bytes, strict=True)
        return "".join(
            [
                f'{begin}{seq},"arrival_ns":{arrival_ns},"kind":"{kind}","tokens":'
                f'{"null" if tokens is None else tokens},"event_bytes":{event_bytes}}}\n'
                for seq, (arrival_ns, kind, tokens, event_bytes) in enumerate(columns)
            ]
        )


def event_tokens(said: Columns) -> list[int | None]:
    """Tokens of each event: from its ids, else from how far its running usage has grown."""
    tokens: list[int | None] = []
    counted = 0
    for kind, ids, completion in zip(
        said.kinds, said.token_ids, said.completion_tokens, strict=True
    ):
        new: int | None = None
        if ids is not None:
            new = len(ids)
        elif completion is not None and kind != "usage":
            new = max(0, completion - counted)
        counted = counted if completion is None else completion
        tokens.append(new)
    return tokens
