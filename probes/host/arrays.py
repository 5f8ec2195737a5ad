"""Arrays as tools describe them: `mdadm`, `/proc/mdstat`, `lsblk`.

The kernel's files are the evidence; these are witnesses of the same facts, recorded beside the raw
texts. A word that is not there is left out, never guessed.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import Any

_MDSTAT = re.compile(r"^(\w+) : (\w+)(?: \((?:auto-)?read-only\))? (raid\d+|linear) (.+)$")
_SLOT = re.compile(r"^(\S+?)\[(\d+)\](?:\(\w\))*$")
_CHUNK = re.compile(r"\b(\d+)k chunks?\b")
_DETAIL = re.compile(r"^\s*([A-Z][A-Za-z ]+?) : (.+?)\s*$")
_MEMBER = re.compile(r"^\s*\d+\s+\d+\s+\d+\s+(\d+)\s+(\w[\w ]*?)\s+(/dev/\S+)\s*$")
_BYTES = {"K": 1 << 10, "M": 1 << 20}
_DEV = "/dev/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Array:
    """One md array; `None` where the text does not say. Members are in the order of their slots."""

    name: str
    level: str | None = None
    state: str | None = None
    chunk_bytes: int | None = None
    members: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One device of lsblk's tree: its kind, where it is mounted, and what is made of it."""

    name: str
    kind: str | None = None
    mount: str | None = None
    transport: str | None = None
    above: tuple[str, ...] = ()


def parse_mdstat(text: str) -> list[Array]:
    """Arrays of /proc/mdstat."""
    found: list[Array] = []
    for line in text.splitlines():
        head = _MDSTAT.match(line)
        if head is not None:
            slots = [slot for word in head[4].split() if (slot := _SLOT.match(word))]
            members = tuple(slot[1] for slot in sorted(slots, key=lambda one: int(one[2])))
            found.append(Array(name=head[1], state=head[2], level=head[3], members=members))
        elif found and found[-1].chunk_bytes is None and (chunk := _CHUNK.search(line)):
            found[-1] = replace(found[-1], chunk_bytes=_size(chunk[1], "K"))
    return found


def parse_mdadm_detail(text: str) -> list[Array]:
    """Arrays of `mdadm --detail`, each beginning with its device's line."""
    found: list[Array] = []
    for block in re.split(r"^(?=/dev/\S+:\s*$)", text, flags=re.MULTILINE):
        name, _, rest = block.partition("\n")
        if not name.startswith(_DEV):
            continue
        facts = {m[1]: m[2] for line in rest.splitlines() if (m := _DETAIL.match(line))}
        chunk = re.fullmatch(r"(\d+)([KM])", facts.get("Chunk Size", ""))
        rows = [row for line in rest.splitlines() if (row := _MEMBER.match(line))]
        found.append(
            Array(
                name=name.strip().removeprefix(_DEV).removesuffix(":"),
                level=facts.get("Raid Level"),
                state=facts.get("State"),
                chunk_bytes=_size(chunk[1], chunk[2]) if chunk else None,
                members=tuple(
                    row[3].removeprefix(_DEV) for row in sorted(rows, key=lambda one: int(one[1]))
                ),
            )
        )
    return found


def parse_lsblk(text: str) -> dict[str, Listed]:
    """Devices of `lsblk -J` by name; empty for what is no such document."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    found: dict[str, Listed] = {}
    queue = _objects(document.get("blockdevices") if isinstance(document, dict) else None)
    while queue:
        device = queue.pop(0)
        children = _objects(device.get("children"))
        queue += children
        name = _word(device.get("name"))
        if name is not None:
            above = tuple(word for one in children if (word := _word(one.get("name"))))
            found[name] = Listed(
                name=name,
                kind=_word(device.get("type")),
                mount=_word(device.get("mountpoint")),
                transport=_word(device.get("tran")),
                above=above,
            )
    return found


def _size(number: str, unit: str) -> int | None:
    # No chunk size has ten digits, and Python refuses to read numbers of thousands of digits.
    return int(number) * _BYTES[unit] if number.isascii() and len(number) < 10 else None  # noqa: PLR2004


def _objects(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
