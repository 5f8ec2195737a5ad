"""The drop of the page cache, and what is left in it of every KV file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from r8.lab.instruments import probes as instruments
from r8.lab.machine import commands

if TYPE_CHECKING:
    from r8.lab.campaign.phases import Stage


def drop(stage: Stage) -> None:
    """Drop the page cache with the site's command, then look what is left of every KV file."""
    stage.recording.event("drop_begin")
    stage.recording.event("drop_end", **drop_caches(stage))
    residency(stage, "after_drop")
    stage.recording.event("cold_checked")


def drop_caches(stage: Stage) -> dict[str, Any]:
    """Run the site's drop on every host the arm touches; what came of the worst one."""
    setting = stage.life.setting
    setting.say("dropping the page cache")
    done = [commands.run(command) for command in setting.drop_commands]
    worst = next((one for one in done if not one.ok), done[0])
    line = "; ".join(one.line for one in done)
    return {"rc": worst.returncode, "command": line, "error": worst.error}


def residency(stage: Stage, moment: str) -> None:
    """Look how much of every KV file is in the page cache."""
    kv, offset = stage.life.setting.kv, stage.life.setting.kv_offset
    if kv is not None:
        instruments.residency(stage.recording, Path(kv.path), moment, kv.host, offset)
