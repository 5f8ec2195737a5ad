"""A trace as the requests it asks for: instants, lengths and the blocks of tokens they share.

A hash id names a block of tokens together with all blocks before it; equal ids are equal tokens, so
requests share prefixes exactly as the trace says. The number of ids a line has must be that of its
blocks: with a wrong block size, prompts would share other prefixes than the trace's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ClientError
from .trace_formats import FORMATS, TraceFormat, format_of, rows_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_DIGITS = re.compile("[0-9]{1,18}")
_BLOCK_END = 1 << 62  # one id stands for a prompt of at most one block, however large that is


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceLine:
    """One request of a trace; lengths in tokens."""

    number: int  # of its line in the file
    timestamp_ns: int
    input_length: int
    output_length: int  # 0: it asked for nothing, or failed
    hash_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """The requests of a trace in order, and how many tokens a hash id stands for."""

    lines: tuple[TraceLine, ...]
    block_tokens: int

    @property
    def answered(self) -> tuple[int, ...]:
        """The places of those that ask for an answer: nothing can be measured of the others."""
        return tuple(at for at, line in enumerate(self.lines) if line.output_length)


def read_trace(path: str, name: str | None = None, block_tokens: int | None = None) -> Trace:
    """The trace in `path`; ClientError names a line that is no request, or what contradicts what.

    Without `name` its format is that of its columns; without `block_tokens` that of the format.
    """
    rows = _rows(path)
    form = _format(path, rows, name)
    lines = tuple(_line(row, form, number, path) for number, row in rows)
    for one, other in pairwise(lines):
        if other.timestamp_ns < one.timestamp_ns:
            raise ClientError(
                "the timestamp is earlier than that of the line before",
                where=f"{path}, line {other.number}",
                next_step="sort the trace",
            )
    size = block_tokens or form.block_tokens
    _require_blocks(path, lines, size, form if block_tokens is None else None)
    trace = Trace(lines=lines, block_tokens=size or 1)
    if not trace.answered:
        raise ClientError(
            "every line has output length 0", where=path, next_step="give a trace of answers"
        )
    return trace


def _rows(path: str) -> list[tuple[int, Mapping[str, Any]]]:
    try:
        rows = list(rows_of(Path(path).read_text(encoding="utf-8")))
    except OSError as refusal:
        raise ClientError(
            f"cannot read the trace: {refusal}", where=path, next_step="give a readable file"
        ) from refusal
    except UnicodeDecodeError as damage:
        raise ClientError(
            f"the trace is not UTF-8: {damage}", where=path, next_step="give a text file"
        ) from damage
    except ValueError as damage:
        number, what = damage.args
        raise ClientError(
            f"this line is not a request of a trace ({what})",
            where=f"{path}, line {number}",
            next_step="correct the line, or leave it out",
        ) from damage
    if not rows:
        raise ClientError("the trace is empty", where=path, next_step="give at least one line")
    return rows


def _format(path: str, rows: list[tuple[int, Mapping[str, Any]]], name: str | None) -> TraceFormat:
    form = FORMATS[name] if name is not None else format_of(rows)
    if form is not None:
        return form
    units = "; ".join(f"{one.name} ({one.unit})" for one in FORMATS.values())
    number, row = rows[0]
    raise ClientError(
        f"this is not a request of a trace whose unit of time is known: {', '.join(map(str, row))}",
        where=f"{path}, line {number}",
        next_step=f"say what it is with --trace-format: {units}",
    )


def _line(row: Mapping[str, Any], form: TraceFormat, number: int, path: str) -> TraceLine:
    stamp, prompt, answer = form.columns
    try:
        return TraceLine(
            number=number,
            timestamp_ns=form.timestamp_ns(row[stamp]),
            input_length=_count(row[prompt], 1, table=form.csv),
            output_length=_count(row[answer], 0, table=form.csv),
            hash_ids=() if form.csv else tuple(map(_hash_id, row.get("hash_ids", ()))),
        )
    except (ValueError, KeyError, TypeError) as damage:
        what = f"no column {damage}" if isinstance(damage, KeyError) else str(damage)
        raise ClientError(
            f"this line is not a request of a trace of {form.name} ({what})",
            where=f"{path}, line {number}",
            next_step=f"write {', '.join(form.columns)}, times in {form.unit}",
        ) from damage


def _count(value: Any, low: int, *, table: bool) -> int:
    """A whole number; in a table it is written in digits."""
    if table and isinstance(value, str) and _DIGITS.fullmatch(value.strip()):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < low:
        raise ValueError(f"{value!r} is not a whole number of {low} or more")
    return value


def _hash_id(value: Any) -> int:
    return _count(value, 0, table=False)


def block_sizes(line: TraceLine) -> tuple[int, int]:
    """The least and the largest block of which the line has as many ids.

    The last block may be part of one, with an id of its own or without.
    """
    tokens, ids = line.input_length, len(line.hash_ids)
    largest = max((tokens - 1) // (ids - 1), tokens // ids) if ids > 1 else _BLOCK_END
    return tokens // (ids + 1) + 1, largest


def fitting_block(lines: Sequence[TraceLine]) -> int | None:
    """The least block that fits every line, a power of two where one does; None if none does.

    Rather one that gives the part at the end an id, as published traces do.
    """
    some = [line for line in lines if line.hash_ids]
    largest = min(block_sizes(line)[1] for line in some)
    with_part = max(-(-line.input_length // len(line.hash_ids)) for line in some)
    for least in (with_part, max(block_sizes(line)[0] for line in some)):
        power = 1 << (least - 1).bit_length()
        if least <= largest:
            return power if power <= largest else least
    return None


def _require_blocks(
    path: str, lines: Sequence[TraceLine], size: int | None, form: TraceFormat | None
) -> None:
    """Refuse a block size that a line contradicts; `form` is the format that gave it."""
    sized = ((line, block_sizes(line)) for line in lines if line.hash_ids and size is not None)
    odd = next((line for line, (low, high) in sized if not low <= (size or 0) <= high), None)
    if odd is None:
        return
    fits = fitting_block(lines)
    advice = "no block size fits all its lines: look how the trace was made"
    if fits is not None:
        advice = f"blocks of {fits} would fit: --trace-block-tokens {fits}"
        if form is not None:
            advice += f"; and are its times {form.unit}, as those of {form.name} are?"
    raise ClientError(
        f"{len(odd.hash_ids)} hash ids for {odd.input_length} tokens are no blocks of {size}",
        where=f"{path}, line {odd.number}",
        next_step=advice,
    )
