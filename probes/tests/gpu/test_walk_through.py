"""A GPU tool is added in a copy of the package exactly as CONTRIBUTING says, and is recorded."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import probes

CHECKOUT = Path(probes.__file__).parents[1]
SECTION = re.compile(r"^## Add a GPU tool$(.*?)^## ", re.MULTILINE | re.DOTALL)
# A file named at the begin of a paragraph, and the code block that ends it.
STEP = re.compile(r"^`(probes/\S+)`.*?^```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SOURCES = "probes/gpu/sources.py"
# Recorded where no driver shows a card: an empty sysfs, and no site-packages with NVML in them.
RECORD = """
import sys; sys.path.insert(0, ".")
from pathlib import Path
from probes.cli import _plan
from probes.record.journal import Journal
from probes.record.recorder import Recorder
plan = _plan({"iostat": False, "rates_hz": {"gpu": 10}}, "test")
Recorder(plan, Journal.open(Path("probes.jsonl")), None, for_s=0.5).run(sys_root=Path("no-sysfs"))
"""
CHECK = """
from probes.gpu.xyz_smi import XYZ_SMI
from probes.tests import test_every_sample
from probes.tests.gpu.test_tools import test_every_tool_has_a_capture_that_gives_what_it_declares
test_every_tool_has_a_capture_that_gives_what_it_declares(XYZ_SMI)
test_every_sample.test_every_sample_is_read_by_a_test()
"""


@pytest.fixture(name="copy", scope="module")
def _copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package with the walk-through's three files, and a stand-in for the command."""
    root = tmp_path_factory.mktemp("copy")
    shutil.copytree(CHECKOUT / "probes", root / "probes")
    # Whoever walks through it may have done so in this checkout: it must work there as well.
    todo = steps()
    if any((root / name).exists() for name in todo if name != SOURCES):
        todo = {}
    for name, text in todo.items():
        if name == SOURCES:
            extend(root / name, *text.splitlines())
        else:
            (root / name).write_text(text, encoding="utf-8")
    (capture,) = (name for name in steps() if "/samples/" in name)
    tool = root / "bin" / "xyz-smi"
    tool.parent.mkdir()
    tool.write_text(f"#!/bin/sh\nexec cat {root / capture}\n")
    tool.chmod(0o755)
    return root


def steps() -> dict[str, str]:
    """The files of the section by name, each with its code block."""
    section = SECTION.search((CHECKOUT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    assert section is not None
    return dict(STEP.findall(section[1]))


def extend(path: Path, import_line: str, tuple_line: str) -> None:
    text = path.read_text(encoding="utf-8")
    text = text.replace("\n\nSOURCES", f"\n{import_line}\n\nSOURCES", 1)
    path.write_text(text.replace("\n)\n", f"\n{tuple_line}\n)\n", 1), encoding="utf-8")


def run(copy: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    environment = os.environ | {"PATH": f"{copy / 'bin'}:{os.environ['PATH']}"}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=copy,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )


def test_it_takes_a_module_a_line_and_a_capture() -> None:
    assert len(steps()) == 3
    assert SOURCES in steps()


def test_its_samples_are_recorded(copy: Path) -> None:
    done = run(copy, "-I", "-S", "-c", RECORD)
    assert done.returncode == 0, done.stderr
    lines = (copy / "probes.jsonl").read_text(encoding="utf-8").splitlines()
    found = [row for row in map(json.loads, lines) if row["device"].startswith("xyz")]
    assert {row["probe"] for row in found} == {"gpu"}
    assert {(row["device"], row["counter"]): row["value"] or row["reason"] for row in found} == {
        ("xyz0", "vram_used_bytes"): 512 << 20,
        ("xyz0", "vram_total_bytes"): 65536 << 20,
        ("xyz0", "gpu_busy_percent"): "absent: not in this output",
        ("xyz1", "vram_used_bytes"): "absent: the tool says 'N/A'",
        ("xyz1", "vram_total_bytes"): 65536 << 20,
        ("xyz1", "gpu_busy_percent"): "absent: not in this output",
    }


def test_the_environment_of_a_run_has_its_page_parsed_and_raw(copy: Path) -> None:
    done = run(copy, "-m", "probes", "environment", "--out", "environment.json")
    assert done.returncode == 0, done.stderr
    captured = json.loads((copy / "environment.json").read_text(encoding="utf-8"))
    (snapshot,) = (one for one in captured["gpu_snapshots"] if one["source"] == "xyz-smi")
    assert [card["device"] for card in snapshot["parsed"]["cards"]] == ["xyz0", "xyz1"]
    assert snapshot["raw"]["stdout"].startswith("card 0: 512 MiB")


def test_preflight_has_its_cards(copy: Path) -> None:
    """By the verb that preflight runs where the engine is, here behind `env`."""
    for behind in ((), ("--behind", '["env", "GPU_TOOL"]')):
        done = run(copy, "-m", "probes", "gpus", *behind)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)["cards"]
        assert [(one["source"], one["card"]["device"]) for one in found] == [
            ("xyz-smi", "xyz0"),
            ("xyz-smi", "xyz1"),
        ]


def test_the_tests_of_the_tools_want_its_capture_and_read_it(copy: Path) -> None:
    assert run(copy, "-c", CHECK).returncode == 0
    (copy / "probes/tests/samples/capture_xyz_smi_two_cards.txt").unlink()
    without = run(copy, "-c", CHECK)
    assert b"no capture_xyz_smi_* below samples/ shows a card" in without.stderr
