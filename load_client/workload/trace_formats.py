"""The published traces of LLM requests, each with the unit of its times and the size of its blocks.

    mooncake  JSON lines {"timestamp", "input_length", "output_length", "hash_ids"}; milliseconds,
              512 tokens a hash id (kvcache-ai/Mooncake, FAST25-release)
    bailian   the same names, beside chat_id and others; seconds, 16 tokens a hash id
              (alibaba-edu/qwen-bailian-usagetraces-anon)
    azure     CSV of TIMESTAMP, ContextTokens, GeneratedTokens; dates with a time of day, no blocks
              (Azure/AzurePublicDataset, LLM inference traces of 2023 and 2024)
    burstgpt  CSV of Timestamp, Request tokens, Response tokens and others; seconds, no blocks
              (HPMLL/BurstGPT; a failed request has 0 response tokens)

A trace that does not say which it is must be of the only format with its columns. The columns of
Mooncake may hold seconds in other hands, so fractions are refused there until somebody says what
they are.
"""

from __future__ import annotations

import csv
import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from ..clock import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

NS_PER_MS = 1_000_000
# Nanoseconds are stored as 64-bit integers.
_NS_END = 1 << 63
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DATE = re.compile(r"(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFormat:
    """How the rows of one kind of trace are read; `block_tokens` is None where it has no blocks."""

    name: str
    csv: bool
    columns: tuple[str, str, str]  # of the time, the prompt's and the answer's length
    timestamp_ns: Callable[[Any], int]
    unit: str
    block_tokens: int | None


def _in(unit_ns: int) -> Callable[[Any], int]:
    """Times as numbers of a unit."""

    def timestamp_ns(value: Any) -> int:
        number = isinstance(value, int | Decimal | str) and not isinstance(value, bool)
        try:
            stamp = Decimal(value) * unit_ns if number else Decimal("NaN")
        except ArithmeticError:  # no number, or one beyond all computing
            stamp = Decimal("NaN")
        if not (stamp.is_finite() and 0 <= stamp < _NS_END):
            raise ValueError(f"{value!r} is no time of 0 or more")
        return round(stamp)

    return timestamp_ns


def _date_ns(value: Any) -> int:
    """A date with a time of day, UTC where it names no zone; digits beyond microseconds count."""
    match = _DATE.fullmatch(str(value).strip())
    if match is None:
        raise ValueError(f"{value!r} is no date with a time of day")
    whole, fraction, zone = match.groups()
    # A date that does not exist raises ValueError here.
    moment = datetime.fromisoformat(whole + (zone or "+00:00").replace("Z", "+00:00"))
    seconds = (moment - _EPOCH) // timedelta(seconds=1)
    return seconds * NS_PER_S + int((fraction or "").ljust(9, "0"))


_LENGTHS = ("timestamp", "input_length", "output_length")
FORMATS = {
    one.name: one
    for one in (
        TraceFormat(
            name="mooncake", csv=False, columns=_LENGTHS, timestamp_ns=_in(NS_PER_MS),
            unit="milliseconds", block_tokens=512,
        ),
        TraceFormat(
            name="bailian", csv=False, columns=_LENGTHS, timestamp_ns=_in(NS_PER_S),
            unit="seconds", block_tokens=16,
        ),
        TraceFormat(
            name="azure", csv=True, columns=("TIMESTAMP", "ContextTokens", "GeneratedTokens"),
            timestamp_ns=_date_ns, unit="dates", block_tokens=None,
        ),
        TraceFormat(
            name="burstgpt", csv=True, columns=("Timestamp", "Request tokens", "Response tokens"),
            timestamp_ns=_in(NS_PER_S), unit="seconds", block_tokens=None,
        ),
    )
}  # fmt: skip
_OF_BAILIAN_ALONE = frozenset({"chat_id", "parent_chat_id"})
_OF_MOONCAKE = frozenset({*_LENGTHS, "hash_ids"})


def format_of(rows: list[tuple[int, Mapping[str, Any]]]) -> TraceFormat | None:
    """The only published format with the columns of the first row; None where there is none."""
    columns = rows[0][1].keys()
    if columns >= _OF_BAILIAN_ALONE | {*_LENGTHS}:
        return FORMATS["bailian"]
    if columns == _OF_MOONCAKE:
        fractions = any(isinstance(row.get("timestamp"), Decimal) for _, row in rows)
        return None if fractions else FORMATS["mooncake"]
    tables = [one for one in FORMATS.values() if one.csv and columns >= {*one.columns}]
    return tables[0] if tables else None


def rows_of(text: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Line number and columns of every row, of JSON lines or of CSV with a head.

    Raises ValueError whose first argument is the line number.
    """
    lines = text.removeprefix("\ufeff").splitlines()
    if next((line for line in lines if line.strip()), "").lstrip().startswith("{"):
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield number, _object(line, number)
        return
    table = csv.reader(lines)
    try:
        head = [name.strip() for name in next(table, [])]
        for cells in filter(None, table):
            if len(cells) != len(head):
                raise ValueError(table.line_num, f"{len(cells)} cells under {len(head)} columns")
            yield table.line_num, dict(zip(head, cells, strict=True))
    except csv.Error as damage:
        raise ValueError(table.line_num, f"no CSV: {damage}") from damage


def _object(line: str, number: int) -> Mapping[str, Any]:
    try:
        item = json.loads(line, parse_float=Decimal)
    except (ValueError, RecursionError) as damage:
        raise ValueError(number, f"no JSON: {damage}") from damage
    if not isinstance(item, dict):
        raise ValueError(number, "no JSON object")  # noqa: TRY004 - damage of one kind
    return item
