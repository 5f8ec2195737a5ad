"""The analyst's door: worked questions, the data dictionary, and every way to ask."""

from __future__ import annotations

import csv
import functools
import http.server
import io
import json
import re
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow.parquet as pq
import pytest

from r8.claims.reader import load_claims
from r8.cli import main as cli
from r8.cli.sql import open_database
from r8.errors import UsageError
from r8.forensics.rules import RULES
from r8.metrics import dictionary
from r8.schema import TABLES
from r8.seal import keys
from r8.seal.bundle import seal
from r8.tests.report.test_document import campaign
from r8.tests.support.judged_run import judged_run
from r8.tests.support.run_factory import SyntheticRun

if TYPE_CHECKING:
    from collections.abc import Iterator

    from r8.evidence.reader import Evidence

QUERIES = Path(__file__).resolve().parents[3] / "data" / "queries"
QUESTIONS = re.findall(
    r"^## (\d+)\. (.+?)\n.*?```sql\n(.+?)```",
    (QUERIES / "QUESTIONS.md").read_text(),
    re.MULTILINE | re.DOTALL,
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Evidence]:
    return campaign(tmp_path_factory.mktemp("runs"), failures=1)


@pytest.fixture(scope="module")
def door(runs: list[Evidence]) -> Iterator[duckdb.DuckDBPyConnection]:
    with open_database([str(one.path) for one in runs]) as connection:
        yield connection


def test_there_are_eleven_worked_questions() -> None:
    assert [int(number) for number, _, _ in QUESTIONS] == list(range(1, 12))


@pytest.mark.parametrize(("number", "title", "statement"), QUESTIONS)
def test_a_worked_question_has_an_answer(
    door: duckdb.DuckDBPyConnection, number: str, title: str, statement: str
) -> None:
    assert door.execute(statement).fetchall(), title


def test_the_patch_is_worth_what_the_made_up_runs_say(door: duckdb.DuckDBPyConnection) -> None:
    statement = next(text for number, _, text in QUESTIONS if number == "2")
    ((level, blocks, faster, least, most),) = door.execute(statement).fetchall()
    assert (level, blocks) == ("c16", 3)
    assert least <= faster <= most
    assert faster == pytest.approx(1.9 / 0.76, rel=0.01)


def test_findings_claims_and_verdicts_stand_beside_the_views(
    door: duckdb.DuckDBPyConnection,
) -> None:
    rows = door.execute(
        "SELECT v.outcome FROM verdicts v JOIN claims c USING (claim_id) "
        "WHERE claim_id = 'rehearsal.prediction'"
    ).fetchall()
    assert rows == [("INVALID",)]  # a request of the last run failed
    refuted = door.execute("SELECT rule_id FROM findings WHERE answer = 'refuted'").fetchall()
    assert ("Q1",) in refuted


def test_the_timeline_counts_requests_up_and_down_again(door: duckdb.DuckDBPyConnection) -> None:
    most, last = door.execute(
        "SELECT max(value), arg_max(value, begin_ns) FROM timeline WHERE series = 'in_flight'"
    ).fetchall()[0]
    assert (most, last) == (16, 0)


def test_the_timeline_of_the_device_adds_up_to_the_bytes_it_read(
    door: duckdb.DuckDBPyConnection,
) -> None:
    rows = door.execute(
        "SELECT t.run_id, sum(t.value * (t.end_ns - t.begin_ns) / 1e9),"
        " any_value(b.device_read_bytes) FROM timeline t"
        " JOIN balance b USING (run_id) JOIN runs r USING (run_id)"
        " JOIN phases p ON p.run_id = t.run_id AND p.phase = 'measure'"
        " WHERE t.series = 'device_read' AND t.device = r.kv_device AND t.begin_ns >= -1500000000"
        " AND t.end_ns <= p.end_ns - p.begin_ns + 1500000000 GROUP BY t.run_id"
    ).fetchall()
    assert len(rows) == 6
    for _, drawn, counted in rows:
        assert drawn == pytest.approx(counted, rel=0.01)


def test_the_numbers_of_the_certificate_are_there_for_every_run(
    door: duckdb.DuckDBPyConnection,
) -> None:
    rules = door.execute("SELECT DISTINCT rule_id FROM checks").fetchall()
    assert {rule for (rule,) in rules} == {rule.rule_id for rule in RULES}
    rows = door.execute(
        "SELECT measured, op, low, high, unit, answer, message FROM checks "
        "WHERE quantity = 'device_read_bytes / engine_hit_bytes' AND run_id = 'c-b0-patched-c16'"
    ).fetchall()
    assert rows == [(1.0, "within", 0.98, 1.02, "ratio", "held", "c4-device-against-hits")]
    words = door.execute(
        "SELECT DISTINCT measured, facts ->> '$.measured' FROM checks "
        "WHERE quantity = 'patch_mode' AND run_id = 'c-b0-patched-c16'"
    ).fetchall()
    assert words == [(None, "parallel")]


def test_a_network_adapter_is_read_by_its_best_counter(tmp_path: Path) -> None:
    def with_nic(tables: dict[str, list[dict[str, object]]]) -> None:
        first = next(row for row in tables["probes"] if row["probe"] == "disk")
        for second in range(3):
            for counter, value in (("netdev.rx_bytes", 7), ("ib.port_rcv_data_bytes", 4_000_000)):
                row = {**first, "probe": "nic", "device": "mlx5_0/1", "counter": counter}
                row |= {"value": value * second, "mono_ns": 10**9 * (1 + second), "epoch": 0}
                tables["probes"].append(row)

    run = judged_run(tmp_path, SyntheticRun(), with_nic)
    with open_database([str(run.path)]) as connection:
        rows = connection.execute("SELECT counter, received_bytes_per_s FROM nic_series").fetchall()
    assert rows == [("ib.port_rcv_data_bytes", 4e6)] * 2


def test_every_column_of_a_run_directory_is_in_the_dictionary_as_it_is(
    runs: list[Evidence],
) -> None:
    with dictionary.describing() as connection:
        entries = dictionary.dictionary(connection)
    for name in TABLES:
        schema = pq.read_schema(runs[0].table_path(name))
        written = {
            one.name: tuple((one.metadata or {})[key].decode() for key in (b"unit", b"meaning"))
            for one in schema
        }
        described = {one.column: (one.unit, one.meaning) for one in entries if one.relation == name}
        assert described == written


def test_the_dictionary_on_disk_is_the_one_that_is_made() -> None:
    with dictionary.describing() as connection:
        text = dictionary.as_markdown(dictionary.dictionary(connection))
        assert dictionary.unused(connection) == []
    assert (QUERIES / "DICTIONARY.md").read_text() == text, "r8 dictionary --markdown"


def test_a_view_with_a_column_nobody_described_is_refused() -> None:
    with dictionary.describing() as connection:
        connection.execute("CREATE VIEW mystery AS SELECT 1 AS wobble")
        with pytest.raises(UsageError, match=r"nothing says what mystery\.wobble is"):
            dictionary.dictionary(connection)


def ask(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    code = cli.main(["sql", *argv])
    out, err = capsys.readouterr()
    return code, out, err


def test_the_door_answers_as_table_json_and_csv(
    runs: list[Evidence], capsys: pytest.CaptureFixture[str]
) -> None:
    question = "SELECT arm, count(*) AS runs FROM runs GROUP BY arm ORDER BY arm"
    folder = str(runs[0].path.parent)
    code, out, _ = ask(capsys, question, "--runs", folder)
    assert code == 0
    assert out.splitlines()[-1] == "2 rows"
    _, out, _ = ask(capsys, question, "--json", "--runs", folder)
    assert json.loads(out) == [{"arm": "patched", "runs": 3}, {"arm": "unpatched", "runs": 3}]
    _, out, _ = ask(capsys, question, "--csv", "--runs", folder)
    assert list(csv.reader(io.StringIO(out)))[1] == ["patched", "3"]


def test_a_bundle_is_asked_like_a_folder(
    runs: list[Evidence], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keys.make_ed25519(tmp_path / "key")
    bundle = seal(runs, load_claims(), tmp_path / "b.tar.zst", keys.Ed25519Key(tmp_path / "key"))
    code, out, _ = ask(capsys, "SELECT count(*) AS n FROM runs", "--json", "--runs", str(bundle))
    assert (code, json.loads(out)) == (0, [{"n": 6}])


@pytest.mark.parametrize(
    "statement", ["SELECT * FROM nothing", "SELEC 1", "SELECT nothing FROM runs"]
)
def test_a_wrong_statement_is_one_line_and_exit_four(
    runs: list[Evidence], capsys: pytest.CaptureFixture[str], statement: str
) -> None:
    code, out, err = ask(capsys, statement, "--runs", str(runs[0].path))
    assert (code, out) == (4, "")
    assert err.startswith("r8: ")
    assert err.count("\n") == 1


def test_statements_come_from_standard_input_as_well(
    runs: list[Evidence],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT 1 AS a; SELECT 2 AS b;"))
    code, out, _ = ask(capsys, "--csv", "--runs", str(runs[0].path))
    assert (code, out) == (0, "a\n1\nb\n2\n")


def test_local_and_remote_runs_are_not_mixed(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = ask(capsys, "SELECT 1", "--runs", "data/runs", "https://example.org/run")
    assert code == 4
    assert "remote and local" in err


def _httpfs() -> bool:
    try:
        with duckdb.connect() as connection:
            connection.execute("LOAD httpfs")
    except duckdb.Error:
        return False
    return True


@pytest.mark.skipif(not _httpfs(), reason="DuckDB's httpfs extension is not installed here")
def test_runs_behind_a_url_answer_the_same(
    runs: list[Evidence], capsys: pytest.CaptureFixture[str]
) -> None:
    serve = functools.partial(_Quiet, directory=str(runs[0].path.parent))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), serve)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_port}/{runs[0].path.name}"
        question = "SELECT value FROM metrics WHERE metric = 'ttft' AND statistic = 'p50'"
        _, near, _ = ask(capsys, question, "--json", "--runs", str(runs[0].path))
        code, far, err = ask(capsys, question, "--json", "--runs", url)
    finally:
        server.shutdown()
        server.server_close()
    assert code == 0
    assert json.loads(far) == json.loads(near)
    assert "nobody compared them" in err


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        return


@pytest.mark.skipif(_httpfs(), reason="DuckDB's httpfs extension is installed here")
def test_without_httpfs_the_door_says_how_to_get_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(connection: duckdb.DuckDBPyConnection) -> None:
        raise UsageError("DuckDB's httpfs is not to be had", where="r8 sql", next_step="INSTALL")

    monkeypatch.setattr("r8.cli.remote_sql._install_httpfs", refuse)
    code, _, err = ask(capsys, "SELECT 1", "--runs", "https://127.0.0.1:9/run")
    assert code == 4
    assert "httpfs is not to be had" in err


@pytest.mark.parametrize(
    "statement",
    [
        "COPY (SELECT 1) TO '{folder}/rows.csv'",
        "FROM read_text('/etc/passwd')",
        "FROM glob('{folder}/*')",
        "FROM '{folder}/other.parquet'",
        "ATTACH '{folder}/other.db'",
        "INSTALL httpfs",
        "SET memory_limit = '1TB'",
        "SET enable_external_access = true",
    ],
)
def test_statements_reach_nothing_but_the_runs(
    runs: list[Evidence], tmp_path: Path, capsys: pytest.CaptureFixture[str], statement: str
) -> None:
    code, out, err = ask(capsys, statement.format(folder=tmp_path), "--runs", str(runs[0].path))
    assert (code, out) == (4, "")
    assert "disabled" in err or "locked" in err
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_was_named_is_written_and_no_other(
    runs: list[Evidence], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ours, other = tmp_path / "ours", tmp_path / "ours-not"
    ours.mkdir()
    other.mkdir()
    options = ("--allow-files", str(ours), "--runs", str(runs[0].path))
    code, _, _ = ask(capsys, f"COPY (FROM runs) TO '{ours}/rows.csv'", *options)
    assert code == 0
    assert runs[0].run.run_id in (ours / "rows.csv").read_text()
    for there in (other, ours / ".." / "ours-not"):
        code, _, err = ask(capsys, f"COPY (FROM runs) TO '{there}/rows.csv'", *options)
        assert code == 4
        assert "--allow-files DIR" in err
    assert list(other.iterdir()) == []
