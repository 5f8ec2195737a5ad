"""The options of scenarios, benches and the cross-check, and which of them each reads."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from r8.errors import UsageError
from r8.scenarios.scenario import Scenario

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
RUNS_ROOT = CHECKOUT / "data" / "runs"
REHEARSAL = CHECKOUT / "data" / "sites" / "rehearsal.toml"
DEFAULT_SEED = 8


def count(word: str) -> int:
    """A whole number of at least one: zero blocks would be taken for none given."""
    return _at_least(1, word)


def natural(word: str) -> int:
    """A whole number from zero."""
    return _at_least(0, word)


def _at_least(least: int, word: str) -> int:
    if not word.removeprefix("-").isdecimal() or int(word) < least:
        raise argparse.ArgumentTypeError(f"'{word}' is no whole number of at least {least}")
    return int(word)


def campaign(word: str) -> str:
    """An empty name, of a variable that was not set, would begin a new campaign."""
    if not word.strip(","):
        raise argparse.ArgumentTypeError("give a campaign's id (r8 status lists them), or `last`")
    return word


OPTIONS: dict[str, dict[str, Any]] = {
    "--site": {"type": Path, "default": REHEARSAL, "help": "site file (default: rehearsal)"},
    "--blocks": {"type": count, "help": "blocks (default: the site's plan)"},
    "--smoke": {
        "action": "store_true",
        "help": "one block; too few to judge, and that is accepted",
    },
    "--arms": {"help": "comma list of arms, or 'all'"},
    "--rounds": {
        "type": count,
        "default": 1,
        "help": "independent campaigns, compared with each other",
    },
    "--level": {"type": count, "help": "of the cross-check: requests at once (default: 16)"},
    "--resume": {
        "type": campaign,
        "metavar": "CAMPAIGN",
        "help": "go on with an interrupted campaign, or `last`",
    },
    "--dry-run": {"action": "store_true", "help": "print every command, run none"},
    "--record-reference": {"action": "store_true", "help": "keep the runs as reference runs"},
    "--order-seed": {
        "type": natural,
        "default": DEFAULT_SEED,
        "help": "seed of order and prompts",
    },
    "--runs-root": {"type": Path, "default": RUNS_ROOT, "help": "where run directories go"},
}
# What no scenario reads; a bench or the cross-check names in its `OPTIONS` what it reads.
NOT_OF_SCENARIOS = {"--level"}


def add_options(parser: pytest.Parser) -> None:
    """Declare them; a bad value ends with one line."""
    group = parser.getgroup("R8")
    for name, words in OPTIONS.items():
        group.addoption(name, **words)


def in_vain(config: pytest.Config, items: Iterable[pytest.Item]) -> UsageError | None:
    """What was asked for and nothing that was selected would do; None: everything has its use."""
    modules = {id(one): one for item in items if (one := getattr(item, "module", None))}.values()
    readers = [one for one in modules if hasattr(one, "OPTIONS") or _is_scenario(one)]
    given = [word.partition("=")[0] for word in config.invocation_params.args]
    unread = [
        word
        for word in dict.fromkeys(given)
        if word in OPTIONS and not any(_reads(one, word) for one in readers)
    ]
    if readers and unread:
        return UsageError(
            f"nothing that is selected reads {', '.join(unread)}",
            where="the command line",
            next_step="leave it out",
        )
    blocks = config.getoption("--blocks")
    if config.getoption("--smoke") and blocks not in {None, 1}:
        return UsageError(
            f"a smoke run has one block, and --blocks asks for {blocks}",
            where="--smoke --blocks",
            next_step="leave one of them out",
        )
    return None


def _is_scenario(module: object) -> bool:
    return isinstance(getattr(module, "SCENARIO", None), Scenario)


def _reads(module: object, option: str) -> bool:
    if _is_scenario(module):
        return option not in NOT_OF_SCENARIOS
    return option in (*getattr(module, "OPTIONS", ()), "--dry-run")
