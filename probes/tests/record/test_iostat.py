from __future__ import annotations

import os
import shutil
import signal
import stat
import time
from typing import TYPE_CHECKING

import pytest

from probes.record.iostat import (
    UNIT_BUG,
    IostatWitness,
    count_reports,
    iostat_version,
    parse_version,
)
from probes.tests.support.captures import SAMPLES, capture

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
    samples = witness.start().samples
    assert [row.reason for row in samples] == [UNIT_BUG]
    assert witness.stop() is None
    _fake_iostat(tmp_path, "12.2.1")
    assert iostat_version()[1] is None


def test_an_absent_iostat_is_recorded_and_not_fatal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    witness = IostatWitness(tmp_path / "raw")
    samples = witness.start().samples
    assert [(row.counter, row.text) for row in samples] == [("version", None)]
    assert (samples[0].reason or "").startswith("absent: iostat is not on PATH")
    assert witness.stop() is None


@needs_iostat
def test_the_real_iostat_is_stopped_so_that_its_json_is_whole(tmp_path: Path) -> None:
    witness = IostatWitness(tmp_path / "raw")
    started = {row.counter: row.text for row in witness.start().samples}
    assert started["witness"] == "started"
    output = tmp_path / "raw" / "iostat.json"
    deadline = time.monotonic() + 20
    while not count_reports(output.read_text())[0] and time.monotonic() < deadline:
        time.sleep(0.1)
    stopped = witness.stop()
    assert stopped is not None
    values = {row.counter: row.value for row in stopped.samples}
    assert (values["reports"] or 0) >= 1
    assert values["cut_short"] == 0
    assert '"timestamp"' in output.read_text()
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
    assert stopped.samples[0].reason == "failed: iostat ended by itself with code -9"


# file, complete reports, whether the document is whole
CAPTURES = [
    ("11.6.0_x_t_ISO", 1, True),
    ("11.6.0_xy_JSON_invalid", 2, False),
    ("11.7.3_x_t_ISO", 1, True),
    ("12.2.0_x_t_ISO", 1, True),
    ("12.5.2_x_t_ISO", 1, True),
    ("12.6.1_x_JSON_SIGINT_valid", 3, True),
    ("12.6.1_x_JSON_killed_SIGTERM_invalid", 3, False),
    ("12.6.1_x_JSON_noT_first_report_since_boot", 3, True),
    ("12.6.1_xtym_ISO", 1, True),
    ("12.6.1_xyt_md0_nvmeof_kernel6.12", 3, True),
    ("12.7.9_x_t_ISO", 1, True),
]


@pytest.mark.parametrize(("name", "reports", "whole"), CAPTURES)
def test_the_complete_reports_of_every_version_are_counted(
    name: str, reports: int, whole: object
) -> None:
    assert count_reports(capture(f"iostat_{name}.json")) == (reports, whole)


def test_the_list_of_captures_is_complete() -> None:
    listed = {f"capture_iostat_{name}.json" for name, *_ in CAPTURES}
    assert {path.name for path in SAMPLES.glob("capture_iostat_*")} == listed


def test_a_report_that_was_cut_is_not_counted() -> None:
    text = capture("iostat_12.6.1_xyt_md0_nvmeof_kernel6.12.json")
    second = text.rindex('"timestamp"')
    # Some devices of the third report are complete; the report is not.
    assert count_reports(text[: text.index("nvme1n1", second)]) == (2, False)
    for torn in ("", "no JSON", '{"sysstat": {"hosts": [{"statistics": [{"disk": ['):
        assert count_reports(torn) == (0, False)
