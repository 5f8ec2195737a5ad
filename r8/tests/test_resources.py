"""What travels with R8 is found, and the shipped SQL alone gives the numbers of r8.metrics."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from r8.errors import UsageError
from r8.evidence.database import add_views, connect, probes_of
from r8.evidence.reader import read_run, read_runs
from r8.metrics.measure import measure
from r8.resources import data_path, published_path, query_names, query_text
from r8.tests.support.run_factory import SyntheticRun, build_run

ROOT = Path(__file__).resolve().parents[2]


def test_a_checkout_reads_its_own_queries() -> None:
    assert data_path("queries", "metrics.sql") == ROOT / "data" / "queries" / "metrics.sql"
    assert "CREATE OR REPLACE VIEW metrics" in query_text("metrics")


def test_an_installed_package_reads_the_queries_it_carries(tmp_path: Path) -> None:
    package = tmp_path / "site" / "r8"
    (package / "queries").mkdir(parents=True)
    for name in ("__init__.py", "errors.py", "message.py", "resources.py"):
        shutil.copy(ROOT / "r8" / name, package / name)
    (package / "queries" / "metrics.sql").write_text("-- carried\n")
    program = "from r8.resources import query_text; print(query_text('metrics'), end='')"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path / "site",
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "-- carried\n"


def test_data_that_is_not_there_is_one_clear_error() -> None:
    with pytest.raises(UsageError, match=r"queries/nothing\.sql is not part of this R8"):
        query_text("nothing")


# DuckDB and the standard library only: what an analyst has who does not trust r8.
_PLAIN = """
import duckdb, json, sys
assert not any(name == "r8" or name.startswith("r8.") for name in sys.modules)
connection = duckdb.connect()
# What `.read data/queries/load.sql` does in the shell of DuckDB.
for line in open("data/queries/load.sql"):
    if line.startswith(".read "):
        connection.execute(open(line.removeprefix(".read ").strip()).read())
rows = connection.execute(
    "SELECT run_id, phase, metric, statistic, value, unit, n, estimator, reason FROM metrics "
    "ORDER BY run_id, phase, metric, statistic"
).fetchall()
print(json.dumps(rows))
"""


def test_plain_duckdb_with_the_shipped_sql_gives_exactly_the_numbers_of_r8(tmp_path: Path) -> None:
    runs = tmp_path / "data" / "runs"
    specs = [
        SyntheticRun(block=block, arm=arm, failures=block, ttft_s=(1.1, 2.3, 3.7, 0.1 + block / 3))
        for block in range(2)
        for arm in ("unpatched", "patched")
    ]
    paths = [build_run(runs, spec) for spec in specs]
    _half_written_run(paths[0])
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "data" / "published").mkdir()
    shutil.copy(published_path("figures.parquet"), tmp_path / "data" / "published")
    shutil.copytree(data_path("queries", "load.sql").parent, tmp_path / "data" / "queries")
    done = subprocess.run(
        [sys.executable, "-c", _PLAIN],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    ours = [
        [m.run_id, m.phase, m.metric, m.statistic, m.value, m.unit, m.n, m.estimator, m.reason]
        for m in measure(read_runs(paths))
    ]
    assert len(ours) > 4 * 40
    assert json.loads(done.stdout) == ours


def _half_written_run(path: Path) -> None:
    """A finaliser's work beside a run, its manifest already there and a table torn."""
    work = path.with_name("torn.finalising")
    shutil.copytree(path, work)
    (work / "probes.parquet").write_bytes(b"PAR1")


def test_plain_duckdb_reads_the_runs_it_is_told(tmp_path: Path) -> None:
    first, second = (build_run(tmp_path, SyntheticRun(block=block)) for block in range(2))
    with connect([read_run(second)]) as connection:
        assert connection.execute("SELECT run_id FROM runs").fetchall() == [(second.name,)]
    with connect([read_run(first), read_run(second)]) as connection:
        assert connection.execute("SELECT count(*) FROM runs").fetchall() == [(2,)]


def test_the_files_read_again_are_about_the_runs_chosen_then(tmp_path: Path) -> None:
    first, second = (build_run(tmp_path, SyntheticRun(block=block)) for block in range(2))
    with duckdb.connect() as plain:
        for path in (first, second):
            plain.execute(f"SET VARIABLE r8_run_dirs = ['{path}']")
            for name in query_names():
                plain.execute(query_text(name))
            found = plain.execute("SELECT DISTINCT run_id FROM metrics").fetchall()
            assert found == [(path.name,)]


def test_a_run_of_schema_1_is_refused_by_name(tmp_path: Path) -> None:
    path = build_run(tmp_path, SyntheticRun())
    facts = json.loads((path / "run.json").read_text())
    for version, refused in ((1, True), (2, False)):
        (path / "run.json").write_text(json.dumps(facts | {"schema_version": version}))
        with duckdb.connect() as plain:
            plain.execute(f"SET VARIABLE r8_run_dirs = ['{path}']")
            told = pytest.raises(duckdb.Error, match=f"run {path.name} is of schema 1: ask it by")
            with told if refused else contextlib.nullcontext():
                for name in query_names():
                    plain.execute(query_text(name))


def test_probes_are_those_of_one_run_for_as_long_as_it_is_asked_about(tmp_path: Path) -> None:
    runs = [read_run(build_run(tmp_path / "it's", SyntheticRun(block=block))) for block in range(2)]
    both = [(one.run.run_id,) for one in runs]
    seen = "SELECT DISTINCT run_id FROM probes ORDER BY 1"
    with connect(runs) as connection:
        with probes_of(runs[1].run.run_id, connection):
            assert connection.execute(seen).fetchall() == both[1:]
        with probes_of("a run of somebody else", connection):
            assert connection.execute(seen).fetchall() == both
        assert connection.execute(seen).fetchall() == both


def test_a_path_with_a_quote_is_a_path(tmp_path: Path) -> None:
    path = build_run(tmp_path / "it's here", SyntheticRun())
    assert measure([read_run(path)])


def test_the_derived_columns_of_runs_agree_with_the_model(tmp_path: Path) -> None:
    for prompt_tokens in (256, 257, 1024, 1025, 4000):
        spec = SyntheticRun(prompt_tokens=prompt_tokens, campaign_id=f"p{prompt_tokens}")
        evidence = read_run(build_run(tmp_path, spec))
        with connect([evidence]) as connection:
            row = connection.execute(
                "SELECT hit_tokens_per_session, expected_bytes, level FROM runs"
            ).fetchone()
        assert row == (spec.expectation.hit_tokens_per_session, evidence.run.expected_bytes, "c4")


def test_the_readme_of_the_queries_names_every_view_and_no_other(tmp_path: Path) -> None:
    readme = (ROOT / "data" / "queries" / "README.md").read_text()
    with connect([read_run(build_run(tmp_path, SyntheticRun()))]) as connection:
        add_views(connection)
        rows = connection.execute(
            "SELECT DISTINCT table_name FROM duckdb_columns() WHERE NOT internal ORDER BY 1"
        ).fetchall()
        for (name,) in rows:
            assert connection.table(name).fetchall() is not None
    views = {name for (name,) in rows}
    listed = readme[readme.index("## Views") :]
    assert set(re.findall(r"`([a-z_]+)`", listed)) - {"value", "reason"} == views
    assert set(re.findall(r"`(\w+)\.sql`", readme)) == {"load", *query_names()}
