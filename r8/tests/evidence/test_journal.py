from __future__ import annotations

import dataclasses
import errno
import json
import os
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest

from r8.errors import EvidenceError, SiteError
from r8.evidence.journal import Journal, run_from_json, run_to_json, write_json_atomic
from r8.model import BLOCKS_MAX, INT64_MAX, KvRun, PatchState
from r8.tests.support.run_factory import SyntheticRun, read_lines, synthetic_run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

EVENT = {"name": "run_begin", "mono_ns": 1, "wall_ns": 2, "detail": "{}"}


def test_rows_come_back_as_they_were_appended(tmp_path: Path) -> None:
    with Journal(tmp_path, "events") as events:
        events.append(EVENT)
        events.extend([{**EVENT, "mono_ns": 2}, {**EVENT, "detail": None}])
    assert read_lines(tmp_path / "events.jsonl") == [
        EVENT,
        {**EVENT, "mono_ns": 2},
        {**EVENT, "detail": None},
    ]


def test_appending_goes_on_where_an_earlier_journal_ended(tmp_path: Path) -> None:
    for _ in range(2):
        with Journal(tmp_path, "events") as events:
            events.append(EVENT)
    assert len(read_lines(tmp_path / "events.jsonl")) == 2


@pytest.mark.parametrize(
    ("row", "named"),
    [
        ({**EVENT, "colour": "red"}, "unknown key 'colour'"),
        ({**EVENT, "run_id": "r"}, "unknown key 'run_id'"),
        ({**EVENT, "mono_ns": 1.5}, "'mono_ns' is 1.5, not int64"),
        ({**EVENT, "mono_ns": True}, "'mono_ns' is True, not int64"),
        ({**EVENT, "mono_ns": 1 << 63}, "not int64"),
        ({**EVENT, "name": 7}, "'name' is 7, not name"),
        ({**EVENT, "name": None}, "'name' is missing"),
        ({**EVENT, "detail": "\ud800"}, "not string"),
        ({"name": "x", "mono_ns": 1}, "'wall_ns' is missing"),
    ],
)
def test_a_row_of_another_shape_is_refused_and_named(
    tmp_path: Path, row: dict[str, Any], named: str
) -> None:
    with Journal(tmp_path, "events") as events:
        events.append(EVENT)
        with pytest.raises(EvidenceError, match=named.replace("(", r"\(")):
            events.append(row)
    assert read_lines(tmp_path / "events.jsonl") == [EVENT]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "1"])
def test_a_real_reading_must_be_a_finite_number(tmp_path: Path, value: object) -> None:
    row = {"probe": "host", "host": "h", "device": "-", "counter": "c", "mono_ns": 1, "wall_ns": 1}
    with Journal(tmp_path, "probes") as probes:
        probes.append({**row, "value": 1})
        with pytest.raises(EvidenceError, match="value"):
            probes.append({**row, "value": value})


def test_every_appended_row_is_synced_before_append_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    with Journal(tmp_path, "events") as events:
        monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.fstat(fd).st_size))
        events.append(EVENT)
        assert synced == [(tmp_path / "events.jsonl").stat().st_size]


def test_a_long_batch_is_synced_at_least_each_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(0, 100 * 10**9, 4 * 10**8))  # each look at the clock is 0.4 s later
    monkeypatch.setattr(time, "monotonic_ns", lambda: next(clock))
    synced: list[int] = []
    with Journal(tmp_path, "events") as events:
        monkeypatch.setattr(Journal, "sync", lambda _: synced.append(1))
        events.extend(EVENT for _ in range(9))
    assert len(synced) >= 3


def _disk_full_after(written: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that takes `written` bytes of the next write and then no more."""
    real, left = os.write, [written]

    def write(descriptor: int, data: bytes) -> int:
        part = bytes(data)[: left[0]]
        if not part:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        left[0] -= len(part)
        return real(descriptor, part)

    monkeypatch.setattr(os, "write", write)


@pytest.mark.parametrize("written", [0, 1, 20])
def test_a_full_disk_raises_and_leaves_earlier_lines_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: int
) -> None:
    with Journal(tmp_path, "events") as events:
        events.append(EVENT)
        with monkeypatch.context() as patch:
            _disk_full_after(written, patch)
            with pytest.raises(SiteError, match="No space left on device"):
                events.append({**EVENT, "mono_ns": 2})
        assert read_lines(tmp_path / "events.jsonl") == [EVENT]
        events.append({**EVENT, "mono_ns": 3})  # space was made
    assert [row["mono_ns"] for row in read_lines(tmp_path / "events.jsonl")] == [1, 3]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("mounting a small tmpfs needs root")
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "r8-test", str(disk)],
        check=False,
        capture_output=True,
        text=True,
    )
    if mounted.returncode:
        pytest.skip(f"no tmpfs here: {mounted.stderr.strip()}")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.root
def test_a_really_full_disk_leaves_every_acknowledged_line(small_disk: Path) -> None:
    acknowledged = 0

    def fill(events: Journal) -> None:
        nonlocal acknowledged
        for number in range(100_000):
            events.append({**EVENT, "mono_ns": number})
            acknowledged += 1

    with Journal(small_disk, "events") as events, pytest.raises(SiteError, match="No space left"):
        fill(events)
    rows = read_lines(small_disk / "events.jsonl")
    assert acknowledged > 100
    assert [row["mono_ns"] for row in rows] == list(range(acknowledged))


def test_a_journal_with_a_torn_end_is_not_continued(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text('{"name": "run_be')
    with pytest.raises(EvidenceError, match="r8 recover"):
        Journal(tmp_path, "events")


def test_write_json_atomic_replaces_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.json"
    write_json_atomic(path, {"a": 1})
    _disk_full_after(2, monkeypatch)
    with pytest.raises(SiteError, match="No space left"):
        write_json_atomic(path, {"a": 2})
    assert json.loads(path.read_text()) == {"a": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["run.json"]


def test_a_run_survives_the_way_through_json() -> None:
    run = synthetic_run(SyntheticRun())
    for one in (run, dataclasses.replace(run, patch=None, note="a note")):
        assert run_from_json(json.loads(json.dumps(run_to_json(one))), where="here") == one


def test_patch_state_and_expectation_come_back_as_records() -> None:
    run = run_from_json(run_to_json_text(), where="here")
    assert isinstance(run, KvRun)
    assert isinstance(run.patch, PatchState)
    assert run.expectation.hit_bytes == 4 * 4 * (2 << 20)


def run_to_json_text() -> Any:
    return json.loads(json.dumps(run_to_json(synthetic_run(SyntheticRun()))))


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        (("colour",), "red", "unknown key run.colour"),
        (("patch", "colour"), "red", "unknown key run.patch.colour"),
        (("arm",), ..., "missing required field `arm`"),
        (("note",), ..., "missing key run.note"),
        (("expectation", "sessions"), ..., "`sessions` - at `$.expectation`"),
        (("block",), "0", "Expected `int`, got `str` - at `$.block`"),
        (("block",), True, "Expected `int`, got `bool` - at `$.block`"),
        (("balanced",), 1, "Expected `bool`, got `int` - at `$.balanced`"),
        (("basis",), "guessed", "guessed"),
        (("versions",), {"vllm": 1}, "$.versions"),
        (("instances",), "a", "$.instances"),
        (("expectation",), None, "$.expectation"),
        (("treatment", "patch"), "maybe", "'maybe' - at `$.treatment.patch`"),
        (("role",), "reserve", "reserve"),
        (("kind",), "train", "'kind' is none of kv, transfer"),
        (("other_kv_devices",), [{"host": "h"}], "`name` - at `$.other_kv_devices[0]`"),
        (("run_id",), "a/b", "run_id 'a/b' is no name"),
        (("arm",), "n" * 129, "is no name"),
        (("campaign_id",), "..", "campaign_id '..' is no name"),
        (("kv_host",), "", "kv_host '' is no name"),
        (("block",), -1, "count from 0"),
    ],
)
def test_a_bad_run_json_is_refused_and_the_key_named(
    path: tuple[str, ...], value: object, named: str
) -> None:
    content = run_to_json_text()
    place = content
    for key in path[:-1]:
        place = place[key]
    if value is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    with pytest.raises(EvidenceError) as caught:
        run_from_json(content, where="data/runs/x/run.json")
    assert named in caught.value.what
    assert caught.value.where == "data/runs/x/run.json"


@pytest.mark.parametrize(
    "content", [{"schema_version": 1}, {"schema_version": 3}, {}, [], "text", None]
)
def test_another_schema_version_is_refused_before_anything_else(content: object) -> None:
    with pytest.raises(EvidenceError, match="schema version"):
        run_from_json(content, where="here")


def test_blocks_and_bytes_of_a_run_are_bounded() -> None:
    content = run_to_json_text()
    run_from_json({**content, "block": BLOCKS_MAX - 1}, where="here")
    with pytest.raises(EvidenceError, match=f"count from 0 to {BLOCKS_MAX - 1}"):
        run_from_json({**content, "block": BLOCKS_MAX}, where="here")
    planned = content["expectation"]
    most = INT64_MAX // run_from_json(content, where="here").expected_bytes * planned["chunk_bytes"]
    run_from_json({**content, "expectation": {**planned, "chunk_bytes": most}}, where="here")
    more = {**planned, "chunk_bytes": 2 * most}
    with pytest.raises(EvidenceError, match="do not fit 64 bits"):
        run_from_json({**content, "expectation": more}, where="here")
