"""PCI addresses: what a card is called everywhere, because numbers shift when a card is lost."""

from __future__ import annotations

import re

_ADDRESS = re.compile(r"^([0-9a-f]{4,8}):([0-9a-f]{2}:[0-9a-f]{2})(\.[0-9a-f])$")
# NVIDIA writes eight digits of the domain, the kernel four.
_DOMAIN_DIGITS = 4


def address_of(text: object) -> str | None:
    """The address as the kernel writes it (`0000:3b:00.0`); None when it is none."""
    found = _ADDRESS.match(text.strip().lower()) if isinstance(text, str) else None
    if found is None:
        return None
    domain, place, function = found.groups()
    return f"{domain.lstrip('0').rjust(_DOMAIN_DIGITS, '0')}:{place}{function}"


def slot_of(device: str) -> str | None:
    """The address without its function, one for all partitions of a card; None for other names."""
    whole = device.partition("/")[0]
    return None if address_of(whole) is None else whole.rpartition(".")[0]
