"""A redacted bundle holds what was declared and no name, says the same, and says what it lacks."""

from __future__ import annotations

import dataclasses
import json
import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from r8.claims.reader import load_claims
from r8.cli import main as cli
from r8.errors import BundleError
from r8.evidence.journal import run_to_json
from r8.evidence.reader import read_run
from r8.forensics.certificate import certify, connect_settled
from r8.message import Answer
from r8.metrics.measure import measure
from r8.schema import TABLES, Column, Public
from r8.seal import declared, keys
from r8.seal.bundle import run_paths, seal, state
from r8.seal.verify import exit_code
from r8.tests.seal.planted import NEEDLES, found_in, planted_run
from r8.tests.support import bundle_tools as tools
from r8.tests.support.judged_run import Tables, judged_run, set_detail
from r8.tests.support.run_factory import SyntheticRun, build_partial, synthetic_run

if TYPE_CHECKING:
    from r8.evidence.reader import Evidence

REFERENCE = Path(__file__).resolve().parents[3] / "data" / "reference"


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    return planted_run(build_partial(tmp_path_factory.mktemp("planted"), SyntheticRun()))


@pytest.fixture
def key(tmp_path: Path) -> keys.Ed25519Key:
    keys.make_ed25519(tmp_path / "key")
    return keys.Ed25519Key(tmp_path / "key")


# ---------------------------------------------------------------- what is declared


def _undeclared(columns: tuple[Column, ...]) -> list[str]:
    return [one.name for one in columns if one.type in {"string", "name"} and one.travels is None]


def test_every_column_of_text_says_how_it_travels() -> None:
    assert [_undeclared(table.columns) for table in TABLES.values()] == [[]] * len(TABLES)


def test_a_column_that_does_not_say_is_seen() -> None:
    assert _undeclared((Column("x", "string", "", "?"), Column("n", "int64", "", "?"))) == ["x"]


def test_what_is_public_has_a_closed_form() -> None:
    for table in TABLES.values():
        for column in table.columns:
            if isinstance(column.travels, Public):
                assert not column.travels.has("gpu07.corp.example"), column.name
                assert column.travels.words or column.travels.form == r"[0-9a-f]{64}"


@pytest.mark.parametrize("kind", ["kv", "transfer"])
def test_every_text_of_run_json_is_declared(kind: str) -> None:
    if kind == "kv":
        run = run_to_json(synthetic_run(SyntheticRun()))
    else:
        path = min(REFERENCE.glob("r1-checkpoint/*-c4"))
        run = run_to_json(read_run(path).run)
    texts = {key for key, value in _leaves(run) if isinstance(value, str)}
    assert {"run_id", "host.name" if kind == "kv" else "job", "kv_host"} <= texts
    tables = ("versions.", "comparability.")
    open_ = {one for one in texts if one.startswith(tables)} | {"host.name"}
    assert sorted(texts - set(declared.RUN) - open_) == []


def _leaves(value: Any, key: str = "") -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        inside = [(f"{key}.{one}" if key else one, two) for one, two in value.items()]
        return [leaf for at, two in inside for leaf in _leaves(two, at)]
    if isinstance(value, list | tuple):
        return [leaf for one in value for leaf in _leaves(one, key)]
    return [(key, value)]


def test_every_file_of_raw_in_the_reference_runs_has_a_kind_of_its_own() -> None:
    names = {
        name.removeprefix("raw/")
        for path in REFERENCE.glob("*/*/reference.json")
        for name in json.loads(path.read_text())["files"]
        if name.startswith("raw/")
    }
    assert len(names) > 20
    known = [form for form in declared.RAW if form != "*"]
    assert [one for one in names if not any(fnmatchcase(one, form) for form in known)] == []
    assert declared.raw_kind("something-new.txt") == "other files"


_RAW_NAME = re.compile(r"\braw\(f?\"([^\"]+)\"\)")


def test_every_file_that_the_lab_puts_into_raw_has_a_kind_of_its_own() -> None:
    lab = Path(declared.__file__).parents[1] / "lab"
    sources = [path.read_text(encoding="utf-8") for path in lab.rglob("*.py")]
    names = {re.sub(r"{.*?}", "x", one) for text in sources for one in _RAW_NAME.findall(text)}
    assert {"plan-x.json", "probes-x.jsonl", "rendezvous", "turns"} <= names
    assert [one for one in names if declared.raw_kind(one) == "other files"] == []


def test_every_fact_of_the_reference_runs_is_declared() -> None:
    found: set[str] = set()
    for path in REFERENCE.glob("*/*-b0-*/events.parquet"):
        details = pq.read_table(path, columns=["detail"]).column(0).unique().to_pylist()
        found |= {key for detail in details if detail for key in json.loads(detail)}
    assert sorted(found - declared.EVENT_FACTS) == []


# ---------------------------------------------------------------- what travels


def test_none_of_sixty_planted_strings_is_in_a_redacted_bundle(
    planted: Evidence, key: keys.Ed25519Key, tmp_path: Path
) -> None:
    out = seal([planted], tools.CLAIMS, tmp_path / "b.tar.gz", key, redacted=True)
    tree = tools.opened(out, tmp_path / "tree")
    assert found_in(planted.path) != {}
    assert sum(map(len, NEEDLES.values())) == 60
    assert found_in(tree) == {}
    assert not list(tree.glob("runs/*/*/raw"))
    found = tools.checks(out, tmp_path / "w", key.public)
    assert tools.failed(found) == {}
    unknown = {one.name for one in found.values() if one.answer is Answer.UNKNOWN}
    assert unknown == {"completeness", "withheld"}
    assert exit_code(list(found.values())) == 0


def test_a_file_name_does_not_travel_either(planted: Evidence, tmp_path: Path) -> None:
    out = seal([planted], tools.CLAIMS, tmp_path / "b.tar.gz", None, redacted=True)
    tree = tools.opened(out, tmp_path / "tree")
    done = json.loads((tree / "redaction.json").read_text())
    assert done["withheld_files"]["worker log"] == 1
    assert done["undeclared_facts"] > 50
    assert "gpu07" not in json.dumps(done)


def _with_names(tables: Tables) -> None:
    run = tables["run"][0]
    for row in (*tables["probes"], *tables["residency"], *run["other_kv_devices"]):
        row["host"] = "gpu-07"
    for row in tables["calibration"]:
        row["host"] = "login-3"
    run |= {"host": {"name": "gpu-07", "kernel": "6.1.7-acme"}, "kv_host": "gpu-07"}
    run["note"] = "Project Hush, run by gpu-07"
    set_detail(tables, "run_begin", arms=["patched"], levels=[4], blocks=1)


def test_metrics_findings_and_verdicts_come_out_the_same(
    key: keys.Ed25519Key, tmp_path: Path
) -> None:
    run = judged_run(tmp_path / "runs", SyntheticRun(), _with_names)
    also = ["project hush"]
    out = seal([run], tools.CLAIMS, tmp_path / "b.tar.gz", key, redacted=True, also=also)
    tree = tools.opened(out, tmp_path / "tree")
    (copy,) = [read_run(path) for path in run_paths(tree, "runs")]
    assert set(copy.table("probes").column("host").to_pylist()) == {"host-1"}
    assert copy.run.kv_host == "host-1"
    assert copy.run.note is not None
    assert copy.run.note.split()[0] == "name-1"
    assert [dataclasses.replace(one, run_id="") for one in measure([copy])] == [
        dataclasses.replace(one, run_id="") for one in measure([run])
    ]
    answers = []
    for one in (run, copy):
        with connect_settled([one]) as connection:
            answers.append([found.answer for found in certify(one.run, connection)])
    assert answers[0] == answers[1]


def test_a_further_word_goes_even_where_it_is_one_of_r8(tmp_path: Path) -> None:
    run = judged_run(tmp_path / "runs", SyntheticRun(), _with_names)
    out = seal([run], tools.CLAIMS, tmp_path / "b.tar.gz", None, redacted=True, also=["patched"])
    (path,) = run_paths(tools.opened(out, tmp_path / "tree"), "runs")
    assert read_run(path).run.arm == "arm-1"
    assert "patched" not in path.name
    assert path.name.endswith("-b0-arm-1-c4")


def _campaign_of_a_reference(pattern: str) -> list[Evidence]:
    return [read_run(path) for path in sorted(REFERENCE.glob(pattern)) if path.is_dir()]


@pytest.mark.parametrize(
    ("pattern", "runs"),
    [
        ("r1-checkpoint/*T163129Z-b0-*", 4),
        ("r2-cold-recovery/*-r1-b0-*-c16", 3),
        pytest.param("r*/*-b0-*", 45, marks=pytest.mark.qualify),
    ],
)
def test_redacted_reference_runs_verify_and_say_the_same(
    tmp_path: Path, pattern: str, runs: int
) -> None:
    claims, found = load_claims(), _campaign_of_a_reference(pattern)
    assert len(found) >= runs
    tree = tmp_path / "tree"
    out = seal(found, claims, tmp_path / "b.tar.zst", None, redacted=True)
    before = state(found, claims)
    tools.opened(out, tree)
    after = state([read_run(path) for path in run_paths(tree, "runs")], claims)
    assert [(one.claim.claim_id, one.outcome, one.estimate) for one in after.verdicts] == [
        (one.claim.claim_id, one.outcome, one.estimate) for one in before.verdicts
    ]
    assert _answers(after.stated["certificate"]) == _answers(before.stated["certificate"])


def _answers(findings: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return sorted((one["rule_id"], str(one["answer"])) for one in findings)


def test_a_number_that_may_be_a_serial_does_not_travel(tmp_path: Path) -> None:
    def with_numbers(tables: Tables) -> None:
        first = {**tables["probes"][0], "probe": "topology", "text": None}
        counters = ("serial", "lid", "acme_rack", "vllm:acme_tokens", "load_1m", "cards")
        for number, counter in enumerate(counters):
            tables["probes"].append({**first, "counter": counter, "value": 7_100_235_980 + number})

    run = judged_run(tmp_path / "runs", SyntheticRun(), with_numbers)
    out = seal([run], tools.CLAIMS, tmp_path / "b.tar.gz", None, redacted=True)
    (path,) = run_paths(tools.opened(out, tmp_path / "tree"), "runs")
    values = read_run(path).table("probes").column("value").to_pylist()
    kept = {value for value in values if value is not None and value >= 7_100_235_980}
    assert kept == {7_100_235_984, 7_100_235_985}


# ---------------------------------------------------------------- what the verifier says


def _sealed(run: Evidence, tmp_path: Path, key: keys.Ed25519Key) -> tuple[Path, Path]:
    out = seal([run], tools.CLAIMS, tmp_path / "b.tar.gz", key, redacted=True)
    return out, tools.opened(out, tmp_path / "tree")


def test_the_verifier_counts_what_it_looked_at_and_names_what_was_withheld(
    key: keys.Ed25519Key, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = judged_run(tmp_path / "runs", SyntheticRun(), _with_names)
    out, _ = _sealed(run, tmp_path, key)
    found = tools.checks(out, tmp_path / "w", key.public)
    assert "texts in 15 files, 47 columns" in tools.said(found["redaction"])
    assert found["withheld"].answer is Answer.UNKNOWN
    assert "raw/: 1 engine log" in tools.said(found["withheld"])
    assert "raw/: 1 site file" in tools.said(found["withheld"])
    assert found["completeness"].answer is Answer.HELD
    bundle = str(tmp_path / "all.tar.gz")
    assert cli.main(["seal", str(run.path), "--redact", "--unsigned", "-o", bundle]) == 0
    capsys.readouterr()
    assert cli.main(["verify", bundle, "--unsafe-unsigned"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if line.startswith("UNKNOWN")] == ["UNKNOWN"]
    assert lines[-1] == "all.tar.gz: verified, but for withheld; exit code 0"


def _tampered(tree: Path, key: keys.Ed25519Key, tmp_path: Path) -> dict[str, str]:
    tools.mend(tree)
    tools.reseal(tree, key)
    return tools.failed(tools.checks(tools.packed(tree, tmp_path / "c.tar.gz"), tmp_path / "w"))


@pytest.mark.parametrize(
    ("table", "column", "said"),
    [
        ("probes", "reason", "no route to 198.51.100.9"),
        ("engine_log", "text", "Starting to load model /home/alice/m..."),
        ("residency", "reason", "serial PHLJ812300BV4P0DGN"),
        ("requests", "error", "gpu07 is gone"),
    ],
)
def test_a_name_that_somebody_left_in_a_table_is_found(
    key: keys.Ed25519Key, tmp_path: Path, table: str, column: str, said: str, planted: Evidence
) -> None:
    _, tree = _sealed(planted, tmp_path, key)
    (run,) = run_paths(tree, "runs")
    tools.edit_column(run, table, column, lambda _: said)
    failed = _tampered(tree, key, tmp_path)
    assert f"{table}.parquet ({column}) names somebody" in failed["redaction"]


def test_a_file_of_raw_in_a_redacted_bundle_is_refused_unread(
    key: keys.Ed25519Key, tmp_path: Path
) -> None:
    run = judged_run(tmp_path / "runs", SyntheticRun())
    _, tree = _sealed(run, tmp_path, key)
    (path,) = run_paths(tree, "runs")
    (path / "raw").mkdir()
    (path / "raw" / "x.gz").write_bytes(b"no gzip at all")
    failed = _tampered(tree, key, tmp_path)
    assert failed["redaction"].endswith("raw/x.gz does not travel in a redacted bundle")


def test_a_name_that_the_second_finder_sees_stops_the_seal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = judged_run(tmp_path / "runs", SyntheticRun(), _with_names)
    monkeypatch.setattr("r8.seal.names.names_nobody", lambda _: True)  # a list with a hole
    monkeypatch.setattr("r8.seal.names._ALWAYS", frozenset())
    with pytest.raises(BundleError, match="seal-name-left") as caught:
        seal([run], tools.CLAIMS, tmp_path / "b.tar.gz", None, redacted=True)
    assert "--redact-also" in caught.value.next_step
    assert not (tmp_path / "b.tar.gz").exists()


def test_a_plan_whose_names_were_replaced_has_no_digest_and_is_unknown(
    key: keys.Ed25519Key, tmp_path: Path
) -> None:
    run = tools.declared_run(tmp_path / "runs", arm="acme-array")
    out, tree = _sealed(run, tmp_path, key)
    (path,) = run_paths(tree, "runs")
    assert read_run(path).run.plan_sha256 is None
    said = tools.said(tools.checks(out, tmp_path / "w", key.public)["withheld"])
    assert "the declared digest of the plan of 1 runs" in said


def test_a_plan_without_names_keeps_its_digest(key: keys.Ed25519Key, tmp_path: Path) -> None:
    run = tools.declared_run(tmp_path / "runs", arm="patched")
    out, tree = _sealed(run, tmp_path, key)
    (path,) = run_paths(tree, "runs")
    assert read_run(path).run.plan_sha256 == run.run.plan_sha256
    assert tools.failed(tools.checks(out, tmp_path / "w", key.public)) == {}
