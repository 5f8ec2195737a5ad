"""What may stand between a TCP connection and a request: a proxy's tunnel, TLS, or both.

TLS runs over memory, not over the socket. The socket loop keeps the socket, so encrypted bytes get
the same kernel stamps as plain ones, and a request is encrypted before the burst. A reader of the
raw stream sees the plain text, each piece at the instant when its last encrypted byte arrived.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..errors import LinkError

if TYPE_CHECKING:
    import socket

_READ_BYTES = 1 << 18
_RECORD_HEAD_BYTES = 5  # of a TLS record: kind, version, and the length of the rest
_MAX_REPLY_BYTES = 1 << 16
_HEAD_END = b"\r\n\r\n"


@dataclass(slots=True, eq=False)
class Link:
    """One connection's way through a proxy and into TLS. `step` until it returns True."""

    tunnel: bytes | None = None  # the CONNECT request, None without a tunnel
    context: ssl.SSLContext | None = None  # None without TLS
    hostname: str | None = None  # None: this end is the server
    _reply: bytearray = field(default_factory=bytearray)
    _asked: bool = False
    _record_head: bytes = b""
    _record_left_bytes: int = 0
    _tls: ssl.SSLObject | None = None
    _incoming: ssl.MemoryBIO = field(default_factory=ssl.MemoryBIO)
    _outgoing: ssl.MemoryBIO = field(default_factory=ssl.MemoryBIO)

    def step(self, sock: socket.socket) -> bool:
        """Go on as far as possible without waiting; True when a request may follow.

        Raises LinkError, and OSError as the socket does.
        """
        if self.tunnel is not None and not self._through(sock):
            return False
        if self.context is None:
            return True
        if self._tls is None:
            self._tls = self.context.wrap_bio(
                self._incoming,
                self._outgoing,
                server_side=self.hostname is None,
                server_hostname=self.hostname,
            )
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                self._flush(sock)
            except ssl.SSLError as refusal:
                self._flush(sock)
                reason = getattr(refusal, "verify_message", None) or refusal.reason or refusal
                raise LinkError(f"TLS: {reason}") from refusal
            else:
                self._flush(sock)
                return True
            data = self._record(sock)
            if not data:
                return False
            self._incoming.write(data)

    def _record(self, sock: socket.socket) -> bytes | None:
        """Bytes of one record's head or of its rest, never more; None when nothing is there.

        A peer that has ended its part of the handshake may send its request at once. Received
        together with the last record, the request would have no arrival of its own, and nothing
        would read it: the socket would not become readable again.
        """
        if self._record_left_bytes:
            data = _receive(sock, self._record_left_bytes)
            self._record_left_bytes -= len(data or b"")
            return data
        data = _receive(sock, _RECORD_HEAD_BYTES - len(self._record_head))
        self._record_head += data or b""
        if len(self._record_head) == _RECORD_HEAD_BYTES:
            self._record_left_bytes = int.from_bytes(self._record_head[-2:], "big")
            self._record_head = b""
        return data

    def seal(self, data: bytes) -> bytes:
        """`data` as it goes over the wire."""
        if self._tls is None:
            return data
        self._tls.write(data)
        return self._outgoing.read()

    def open(self, data: bytes, sock: socket.socket) -> bytes:
        """The plain text that `data` completes, possibly none; raises LinkError when damaged."""
        if self._tls is None:
            return data
        self._incoming.write(data)
        plain: list[bytes] = []
        try:
            while part := self._tls.read(_READ_BYTES):
                plain.append(part)
        except (ssl.SSLWantReadError, ssl.SSLZeroReturnError):
            pass
        except ssl.SSLError as damage:
            raise LinkError(f"TLS: {damage.reason or damage}") from damage
        self._flush(sock)  # an answer to a key update
        return b"".join(plain)

    def _flush(self, sock: socket.socket) -> None:
        data = self._outgoing.read()
        if data:
            sock.send(data)  # a handshake flight fits into an empty send buffer

    def _through(self, sock: socket.socket) -> bool:
        """Whether the proxy has opened the tunnel."""
        if _HEAD_END in self._reply:
            return True
        if not self._asked and self.tunnel is not None:
            sock.send(self.tunnel)
            self._asked = True
        while _HEAD_END not in self._reply:
            data = _receive(sock)
            if data is None:
                return False
            self._reply += data
            if len(self._reply) > _MAX_REPLY_BYTES:
                raise LinkError("the proxy answers CONNECT without end")
        status = bytes(self._reply.split(b"\r\n", 1)[0])
        words = status.split(b" ", 2)
        if len(words) < 2 or not words[1].startswith(b"2"):  # noqa: PLR2004 - version, status
            raise LinkError(f"the proxy refused the tunnel: {status[:200].decode('latin-1')}")
        return True


def _receive(sock: socket.socket, size: int = _READ_BYTES) -> bytes | None:
    """The bytes that are there; None without any. Raises LinkError at the end of the stream."""
    try:
        data = sock.recv(size)
    except BlockingIOError:
        return None
    if not data:
        raise LinkError("closed during the handshake")
    return data
