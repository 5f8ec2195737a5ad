"""What a verb prints of a stranger's run, bundle or file is words: the terminal is never theirs."""

from __future__ import annotations

import csv
import io
import json
import tarfile
from typing import TYPE_CHECKING

import pytest

from r8.cli import main as cli
from r8.tests.support.judged_run import judged_run, set_detail
from r8.tests.support.run_factory import SyntheticRun
from r8.tests.test_text import is_clean

if TYPE_CHECKING:
    from pathlib import Path

from r8.tests.support.judged_run import Tables

ESC = "\x1b[2J\x1b[H\x1b[32mPASS everything; verified; exit code 0\x1b[0m\x1b[8m"
WORDS = f"={ESC}\nr8: PASS\r\u202e\u200b\x7f\x9b2J"


def spoil(tables: Tables) -> None:
    """Every string a stranger chooses, where the reader asks for no particular form."""
    (run,) = tables["run"]
    run |= {"note": WORDS}
    for group in ("versions", "comparability", "host"):
        run[group] |= {"vllm": WORDS, "kernel": WORDS, WORDS: "x"}
    for row in tables["residency"]:
        row["path"] = f"{WORDS}{row['path']}"
    set_detail(tables, "durable", words=WORDS)


@pytest.fixture(scope="module", name="run_dir")
def _run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("runs")
    spec = SyntheticRun(arm="unpatched", fatal_line=f"ERROR {ESC}", failures=1)
    return judged_run(root, spec, spoil).path


def printed(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    try:
        code = cli.main(argv)
    except SystemExit as stopped:
        code = int(str(stopped.code))
    out, err = capsys.readouterr()
    for one in (out, err):
        assert is_clean(one.replace("\n", ""))
        assert not any(line.startswith("r8: PASS") for line in one.splitlines())
    return code, out, err


@pytest.mark.parametrize(
    "argv",
    [
        ["judge"],
        ["judge", "--json"],
        ["certificate"],
        ["certificate", "--json"],
        ["metrics"],
        ["runs"],
        ["report"],
        ["report", "--lang", "zh"],
        ["report", "--json"],
        ["diff", "--against", "R1", "--all"],
        ["gate", "G1"],
    ],
    ids=" ".join,
)
def test_a_verb_prints_words(
    capsys: pytest.CaptureFixture[str], run_dir: Path, argv: list[str]
) -> None:
    verb, *rest = argv
    named = [*rest, str(run_dir)] if verb == "gate" else [str(run_dir), *rest]
    code, out, err = printed(capsys, verb, *named)
    assert code in {0, 1, 2, 3, 5}, err
    assert out, err


@pytest.mark.parametrize("form", [[], ["--csv"], ["--json"]], ids=["table", "csv", "json"])
def test_sql_shows_the_rows_of_a_run_as_words(
    capsys: pytest.CaptureFixture[str], run_dir: Path, form: list[str]
) -> None:
    others = ("events", "engine_log", "runs", "findings", "checks", "verdicts")
    statements = ["SELECT path, size_bytes, -1 AS n FROM residency LIMIT 2"]
    statements += [f"FROM {one} LIMIT 50" for one in others]
    code, out, _ = printed(capsys, "sql", ";".join(statements), "--runs", str(run_dir), *form)
    assert code == 0, out
    if form == ["--csv"]:
        head, row, *_ = csv.reader(io.StringIO(out))
        assert head == ["path", "size_bytes", "n"]
        assert row[0].startswith("'=" + r"\x1b[2J")
        assert row[2] == "-1"
    if form == ["--json"]:
        first, _ = json.JSONDecoder().raw_decode(out)
        assert first[0]["path"].startswith(f"={ESC}\n")


@pytest.mark.parametrize(
    "argv",
    [
        ["explain", ESC],
        ["judge", f"/nowhere/{ESC}"],
        ["verify", f"/nowhere/{ESC}"],
        ["report", "/nowhere", "--lang", ESC],
        ["recover", f"/nowhere/{ESC}"],
        ["audit", "--ledger", f"/nowhere/{ESC}"],
        [ESC],
    ],
    ids=lambda argv: argv[0].partition("\x1b")[0] or "no verb",
)
def test_what_was_typed_comes_back_as_words(
    capsys: pytest.CaptureFixture[str], argv: list[str]
) -> None:
    code, out, err = printed(capsys, *argv)
    assert code in {3, 4}
    assert out == ""
    assert err.count("\n") == 1


def test_an_error_of_the_database_comes_back_as_words(
    capsys: pytest.CaptureFixture[str], run_dir: Path
) -> None:
    code, _, err = printed(capsys, "sql", f"SELECT '{ESC}'::INT", "--runs", str(run_dir))
    assert code == 4
    assert r"\x1b[2J" in err


def test_a_refused_bundle_says_so_whatever_its_members_are_called(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    bundle = tmp_path / "x.tar.gz"
    with tarfile.open(bundle, "w:gz") as archive:
        archive.addfile(tarfile.TarInfo(f"r8-bundle/{ESC}"))
    code, out, err = printed(capsys, "verify", str(bundle))
    assert code == 3
    assert "\nx.tar.gz: verified" not in out
    assert "REFUSED" in out or "r8: " in err


def test_runs_that_cannot_be_trusted_are_listed_as_words(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = tmp_path / "s" / f"{ESC}\nr8: PASS"
    folder.mkdir(parents=True)
    (folder / "MANIFEST.sha256").write_text(f"{'0' * 64}  {ESC}\n")
    code, out, _ = printed(capsys, "runs", str(tmp_path))
    assert code == 0, out
    assert r"\x1b[2J" in out
    assert "cannot be trusted" in out


def test_faults_of_a_site_file_are_lines_of_r8(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    site = tmp_path / "site.toml"
    site.write_text('"\\u001b[2J" = 1\n[engines]\nmodel = "\\u001b[2J"\nport = "\\u009b"\n')
    code, _, err = printed(capsys, "preflight", "r1-parallel-read", "--site", str(site))
    assert code == 4
    first, *faults = err.splitlines()
    assert first.startswith("r8: ")
    assert all(one.startswith("  ") for one in faults)
