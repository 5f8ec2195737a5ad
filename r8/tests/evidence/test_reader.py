from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from r8.errors import EvidenceError, IncompleteRunError, TamperedRunError
from r8.evidence.manifest import MANIFEST, manifest_text
from r8.evidence.reader import find_runs, read_run, read_runs
from r8.tests.support.run_factory import SyntheticRun, build_partial, build_run, synthetic_run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def sealed(tmp_path: Path) -> Path:
    return build_run(tmp_path, SyntheticRun())


def reseal(path: Path) -> None:
    """Make the manifest agree again, as somebody would who edits more than one file."""
    (path / MANIFEST).write_text(manifest_text(path))


def test_a_sealed_run_is_read_back_as_it_was_planned(sealed: Path) -> None:
    evidence = read_run(sealed)
    assert evidence.run == replace(synthetic_run(SyntheticRun()), complete=True)
    assert evidence.tables != evidence.path  # a copy: what lies there later is never opened
    assert evidence.manifest["raw/server-a.log"]
    assert evidence.table("requests").num_rows > 0


def _append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"x")


@pytest.mark.parametrize(
    ("tamper", "named"),
    [
        (lambda run: _append(run / "requests.parquet"), "requests.parquet differs"),
        (lambda run: _append(run / "raw" / "server-a.log"), "raw/server-a.log differs"),
        (lambda run: _append(run / "run.json"), "run.json differs"),
        (lambda run: (run / "raw" / "site.toml").unlink(), "raw/site.toml is missing"),
        (lambda run: (run / "probes.parquet").unlink(), "probes.parquet is missing"),
        (lambda run: (run / "raw" / "more.txt").write_text(""), "raw/more.txt is not in"),
        (lambda run: (run / "extra.parquet").write_text(""), "extra.parquet is not in"),
        (lambda run: (run / MANIFEST).write_text(""), "is not in the manifest"),
        (lambda run: _append(run / MANIFEST), "last line is torn"),
        (lambda run: (run / MANIFEST).write_text("00  x\n"), "line 1"),
        (lambda run: (run / MANIFEST).write_text(f"{'0' * 64}  ../x\n"), "line 1"),
        (lambda run: (run / MANIFEST).write_text(f"{'0' * 64}  /x\n"), "line 1"),
    ],
)
def test_a_changed_missing_or_extra_file_is_named(
    sealed: Path, tamper: Callable[[Path], object], named: str
) -> None:
    tamper(sealed)
    with pytest.raises(TamperedRunError, match=named):
        read_run(sealed)


def test_a_table_taken_out_with_its_manifest_line_is_missed(sealed: Path) -> None:
    (sealed / "events.parquet").unlink()
    reseal(sealed)
    with pytest.raises(TamperedRunError, match=r"events\.parquet is missing"):
        read_run(sealed)


@pytest.mark.parametrize("suffix", [".partial", ".finalising", ".spent"])
def test_a_directory_in_work_is_no_run_even_with_a_manifest(sealed: Path, suffix: str) -> None:
    work = sealed.rename(sealed.with_name(sealed.name + suffix))
    with pytest.raises(IncompleteRunError, match="r8 recover"):
        read_run(work)
    assert find_runs(work.parent) == []


def test_a_directory_without_a_manifest_is_no_run(sealed: Path) -> None:
    (sealed / MANIFEST).unlink()
    with pytest.raises(IncompleteRunError):
        read_run(sealed)
    assert find_runs(sealed.parent) == []


def test_half_written_parquet_is_never_read(sealed: Path) -> None:
    path = sealed / "chunks.parquet"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(TamperedRunError, match=r"chunks\.parquet differs"):
        read_run(sealed)
    reseal(sealed)
    with pytest.raises(EvidenceError, match="not a readable Parquet file"):
        read_run(sealed)


def test_a_path_that_is_not_there_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(EvidenceError, match="no such run directory"):
        read_run(tmp_path / "nowhere")


def _rewrite(path: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    pq.write_table(change(pq.read_table(path)), path)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda table: table.drop_columns(["mono_ns"]), "column mono_ns is not there"),
        (lambda table: table.append_column("x", table.column("name")), "unknown columns x"),
        (
            lambda table: table.set_column(
                2, "mono_ns", table.column("mono_ns").cast(pa.float64())
            ),
            "column mono_ns is not there as int64",
        ),
        (
            lambda table: table.replace_schema_metadata({"r8.schema_version": "1"}),
            "schema version is 1",
        ),
        (lambda table: table.replace_schema_metadata({}), "schema version is none"),
        (
            lambda table: table.set_column(0, table.field(0), pa.array(["other"] * table.num_rows)),
            "rows of another run: other",
        ),
    ],
)
def test_a_table_of_another_schema_or_run_is_refused(
    sealed: Path, change: Callable[[pa.Table], pa.Table], named: str
) -> None:
    _rewrite(sealed / "events.parquet", change)
    reseal(sealed)
    with pytest.raises(EvidenceError, match=named):
        read_run(sealed)


def test_another_schema_version_in_run_json_is_refused(sealed: Path) -> None:
    content = json.loads((sealed / "run.json").read_text())
    (sealed / "run.json").write_text(json.dumps({**content, "schema_version": 99}))
    reseal(sealed)
    with pytest.raises(EvidenceError, match="schema version is 99"):
        read_run(sealed)


def test_runs_are_found_and_never_while_unfinished(tmp_path: Path) -> None:
    ours = build_run(tmp_path, SyntheticRun(campaign_id="ours"))
    theirs = build_run(tmp_path, SyntheticRun(campaign_id="theirs"))
    build_partial(tmp_path, SyntheticRun(campaign_id="ours", block=1))
    assert find_runs(tmp_path) == [ours, theirs]


def test_one_run_named_twice_is_read_once_and_two_runs_of_one_id_are_refused(
    tmp_path: Path,
) -> None:
    first = build_run(tmp_path / "a", SyntheticRun())
    second = build_run(tmp_path / "b", SyntheticRun())
    assert len(read_runs([first, first])) == 1
    with pytest.raises(EvidenceError, match="there twice"):
        read_runs([first, second])
