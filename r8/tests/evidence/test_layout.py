from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from r8.errors import EvidenceError
from r8.evidence import layout as parquet_layout
from r8.evidence import tables as finalise_tables
from r8.evidence.layout import INSTANTS, TableWriter
from r8.evidence.tables import write_table
from r8.schema import TABLES

if TYPE_CHECKING:
    from pathlib import Path

# Columns in ns that are lengths of time: they repeat, or stand alone, and are no instants.
DURATIONS = {
    "read_cost_ns",
    "elapsed_ns",
    "send_lag_p99_ns",
    "ttft_error_p50_ns",
    "ttft_error_max_ns",
}


def _probe(n: int, **facts: Any) -> dict[str, Any]:
    row = {"probe": "disk", "host": "h", "device": "loop0", "counter": "reads", "value": n}
    return {**row, "mono_ns": 1000 + n // 3, "wall_ns": 9000 + n // 3, "epoch": 0, **facts}


def _journal(partial: Path, name: str, rows: list[dict[str, Any]]) -> Path:
    partial.mkdir(exist_ok=True)
    path = partial / f"{name}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def _written(tmp_path: Path, name: str, rows: list[dict[str, Any]]) -> pq.ParquetFile:
    _journal(tmp_path / "r.partial", name, rows)
    assert write_table(tmp_path / "r.partial", tmp_path, name, "r") == 0
    return pq.ParquetFile(tmp_path / f"{name}.parquet")


def test_every_column_of_nanoseconds_is_an_instant_or_a_length_of_time() -> None:
    named = {c.name for table in TABLES.values() for c in table.columns if c.unit == "ns"}
    assert named == INSTANTS | DURATIONS


def test_probes_stand_by_probe_and_host_in_sorted_row_groups_and_none_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_layout, "ROW_GROUP_ROWS", 40)
    monkeypatch.setattr(parquet_layout, "_WAITING_ROWS", 50)
    monkeypatch.setattr(finalise_tables, "_BLOCK_BYTES", 2000)
    counters = ["writes", "reads", "io_ms"]
    rows = [
        _probe(n, probe=probe, counter=counters[n % 3])
        for n in range(150)
        for probe in ("engine", "disk")
    ]
    file = _written(tmp_path, "probes", rows)
    found = file.read().to_pylist()
    assert [row["probe"] for row in found] == ["disk"] * 150 + ["engine"] * 150
    assert sorted(row["value"] for row in found) == sorted(row["value"] for row in rows)
    assert file.num_row_groups > 3
    for number in range(file.num_row_groups):
        group = file.read_row_group(number).to_pylist()
        keys = [(one["probe"], one["mono_ns"], one["device"], one["counter"]) for one in group]
        assert keys == sorted(keys)
        assert len(group) <= 40
    assert not list(tmp_path.glob(".probes.*")), "a spool was left behind"


def test_counters_of_bytes_stand_before_the_others_of_their_probe(tmp_path: Path) -> None:
    counters = ["in_flight", "read_sectors", "write_sectors", "io_ms"]
    rows = [_probe(n, counter=counters[n % 4]) for n in range(40)]
    rows += [_probe(n, probe="process", counter=("read_bytes", "cpu_ms")[n % 2]) for n in range(4)]
    found = [row["counter"] for row in _written(tmp_path, "probes", rows).read().to_pylist()]
    disk, process = found[:40], found[40:]
    assert set(disk[:20]) == {"read_sectors", "write_sectors"}
    assert set(disk[20:]) == {"in_flight", "io_ms"}
    assert process == ["read_bytes", "read_bytes", "cpu_ms", "cpu_ms"]


def test_instants_are_differences_names_dictionaries_and_readings_plain(tmp_path: Path) -> None:
    file = _written(tmp_path, "probes", [_probe(n) for n in range(10)])
    group = file.metadata.row_group(0)
    coded = {
        group.column(n).path_in_schema: group.column(n).encodings for n in range(group.num_columns)
    }
    assert "DELTA_BINARY_PACKED" in coded["mono_ns"]
    assert "DELTA_BINARY_PACKED" in coded["wall_ns"]
    assert "RLE_DICTIONARY" in coded["counter"]
    assert "RLE_DICTIONARY" not in coded["value"]
    chunks = [{"request_id": "q", "seq": n, "arrival_ns": n, "kind": "content"} for n in (2, 0, 1)]
    assert _written(tmp_path, "chunks", chunks).read().column("seq").to_pylist() == [0, 1, 2]


def test_a_writer_that_fails_leaves_no_spool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_layout, "_WAITING_ROWS", 0)
    schema = TABLES["probes"].arrow()
    row = {**dict.fromkeys(schema.names), **_probe(1), "run_id": "r"}
    table = pa.Table.from_pylist([row], schema=schema)

    def write_and_fail() -> None:
        with TableWriter(tmp_path / "probes.parquet", "probes") as writer:
            writer.write(table)
            assert list(tmp_path.iterdir())
            raise KeyError

    with pytest.raises(KeyError):
        write_and_fail()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "line",
    [
        '{"name": "ceiling", "tool": "fio", "host": "h", "device": "d", "mono_ns": 1, "direct": 1}',
        '{"name": "ceiling", "tool": "fio", "host": "h", "device": "d", "mono_ns": 1.0}',
        '{"name": "c", "tool": "fio", "host": "h", "device": "d", "mono_ns": 9223372036854775808}',
        '{"name": "ceiling", "tool": "fio", "host": "h", "device": "d", "mono_ns": "1"}',
        '{"name": "ceiling", "tool": "fio", "host": "h", "device": "d"}',
        '{"name": "\\ud800", "tool": "fio", "host": "h", "device": "d", "mono_ns": 1}',
        '{"name": "c", "tool": "fio", "host": "h", "device": "d", "mono_ns": 1} {"name": "c"}',
        "",
        "null",
    ],
)
def test_a_line_that_arrow_might_read_kindly_is_refused_by_its_number(
    tmp_path: Path, line: str
) -> None:
    good = {"name": "serial", "tool": "fio", "host": "h", "device": "d", "mono_ns": 1}
    path = _journal(tmp_path / "r.partial", "calibration", [good])
    with path.open("a") as file:
        file.write(f"{line}\n{json.dumps(good)}\n")
    with pytest.raises(EvidenceError, match=r"calibration\.jsonl:2"):
        write_table(tmp_path / "r.partial", tmp_path, "calibration", "r")


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_a_reading_that_is_no_number_is_refused(tmp_path: Path, word: str) -> None:
    row = json.dumps(_probe(1, value=0.5)).replace("0.5", word)
    path = _journal(tmp_path / "r.partial", "probes", [_probe(0)])
    path.write_text(path.read_text() + row + "\n")
    with pytest.raises(EvidenceError, match=r"probes\.jsonl:2"):
        write_table(tmp_path / "r.partial", tmp_path, "probes", "r")


def test_a_null_among_token_ids_is_refused(tmp_path: Path) -> None:
    row = {"request_id": "q", "instance": "a", "phase": "measure", "session": 0}
    row |= {"endpoint": "chat", "outcome": "ok", "output_token_ids": [1, None]}
    _journal(tmp_path / "r.partial", "requests", [row])
    with pytest.raises(EvidenceError, match=r"requests\.jsonl:1"):
        write_table(tmp_path / "r.partial", tmp_path, "requests", "r")


def test_arrow_and_line_by_line_read_the_same_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [_probe(n, value=n / 2, text='\u00e9 "x"\\' if n % 2 else None) for n in range(50)]
    fast = _written(tmp_path, "probes", rows).read()
    monkeypatch.setattr(finalise_tables, "_parsed_by_arrow", lambda *_: None)
    assert _written(tmp_path, "probes", rows).read().equals(fast)
