"""A fake server on loopback that does to each request what its script says.

It keeps what only the server can know: how many requests were in flight at once, and their bytes.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ssl

Step = bytes | float | str  # send these bytes, sleep so many seconds, or do "hang" or "reset"
Script = Callable[[dict[str, Any], int], Sequence[Step]]
_GIVE_UP_S = 10.0


@dataclass
class ScriptedServer:
    """`script(body, number)` gives the steps; answers wait until `gather` requests are here."""

    script: Script
    gather: int = 1
    listener: socket.socket = field(default_factory=socket.socket)
    context: ssl.SSLContext | None = None
    requests: list[bytes] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0
    changed: threading.Condition = field(default_factory=threading.Condition)
    stopping: threading.Event = field(default_factory=threading.Event)
    threads: list[threading.Thread] = field(default_factory=list)

    @property
    def url(self) -> str:
        host, port, *_ = self.listener.getsockname()
        scheme = "http" if self.context is None else "https"
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"

    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(request.partition(b"\r\n\r\n")[2]) for request in self.requests]

    def accept_all(self) -> None:
        while not self.stopping.is_set():
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(sock,), daemon=True)
            self.threads.append(thread)
            thread.start()

    def _serve(self, sock: socket.socket) -> None:
        sock.settimeout(_GIVE_UP_S)
        if self.context is not None:
            try:
                sock = self.context.wrap_socket(sock, server_side=True)
            except OSError:  # a client that does not trust us, or only looks whether we are here
                sock.close()
                return
        with sock:
            try:
                request = _whole_request(sock)
                if request:
                    self._answer(sock, request)
            except OSError:
                return

    def _answer(self, sock: socket.socket, request: bytes) -> None:
        with self.changed:
            self.requests.append(request)
            number = len(self.requests) - 1
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
            self.changed.notify_all()
            self.changed.wait_for(
                lambda: len(self.requests) >= self.gather or self.stopping.is_set(), _GIVE_UP_S
            )
        try:
            for step in self.script(json.loads(request.partition(b"\r\n\r\n")[2]), number):
                self._do(sock, step)
        finally:
            with self.changed:
                self.in_flight -= 1

    def _do(self, sock: socket.socket, step: Step) -> None:
        if isinstance(step, bytes):
            sock.sendall(step)
        elif step == "hang":
            self.stopping.wait(_GIVE_UP_S)
        elif step == "reset":
            linger = struct.pack("ii", 1, 0)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        else:
            time.sleep(float(step))


def _whole_request(sock: socket.socket) -> bytes:
    data = b""
    while True:
        head, found, body = data.partition(b"\r\n\r\n")
        if found:
            length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
            if len(body) >= length:
                return data
        more = sock.recv(1 << 18)
        if not more:
            return b""
        data += more


@contextmanager
def scripted(
    script: Script,
    *,
    gather: int = 1,
    context: ssl.SSLContext | None = None,
    host: str = "127.0.0.1",
) -> Iterator[ScriptedServer]:
    """A running server; everything it started is over when the block ends."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    server = ScriptedServer(script, gather, socket.socket(family), context)
    with server.listener:
        server.listener.bind((host, 0))
        server.listener.listen(256)
        accepting = threading.Thread(target=server.accept_all, daemon=True)
        accepting.start()
        try:
            yield server
        finally:
            server.stopping.set()
            with server.changed:
                server.changed.notify_all()
            with suppress(OSError):  # a script may have closed it
                server.listener.shutdown(socket.SHUT_RDWR)
            accepting.join(_GIVE_UP_S)
            for thread in server.threads:
                thread.join(_GIVE_UP_S)
