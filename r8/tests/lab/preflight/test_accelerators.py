"""What preflight says of accelerators. The vendors' tools are fakes on PATH that print captures."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from probes.gpu.behind import TOOL_HERE
from probes.gpu.sources import TOOLS
from r8.lab.instruments import probes
from r8.lab.preflight.accelerators import IDLE_BYTES, IDLE_SHARE, _in_use, accelerators
from r8.lab.site.load import load_site
from r8.lab.site.machines import Engine

if TYPE_CHECKING:
    from r8.lab.site.file import Site

ROOT = Path(__file__).resolve().parents[4]
LOST = "0000:1e:00.0: failed: the tool says 'GPU is lost. Reboot the system to recover this GPU'"
TWO_BUSY = "0000:3f:00.0: 19196280832 bytes in use; 0000:40:00.0: 20482883584 bytes in use"
SAMPLES = ROOT / "probes" / "tests" / "samples"


def fake(folder: Path, tool: str, capture: str) -> None:
    """A command of this name that prints a capture, whatever it is asked."""
    path = folder / tool
    path.write_text(f"#!/bin/sh\nexec cat {SAMPLES / f'capture_{capture}'}\n")
    path.chmod(0o755)


def site_with(*prefix: str) -> Site:
    site = load_site(ROOT / "data" / "sites" / "rehearsal.toml").site
    engine = Engine(host="local", command=("true",), python=("python3",), exec_prefix=prefix)
    return msgspec.structs.replace(site, rehearsal=None, engine=engine)


@pytest.mark.parametrize(
    ("tool", "capture", "saw", "warning"),
    [
        (
            "nvidia-smi",
            "nvidia_smi_gb10_unified.csv",
            "nvidia-smi: 1 cards, memory in use on 0, unknown on 1",
            "000f:01:00.0: absent: the tool says 'N/A'",
        ),
        (
            "nvidia-smi",
            "nvidia_smi_lost_among_rows.txt",
            "nvidia-smi: 4 cards, memory in use on 2, unknown on 1",
            f"{TWO_BUSY}; {LOST}",
        ),
        (
            "rocm-smi",
            "rocm_smi_mi250_secondary_dies.json",
            "rocm-smi: 4 cards, memory in use on 0, unknown on 0",
            "",
        ),
        (
            "npu-smi",
            "npu_smi_910b4_chip_alone.txt",
            "npu-smi: 1 cards, memory in use on 1, unknown on 0",
            "0000:c1:00.0: 3352297472 bytes in use",
        ),
    ],
)
def test_what_a_tool_does_not_say_is_unknown_and_never_idle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str, capture: str, saw: str, warning: str
) -> None:
    fake(tmp_path, tool, capture)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    found = accelerators(site_with())
    assert (found.saw, found.warning, found.ok) == (saw, warning, True)


def test_every_tool_of_the_probes_is_asked_where_the_engine_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A prefix that notes what it is asked, as `docker exec` and as a line for a shell."""
    log = tmp_path / "asked"
    prefix = tmp_path / "behind"
    prefix.write_text(f'#!/bin/sh\necho "$@" >> {log}\nexit 1\n')
    prefix.chmod(0o755)
    for words in ((str(prefix), "exec"), (str(prefix), "sh", "-c")):
        log.unlink(missing_ok=True)
        found = accelerators(site_with(*words))
        assert found.saw.startswith("no tool shows a card where the engine runs (amd-smi: absent")
        assert found.warning == "whether they are idle is not known"
        asked = log.read_text().splitlines()
        assert [shlex.join((*words[1:], *tool.command)) for tool in TOOLS] == asked


def test_the_place_of_the_command_has_one_name_on_both_sides(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert probes.TOOL_HERE == TOOL_HERE
    asked: list[list[str]] = []

    def instrument(argv: list[str]) -> str:
        asked.append(argv)
        return '{"cards": []}'

    monkeypatch.setattr(probes, "instrument", instrument)
    host = msgspec.structs.replace(site_with().hosts[0], exec_prefix=("ssh", "node0"))
    probes.gpus(msgspec.structs.replace(site_with("docker", "exec", "vllm"), hosts=(host,)))
    assert json.loads(asked[0][-1]) == ["ssh", "node0", f"docker exec vllm {TOOL_HERE}"]


@pytest.mark.parametrize(
    ("used", "total", "in_use"),
    [
        (IDLE_BYTES, 80 << 30, False),
        (IDLE_BYTES + 1, 80 << 30, True),
        (2 << 30, 200 << 30, False),
        ((2 << 30) + 1, 200 << 30, True),
        (IDLE_BYTES + 1, None, True),
        (None, 80 << 30, False),
    ],
)
def test_memory_in_use_is_more_than_a_driver_keeps(
    used: int | None, total: int | None, *, in_use: bool
) -> None:
    values: dict[str, Any] = {"vram_used_bytes": used, "vram_total_bytes": total}
    card = {"values": {key: value for key, value in values.items() if value is not None}}
    assert IDLE_SHARE * (200 << 30) == 2 << 30
    assert _in_use(card) is in_use
