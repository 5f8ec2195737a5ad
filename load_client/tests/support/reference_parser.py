"""A slow parser, written apart from the product: one byte at a time, every state explicit.

It understands a stream while it arrives, the way a live client would; the product parses
afterwards. Both must agree, whatever the cuts between reads.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Reference:
    endpoint: str
    state: str = "head"
    line: bytearray = field(default_factory=bytearray)
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    need: int = 0
    broken: bool = False
    clean_end: bool = False
    # SSE
    body_seen: int = 0
    sse_line: bytearray = field(default_factory=bytearray)
    after_cr: int | None = None  # instant of a CR whose LF may follow
    block: list[bytes] = field(default_factory=list)
    events: list[tuple[str, str, int]] = field(default_factory=list)  # kind, text, arrival
    finished: bool = False
    last_instant: int = 0

    def feed(self, byte: int, instant: int) -> None:
        if self.broken or self.state == "over":
            return
        getattr(self, f"_{self.state}")(byte, instant)

    def end(self) -> None:
        """The connection is over: a last CR stands alone, and an unfinished [DONE] counts."""
        if self.after_cr is not None:
            self._sse_line_done(self.after_cr)
        if bytes(self.sse_line):
            self.block.append(bytes(self.sse_line))
        if self._data() == b"[DONE]" and not self.finished:
            self.events.append(("done", "", self.last_instant))
            self.finished = True

    # HTTP, byte by byte
    def _head(self, byte: int, instant: int) -> None:
        self.line.append(byte)
        if not self.line.endswith(b"\r\n\r\n"):
            return
        first, *rest = bytes(self.line[:-4]).split(b"\r\n")
        self.line.clear()
        words = first.split(b" ", 2)
        if words[0] not in {b"HTTP/1.1", b"HTTP/1.0"} or not (
            len(words) > 1 and len(words[1]) == 3 and words[1].isdigit()
        ):
            self.broken = True
            return
        if int(words[1]) < 200:
            return
        self.status = int(words[1])
        for item in rest:
            name, _, value = item.partition(b":")
            self.headers.setdefault(
                name.strip().lower().decode("latin-1"), value.strip().decode("latin-1")
            )
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            self.state = "size"
        elif "content-length" in self.headers:
            self.need = int(self.headers["content-length"])
            self.state = "sized" if self.need else "over"
        else:
            self.state = "until_close"

    def _size(self, byte: int, instant: int) -> None:
        self.line.append(byte)
        if not self.line.endswith(b"\r\n"):
            return
        text = bytes(self.line[:-2]).split(b";")[0].rstrip(b" \t").decode("latin-1")
        self.line.clear()
        if not 0 < len(text) < 16 or set(text) - set("0123456789abcdefABCDEF"):
            self.broken = True
            return
        self.need = int(text, 16)
        self.state = "chunk" if self.need else "trailer"
        if self.state == "trailer":
            self.line.extend(b"\r\n")

    def _chunk(self, byte: int, instant: int) -> None:
        self._body(byte, instant)
        self.need -= 1
        if self.need == 0:
            self.state = "chunk_end"

    def _chunk_end(self, byte: int, instant: int) -> None:
        self.line.append(byte)
        if bytes(self.line) == b"\r\n":
            self.line.clear()
            self.state = "size"
        elif bytes(self.line) != b"\r":
            self.broken = True

    def _trailer(self, byte: int, instant: int) -> None:
        self.line.append(byte)
        if self.line.endswith(b"\r\n\r\n"):
            self.state, self.clean_end = "over", True

    def _sized(self, byte: int, instant: int) -> None:
        self._body(byte, instant)
        self.need -= 1
        if self.need == 0:
            self.state, self.clean_end = "over", True

    def _until_close(self, byte: int, instant: int) -> None:
        self._body(byte, instant)

    # SSE, byte by byte
    def _body(self, byte: int, instant: int) -> None:
        if self.status != 200:
            return
        self.last_instant = instant
        self.body_seen += 1
        if self.after_cr is not None:
            pending, self.after_cr = self.after_cr, None
            if byte == 0x0A:
                self._sse_line_done(instant)
                return
            self._sse_line_done(pending)
        if byte == 0x0D:
            self.after_cr = instant
        elif byte == 0x0A:
            self._sse_line_done(instant)
        else:
            self.sse_line.append(byte)
            if self.body_seen == 3 and bytes(self.sse_line) == b"\xef\xbb\xbf":
                self.sse_line.clear()

    def _sse_line_done(self, instant: int) -> None:
        self.after_cr = None
        line = bytes(self.sse_line)
        self.sse_line.clear()
        if line:
            self.block.append(line)
        elif self.block:
            if not self.finished:
                kind, text = self._say(self._data())
                self.events.append((kind, text, instant))
                self.finished = kind == "done"
            self.block = []

    def _data(self) -> bytes | None:
        parts = []
        for line in self.block:
            if line == b"data":
                parts.append(b"")
            elif line.startswith(b"data:"):
                value = line[5:]
                parts.append(value[1:] if value.startswith(b" ") else value)
        return b"\n".join(parts) if parts else None

    def _named_error(self) -> bool:
        names = [line[6:].strip() for line in self.block if line.startswith(b"event:")]
        return bool(names) and names[-1] == b"error"

    # Meaning
    def _say(self, data: bytes | None) -> tuple[str, str]:
        if data is None or not data.strip():
            return "comment", ""
        if data.strip() == b"[DONE]":
            return "done", ""
        try:
            message = json.loads(data.decode())
            if message.get("error") or message.get("object") == "error" or self._named_error():
                return "error", ""
            return self._meaning(message)
        except (ValueError, AttributeError, TypeError, KeyError, RecursionError):
            return "error", ""

    def _meaning(self, message: dict[str, Any]) -> tuple[str, str]:
        choices = _a(list, message.get("choices"))
        said = message.get("usage")
        if said is None and all(one.get("finish_reason") for one in choices):
            beside = [one.get("usage") for one in choices]
            groq = message.get("x_groq")
            beside.append(groq.get("usage") if isinstance(groq, dict) else None)
            said = next((one for one in beside if one is not None), None)
        counted = _counts(said)
        _a(str, message.get("id"))
        if not choices:
            return ("usage" if counted else "empty"), ""
        (choice,) = choices
        ids = _a(list, choice.get("token_ids"))
        if not all(type(one) is int and 0 <= one < 2**63 for one in ids):
            raise TypeError("ids")
        _a(str, choice.get("finish_reason"))
        if self.endpoint == "completions":
            text = _a(str, choice.get("text"))
            return ("content" if text or ids else "empty"), text
        delta = _a(dict, choice.get("delta"))
        answer = _a(str, delta.get("content"))
        thought = _a(str, delta.get("reasoning_content")) or _a(str, delta.get("reasoning"))
        if answer:
            return "content", thought + answer
        if thought:
            return "reasoning", thought
        return ("role" if delta.get("role") else "empty"), ""


def _counts(usage: Any) -> bool:
    """Whether a usage holds a count; one that is no count is damage."""
    if usage in (None, {}, [], "", False):
        return False
    if not isinstance(usage, dict):
        raise TypeError("usage")
    found = False
    for one, other in (("prompt_tokens", "input_tokens"), ("completion_tokens", "output_tokens")):
        count = usage.get(other) if usage.get(one) is None else usage[one]
        if count is not None and (type(count) is not int or not 0 <= count < 2**63):
            raise ValueError(one)
        found = found or count is not None
    return found


def _a(kind: type, value: Any) -> Any:
    """`value`, an empty one for null; an empty value of another kind is damage like any other."""
    if value is None:
        return kind()
    if not isinstance(value, kind):
        raise TypeError(kind)
    return value
