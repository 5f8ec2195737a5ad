from __future__ import annotations

import json
import math
import os
from typing import TYPE_CHECKING, Any

import pytest

from probes.errors import ProbeError
from probes.record.journal import Encoder, Journal
from probes.samples import Batch, Sample

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS = [
    *("probe", "host", "device", "counter", "value", "text", "reason"),
    *("mono_ns", "wall_ns", "read_cost_ns", "epoch"),
]


def _batch(*samples: Sample) -> Batch:
    return Batch(probe="disk", mono_ns=11, wall_ns=22, read_cost_ns=3, samples=samples)


def test_every_row_has_every_column_and_says_null_for_what_is_absent() -> None:
    lines = Encoder('h"ost').lines(
        _batch(
            Sample(device="md0", counter="reads", value=5, epoch=2),
            Sample(device="md0", counter="reads", reason='absent: "why"\n'),
            Sample(device="-", counter="load_1m", value=0.25),
            Sample(device="-", counter='m{a="b"}', value=3.0),
            Sample(device="md0", counter="state", text=""),
        )
    )
    rows = [json.loads(line) for line in lines.splitlines()]
    assert [list(row) for row in rows] == [COLUMNS] * 5
    assert rows[0] == {
        **dict.fromkeys(COLUMNS),
        "probe": "disk",
        "host": 'h"ost',
        "device": "md0",
        "counter": "reads",
        "value": 5,
        "mono_ns": 11,
        "wall_ns": 22,
        "read_cost_ns": 3,
        "epoch": 2,
    }
    assert (rows[1]["value"], rows[1]["reason"]) == (None, 'absent: "why"\n')
    assert rows[2]["value"] == 0.25
    assert (rows[3]["value"], rows[3]["counter"]) == (3, 'm{a="b"}')
    assert rows[4]["text"] == ""


def test_a_sample_is_a_value_a_text_or_a_reason_and_never_none_or_two() -> None:
    said: list[dict[str, Any]] = [{}, {"value": 0, "reason": "denied"}, {"value": 1, "text": "up"}]
    for wrong in said:
        with pytest.raises(ValueError, match="a value, a text or a reason"):
            Sample(device="a", counter="b", **wrong)
    for value in (math.nan, math.inf):
        with pytest.raises(ValueError, match="is not finite"):
            Sample(device="a", counter="b", value=value)


def test_a_torn_last_line_of_an_earlier_process_spoils_no_line_of_this_one(tmp_path: Path) -> None:
    path = tmp_path / "probes.jsonl"
    path.write_text('{"a":1}\n{"a"', encoding="ascii")
    journal = Journal.open(path)
    journal.append('{"a":2}\n')
    journal.close()
    assert path.read_text() == '{"a":1}\n{"a"\n{"a":2}\n'


def test_a_full_disk_is_one_error_that_says_what_to_do() -> None:
    journal = Journal(os.open("/dev/full", os.O_WRONLY), "/dev/full")
    with pytest.raises(ProbeError, match=r"No space left on device \[/dev/full\] -> free space"):
        journal.append("x\n")


def test_a_half_written_line_is_cut_off_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "probes.jsonl"
    journal = Journal.open(path)
    write = os.write
    room = [12, 0]

    def filling_up(fd: int, data: memoryview) -> int:
        """A fake disk with room for twelve bytes."""
        left = room.pop(0)
        if not left:
            raise OSError(28, "No space left on device")
        return write(fd, data[:left])

    monkeypatch.setattr(os, "write", filling_up)
    with pytest.raises(ProbeError):
        journal.append('{"a":1}\n{"a":2}\n')
    assert path.read_text() == '{"a":1}\n'


def test_a_journal_that_cannot_be_opened_says_so(tmp_path: Path) -> None:
    with pytest.raises(ProbeError, match="cannot open the journal"):
        Journal.open(tmp_path / "no" / "probes.jsonl")
