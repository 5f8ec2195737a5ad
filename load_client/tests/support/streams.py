"""Streams as servers really send them: bytes for the tests, each with what must be understood."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

DONE = b"data: [DONE]\n\n"
USAGE = {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15}


def event(message: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(message, ensure_ascii=False).encode() + b"\n\n"


def chat(**delta: Any) -> bytes:
    return event({"id": "chatcmpl-1", "choices": [{"index": 0, "delta": delta}]})


def completion(text: str, **more: Any) -> bytes:
    return event({"id": "cmpl-1", "choices": [{"index": 0, "text": text, **more}]})


def usage(counts: dict[str, int] | None = None) -> bytes:
    return event({"id": "cmpl-1", "choices": [], "usage": counts or USAGE})


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def head(status: str = "200 OK", *lines: str) -> bytes:
    fields = "".join(f"{line}\r\n" for line in lines)
    return f"HTTP/1.1 {status}\r\nContent-Type: text/event-stream\r\n{fields}\r\n".encode()


def chunked(*events: bytes, end: bytes = b"0\r\n\r\n") -> bytes:
    return head("200 OK", "Transfer-Encoding: chunked") + b"".join(map(chunk, events)) + end


def sized(body: bytes, *, missing: int = 0) -> bytes:
    return head("200 OK", f"Content-Length: {len(body)}") + body[: len(body) - missing]


def closed(*events: bytes) -> bytes:
    return head("200 OK", "Connection: close") + b"".join(events)


@dataclass(frozen=True)
class Case:
    name: str
    raw: bytes
    endpoint: str
    outcome: str
    kinds: str  # one letter a chunk row: Role Empty Content reAsoning Usage Done coMment eXror
    text: str | None
    output_tokens: int | None = 3
    ended: str = "eof"


_ABC = (completion("a"), completion("b"), completion("c"))
_WORDS = (chat(role="assistant", content=""), chat(content="a"), chat(content="bc"))
_HELLO = "h\u00e9 \u4f60\U0001f600"


def with_usage(data: bytes, completion_tokens: int) -> bytes:
    message = json.loads(data.removeprefix(b"data: "))
    return event(message | {"usage": USAGE | {"completion_tokens": completion_tokens}})


CASES = (
    Case("plain", chunked(*_ABC, usage(), DONE), "completions", "ok", "CCCUD", "abc"),
    Case("role first", chunked(*_WORDS, usage(), DONE), "chat", "ok", "RCCUD", "abc"),
    Case("close-delimited", closed(*_ABC, usage(), DONE), "completions", "ok", "CCCUD", "abc"),
    Case(
        "content-length",
        sized(b"".join(_ABC) + usage() + DONE),
        *("completions", "ok", "CCCUD", "abc"),
    ),
    Case(
        "empty deltas",
        chunked(chat(role="assistant"), chat(content=""), chat(), chat(content="x"), usage(), DONE),
        *("chat", "ok", "REECUD", "x"),
    ),
    Case(
        "reasoning then answer",
        chunked(
            chat(role="assistant", content=""),
            *(chat(reasoning_content="hm"), chat(reasoning="m", content=None), chat(content="42")),
            *(usage(), DONE),
        ),
        *("chat", "ok", "RAACUD", "hmm42"),
    ),
    Case(
        "role and content together",
        chunked(chat(role="assistant", content="hi"), usage(), DONE),
        *("chat", "ok", "CUD", "hi"),
    ),
    Case(
        "several tokens a chunk",
        chunked(completion("abc", token_ids=[5, 6, 7]), usage(), DONE),
        *("completions", "ok", "CUD", "abc"),
    ),
    Case(
        "half a character is a token without text",
        chunked(completion("", token_ids=[5]), completion("\u00e9", token_ids=[6]), usage(), DONE),
        *("completions", "ok", "CCUD", "\u00e9"),
    ),
    Case(
        "usage in every chunk",
        chunked(*(with_usage(data, i + 1) for i, data in enumerate(_ABC)), DONE),
        *("completions", "ok", "CCCD", "abc"),
    ),
    Case("no usage", chunked(*_ABC, DONE), "completions", "no_usage", "CCCD", "abc", None),
    Case(
        "CRLF events",
        chunked(*(e.replace(b"\n", b"\r\n") for e in (*_ABC, usage(), DONE))),
        *("completions", "ok", "CCCUD", "abc"),
    ),
    Case(
        "CR events",
        chunked(*(e.replace(b"\n", b"\r") for e in (*_ABC, usage(), DONE))),
        *("completions", "ok", "CCCUD", "abc"),
    ),
    Case(
        "comments and blank lines",
        chunked(
            *(b": ping\n\n", b"\n\n", _ABC[0], b": x\n" + _ABC[1], b"event: ping\n\n"),
            *(usage(), DONE),
        ),
        *("completions", "ok", "MCCMUD", "ab"),
    ),
    Case(
        "data of several lines",
        chunked(b'data: {"choices": [{"index": 0,\ndata:  "text": "q"}]}\n\n', usage(), DONE),
        *("completions", "ok", "CUD", "q"),
    ),
    Case(
        "byte order mark, no space after colon",
        chunked(b"\xef\xbb\xbf" + _ABC[0].replace(b"data: ", b"data:"), usage(), DONE),
        *("completions", "ok", "CUD", "a"),
    ),
    Case(
        "many events in one chunk, characters of several bytes",
        chunked(completion(_HELLO) + _ABC[1], usage() + DONE),
        *("completions", "ok", "CCUD", _HELLO + "b"),
    ),
    Case(
        "HTTP chunks cut inside data: and inside characters",
        chunked(*(bytes([b]) for b in event({"choices": [{"text": _HELLO}]}) + DONE)),
        *("completions", "no_usage", "CD", _HELLO, None),
    ),
    Case(
        "chunk extension and trailer",
        head("200 OK", "Transfer-Encoding: Chunked")
        + b"%X;a=b\r\n%s\r\n" % (len(_ABC[0]), _ABC[0])
        + chunk(usage() + DONE)
        + b"0\r\nX-Sum: 1\r\n\r\n",
        *("completions", "ok", "CUD", "a"),
    ),
    Case(
        "100 Continue first",
        b"HTTP/1.1 100 Continue\r\n\r\n" + chunked(_ABC[0], usage(), DONE),
        *("completions", "ok", "CUD", "a"),
    ),
    Case(
        "[DONE] without its empty line",
        chunked(*_ABC, usage(), b"data: [DONE]\n"),
        *("completions", "ok", "CCCUD", "abc"),
    ),
    Case(
        "server forgets the last HTTP chunk after [DONE]",
        chunked(*_ABC, usage(), DONE, end=b""),
        *("completions", "ok", "CCCUD", "abc"),
    ),
    Case("clean end without [DONE]", chunked(*_ABC), "completions", "cut", "CCC", "abc", None),
    Case(
        "clean end with usage, without [DONE]",
        chunked(*_ABC, usage()),
        *("completions", "cut", "CCCU", "abc"),
    ),
    Case("closed early", closed(*_ABC), "completions", "cut", "CCC", "abc", None),
    Case(
        "last event unterminated",
        closed(_ABC[0], _ABC[1].rstrip(b"\n")),
        *("completions", "cut", "C", "a", None),
    ),
    Case(
        "shorter than its content-length",
        sized(b"".join(_ABC), missing=4),
        *("completions", "cut", "CC", "ab", None),
    ),
    Case("reset", chunked(*_ABC, end=b""), "completions", "cut", "CCC", "abc", None, "reset"),
    Case("stalled", chunked(*_ABC, end=b""), "completions", "timeout", "CCC", "abc", None,
         "timeout"),
    Case("silent", b"", "completions", "timeout", "", None, None, "timeout"),
    Case("closed without a byte", b"", "completions", "cut", "", None, None),
    Case("half a head", b"HTTP/1.1 20", "completions", "cut", "", None, None),
    Case("error event", chunked(_ABC[0], event({"error": {"message": "no"}}), DONE), "completions",
         "stream_error", "CXD", "a", None),
    Case("named error event", chunked(b"event: error\ndata: {}\n\n", DONE), "completions",
         "stream_error", "XD", None, None),
    Case("broken JSON", chunked(_ABC[0], b"data: {oops\n\n", DONE), "completions",
         "stream_error", "CXD", "a", None),
    Case("broken UTF-8", chunked(b'data: {"choices": "\xff"}\n\n', DONE), "completions",
         "stream_error", "XD", None, None),
    Case("choices of the wrong shape", chunked(event({"choices": [7]}), usage(), DONE),
         "completions", "stream_error", "XUD", None),
    Case("counts beyond 64 bits", chunked(_ABC[0], usage(USAGE | {"completion_tokens": 1 << 63}),
         DONE), "completions", "stream_error", "CXD", "a", None),
    Case("deep nesting", chunked(b"data: " + b"[" * 90_000 + b"\n\n", DONE), "completions",
         "stream_error", "XD", None, None),
    Case("content after [DONE]", chunked(*_ABC, usage(), DONE, _ABC[0]), "completions",
         "stream_error", "CCCUD", "abc"),
    Case("no content at all", chunked(usage(), DONE), "completions", "stream_error", "UD", None),
    Case("bad chunk size", head("200 OK", "Transfer-Encoding: chunked") + b"zz\r\n", "completions",
         "stream_error", "", None, None),
    Case("chunk longer than its size", chunked(_ABC[0]).replace(b"\n\n\r\n", b"\n\n??"),
         "completions", "stream_error", "C", "a", None),
    Case("not HTTP", b"SSH-2.0-OpenSSH\r\n\r\n", "completions", "stream_error", "", None, None),
    Case("not HTTP, no end", b"SSH-2.0-OpenSSH\r\n", "completions", "stream_error", "", None, None),
    Case("gzip although refused", head("200 OK", "Content-Encoding: gzip") + b"\x1f\x8b",
         "completions", "stream_error", "", None, None),
    Case("a JSON answer", head().replace(b"text/event-stream", b"application/json") + b"{}",
         "completions", "stream_error", "", None, None),
    Case("HTTP 500", head("500 Oops", "Content-Length: 4") + b"boom", "completions",
         "http_error", "", None, None),
    Case("HTTP 503 with Retry-After", head("503 Busy", "Retry-After: 7", "Content-Length: 4")
         + b"busy", "completions", "http_error", "", None, None),
    Case("HTTP 429 with Retry-After and a JSON body", head("429 Slow", "Retry-After: 2",
         "Content-Length: 22") + b'{"error": {"code": 1}}', "completions", "http_error", "", None,
         None),
    Case("HTTP 404 that hangs", head("404 No", "Content-Length: 9") + b"boo", "completions",
         "http_error", "", None, None, "timeout"),
)  # fmt: skip
