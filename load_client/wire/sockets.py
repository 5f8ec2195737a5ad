"""TCP sockets whose arrivals the kernel stamps and whose whole request fits into one send."""

from __future__ import annotations

import socket

# From <asm-generic/socket.h>; Python 3.11 does not name them.
SO_TIMESTAMPNS = 35
SO_SNDBUFFORCE = 32
ANCILLARY_BYTES = socket.CMSG_SPACE(16)  # one struct timespec
# Room for what the kernel adds to a body it buffers.
SEND_BUFFER_SLACK_BYTES = 1 << 16


def stamped_socket(family: socket.AddressFamily, request_bytes: int) -> socket.socket:
    """A non-blocking socket, not yet connected."""
    sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    _widen_send_buffer(sock, request_bytes + SEND_BUFFER_SLACK_BYTES)
    return sock


def _widen_send_buffer(sock: socket.socket, size: int) -> None:
    """Let one send take the whole request; beyond the system's limit only root may."""
    if sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) >= 2 * size:
        return
    try:
        sock.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, size)
    except OSError:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, size)
