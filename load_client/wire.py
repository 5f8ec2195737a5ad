"""Sockets and their epoll loop: connect, send at a stamped instant, keep (instant, bytes).

While requests are in flight nothing is parsed. A response is over when the server closes (asked
for with `Connection: close`), or when its own framing says so; that is looked at only where the
last bytes make it likely, and at ticks for servers that keep the connection.
"""

from __future__ import annotations

import errno
import os
import select
import socket
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .capture import Read, kernel_wall_ns
from .http_response import parse_response

if TYPE_CHECKING:
    from collections.abc import Callable

    from .clock import Clock, OffsetSample

# From <asm-generic/socket.h>; Python 3.11 does not name them.
SO_TIMESTAMPNS = 35
SO_SNDBUFFORCE = 32
ANCILLARY_BYTES = socket.CMSG_SPACE(16)  # one struct timespec
READ_BYTES = 1 << 18
# Room for what the kernel adds to a body it buffers.
SEND_BUFFER_SLACK_BYTES = 1 << 16
# Offsets are sampled, deadlines checked and progress shown this often; costs about 20 us.
TICK_NS = 100_000_000
CONNECT_TIMEOUT_NS = 30_000_000_000
CONNECTS_AT_ONCE = 64  # below the usual listen backlog of 128
_NS_PER_S = 1_000_000_000
_LAST_CHUNK = b"0\r\n\r\n"


@dataclass(slots=True, eq=False)
class Connection:
    """One request on its way. Instants are monotonic; None until they come."""

    request_id: str
    payload: bytes
    sock: socket.socket | None = None
    opened_ns: int | None = None
    scheduled_ns: int | None = None
    connected_ns: int | None = None
    sent_ns: int | None = None
    sent_done_ns: int | None = None
    sent_bytes: int = 0
    unsendable: bool = False  # the server stopped listening; its answer may still come
    raw_reads: list[tuple[int, bytes, bytes]] = field(default_factory=list)
    looked_at_bytes: int = 0
    ended: str | None = None
    ended_ns: int | None = None
    ended_detail: str | None = None

    @property
    def received(self) -> bytes:
        """All response bytes so far."""
        return b"".join(data for _, data, _ in self.raw_reads)

    def reads(self) -> tuple[Read, ...]:
        """The receives with their stamps decoded; called when the burst is over."""
        return tuple(
            Read(user_ns, kernel_wall_ns(stamp), data) for user_ns, data, stamp in self.raw_reads
        )


class Wire:
    """An epoll loop over non-blocking connections to one address. Not thread-safe."""

    def __init__(
        self,
        address: tuple[socket.AddressFamily, tuple[object, ...]],
        *,
        timeout_ns: int,
        clock: Clock,
        on_tick: Callable[[int], None] = lambda _: None,
    ) -> None:
        """`timeout_ns` bounds a request from its first byte; `on_tick` gets the instant."""
        self._family, self._address = address
        self._timeout_ns = timeout_ns
        self._clock = clock
        self._mono_ns = clock.mono_ns
        self._on_tick = on_tick
        self._epoll = select.epoll()
        self._view = memoryview(bytearray(READ_BYTES))
        self._next_tick_ns = 0
        self.active: dict[int, Connection] = {}
        self.ended: list[Connection] = []
        self.samples: list[OffsetSample] = [clock.sample()]

    def close(self) -> None:
        """Drop every socket; requests still in flight end as `interrupted`."""
        for connection in list(self.active.values()):
            self._end(connection, "interrupted")
        self._epoll.close()

    def open(self, connection: Connection) -> None:
        """Begin to connect; failure ends the connection as `connect`."""
        connection.opened_ns = self._mono_ns()
        sock = socket.socket(self._family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        connection.sock = sock
        self.active[sock.fileno()] = connection
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        _widen_send_buffer(sock, len(connection.payload) + SEND_BUFFER_SLACK_BYTES)
        self._epoll.register(sock.fileno(), select.EPOLLOUT)
        refusal = sock.connect_ex(self._address)
        if refusal not in {0, errno.EINPROGRESS}:
            self._refuse(connection, refusal)

    def connect_all(self, connections: list[Connection]) -> list[Connection]:
        """Connect them, a bounded number at once; returns those that stand, in their order."""
        waiting = connections[::-1]
        while True:
            pending = sum(1 for one in self.active.values() if one.connected_ns is None)
            for _ in range(min(len(waiting), CONNECTS_AT_ONCE - pending)):
                self.open(waiting.pop())
            if not waiting and all(c.connected_ns or c.ended for c in connections):
                return [one for one in connections if one.ended is None]
            self.turn()

    def release(self, connections: list[Connection]) -> None:
        """The barrier: one scheduled instant for all, then each first byte with its own stamp."""
        scheduled_ns = self._mono_ns()
        for connection in connections:
            connection.scheduled_ns = scheduled_ns
            self.send(connection)

    def send(self, connection: Connection) -> None:
        """Stamp and send; what the kernel does not take at once follows from the loop."""
        connection.sent_ns = self._mono_ns()
        self._push(connection)

    def turn(self) -> None:
        """Wait for the next events or the next tick, and handle them."""
        wait_ns = min(max(0, self._next_tick_ns - self._mono_ns()), TICK_NS)
        for descriptor, events in self._epoll.poll(wait_ns / _NS_PER_S):
            connection = self.active.get(descriptor)
            if connection is None:
                continue
            if connection.connected_ns is None:
                self._finish_connect(connection)
                continue
            if events & select.EPOLLOUT:
                self._push(connection)
            if events & ~select.EPOLLOUT:
                self._receive(connection)
        now_ns = self._mono_ns()
        if now_ns >= self._next_tick_ns:
            self._next_tick_ns = now_ns + TICK_NS
            self._tick(now_ns)

    def _finish_connect(self, connection: Connection) -> None:
        sock = _sock(connection)
        refusal = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if refusal:
            self._refuse(connection, refusal)
            return
        connection.connected_ns = self._mono_ns()
        self._epoll.modify(sock.fileno(), select.EPOLLIN)

    def _refuse(self, connection: Connection, refusal: int) -> None:
        self._end(connection, "connect", f"cannot connect: {os.strerror(refusal)}")

    def _push(self, connection: Connection) -> None:
        sock = _sock(connection)
        try:
            taken = sock.send(memoryview(connection.payload)[connection.sent_bytes :])
        except BlockingIOError:
            taken = 0
        except OSError:
            # The server may have answered before it closed; reading tells.
            connection.unsendable = True
            taken = 0
        connection.sent_bytes += taken
        if connection.sent_bytes == len(connection.payload):
            connection.sent_done_ns = self._mono_ns()
            if taken != len(connection.payload):
                self._epoll.modify(sock.fileno(), select.EPOLLIN)
        elif connection.unsendable:
            self._epoll.modify(sock.fileno(), select.EPOLLIN)
        else:
            self._epoll.modify(sock.fileno(), select.EPOLLIN | select.EPOLLOUT)

    def _receive(self, connection: Connection) -> None:
        try:
            size, ancillary, _, _ = _sock(connection).recvmsg_into([self._view], ANCILLARY_BYTES)
        except BlockingIOError:
            return
        except OSError as refusal:
            self._end(connection, "reset", refusal.strerror)
            return
        now_ns = self._mono_ns()
        if size == 0:
            self._end(connection, "eof")
            return
        data = bytes(self._view[:size])
        connection.raw_reads.append((now_ns, data, ancillary[0][2] if ancillary else b""))
        if data[-5:] == _LAST_CHUNK or size < len(_LAST_CHUNK):
            self._end_if_complete(connection)

    def _end_if_complete(self, connection: Connection) -> None:
        received = connection.received
        if len(received) == connection.looked_at_bytes:
            return
        connection.looked_at_bytes = len(received)
        if parse_response(received).complete:
            self._end(connection, "complete")

    def _end(self, connection: Connection, how: str, detail: str | None = None) -> None:
        sock = _sock(connection)
        connection.ended, connection.ended_detail = how, detail
        connection.ended_ns = self._mono_ns()
        del self.active[sock.fileno()]
        self._epoll.unregister(sock.fileno())
        sock.close()
        connection.sock = None
        self.ended.append(connection)

    def _tick(self, now_ns: int) -> None:
        self.samples.append(self._clock.sample())
        for connection in list(self.active.values()):
            self._expire(connection, now_ns)
        self._on_tick(now_ns)

    def _expire(self, connection: Connection, now_ns: int) -> None:
        if connection.connected_ns is None:
            limit_ns = min(CONNECT_TIMEOUT_NS, self._timeout_ns)
            if connection.opened_ns is not None and now_ns - connection.opened_ns >= limit_ns:
                detail = f"cannot connect within {limit_ns / _NS_PER_S:g} s"
                self._end(connection, "connect", detail)
            return
        if connection.sent_ns is None:
            return
        if now_ns - connection.sent_ns >= self._timeout_ns:
            self._end(connection, "timeout", f"limit {self._timeout_ns / _NS_PER_S:g} s")
        elif connection.raw_reads and connection.raw_reads[-1][0] < now_ns - TICK_NS:
            # Quiet for a tick: perhaps a server that keeps the connection after its answer.
            self._end_if_complete(connection)


def _sock(connection: Connection) -> socket.socket:
    if connection.sock is None:
        raise ValueError(f"{connection.request_id} has no socket")
    return connection.sock


def _widen_send_buffer(sock: socket.socket, size: int) -> None:
    """Let one send take the whole request; beyond the system's limit only root may."""
    if sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) >= 2 * size:
        return
    try:
        sock.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, size)
    except OSError:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, size)
