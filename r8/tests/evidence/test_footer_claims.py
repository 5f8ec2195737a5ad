"""Footers that claim what their rows do not hold: hidden rows, under the right digests."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from r8.errors import EvidenceError
from r8.evidence.database import connect
from r8.evidence.footer_claims import Claims, Span, claims_of
from r8.evidence.manifest import MANIFEST, manifest_text
from r8.evidence.reader import read_run
from r8.tests.support.run_factory import SyntheticRun, build_run

if TYPE_CHECKING:
    from collections.abc import Callable

PROBES = "probes.parquet"


@pytest.fixture(scope="module", name="built")
def _built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_run(tmp_path_factory.mktemp("built"), SyntheticRun())


@pytest.fixture(name="run")
def _run(built: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built, tmp_path / built.name))


def claim(path: Path, column: str, instead: Callable[[Any], Any]) -> None:
    """Change the smallest and largest value of a column in the footer, and not one page."""
    metadata = pq.ParquetFile(path).metadata
    data = path.read_bytes()
    end = len(data) - 8
    begin = end - int.from_bytes(data[-8:-4], "little")
    footer = data[begin:end]
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        (chunk,) = (
            one
            for one in map(group.column, range(group.num_columns))
            if one.path_in_schema == column
        )
        said = chunk.statistics
        for value in {said.min, said.max}:
            assert packed(value) in footer
            footer = footer.replace(packed(value), packed(instead(value)))
    path.write_bytes(data[:begin] + footer + data[end:])


def packed(value: Any) -> bytes:
    """A value as a footer has it."""
    if isinstance(value, str):
        return bytes([len(value)]) + value.encode()
    return struct.pack("<d" if isinstance(value, float) else "<q", value)


def resealed(run: Path) -> Path:
    (run / MANIFEST).write_text(manifest_text(run))
    return run


def test_duckdb_believes_a_footer_over_the_rows(run: Path) -> None:
    """The reason for all of it: when this fails, footers need no check any more."""
    claim(run / PROBES, "probe", lambda text: "~" * len(text))
    asked = "SELECT count(*) FROM read_parquet($file) WHERE probe = 'disk'"
    found = duckdb.connect().execute(asked, {"file": str(run / PROBES)}).fetchall()
    assert found == [(0,)]
    assert pq.read_table(run / PROBES)["probe"].to_pylist().count("disk") > 0


@pytest.mark.parametrize(
    ("table", "column", "instead"),
    [
        ("probes", "probe", lambda text: "~" * len(text)),
        ("probes", "device", lambda text: "~" * len(text)),
        ("probes", "mono_ns", lambda _: 1),
        ("probes", "value", lambda number: number + 1.0),
        ("requests", "phase", lambda text: "~" * len(text)),
        ("events", "mono_ns", lambda _: 1),
    ],
)
def test_a_footer_that_contradicts_its_rows_is_refused_with_its_column(
    run: Path, table: str, column: str, instead: Callable[[Any], Any]
) -> None:
    claim(run / f"{table}.parquet", column, instead)
    said = rf"column {column}, row group 0: a footer that says another \w+ value.*{table}\.parquet"
    with pytest.raises(EvidenceError, match=said):
        read_run(resealed(run))


def test_a_claim_wider_than_the_rows_is_refused_too(run: Path) -> None:
    """No filter is misled by it, but `min(mono_ns)` may be answered from it."""
    first = pq.ParquetFile(run / PROBES).metadata.row_group(0).column(0)
    assert first.path_in_schema == "run_id"
    smallest = min(pq.read_table(run / PROBES)["mono_ns"].to_pylist())
    claim(run / PROBES, "mono_ns", lambda value: value - 1 if value == smallest else value)
    with pytest.raises(EvidenceError, match="another smallest value than its rows have"):
        read_run(resealed(run))


def test_an_index_of_pages_is_refused(run: Path) -> None:
    pq.write_table(pq.read_table(run / PROBES), run / PROBES, write_page_index=True)
    with pytest.raises(EvidenceError, match="has an index of its pages"):
        read_run(resealed(run))


def test_a_reading_that_is_no_number_is_refused(run: Path) -> None:
    """NaN stands outside every smallest and largest value, and comes first or last in an order."""
    rows = pq.read_table(run / PROBES)
    place = rows.schema.get_field_index("value")
    values = [float("nan"), *rows["value"].to_pylist()[1:]]
    field = rows.schema.field(place)
    pq.write_table(rows.set_column(place, field, pa.array(values, field.type)), run / PROBES)
    with pytest.raises(EvidenceError, match="column value, row group 0: a value that is no number"):
        read_run(resealed(run))


def test_a_table_without_claims_is_read_to_the_same_numbers(run: Path, built: Path) -> None:
    for path in run.glob("*.parquet"):
        pq.write_table(pq.read_table(path), path, write_statistics=False)
    with connect([read_run(resealed(run))]) as bare, connect([read_run(built)]) as honest:
        asked = "FROM metrics ORDER BY ALL"
        rows = honest.sql(asked).fetchall()
        assert rows
        assert bare.sql(asked).fetchall() == rows


VALUES = {
    "integers": pa.array([3, None, -(2**63), 2**63 - 1]),
    "numbers": pa.array([-0.0, 1e308, 5e-324, None]),
    "switches": pa.array([True, None, False]),
    "one switch": pa.array([True, True]),
    "texts": pa.array(["é", "z\x1b\x00", "\u202e", None, "", "x" * 10_000]).dictionary_encode(),
    "lists": pa.array([[1, None], [], None, [7]], pa.list_(pa.int64())),
    "nothing": pa.array([None, None], pa.int64()),
    "no rows": pa.array([], pa.int64()),
}


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES.keys())
def test_what_a_writer_claims_in_good_faith_is_borne_out(values: Any, tmp_path: Path) -> None:
    path = tmp_path / "one.parquet"
    pq.write_table(pa.table({"a": values}), path)
    span = Span()
    for begin in range(len(values)):  # batch by batch
        span.add(values.slice(begin, 1))
    for said in claims_of(path).values():
        assert span.contradicted(said) is None


@pytest.mark.parametrize(
    ("said", "word"),
    [
        (Claims(nulls=0, filtered=False, smallest=(), largest=()), "0 nulls where 1 are"),
        (Claims(nulls=1, filtered=True, smallest=(), largest=()), "Bloom filter"),
        (Claims(nulls=1, filtered=False, smallest=("2", "3"), largest=()), "smallest"),
        (Claims(nulls=1, filtered=False, smallest=("x",), largest=()), "smallest"),
        (Claims(nulls=None, filtered=False, smallest=("2",), largest=("4",)), "largest"),
    ],
    ids=["nulls", "filter", "old field and new", "another type", "largest"],
)
def test_each_claim_is_held_against_the_rows(said: Claims, word: str) -> None:
    span = Span()
    span.add(pa.array([2, 5, None]))
    assert (
        span.contradicted(Claims(nulls=1, filtered=False, smallest=("2",), largest=("5",))) is None
    )
    assert word in str(span.contradicted(said))


def test_a_file_that_duckdb_cannot_open_is_unreadable(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1" * 5)
    with pytest.raises(ValueError, match="parquet"):
        claims_of(path)
