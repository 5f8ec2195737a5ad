"""Whether a redacted bundle still names somebody: forms of names and secrets, in every text of it.

It shares nothing with the redaction but the form of a pseudonym. The redaction keeps a list of
words that may stay; this looks at whatever did stay for what addresses, serials, machines and keys
look like: numbers in groups, letters mixed with digits, dots that end in a domain. So a word
that came onto the list by mistake is seen here.

Cannot find: a name that looks like an ordinary word.
"""

from __future__ import annotations

import functools
import ipaddress
import json
import math
import re
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

# Of these kinds alone: `gpu-07` is a name, `host-7` is none.
KINDS = (
    *("arm", "boot", "campaign", "counter", "device", "digest", "event", "file", "host"),
    *("instance", "moment", "name", "output", "request", "run", "scenario", "site", "text"),
    *("user", "word"),
)
PSEUDONYM = re.compile(rf"(?:{'|'.join(KINDS)})-[1-9]\d*")
_CHUNK = re.compile(r"[^\s\"'`(){}\[\]<>,;=|&?#*]+")
_ADDRESS = re.compile(r"[0-9A-Fa-f]*(?:[.:][0-9A-Fa-f]*){2,}")
_GROUPS = re.compile(
    r"(?<![0-9A-Za-z])(?:(?:[0-9A-Fa-f]{2}[:-]){5,}[0-9A-Fa-f]{2}|(?:[0-9A-Fa-f]{4}:){3,}[0-9A-Fa-f]{4})"
    r"(?![0-9A-Za-z])|(?<![0-9A-Za-z])0x[0-9A-Fa-f]{4,}"
)
_UUID = re.compile(r"[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}")
_HEX = re.compile(
    r"(?<![0-9A-Za-z])(?=[0-9a-fA-F]*\d)(?=\d*[a-fA-F])[0-9a-fA-F]{12,}(?![0-9A-Za-z])"
)
_DIGEST_CHARS = 64
_DIGEST = re.compile(r"\b[0-9a-f]{64}\b")
_QUALIFIED = re.compile(r"(?i)\b(?:nqn|iqn|eui|naa)\.[0-9a-z]|\bwwn-0x|\b(?:GPU|MIG)-[0-9a-f]{8}")
_MACHINE = re.compile(r"[a-z]{2,}(?:-[a-z]+)*-?\d{1,5}(?:-[a-z]+)?|(?:[a-z]+-)+\d+-\d+-\d+-\d+")
_HOME = re.compile(r"/(?:home|Users)/([^/\s\"']+)")
_FILE = re.compile(r"(?:half|double|[bu]?(?:float|int)\d*)(?:\.(?:pt|bin|data|safetensors))?")
_AT = re.compile(r"([A-Za-z][\w.+-]*)@([A-Za-z][\w.-]*)")
_DOMAIN = re.compile(
    r"(?i)(?:[a-z0-9-]+\.)+(?:com|org|net|io|ai|dev|cloud|edu|gov|local|lan|corp|"
    r"internal|intra|home|example|cluster|localdomain|cn|de|uk|eu|us)"
)
_SERIAL = re.compile(r"(?=[A-Z0-9]*\d)(?=[A-Z0-9]*[A-Z])[A-Z0-9]{8,}|\d{9,}")
# Keys of numbers that are written as texts.
_MEASURED = ("_bytes", "_ns")
_SIZE = re.compile(r"\b(?:[a-z_]*bytes|pid)=\d{1,15}\b")
_SUMS = re.compile(r"\d{1,15}(?:(?: \+ |, )\d{1,15})+")  # of bytes, as facts of a check
_STAMP = re.compile(r"\d{8}T\d{6}Z")
# Of a piece without a dot, slash or hyphen: a word of a language has no digits in the middle of it.
_PIECE = re.compile(
    r"[A-Za-z0-9+]{16,}|(?=[A-Za-z]*\d)(?=[A-Z0-9]*[a-z])(?=[a-z0-9]*[A-Z])[A-Za-z0-9]{10,15}"
)
_SECRET_BITS = 3.0  # of entropy a character: identifiers of words and digits stay below
# Kernel names of devices, words that end in a digit, and numbered parts: nobody's machine.
_NUMBERED = re.compile(
    r"(?:loop|nvme|dm|md|sd[a-z]|vd[a-z]|xvd[a-z]|zram|sr|ram|nbd|card|cpu|eth|ib|bond|mlx5|en[ops]?|lo)"
    r"-?\d+|(?:sha|md|int|uint|fp|bf|float|bfloat|ext|nfs|raid|utf|rank|step|worker|core|series|part|upstream|"
    r"block|model|p|h|c|b|v)-?\d+|(?:vda|sda)\d+|[a-z]+-[a-z]\d{1,3}"
)


def left_in(text: str, known: frozenset[str] = frozenset()) -> Iterator[tuple[str, str]]:
    """Kind and wording of everything in a text that may name somebody, or be somebody's key.

    Of JSON its keys and texts are looked at: instants and sizes are numbers of many digits.
    `known` are words that name nobody: SHA-256 of files of the bundle, arms that claims speak of.
    """
    for part in _texts(text):
        if _SUMS.fullmatch(part):
            continue
        yield from _in_whole(part)
        for chunk in set(_CHUNK.findall(_SIZE.sub("", part))):
            for kind, found in _in_chunk(chunk):
                if not any(one == found or _starts(one, found) for one in known):
                    yield kind, found


def _starts(digest: str, found: str) -> bool:
    """Whether a short form of a digest was found."""
    return len(digest) == _DIGEST_CHARS and digest.startswith(found)


def digests_in(paths: Iterable[Path]) -> frozenset[str]:
    """Every SHA-256 in these files."""
    texts = (path.read_text(encoding="utf-8") for path in paths)
    return frozenset(digest for text in texts for digest in _DIGEST.findall(text))


def _texts(text: str) -> Iterator[str]:
    try:
        value = json.loads(text) if text[:1] in {"{", "["} else None
    except (ValueError, RecursionError):
        value = None
    yield from [text] if value is None else _inside(value)


def _inside(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, one in value.items():
            yield key
            if not key.endswith(_MEASURED):
                yield from _inside(one)
    elif isinstance(value, list):
        for one in value:
            yield from _inside(one)
    elif isinstance(value, str):
        yield from _texts(value)


def _in_whole(text: str) -> Iterator[tuple[str, str]]:
    for name in _HOME.findall(text):
        if not PSEUDONYM.fullmatch(name.strip(".")):
            yield "user", name
    for one, other in _AT.findall(text):
        sides = (one.strip("."), other.strip("."))
        if not all(PSEUDONYM.fullmatch(side) or _FILE.fullmatch(side) for side in sides):
            yield "user", f"{one}@{other}"


@functools.lru_cache(maxsize=1 << 16)  # the same words stand in every line
def _in_chunk(chunk: str) -> tuple[tuple[str, str], ...]:
    return () if PSEUDONYM.fullmatch(chunk) else tuple(_found_in(chunk))


def _found_in(chunk: str) -> Iterator[tuple[str, str]]:
    for found in _ADDRESS.findall(chunk):
        # With a port behind it, or a word before it.
        if any(map(_is_address, (found, found.strip(".:"), *found.split(":")))):
            yield "address", found
    for kind, form in _FORMS:
        for match in form.finditer(chunk):
            yield kind, match.group()
    for part in re.split(r"[/:@]", chunk.strip("./:@-_")):
        for kind, check in _PARTS:
            if not PSEUDONYM.fullmatch(part) and check(part):
                yield kind, part


def _is_address(text: str) -> bool:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return not (address.is_loopback or address.is_unspecified)


def _is_secret(part: str) -> bool:
    """Letters mixed with digits, too evenly for words."""
    return any(
        any(one.isdigit() for one in piece)
        and any(one.isalpha() for one in piece)
        and not re.fullmatch(r"[a-z]*\d*|[A-Z]*\d*|(?:[A-Z]{0,4}[a-z]{3,})+[A-Z]?\d?", piece)
        and _bits(piece) > _SECRET_BITS
        for piece in _PIECE.findall(part)
        if not _STAMP.fullmatch(piece) and not _DIGEST.fullmatch(piece)
    )


def _bits(text: str) -> float:
    """Shannon's entropy, bits a character."""
    shares = [count / len(text) for count in Counter(text).values()]
    return -sum(share * math.log2(share) for share in shares)


def _is_machine(part: str) -> bool:
    return _MACHINE.fullmatch(part) is not None and _NUMBERED.fullmatch(part) is None


_FORMS = (
    ("number", _GROUPS),
    ("number", _UUID),
    ("number", _HEX),
    ("qualified name", _QUALIFIED),
)
_PARTS: tuple[tuple[str, Callable[[str], object]], ...] = (
    ("machine", _is_machine),
    ("machine", _DOMAIN.fullmatch),
    ("serial", lambda part: _SERIAL.fullmatch(part) and not _STAMP.fullmatch(part)),
    ("secret", _is_secret),
)
