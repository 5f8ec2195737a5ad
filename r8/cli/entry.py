"""Where the `r8` command starts: nothing is imported here that takes time or starts a thread."""

from __future__ import annotations

import sys

from r8.cli.help_map import LAB_VERBS, verb_of
from r8.cli.limited import limited
from r8.crash import guarded

NAME = "r8"


def main() -> int:
    """Run the verb of the command line; all but the lab's verbs read in a limited child."""
    verb = verb_of(sys.argv[1:])
    if verb is None or verb in LAB_VERBS:
        return guarded(_verb, NAME)
    return guarded(lambda: limited(_reading), NAME)


def _reading(folder: str) -> int:
    return guarded(_verb, NAME, folder=folder)


def _verb() -> int:
    from r8.cli.main import main as run  # noqa: PLC0415 - within the limits

    return run()
