"""A certificate for loopback, made on the spot by openssl: nothing secret is kept or shipped."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from ..errors import ClientError

if TYPE_CHECKING:
    from pathlib import Path

_NAMES = "subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1"


def make_certificate(directory: Path) -> tuple[str, str]:
    """`(server.pem, authority.pem)`: key and certificate for a server, and what a client trusts.

    Raises ClientError where openssl is missing or refuses.
    """
    key, certificate = directory / "key.pem", directory / "authority.pem"
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    words += ["-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext", _NAMES]
    words += ["-keyout", str(key), "-out", str(certificate)]
    try:
        subprocess.run(words, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as refusal:
        raise ClientError(
            f"cannot make a certificate: {refusal}",
            where="openssl req",
            next_step="install openssl, or calibrate without --tls",
        ) from refusal
    server = directory / "server.pem"
    server.write_bytes(key.read_bytes() + certificate.read_bytes())
    return str(server), str(certificate)
