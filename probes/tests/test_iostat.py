from __future__ import annotations

import os
import shutil
import signal
import stat
import time
from typing import TYPE_CHECKING

import pytest

from probes.iostat import IostatWitness, iostat_version, parse_version
from probes.iostat_json import parse_iostat_json
from probes.iostat_report import UNIT_BUG

if TYPE_CHECKING:
    from pathlib import Path

needs_iostat = pytest.mark.skipif(shutil.which("iostat") is None, reason="sysstat is not installed")


def _fake_iostat(directory: Path, version: str) -> None:
    """A fake iostat that only knows its version."""
    script = directory / "iostat"
    script.write_text(f"#!/bin/sh\necho 'sysstat version {version}'\n", encoding="ascii")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)


def test_the_version_is_found_in_what_sysstat_prints() -> None:
    assert parse_version("sysstat version 12.6.1\n(C) ...") == (12, 6, 1)
    assert parse_version("no such thing 1.2.3") is None


def test_sysstat_12_2_0_is_refused_and_never_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fake_iostat(tmp_path, "12.2.0")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    witness = IostatWitness(tmp_path / "raw")
    readings = witness.start().readings
    assert [reading.reason for reading in readings] == [UNIT_BUG]
    assert witness.stop() is None
    _fake_iostat(tmp_path, "12.2.1")
    assert iostat_version()[1] is None


def test_an_absent_iostat_is_recorded_and_not_fatal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    witness = IostatWitness(tmp_path / "raw")
    readings = witness.start().readings
    assert [(row.counter, row.text) for row in readings] == [("version", None)]
    assert (readings[0].reason or "").startswith("absent: iostat is not on PATH")
    assert witness.stop() is None


@needs_iostat
def test_the_real_iostat_is_stopped_so_that_its_json_is_whole(tmp_path: Path) -> None:
    witness = IostatWitness(tmp_path / "raw")
    started = {row.counter: row.text for row in witness.start().readings}
    assert started["witness"] == "started"
    output = tmp_path / "raw" / "iostat.json"
    deadline = time.monotonic() + 20
    while not parse_iostat_json(output.read_text()).samples and time.monotonic() < deadline:
        time.sleep(0.1)
    stopped = witness.stop()
    assert stopped is not None
    values = {row.counter: row.value for row in stopped.readings}
    assert (values["reports"] or 0) >= 1
    assert values["salvaged"] == 0
    assert parse_iostat_json(output.read_text()).samples[0].timestamp is not None
    assert (tmp_path / "raw" / "iostat_version.txt").read_text().startswith("sysstat version")


@needs_iostat
def test_an_iostat_that_ended_by_itself_is_a_reason(tmp_path: Path) -> None:
    witness = IostatWitness(tmp_path / "raw")
    witness.start()
    process = witness._process
    assert process is not None
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    stopped = witness.stop()
    assert stopped is not None
    assert stopped.readings[0].reason == "failed: iostat ended by itself with code -9"
