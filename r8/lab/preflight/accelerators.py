"""Whether other processes use the accelerators, by every tool the probes know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from r8.errors import InstrumentError
from r8.lab.instruments.probes import gpus
from r8.lab.preflight.requirement import Requirement

if TYPE_CHECKING:
    from collections.abc import Iterable

    from r8.lab.site.file import Site

# A driver alone keeps some hundred MiB; a model keeps far more.
IDLE_BYTES = 1 << 30
# And on the largest cards some more: an idle MI300X shows 0.3 GB of 206 GB in use.
IDLE_SHARE = 0.01
NAMED_MAX = 8


def accelerators(site: Site) -> Requirement:
    """A warning names the cards in use and, apart from them, those of which nothing is known."""
    try:
        found = gpus(site)
    except InstrumentError as error:
        warning = "whether they are idle is not known"
        return Requirement(name="accelerators", saw=error.what, warning=warning)
    cards = found["cards"]
    if not cards:
        said = "; ".join(f"{one['tool']}: {one['reason']}" for one in found["tools"])
        saw = f"no tool shows a card where the engine runs ({said})"
        return Requirement(
            name="accelerators", saw=saw, warning="whether they are idle is not known"
        )
    busy = [one for one in cards if _in_use(one["card"])]
    unknown = [one for one in cards if "vram_used_bytes" not in one["card"]["values"]]
    sources = ", ".join(dict.fromkeys(one["source"] for one in cards))
    saw = f"{sources}: {len(cards)} cards, memory in use on {len(busy)}, unknown on {len(unknown)}"
    warning = "; ".join([*_shown(busy), *_shown(unknown)])
    return Requirement(name="accelerators", saw=saw, warning=warning)


def _in_use(card: dict[str, Any]) -> bool:
    """More in use than a driver keeps for itself; what no tool gives is not known, and not idle."""
    used = card["values"].get("vram_used_bytes")
    total = card["values"].get("vram_total_bytes", 0)
    return used is not None and used > max(IDLE_BYTES, IDLE_SHARE * total)


def _shown(cards: list[dict[str, Any]]) -> Iterable[str]:
    for one in cards[:NAMED_MAX]:
        card = one["card"]
        used, why = card["values"].get("vram_used_bytes"), card["reasons"].get("vram_used_bytes")
        yield f"{card['device']}: {why if used is None else f'{used:.0f} bytes in use'}"
    if len(cards) > NAMED_MAX:
        yield f"{len(cards) - NAMED_MAX} more"
