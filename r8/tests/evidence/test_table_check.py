"""Parquet files that a stranger made: what a footer may declare, and what the pages may come to."""

from __future__ import annotations

import dataclasses
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from r8.errors import EvidenceError
from r8.evidence.budgets import BUDGETS, MIB
from r8.evidence.manifest import MANIFEST, manifest_text
from r8.evidence.reader import read_run
from r8.evidence.table_check import check_table
from r8.schema import SCHEMA_VERSION, TABLES
from r8.tests.support.run_factory import SyntheticRun, build_run

if TYPE_CHECKING:
    from collections.abc import Callable

PEAK_BYTES_MAX = 300 * MIB
VERSION = {"r8.schema_version": str(SCHEMA_VERSION)}


# The peak of the kernel's own account since the process began: that of `getrusage` counts the
# parent's memory, which a child shares until it runs a program.
_READ = """
import json, pathlib, re, sys
from r8.errors import R8Error
from r8.evidence.reader import read_run
try:
    read_run(pathlib.Path(sys.argv[1]))
    said = "read"
except R8Error as error:
    said = f"{type(error).__name__}: {error.what}"
status = pathlib.Path("/proc/self/status").read_text()
print(json.dumps([said, int(re.search(r"VmHWM:\\s+(\\d+)", status)[1]) * 1024]))
"""


def read_in_child(path: Path) -> tuple[str, int]:
    """The error in words, or `read`, and the peak in bytes."""
    done = subprocess.run(
        [sys.executable, "-c", _READ, str(path)], check=True, capture_output=True, text=True
    )
    said, peak_bytes = json.loads(done.stdout)
    return str(said), int(peak_bytes)


@pytest.fixture(scope="module", name="built")
def _built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_run(tmp_path_factory.mktemp("built"), SyntheticRun())


@pytest.fixture(name="run")
def _run(built: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built, tmp_path / built.name))


def resealed(run: Path) -> Path:
    (run / MANIFEST).write_text(manifest_text(run))
    return run


def repeated(path: Path, rows: int, **texts: str) -> None:
    """The file's first row again and again, with other texts: each stands in the file once."""
    first = pq.read_table(path).slice(0, 1)
    columns, fields = [], []
    for field in first.schema:
        value = first.column(field.name).combine_chunks()
        if field.name in texts:
            indices = pa.repeat(pa.scalar(0, pa.int32()), rows)
            value = pa.DictionaryArray.from_arrays(indices, pa.array([texts[field.name]]))
        else:
            value = value.take(pa.repeat(pa.scalar(0, pa.int32()), rows))
        columns.append(value)
        fields.append(pa.field(field.name, value.type, nullable=field.nullable))
    table = pa.Table.from_arrays(columns, schema=pa.schema(fields))
    with pq.ParquetWriter(
        path,
        table.schema,
        compression="zstd",
        store_schema=False,
        dictionary_pagesize_limit=1 << 30,
    ) as writer:
        writer.add_key_value_metadata(VERSION)
        writer.write_table(table)


def many_rows(path: Path, rows: int) -> None:
    """The file's first row so often, in row groups of a million, run-length coded."""
    first = pq.read_table(path).slice(0, 1)
    indices = pa.repeat(pa.scalar(0, pa.int32()), 1_000_000)
    million = first.take(indices)
    with pq.ParquetWriter(path, first.schema, compression="zstd") as writer:
        for _ in range(rows // 1_000_000):
            writer.write_table(million)


def test_a_text_of_64_mib_that_stands_20_000_times_is_refused_unread(run: Path) -> None:
    path = run / "requests.parquet"
    repeated(path, 20_000, output_text="x" * (64 * MIB))
    assert path.stat().st_size < 20_000
    said, peak_bytes = read_in_child(resealed(run))
    assert f"budget chunk_bytes = {BUDGETS.chunk_bytes}" in said
    assert peak_bytes < PEAK_BYTES_MAX


def test_a_text_that_is_short_enough_but_stands_too_often_is_refused(run: Path) -> None:
    repeated(run / "requests.parquet", 2000, output_text="x" * BUDGETS.text_bytes)
    said, peak_bytes = read_in_child(resealed(run))
    assert f"budget texts_kept_bytes = {BUDGETS.texts_kept_bytes}" in said
    assert peak_bytes < PEAK_BYTES_MAX


def test_a_text_may_have_its_budget_and_no_byte_more(run: Path) -> None:
    path = run / "requests.parquet"
    repeated(path, 2, output_text="x" * BUDGETS.text_bytes)
    read_run(resealed(run))
    repeated(path, 2, output_text="x" * (BUDGETS.text_bytes + 1))
    with pytest.raises(EvidenceError, match=f"budget text_bytes = {BUDGETS.text_bytes}"):
        read_run(resealed(run))


def test_rows_beyond_their_budget_are_refused_by_the_footer(run: Path) -> None:
    path = run / "events.parquet"
    many_rows(path, 5_000_000)
    assert path.stat().st_size < MIB
    said, peak_bytes = read_in_child(resealed(run))
    assert f"budget rows_kept = {BUDGETS.rows_kept}" in said
    assert peak_bytes < PEAK_BYTES_MAX


def test_a_text_coded_as_a_share_of_the_one_before_is_refused(run: Path) -> None:
    path = run / "requests.parquet"
    table = pq.read_table(path).slice(0, 1).take(pa.repeat(pa.scalar(0), 50))
    number = table.schema.get_field_index("output_text")
    table = table.set_column(number, table.field(number), pa.array(["x" * MIB] * 50))
    coded = {"output_text": "DELTA_BYTE_ARRAY"}
    pq.write_table(table, path, compression="zstd", use_dictionary=False, column_encoding=coded)
    with pytest.raises(EvidenceError, match="output_text is encoded as DELTA_BYTE_ARRAY"):
        read_run(resealed(run))


def checked(path: Path, run_id: str, **budgets: int) -> None:
    table = TABLES[path.stem]
    check_table(path, table, run_id, where="x", budgets=dataclasses.replace(BUDGETS, **budgets))


@pytest.mark.parametrize(
    ("table", "budget"),
    [
        ("requests", "footer_bytes"),
        ("requests", "row_groups"),
        ("requests", "rows_kept"),
        ("requests", "list_values"),
        ("requests", "chunk_bytes"),
        ("requests", "table_bytes"),
        ("requests", "text_bytes"),
        ("requests", "texts_kept_bytes"),
        ("probes", "rows_wide"),
        ("probes", "texts_wide_bytes"),
        ("chunks", "rows_wide"),
    ],
)
def test_each_budget_of_a_table_is_kept_and_named(run: Path, table: str, budget: str) -> None:
    path = run / f"{table}.parquet"
    checked(path, run.name)
    with pytest.raises(EvidenceError, match=f"budget {budget} = 0 "):
        checked(path, run.name, **{budget: 0})


def test_what_the_pages_hold_is_counted_whatever_the_footer_says(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("r8.evidence.table_check._Check._declared", lambda *_: None)
    path = run / "requests.parquet"
    for budget in ("rows_kept", "list_values", "text_bytes", "texts_kept_bytes"):
        with pytest.raises(EvidenceError, match=f"budget {budget} = 1 "):
            checked(path, run.name, **{budget: 1})


def _renamed(table: Any, name: str, other: str) -> Any:
    names = [other if one == name else one for one in table.schema.names]
    return table.rename_columns(names).replace_schema_metadata(table.schema.metadata)


def _nullable(table: Any) -> Any:
    return table.cast(pa.schema([one.with_nullable(True) for one in table.schema])).cast(
        pa.schema(
            [one.with_nullable(True) for one in table.schema],
            metadata=table.schema.metadata,
        )
    )


def _as_type(table: Any, name: str, kind: Any) -> Any:
    number = table.schema.get_field_index(name)
    field = table.schema.field(number).with_type(kind)
    return table.set_column(number, field, table.column(name).cast(kind))


def _words(table: Any, name: str, word: str) -> Any:
    number = table.schema.get_field_index(name)
    field = table.schema.field(number)
    return table.set_column(number, field, pa.array([word] * table.num_rows))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda rows: _renamed(rows, "name", "mono_ns"), "column name is not there as name"),
        (lambda rows: _renamed(rows, "detail", "Detail"), "unknown columns Detail"),
        (lambda rows: rows.select([0, 2, 1, 3, 4]), "column name is not there as name, or not in"),
        (lambda rows: rows.select([0, 1, 2, 3, 4, 4]), "its columns are not those of events"),
        (_nullable, "column run_id is not there as name"),
        (lambda rows: _as_type(rows, "detail", pa.binary()), "detail is not there as string"),
        (lambda rows: _as_type(rows, "mono_ns", pa.timestamp("ns")), "mono_ns is not there"),
        (lambda rows: _as_type(rows, "detail", pa.large_string()), "columns are not those"),
        (lambda rows: _words(rows, "name", "<b>"), "name '<b>' is no name"),
        (lambda rows: _words(rows, "name", "x" * 129), "is no name"),
        (lambda rows: _words(rows, "name", "a\n"), "is no name"),
        (lambda rows: _words(rows, "run_id", "\x1b[2J"), r"another run: \\x1b\[2J"),
        (lambda rows: _words(rows, "detail", "[]"), "detail is no JSON object"),
        (lambda rows: _words(rows, "detail", "[" * 100_000), "nested too deep"),
        (lambda rows: _words(rows, "detail", '{"a": 1, "a": 2}'), "there twice"),
    ],
)
def test_a_table_of_another_form_is_refused(
    run: Path, change: Callable[[Any], Any], named: str
) -> None:
    path = run / "events.parquet"
    pq.write_table(change(pq.read_table(path)), path)
    with pytest.raises(EvidenceError, match=named) as caught:
        read_run(resealed(run))
    assert str(caught.value).isprintable()
    assert caught.value.where == str(path)


def test_a_file_that_is_no_parquet_is_refused(run: Path) -> None:
    path = run / "events.parquet"
    whole = path.read_bytes()
    for content in (b"", b"PAR1", b"PAR1" * 3, whole[:-1], whole[4:], whole[:-8] + b"\xff" * 8):
        path.write_bytes(content)
        with pytest.raises(EvidenceError):
            read_run(resealed(run))
