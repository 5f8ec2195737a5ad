"""Where requests of one instance go: an address, and what stands before it (proxy, TLS)."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from .errors import ClientError

if TYPE_CHECKING:
    import ssl

    from .link import Link
    from .plan import Plan

Address = tuple[socket.AddressFamily, tuple[object, ...]]
_PREFLIGHT_TIMEOUT_S = 10.0

# How bytes get to the server; each other way than the first has a calibration of its own.
WAYS = ("plain", "tls", "proxy", "proxy-tls")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A reachable server. `path` names the way: plain, tls, proxy or proxy-tls."""

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
        from .link import Link  # noqa: PLC0415 - it needs ssl, a tenth of the start-up

        return Link(tunnel=self.tunnel, context=self.context, hostname=self.hostname)


def reach(plan: Plan) -> Target:
    """The first address of the plan's server (or proxy) that accepts a connection.

    Raises ClientError when none does, and when `ca_file` is no file of certificates.
    """
    host, port, _ = plan.url()
    context = tls_context(plan)
    tunnel = None
    family, address = _first_accepting(plan.proxy or plan.base_url)
    if plan.proxy is not None and context is not None:
        name = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        tunnel = f"CONNECT {name} HTTP/1.1\r\nHost: {name}\r\n\r\n".encode("ascii")
    return Target(
        path=WAYS[2 * bool(plan.proxy) + bool(context)],
        family=family,
        address=address,
        hostname=host,
        tunnel=tunnel,
        context=context,
    )


def tls_context(plan: Plan) -> ssl.SSLContext | None:
    """What verifies the server: the system's authorities or `ca_file`; None for http://."""
    if not plan.tls:
        return None
    import ssl  # noqa: PLC0415 - a tenth of the start-up, for https only

    try:
        return ssl.create_default_context(cafile=plan.ca_file)
    except (OSError, ssl.SSLError) as refusal:
        raise ClientError(
            f"cannot use the certificates: {refusal}",
            where=str(plan.ca_file),
            next_step="give ca_file a PEM file of the authority that signed the server",
        ) from refusal


def _first_accepting(url: str) -> Address:
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    refusal: OSError | None = None
    try:
        found = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)
        for family, _, _, _, address in found:
            try:
                with socket.socket(family, socket.SOCK_STREAM) as sock:
                    sock.settimeout(_PREFLIGHT_TIMEOUT_S)
                    sock.connect(address)
            except OSError as seen:
                refusal = seen
            else:
                return family, address
    except OSError as unknown:
        refusal = unknown
    raise ClientError(
        f"cannot reach the server: {refusal}",
        where=url,
        next_step="start the server, or correct --base-url (or --proxy)",
    )
