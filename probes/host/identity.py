"""Serial numbers, MAC addresses and host names as digests, so that a record names nobody's machine.

The digest is keyed with the host's own machine-id, which is not in the record: the same part gives
the same digest on the same host, and nobody can try all addresses until one fits.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import socket
from dataclasses import dataclass, field
from pathlib import Path

_DIGEST_CHARACTERS = 12
_MAC = re.compile(r"\b(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}\b")
# Of text by tools: `"SerialNumber":"X"`, `Serial Number: X`, `UUID : X`, `uuid GPU-..`.
_NAMED = re.compile(
    r"(?P<key>[\"']?\b(?:[\w ]*serial[ _]?(?:number|no|num)?|sn|[\w ]*unique[ _]?id|uuid|"
    r"hostnqn|hostid|node_guid|sys_image_guid|host[ _]?name)[\"']?\s*[:=]\s*[\"']?)"
    r"(?P<value>[^\"',\n]{2,})",
    re.IGNORECASE,
)
_GPU_UUID = re.compile(r"\bGPU-[0-9a-fA-F-]{8,}\b")
_ALL_SAME = re.compile(r"^[0:\- ]*$|^ff(:ff)*$|^(n/?a|none)$", re.IGNORECASE)
# Shorter words than this stand in ordinary text and would be replaced all over it.
_MIN_LITERAL = 4


@dataclass(slots=True)
class Identities:
    """Turns identities into digests."""

    key: bytes
    literals: set[str] = field(default_factory=set)  # seen values, to be found in other texts too

    def one(self, value: str) -> str:
        """The digest of one identity; what identifies nothing stays as it is."""
        text = value.strip()
        if not text or _ALL_SAME.match(text) or text.startswith("sha:"):
            return text
        if len(text) >= _MIN_LITERAL:
            self.literals.add(text)
        return self._digest(text)

    def within(self, text: str) -> str:
        """A tool's text with its identities replaced."""
        for literal in sorted(self.literals, key=len, reverse=True):
            text = re.sub(rf"(?<![\w-]){re.escape(literal)}(?![\w-])", self._digest(literal), text)
        text = _NAMED.sub(lambda found: found["key"] + self.one(found["value"]), text)
        text = _GPU_UUID.sub(lambda found: self._digest(found.group()), text)
        return _MAC.sub(lambda found: self.one(found.group()), text)

    def _digest(self, text: str) -> str:
        made = hmac.new(self.key, text.encode(), hashlib.sha256).hexdigest()
        return f"sha:{made[:_DIGEST_CHARACTERS]}"


def identities_of(etc_root: Path = Path("/etc")) -> Identities:
    """The host's own keys; a container without a machine-id uses its boot's."""
    key = b""
    for path in (etc_root / "machine-id", Path("/proc/sys/kernel/random/boot_id")):
        try:
            key = path.read_bytes().strip()
        except OSError:
            continue
        if key:
            break
    found = Identities(key=key or b"no machine-id")
    for name in {socket.gethostname(), socket.getfqdn()}:
        if name not in {"localhost", "localhost.localdomain"}:
            found.one(name)
    return found
