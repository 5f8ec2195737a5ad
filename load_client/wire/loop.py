"""The epoll loop of all sockets: connect, send at a stamped instant, keep (instant, bytes).

While requests are in flight nothing is parsed. A response is over when the server closes (requests
ask for `Connection: close`), or when its own framing says so. The framing is parsed only where the
last bytes make an end likely, and at ticks for servers that keep the connection open.
"""

from __future__ import annotations

import errno
import os
import select
import socket
from dataclasses import replace
from typing import TYPE_CHECKING

from ..clock import NS_PER_S, Clock, window
from ..errors import LinkError
from ..record.capture import TIMESPEC
from ..stream.http_response import HttpResponse, parse_response
from .connection import Connection
from .send_buffer import SendBuffer
from .sockets import ANCILLARY_BYTES, stamped_socket

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..clock import OffsetSample
    from .target import Target

# Twenty events of most servers; a longer response takes further reads, each with its own stamp.
READ_BYTES = 1 << 12
# Offsets are sampled, deadlines checked and progress shown this often; costs about 20 us.
TICK_NS = 100_000_000
CONNECT_TIMEOUT_NS = 30_000_000_000
CONNECTS_AT_ONCE = 64  # below the usual listen backlog of 128
_WRITABLE = select.EPOLLOUT
_LAST_CHUNK = b"0\r\n\r\n"
_NO_TIMESPEC = bytes(TIMESPEC.size)


class SocketLoop:
    """An epoll loop over non-blocking connections. Not thread-safe."""

    def __init__(
        self,
        *,
        timeout_ns: int,
        clock: Clock,
        on_tick: Callable[[int], None] = lambda _: None,
        on_level: Callable[[int, int], None] = lambda _ns, _level: None,
    ) -> None:
        """`timeout_ns` bounds a request from its first byte; `on_tick` gets the instant.

        `on_level` gets every change of the number of requests in flight, with its instant.
        """
        self._timeout_ns = timeout_ns
        self._clock = clock
        self._mono_ns = clock.mono_ns
        self._on_tick = on_tick
        self._on_level = on_level
        self.in_flight = 0
        self._epoll = select.epoll()
        self.send_buffer = SendBuffer()
        self._next_tick_ns = 0
        self.active: dict[int, Connection] = {}
        self.ended: list[Connection] = []
        self.samples: list[OffsetSample] = [clock.sample()]

    def close(self) -> None:
        """Drop every socket; requests still in flight end as `interrupted`."""
        for connection in list(self.active.values()):
            self._end(connection, "interrupted")
        self._epoll.close()
        self.send_buffer.empty()

    def buffer(self, connection: Connection) -> Connection:
        """Put a large request, not yet opened, where sending is cheap; TLS encrypts its own."""
        if connection.target.context is None:
            connection.buffered_at = self.send_buffer.put(connection.payload)
            if connection.buffered_at is not None:
                connection.payload = b""
        return connection

    def open(self, connection: Connection) -> None:
        """Begin to connect; failure ends the connection as `connect`."""
        connection.opened_ns = self._mono_ns()
        target = connection.target
        sock = stamped_socket(target.family, connection.wire_bytes)
        connection.sock, connection.link = sock, target.link()
        self.active[sock.fileno()] = connection
        self._epoll.register(sock.fileno(), select.EPOLLOUT)
        refusal = sock.connect_ex(target.address)
        if refusal not in {0, errno.EINPROGRESS}:
            self._refuse(connection, refusal)

    def connect_all(self, connections: list[Connection]) -> list[Connection]:
        """Connect them, a bounded number at once; returns those that are connected, in order."""
        waiting = connections[::-1]
        while True:
            pending = sum(1 for one in self.active.values() if one.connected_ns is None)
            for _ in range(min(len(waiting), CONNECTS_AT_ONCE - pending)):
                self.open(waiting.pop())
            if not waiting and all(c.connected_ns or c.ended for c in connections):
                return [one for one in connections if one.ended is None]
            self.poll()

    def take_ended(self) -> list[Connection]:
        """Those that ended since the last call."""
        ended, self.ended = self.ended, []
        return ended

    def forget_samples(self) -> None:
        """Drop offsets older than every request in flight."""
        begins = [one.sent_ns for one in self.active.values() if one.sent_ns is not None]
        self.samples = list(window(self.samples, min(begins, default=self._mono_ns())))

    def release(self, connections: Sequence[Connection], scheduled_ns: int) -> None:
        """The barrier: one scheduled instant for all, and for each the instant of its own send."""
        for connection in connections:
            connection.scheduled_ns = scheduled_ns
            self.send(connection)

    def send(self, connection: Connection) -> None:
        """Stamp and send; what the kernel does not take at once is sent by further polls."""
        connection.sent_ns = self._mono_ns()
        self._push(connection)
        self.in_flight += 1
        self._on_level(connection.sent_ns, self.in_flight)

    def poll(self, wake_ns: int | None = None) -> None:
        """Wait for the next events, the next tick or `wake_ns`, and handle what came."""
        active, receive = self.active, self._receive
        for descriptor, events in self._wait(wake_ns):
            connection = active.get(descriptor)
            if connection is None:
                continue
            if connection.connected_ns is None:
                self._advance(connection)
                continue
            if events & _WRITABLE:
                self._push(connection)
            if events != _WRITABLE:
                receive(connection)
        now_ns = self._mono_ns()
        if now_ns >= self._next_tick_ns:
            self._next_tick_ns = now_ns + TICK_NS
            self._tick(now_ns)

    def _wait(self, wake_ns: int | None) -> list[tuple[int, int]]:
        now_ns = self._mono_ns()
        tick_wait_ns = self._next_tick_ns - now_ns if self._next_tick_ns > now_ns else 0
        if wake_ns is None or wake_ns - now_ns >= tick_wait_ns:
            return self._epoll.poll(tick_wait_ns / NS_PER_S)
        # epoll rounds its timeout up to a millisecond; select on the epoll descriptor does not.
        if wake_ns > now_ns:
            select.select([self._epoll], [], [], (wake_ns - now_ns) / NS_PER_S)
        return self._epoll.poll(0)

    def _advance(self, connection: Connection) -> None:
        """Take the next step of connecting; TLS and proxies take several."""
        sock, link = connection.live_socket(), connection.link
        refusal = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if refusal:
            self._refuse(connection, refusal)
            return
        try:
            connected = link is None or link.step(sock)
            if connected and link is not None:
                connection.payload = link.seal(connection.payload)
                connection.wire_bytes = len(connection.payload)
        except LinkError as reason:
            self._end(connection, "connect", str(reason))
            return
        except OSError as broken:
            self._end(connection, "connect", broken.strerror)
            return
        self._epoll.modify(sock.fileno(), select.EPOLLIN)
        if connected:
            connection.connected_ns = self._mono_ns()
            if connection.eager:
                self.send(connection)

    def _refuse(self, connection: Connection, refusal: int) -> None:
        self._end(connection, "connect", f"cannot connect: {os.strerror(refusal)}")

    def _push(self, connection: Connection) -> None:
        sock = connection.live_socket()
        try:
            if connection.buffered_at is None:
                taken = sock.send(memoryview(connection.payload)[connection.sent_bytes :])
            else:
                begin = connection.buffered_at + connection.sent_bytes
                taken = self.send_buffer.send(sock.fileno(), begin, connection.unsent_bytes)
        except BlockingIOError:
            taken = 0
        except OSError:
            # The server may have answered before it closed; reading tells.
            connection.unsendable = True
            taken = 0
        connection.sent_bytes += taken
        if not connection.unsent_bytes:
            connection.sent_done_ns = self._mono_ns()
            if taken != connection.wire_bytes:
                self._epoll.modify(sock.fileno(), select.EPOLLIN)
            connection.payload = b""
        elif connection.unsendable:
            self._epoll.modify(sock.fileno(), select.EPOLLIN)
        else:
            self._epoll.modify(sock.fileno(), select.EPOLLIN | select.EPOLLOUT)

    def _receive(self, connection: Connection) -> None:
        sock = connection.sock
        if sock is None:
            return
        try:
            data, ancillary, _, _ = sock.recvmsg(READ_BYTES, ANCILLARY_BYTES)
        except BlockingIOError:
            return
        except OSError as refusal:
            self._end(connection, "reset", refusal.strerror)
            return
        now_ns = self._mono_ns()
        if not data:
            self._end(connection, "eof")
            return
        if connection.link is not None:
            data = self._opened(connection, data)
            if not data:
                return
        connection.data.append(data)
        connection.user_ns.append(now_ns)
        connection.timespecs += ancillary[0][2] if ancillary else _NO_TIMESPEC
        if data[-5:] == _LAST_CHUNK or len(data) < len(_LAST_CHUNK):
            self._end_if_complete(connection)

    def _opened(self, connection: Connection, data: bytes) -> bytes:
        """The plain text that `data` completes; none where a record is unfinished or damaged."""
        sock, link = connection.live_socket(), connection.link
        try:
            return data if link is None else link.open(data, sock)
        except LinkError as damage:
            self._end(connection, "reset", str(damage))
        except OSError as broken:
            self._end(connection, "reset", broken.strerror)
        return b""

    def _end_if_complete(self, connection: Connection) -> None:
        if connection.ends_with_done():
            self._end(connection, "complete")
            return
        if not connection.may_be_complete():
            return
        received = connection.received
        if len(received) == connection.parsed_bytes:
            return
        connection.parsed_bytes = len(received)
        if parse_response(received).complete:
            self._end(connection, "complete")

    def _end(self, connection: Connection, how: str, detail: str | None = None) -> None:
        sock = connection.live_socket()
        connection.ended, connection.ended_detail = how, detail
        connection.ended_ns = self._mono_ns()
        del self.active[sock.fileno()]
        self._epoll.unregister(sock.fileno())
        sock.close()
        connection.sock = None
        self.ended.append(connection)
        if connection.sent_ns is not None:
            self.in_flight -= 1
            self._on_level(connection.ended_ns, self.in_flight)

    def _tick(self, now_ns: int) -> None:
        self.samples.append(self._clock.sample())
        quiet_ns, late_ns = now_ns - TICK_NS, now_ns - self._timeout_ns
        waiting = [
            one
            for one in self.active.values()
            if one.sent_ns is None
            or one.sent_ns <= late_ns
            or (one.data and one.user_ns[-1] < quiet_ns)
        ]
        for connection in waiting:
            self._expire(connection, now_ns)
        self._on_tick(now_ns)

    def _expire(self, connection: Connection, now_ns: int) -> None:
        if connection.connected_ns is None:
            limit_ns = min(CONNECT_TIMEOUT_NS, self._timeout_ns)
            if connection.opened_ns is not None and now_ns - connection.opened_ns >= limit_ns:
                detail = f"cannot connect within {limit_ns / NS_PER_S:g} s"
                self._end(connection, "connect", detail)
        elif connection.sent_ns is None:
            return
        elif now_ns - connection.sent_ns >= self._timeout_ns:
            self._end(connection, "timeout", f"limit {self._timeout_ns / NS_PER_S:g} s")
        else:
            # Quiet for a tick: perhaps a server that keeps the connection after its answer.
            self._end_if_complete(connection)


def exchange(target: Target, request: bytes, timeout_ns: int) -> HttpResponse:
    """Send one request and wait for its response; its `error` says why it has no status."""
    loop = SocketLoop(timeout_ns=timeout_ns, clock=Clock())
    connection = Connection("exchange", request, target, eager=True)
    loop.open(connection)
    while loop.active:
        loop.poll()
    loop.close()
    response = parse_response(connection.received)
    if response.status is None and response.error is None:
        reason = connection.ended_detail or f"the connection ended ({connection.ended})"
        return replace(response, error=reason)
    return response
