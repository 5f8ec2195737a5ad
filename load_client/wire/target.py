"""Where requests of one instance go: an address, and the proxy and TLS on the way to it."""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass
from urllib.parse import urlsplit

from ..errors import ClientError
from ..record.capture import WAYS
from .link import Link

Address = tuple[socket.AddressFamily, tuple[object, ...]]
_PREFLIGHT_TIMEOUT_S = 10.0
HTTP_PORT, HTTPS_PORT = 80, 443


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A reachable server. `path` names the way to it: plain, tls, proxy or proxy-tls."""

    path: str
    family: socket.AddressFamily
    address: tuple[object, ...]
    hostname: str = ""
    tunnel: bytes | None = None
    context: ssl.SSLContext | None = None

    def link(self) -> Link | None:
        """A fresh link for one connection; None where requests go straight over TCP."""
        if self.tunnel is None and self.context is None:
            return None
        return Link(tunnel=self.tunnel, context=self.context, hostname=self.hostname)


def reach(url: str, proxy: str | None, ca_file: str | None) -> Target:
    """The first address of a server (or its proxy) that accepts a connection.

    Raises ClientError when none does, and when `ca_file` holds no certificates.
    """
    host, port = host_and_port(url)
    context = _tls_context(ca_file) if url.startswith("https:") else None
    tunnel = None
    family, address = _first_accepting(proxy or url)
    if proxy is not None and context is not None:
        name = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        tunnel = f"CONNECT {name} HTTP/1.1\r\nHost: {name}\r\n\r\n".encode("ascii")
    return Target(
        path=WAYS[2 * bool(proxy) + bool(context)],
        family=family,
        address=address,
        hostname=host,
        tunnel=tunnel,
        context=context,
    )


def host_and_port(url: str) -> tuple[str, int]:
    """The host of a URL, and its port or the scheme's own."""
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or (
        HTTPS_PORT if parts.scheme == "https" else HTTP_PORT
    )


def _tls_context(ca_file: str | None) -> ssl.SSLContext:
    """What verifies a server: the system's authorities or those of `ca_file`."""
    try:
        return ssl.create_default_context(cafile=ca_file)
    except (OSError, ssl.SSLError) as refusal:
        raise ClientError(
            f"cannot use the certificates: {refusal}",
            where=str(ca_file),
            next_step="give ca_file a PEM file of the authority that signed the server",
        ) from refusal


def _first_accepting(url: str) -> Address:
    host, port = host_and_port(url)
    refusal: OSError | None = None
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as unknown:
        found, refusal = [], unknown
    for family, _, _, _, address in found:
        try:
            with socket.socket(family, socket.SOCK_STREAM) as sock:
                sock.settimeout(_PREFLIGHT_TIMEOUT_S)
                sock.connect(address)
        except OSError as seen:
            refusal = seen
        else:
            return family, address
    raise ClientError(
        f"cannot reach the server: {refusal}",
        where=url,
        next_step="start the server, or correct --base-url (or --proxy)",
    )
