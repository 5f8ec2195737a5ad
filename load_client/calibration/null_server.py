"""A server without a model: it answers on schedule and keeps the true instants of every stream.

The truth of a stream: the kernel's stamp of the request's first byte at this socket, and the
monotonic instant just before each content event is handed to the kernel. Judging a client by the
server's own *read* of the first byte would charge the server's read queue to the client.

It runs as a process of its own (`start_null_server`). It prints one JSON line with the port, and,
when all streams are served (or, without a number of requests, when a line comes on its standard
input), one with the truth. It ends when its standard input closes, so it never outlives the process
that started it. The first content of stream 7 is ` #000007`, which identifies the stream to a
client that keeps no request ids. Anything but a POST is answered with a model list.
"""

from __future__ import annotations

import heapq
import json
import os
import re
import select
import socket
import ssl
import sys
from dataclasses import dataclass, field
from typing import Any

from ..clock import Clock, clock_map
from ..errors import LinkError
from ..record.capture import kernel_wall_ns
from ..wire.link import Link
from ..wire.sockets import ANCILLARY_BYTES, SO_TIMESTAMPNS

_BACKLOG = 4096
_READ_BYTES = 1 << 18
_SEND_BUFFER_BYTES = 1 << 18
# Padding that makes an event about as long as those of real servers (200 bytes).
_PADDING = "x" * 40
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)\r\n", re.IGNORECASE)
_REQUEST_ID = re.compile(rb"\r\nx-request-id: *([^\r\n]+)\r\n", re.IGNORECASE)
_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
    b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
)


_MODEL_LIST = b'{"object":"list","data":[{"id":"null","object":"model","owned_by":"null"}]}'
_MODELS = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n%s" % (len(_MODEL_LIST), _MODEL_LIST)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """What every stream does: `ttft_ns` from body complete to the first content event."""

    requests: int  # 0: until told to stop
    prompt_tokens: int  # what usage says
    ttft_ns: int
    chunks: int
    interval_ns: int
    keep_truth: bool = True  # a soak of hours needs none
    certificate: str | None = None  # PEM file of certificate and key: serve over TLS


@dataclass(slots=True, eq=False)
class _ServedStream:
    sock: socket.socket
    received: bytearray = field(default_factory=bytearray)
    first_byte_wall_ns: int | None = None
    begun: bool = False  # its first byte is here
    request_id: str | None = None
    number: int = 0
    link: Link | None = None  # TLS
    connected: bool = False  # its handshake is over
    first_event: bytes = b""
    sent: int = 0
    writes_ns: list[int] = field(default_factory=list)


class NullServer:
    """An epoll loop with a schedule; it serves `script.requests` streams and stops."""

    def __init__(self, script: Script, clock: Clock) -> None:
        """Listens on a free loopback port at once."""
        self._script, self._clock = script, clock
        self._context: ssl.SSLContext | None = None
        if script.certificate is not None:
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._context.load_cert_chain(script.certificate)
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(_BACKLOG)
        self._listener.setblocking(False)
        self.port: int = self._listener.getsockname()[1]
        self._epoll = select.epoll()
        self._streams: dict[int, _ServedStream] = {}
        self._schedule: list[tuple[int, int, _ServedStream]] = []
        self._finished: list[_ServedStream] = []
        self._opening, self._events, self._closing = _rendered(script)
        self._orders = self._begun = self._served = 0

    def serve(self, stdin_descriptor: int | None) -> list[dict[str, Any]]:
        """The truth of every stream, or their count where none is kept; [] when stdin closed."""
        samples = [self._clock.sample()]
        self._epoll.register(self._listener.fileno(), select.EPOLLIN)
        if stdin_descriptor is not None:
            self._epoll.register(stdin_descriptor, select.EPOLLIN)
        while not self._script.requests or self._served < self._script.requests:
            wait_s = -1.0
            if self._schedule:
                wait_s = max(0, self._schedule[0][0] - self._clock.mono_ns()) / 1e9
            told: bytes | None = None
            for descriptor, _ in self._epoll.poll(wait_s):
                if descriptor == stdin_descriptor:
                    told = os.read(descriptor, _READ_BYTES)
                else:
                    self._handle(descriptor)
            if told == b"":
                return []
            if told:
                break
            self._send_due()
        if not self._script.keep_truth:
            return [{"begun": self._begun, "served": self._served}]
        samples.append(self._clock.sample())
        clock = clock_map(samples)
        return [
            {
                "request_id": stream.request_id,
                "number": stream.number,
                "first_byte_ns": None
                if stream.first_byte_wall_ns is None or clock.stepped
                else clock.mono_ns(stream.first_byte_wall_ns),
                "writes_ns": stream.writes_ns,
            }
            for stream in self._finished
        ]

    def _handle(self, descriptor: int) -> None:
        if descriptor == self._listener.fileno():
            self._accept()
        else:
            self._read(self._streams[descriptor])

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except BlockingIOError:
                return
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
            link = None if self._context is None else Link(context=self._context)
            self._streams[sock.fileno()] = _ServedStream(sock, link=link)
            self._epoll.register(sock.fileno(), select.EPOLLIN)

    def _read(self, stream: _ServedStream) -> None:
        try:
            if stream.link is not None and not stream.connected:
                stream.connected = stream.link.step(stream.sock)
                return
            if not stream.begun:
                # One byte alone: the stamp of a receive is that of its last packet.
                data, ancillary, _, _ = stream.sock.recvmsg(1, ANCILLARY_BYTES)
                stream.begun = True
                stream.first_byte_wall_ns = kernel_wall_ns(ancillary[0][2]) if ancillary else None
            else:
                data = stream.sock.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except (OSError, LinkError):
            data = b""
        if not data:
            self._drop(stream)
            return
        if stream.link is not None:
            data = stream.link.open(data, stream.sock)
        stream.received += data
        self._begin_if_whole(stream)

    def _begin_if_whole(self, stream: _ServedStream) -> None:
        head_end = stream.received.find(b"\r\n\r\n")
        if head_end >= 0 and not stream.received.startswith(b"POST "):
            self._send(stream, _MODELS)
            self._drop(stream)
            return
        length = _LENGTH.search(stream.received, 0, head_end + 2) if head_end >= 0 else None
        if length is None or len(stream.received) < head_end + 4 + int(length[1]):
            return
        name = _REQUEST_ID.search(stream.received, 0, head_end + 2)
        stream.request_id = name[1].decode("latin-1") if name else None
        stream.received.clear()
        stream.number, self._begun = self._begun, self._begun + 1
        stream.first_event = _coded(_event([{"index": 0, "text": f" #{stream.number:06d}"}]))
        self._plan(self._clock.mono_ns() + self._script.ttft_ns, stream)

    def _plan(self, due_ns: int, stream: _ServedStream) -> None:
        self._orders += 1
        heapq.heappush(self._schedule, (due_ns, self._orders, stream))

    def _send_due(self) -> None:
        while self._schedule and self._schedule[0][0] <= self._clock.mono_ns():
            due_ns, _, stream = heapq.heappop(self._schedule)
            position, stream.sent = stream.sent, stream.sent + 1
            event = self._events[position] if position else stream.first_event
            try:
                if position == 0:
                    self._send(stream, self._opening)
                self._send_event(stream, event)
                if position + 1 == self._script.chunks:
                    self._send(stream, self._closing)
            except OSError:
                self._finish(stream)
                continue
            if position + 1 == self._script.chunks:
                self._finish(stream)
            else:
                self._plan(due_ns + self._script.interval_ns, stream)

    def _send_event(self, stream: _ServedStream, event: bytes) -> None:
        """The true instant is taken just before the kernel gets the bytes, after any encryption."""
        data = event if stream.link is None else stream.link.seal(event)
        now_ns = self._clock.mono_ns()
        if self._script.keep_truth:
            stream.writes_ns.append(now_ns)
        stream.sock.send(data)

    def _send(self, stream: _ServedStream, data: bytes) -> None:
        stream.sock.send(data if stream.link is None else stream.link.seal(data))

    def _finish(self, stream: _ServedStream) -> None:
        self._served += 1
        if self._script.keep_truth:
            self._finished.append(stream)
        self._drop(stream)

    def _drop(self, stream: _ServedStream) -> None:
        """Forget the socket; a stream that lost its client is still finished by its schedule."""
        if self._streams.pop(stream.sock.fileno(), None) is not None:
            self._epoll.unregister(stream.sock.fileno())
            stream.sock.close()


def _rendered(script: Script) -> tuple[bytes, list[bytes], bytes]:
    """Head with an empty event, the content events, and usage with [DONE]: chunk-coded bytes."""
    opening = _HEAD + _coded(_event([{"index": 0, "text": ""}]))
    events = [_coded(_event([{"index": 0, "text": f" {i:05d}"}])) for i in range(script.chunks)]
    usage = {"prompt_tokens": script.prompt_tokens, "completion_tokens": script.chunks}
    closing = _coded(_event([], usage)) + _coded(b"data: [DONE]\n\n") + b"0\r\n\r\n"
    return opening, events, closing


def _event(choices: list[dict[str, Any]], usage: dict[str, int] | None = None) -> bytes:
    message = {
        "id": "cmpl-null",
        "object": "text_completion",
        "created": 0,
        "model": "null",
        "padding": _PADDING,
        "choices": choices,
        "usage": usage,
    }
    return f"data: {json.dumps(message, separators=(',', ':'))}\n\n".encode("ascii")


def _coded(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def main() -> None:
    """Serve by the script on the command line, the JSON object of a `Script`."""
    server = NullServer(Script(**json.loads(sys.argv[1])), Clock())
    # A buffer of our own: where Python's is switched off, a signal may cut what is written.
    with open(sys.stdout.fileno(), "w", closefd=False) as out:
        print(json.dumps({"port": server.port}), file=out, flush=True)
        print(json.dumps(server.serve(sys.stdin.fileno())), file=out, flush=True)


if __name__ == "__main__":
    main()
