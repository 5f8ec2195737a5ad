"""What the lab captures around a run: the host at both ends, the wire, the server's connector."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from r8.lab.campaign.engine import read_config
from r8.lab.instruments import probes as instruments
from r8.lab.instruments.recording import Recording
from r8.tests.support.run_factory import SyntheticRun, synthetic_run

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(name="recording")
def _recording(tmp_path: Path) -> Recording:
    return Recording.begin(tmp_path, synthetic_run(SyntheticRun()), "# site\n")


def details(recording: Recording, name: str) -> list[dict[str, Any]]:
    lines = (recording.directory / "events.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    return [json.loads(row["detail"] or "{}") for row in rows if row["name"] == name]


def test_both_captures_are_kept_whole_and_the_second_names_what_changed(
    recording: Recording,
) -> None:
    instruments.environment(recording, "begin")
    first = recording.raw("environment-begin.json")
    taken = json.loads(first.read_text())
    taken["stable"]["kernel"]["/proc/version"] = "an older kernel"
    first.write_text(json.dumps(taken))
    instruments.environment(recording, "end")
    begin, end = details(recording, "environment")
    assert (begin["moment"], begin["file"]) == ("begin", "environment-begin.json")
    assert "changes" not in begin
    assert [one["before"] for one in end["changes"]] == ["an older kernel"]


def test_a_wire_that_cannot_be_calibrated_is_recorded_with_its_reason(
    recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    instruments.calibrate_wire(recording, (), "loop0")
    assert details(recording, "wire_calibration_begin") == []
    monkeypatch.setattr(instruments, "SETTLE_S", 0.0)
    instruments.calibrate_wire(recording, ("eth0",), "no-such-device")
    (end,) = details(recording, "wire_calibration_end")
    assert "read_bytes" not in end
    assert "absent" in end["error"]


@pytest.mark.parametrize(
    ("line", "connector"),
    [
        (
            (
                "non-default args: {'kv_transfer_config': "
                "KVTransferConfig(kv_connector='LMCacheConnectorV1', kv_role='kv_both')}"
            ),
            "LMCacheConnectorV1",
        ),
        ("non-default args: {'port': 8000, 'enable_prefix_caching': False}", "none"),
        ("some other line", None),
    ],
)
def test_the_connector_is_the_one_the_running_server_lists(
    tmp_path: Path, line: str, connector: str | None
) -> None:
    log = tmp_path / "server.log"
    log.write_text(f"(APIServer pid=1) INFO 11-30 [api_utils.py:273] {line}\n")
    assert read_config(log).kv_connector == connector
