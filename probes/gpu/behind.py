"""Asking the vendors' tools where an engine runs: behind ssh, in a container, or both."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

from ..errors import ProbeError
from ..tool import run_tool

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..tool import ToolRun

# Where the command goes: a word of its own, or a place in a line that a shell reads over there.
TOOL_HERE = "GPU_TOOL"


def read_words(text: str) -> list[str]:
    """The words as given on the command line. Raises ProbeError for anything else."""
    try:
        words = json.loads(text)
    except ValueError:
        words = None
    good = isinstance(words, list) and all(isinstance(word, str) for word in words)
    if not good or TOOL_HERE not in " ".join(words):
        raise ProbeError(
            f"not a list of words with {TOOL_HERE} in one of them: {text[:80]}",
            where="--behind",
            next_step=f"""give for example '["docker", "exec", "vllm", "{TOOL_HERE}"]'""",
        )
    return list(words)


def behind(words: Sequence[str]) -> Callable[[tuple[str, ...]], ToolRun]:
    """What runs a tool's command in place of `TOOL_HERE`."""

    def run(command: tuple[str, ...]) -> ToolRun:
        argv: list[str] = []
        for word in words:
            if word == TOOL_HERE:
                argv += command
            else:
                argv.append(word.replace(TOOL_HERE, shlex.join(command)))
        return run_tool(argv)

    return run
