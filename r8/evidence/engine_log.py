"""An engine's log, line by line, into rows of the `engine_log` table.

What the lines can and cannot say: a lookup line gives the tokens LMCache holds in *any* tier, and
LMCache's own cost and throughput leave the disk out when it loads asynchronously. They attribute
tokens to requests; that bytes came from a device is proven by block counters only. The text of
every line that matters is kept beside what was read from it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from r8.evidence.engine_words import kind_of, unjudged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Row = dict[str, int | str | None]

_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
# LMCache before 0.4 does not say what the engine found in its own prefix cache.
_LOOKUP = re.compile(
    r"Reqid: (?P<request>\S+), Total tokens (?P<total>\d+), "
    r"(?:Inference Engine computed tokens: (?P<computed>\d+), )?"
    r"LMCache hit tokens: (?P<hit>\d+|None)"
    r"(?:, (?:but )?need to load: (?P<need>-?\d+))?(?P<skip> < min_retrieve)?"
)
# Before 0.4 no request is named; layer by layer the same is said in other words.
_RETRIEVED = re.compile(
    r"(?:\[req_id=(?P<request>[^\]]+)\] )?Retrieved (?P<retrieved>\d+) out of (?P<required>\d+) "
    r"(?:required tokens \(from |out of total )(?P<total>\d+) (?:total )?tokens"
)
_STORED = re.compile(
    r"(?:\[req_id=(?P<request>[^\]]+)\] )?"
    r"Stored (?P<stored>\d+) out of total (?P<total>\d+) tokens"
)
_PATCH_LOADED = re.compile(
    r"R8-PATCH loaded module_sha256=(?P<digest>[0-9a-f]{64}) mode=(?P<mode>parallel|serial)\b"
)
_PATCH_READ = re.compile(
    r"R8-PATCH read id=\d+ path=(?:sync|async) keys=(?P<keys>\d+) segments=(?P<segments>\d+) "
    r"bytes=(?P<bytes>\d+) misses=(?P<misses>\d+)"
)


def _integer(text: str | None) -> int | None:
    return None if text is None or text == "None" else int(text)


def _lookup(match: re.Match[str]) -> Row:
    # Below min_retrieve LMCache loads nothing, whatever the line says it would need.
    need = 0 if match["skip"] else _integer(match["need"])
    return {
        "kind": "lookup",
        "server_request_id": match["request"],
        "total_tokens": int(match["total"]),
        "computed_tokens": _integer(match["computed"]),
        "hit_tokens": _integer(match["hit"]),
        "need_tokens": need,
    }


def _retrieved(match: re.Match[str]) -> Row:
    return {
        "kind": "retrieved",
        "server_request_id": match["request"],
        "total_tokens": int(match["total"]),
        "retrieved_tokens": int(match["retrieved"]),
        "required_tokens": int(match["required"]),
    }


def _stored(match: re.Match[str]) -> Row:
    return {
        "kind": "stored",
        "server_request_id": match["request"],
        "total_tokens": int(match["total"]),
        "stored_tokens": int(match["stored"]),
    }


def _patch_loaded(match: re.Match[str]) -> Row:
    return {"kind": "patch_loaded", "digest": match["digest"], "mode": match["mode"]}


def _patch_read(match: re.Match[str]) -> Row:
    return {
        "kind": "patch_read",
        "keys": int(match["keys"]),
        "segments": int(match["segments"]),
        "read_bytes": int(match["bytes"]),
        "misses": int(match["misses"]),
    }


_FORMS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Row]], ...] = (
    (_LOOKUP, _lookup),
    (_RETRIEVED, _retrieved),
    (_STORED, _stored),
    (_PATCH_LOADED, _patch_loaded),
    (_PATCH_READ, _patch_read),
)


def parse_line(raw: bytes) -> Row | None:
    """The facts of one log line (`kind`, its columns, `text`); None for a line without any.

    Colour codes are removed; bytes that are not UTF-8 appear escaped in `text`.
    """
    text = _ANSI.sub("", raw.decode("utf-8", errors="backslashreplace")).rstrip("\r\n")
    if (kind := kind_of(text)) is not None:
        return {"kind": kind, "text": text}
    for pattern, facts in _FORMS:
        match = pattern.search(text)
        if match is not None:
            return {**facts(match), "text": text}
    level = unjudged(text)
    return None if level is None else {"kind": level, "text": text}


def parse_log(lines: Iterable[bytes], *, instance: str) -> Iterator[Row]:
    """Rows of the `engine_log` table, without `run_id`, of one instance's log in file order."""
    for number, raw in enumerate(lines, start=1):
        row = parse_line(raw)
        if row is not None:
            yield {"instance": instance, "line": number, **row}
