"""Keys that sign and verify a seal: Ed25519 in a PEM file, or an ssh key through ssh-keygen -Y.

Both sign the same bytes (the pre-authentication encoding of a DSSE envelope), so a bundle looks the
same whoever signed it. securesystemslib is imported when a key is used, not before.
A private key that others can read, or put another in the place of, is refused.
"""

from __future__ import annotations

import os
import shlex
import stat
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from r8.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SSH = "ssh"
ED25519 = "ed25519"
# What the signature is for; ssh-keygen refuses one made for another purpose.
SSH_NAMESPACE = "r8-bundle"
_IDENTITY = "sealer"
_SSH_TIMEOUT_S = 120  # a hardware key waits for a touch


class Signing(Protocol):
    """A private key that can sign once."""

    @property
    def public(self) -> dict[str, str]:
        """`kind` and `public`, as a bundle carries them."""

    def sign(self, payload: bytes) -> bytes:
        """The signature of these bytes."""


class Ed25519Key:
    """A private Ed25519 key in a PEM file (PKCS 8, no passphrase)."""

    def __init__(self, path: Path) -> None:
        """Raises UsageError when the file holds no such key."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # noqa: PLC0415 - heavy
            Ed25519PrivateKey,
        )
        from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415 - heavy
            load_pem_private_key,
        )
        from securesystemslib.signer import CryptoSigner  # noqa: PLC0415 - heavy

        try:
            key = load_pem_private_key(_read_private(path), password=None)
        except (ValueError, TypeError) as error:
            raise _no_key(path, str(error)) from error
        if not isinstance(key, Ed25519PrivateKey):
            raise _no_key(path, f"it is a {type(key).__name__}")
        self._signer = CryptoSigner(key)

    @property
    def public(self) -> dict[str, str]:
        """Kind, and the raw public key in hex."""
        return {"kind": ED25519, "public": str(self._signer.public_key.keyval["public"])}

    def sign(self, payload: bytes) -> bytes:
        """64 bytes."""
        return bytes.fromhex(self._signer.sign(payload).signature)


class SshKey:
    """An ssh key pair; the private half may sit in a file or in an agent."""

    def __init__(self, path: Path) -> None:
        """`path` names the private key, or the public one when an agent holds the private."""
        public = path if path.suffix == ".pub" else path.with_name(path.name + ".pub")
        if not path.is_file() or not public.is_file():
            raise UsageError(
                "no ssh key pair of this name",
                where=f"{path}, {public}",
                next_step="name the private key; its .pub lies beside it",
            )
        if path != public:
            _read_private(path)
        self._path = path
        self._public = _ssh_public(public.read_text())

    @property
    def public(self) -> dict[str, str]:
        """Kind, and the public key in OpenSSH's form without its comment."""
        return {"kind": SSH, "public": self._public}

    def sign(self, payload: bytes) -> bytes:
        """An armoured SSH signature."""
        with tempfile.TemporaryDirectory() as folder:
            message = Path(folder) / "payload"
            message.write_bytes(payload)
            _ssh_keygen(["-Y", "sign", "-n", SSH_NAMESPACE, "-f", str(self._path), str(message)])
            return message.with_name("payload.sig").read_bytes()


def signing_key(path: Path, *, with_ssh: bool) -> Signing:
    """The private key a seal is made with."""
    return SshKey(path) if with_ssh else Ed25519Key(path)


def public_key(path: Path) -> dict[str, str]:
    """The public key in a file: a PEM of an Ed25519 key, or a line of an ssh .pub file.

    Raises UsageError for anything else.
    """
    text = path.read_text(encoding="utf-8", errors="replace")
    if text.startswith(("ssh-", "ecdsa-", "sk-")):
        return {"kind": SSH, "public": _ssh_public(text)}
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # noqa: PLC0415 - heavy
        Ed25519PublicKey,
    )
    from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415 - heavy
        load_pem_public_key,
    )

    try:
        key = load_pem_public_key(text.encode())
    except ValueError as error:
        raise _no_key(path, str(error)) from error
    if not isinstance(key, Ed25519PublicKey):
        raise _no_key(path, f"it is a {type(key).__name__}")
    return {"kind": ED25519, "public": key.public_bytes_raw().hex()}


def verifies(public: Mapping[str, str], signature: bytes, payload: bytes) -> bool:
    """Whether the signature of these bytes is by that public key.

    Raises UsageError for a kind of key R8 does not know, or when ssh-keygen is needed and missing.
    """
    if public.get("kind") == SSH:
        return _ssh_verifies(public["public"], signature, payload)
    if public.get("kind") != ED25519:
        raise UsageError(
            f"no such kind of key: {public.get('kind')!r}",
            where="signer.json",
            next_step="verify with the R8 that sealed the bundle",
        )
    from securesystemslib.exceptions import UnverifiedSignatureError  # noqa: PLC0415 - heavy
    from securesystemslib.signer import Signature, SSlibKey  # noqa: PLC0415 - heavy

    key = SSlibKey("", ED25519, ED25519, {"public": public.get("public", "")})
    try:
        key.verify_signature(Signature("", signature.hex()), payload)
    except UnverifiedSignatureError:
        return False
    return True


def make_ed25519(path: Path) -> Path:
    """A new key pair: `path` (mode 0600) and `path`.pub; returns the public file.

    Raises UsageError when either is there already: a key is never overwritten.
    """
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - heavy
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # noqa: PLC0415 - heavy
        Ed25519PrivateKey,
    )

    public_path = path.with_name(path.name + ".pub")
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    _refuse_open_folder(path)
    # The public half first: a private key is not made where the pair cannot be whole.
    _write_new(public_path, public, 0o644)
    try:
        _write_new(path, private, 0o600)
    except UsageError:
        public_path.unlink()
        raise
    return public_path


def _write_new(path: Path, data: bytes, mode: int) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError as error:
        step = "name another file"
        raise UsageError("there is a key already", where=str(path), next_step=step) from error
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)


def _read_private(path: Path) -> bytes:
    """The bytes of a private key that its owner alone can read; else a UsageError."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        if not stat.S_ISREG(mode):
            raise UsageError("the key is no file", where=str(path), next_step="name its file")
        if mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise UsageError(
                f"group or others have rights to the private key (mode {stat.S_IMODE(mode):04o}): "
                "whoever read it can sign as you",
                where=str(path),
                next_step=f"chmod 600 {shlex.quote(str(path))}; make a new key if others could "
                "have read it",
            )
        _refuse_open_folder(path)
        return file.read()


def _refuse_open_folder(path: Path) -> None:
    """Refuse a directory in which anybody may put another key in the place of this one."""
    folder = path.resolve().parent
    mode = folder.stat().st_mode
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        raise UsageError(
            "anybody can write to the directory of the private key",
            where=str(folder),
            next_step=f"chmod o-w {shlex.quote(str(folder))}",
        )


def _no_key(path: Path, why: str) -> UsageError:
    return UsageError(
        f"not an Ed25519 key in PEM: {why.splitlines()[0] if why else 'unreadable'}",
        where=str(path),
        next_step="make one with `r8 keygen FILE`, or use --sign-with ssh-key",
    )


def _ssh_public(text: str) -> str:
    return " ".join(text.split()[:2])


def _ssh_verifies(public: str, signature: bytes, payload: bytes) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        allowed, armour = Path(folder) / "allowed", Path(folder) / "payload.sig"
        allowed.write_text(f'{_IDENTITY} namespaces="{SSH_NAMESPACE}" {public}\n')
        armour.write_bytes(signature)
        words = ["-Y", "verify", "-f", str(allowed), "-I", _IDENTITY, "-n", SSH_NAMESPACE]
        try:
            _ssh_keygen([*words, "-s", str(armour)], stdin=payload)
        except _SshRefusedError:
            return False
    return True


class _SshRefusedError(UsageError):
    """ssh-keygen ran and said no."""


def _ssh_keygen(arguments: Sequence[str], stdin: bytes = b"") -> None:
    try:
        done = subprocess.run(
            ["ssh-keygen", *arguments],
            input=stdin,
            capture_output=True,
            timeout=_SSH_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(
            f"ssh-keygen does not run: {error}",
            where="PATH",
            next_step="install OpenSSH 8.2 or newer, or use an Ed25519 key (`r8 keygen`)",
        ) from error
    if done.returncode:
        said = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
        raise _SshRefusedError(
            f"ssh-keygen refused: {said[-1] if said else done.returncode}",
            where="ssh-keygen -Y",
            next_step="check the key and its agent",
        )
