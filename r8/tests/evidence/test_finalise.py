from __future__ import annotations

import argparse
import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from r8.cli import recover as recover_verbs
from r8.errors import EXIT_INVALID, EvidenceError, SiteError, UsageError
from r8.evidence.finalise import finalise, recover
from r8.evidence.journal import Journal, write_json_atomic
from r8.evidence.layout import ORDERS
from r8.evidence.reader import find_runs, read_run
from r8.schema import TABLES
from r8.tests.support.killed_finaliser import check_recovers
from r8.tests.support.run_factory import (
    SyntheticRun,
    build_partial,
    build_run,
    edit_rows,
    read_lines,
)

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def partial(tmp_path: Path) -> Path:
    return build_partial(tmp_path, SyntheticRun())


def test_every_journalled_row_is_in_the_parquet_with_its_run_id(partial: Path) -> None:
    journalled = {
        name: read_lines(partial / f"{name}.jsonl") for name in TABLES if _has(partial, name)
    }
    evidence = read_run(finalise(partial, complete=True))
    assert len(journalled) == 6
    for name, rows in journalled.items():
        blank = dict.fromkeys(TABLES[name].arrow().names)
        expected = [{**blank, **row, "run_id": evidence.run.run_id} for row in rows]
        found = evidence.table(name).to_pylist()
        if name in ORDERS:  # the file has an order of its own; nothing is lost or made by it
            found, expected = sorted(found, key=str), sorted(expected, key=str)
        assert found == expected


def _has(partial: Path, name: str) -> bool:
    return (partial / f"{name}.jsonl").is_file()


def test_the_engine_log_is_parsed_from_the_raw_server_log(partial: Path) -> None:
    kinds = read_run(finalise(partial, complete=True)).table("engine_log").column("kind")
    wanted = {"lookup", "retrieved", "stored", "patch_loaded", "patch_read", "alloc_failed"}
    assert set(kinds.to_pylist()) == wanted


def test_units_meanings_and_schema_version_travel_in_the_parquet(partial: Path) -> None:
    path = finalise(partial, complete=True) / "requests.parquet"
    schema = pq.read_schema(path)
    assert schema.metadata[b"r8.schema_version"] == b"2"
    sent = schema.field("sent_ns").metadata or {}
    assert sent[b"unit"] == b"ns"
    assert b"request byte" in sent[b"meaning"]
    assert pq.read_metadata(path).row_group(0).column(0).compression == "ZSTD"


def test_sha256sum_itself_accepts_the_manifest(partial: Path) -> None:
    path = finalise(partial, complete=True)
    subprocess.run(["sha256sum", "--check", "--strict", "MANIFEST.sha256"], cwd=path, check=True)
    listed = {
        line.split("  ", 1)[1] for line in (path / "MANIFEST.sha256").read_text().splitlines()
    }
    present = {p.relative_to(path).as_posix() for p in path.rglob("*") if p.is_file()}
    assert listed == present - {"MANIFEST.sha256"}


def test_raw_files_and_strays_beside_the_journals_are_kept(partial: Path) -> None:
    (partial / "raw" / "streams").mkdir()
    (partial / "raw" / "streams" / "r.txt").write_bytes(b"\xff")
    (partial / "plan.json").write_text("{}")
    path = finalise(partial, complete=True)
    assert (path / "raw" / "streams" / "r.txt").read_bytes() == b"\xff"
    assert (path / "raw" / "plan.json").read_text() == "{}"
    assert not partial.exists()


def test_a_torn_last_line_is_dropped_counted_and_makes_the_run_incomplete(partial: Path) -> None:
    rows = len(read_lines(partial / "probes.jsonl"))
    with (partial / "probes.jsonl").open("ab") as file:
        file.write(b'{"probe": "disk", "host": "\xc3')
    evidence = read_run(finalise(partial, complete=True))
    assert evidence.table("probes").num_rows == rows
    assert evidence.run.complete is False
    assert evidence.run.note == "1 torn last line dropped from probes.jsonl"


@pytest.mark.parametrize("torn", [b'{"name": "measure_b\n', b"\n", b"\x00\x00\n", b"[1]\n"])
def test_a_torn_line_in_the_middle_is_an_error_with_file_and_line(
    partial: Path, torn: bytes
) -> None:
    path = partial / "events.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], torn, *lines[3:]]))
    with pytest.raises(EvidenceError, match=r"events\.jsonl:4"):
        finalise(partial, complete=True)
    assert partial.is_dir()
    assert find_runs(partial.parent) == []


def test_an_unknown_key_is_an_error_with_file_line_and_key(partial: Path) -> None:
    edit_rows(partial, "requests", lambda rows: [*rows[:1], {**rows[1], "lat": 1}, *rows[2:]])
    with pytest.raises(EvidenceError, match=r"'lat'.*requests\.jsonl:2"):
        finalise(partial, complete=True)


def test_missing_journals_become_empty_tables(partial: Path) -> None:
    (partial / "residency.jsonl").unlink()
    assert read_run(finalise(partial, complete=True)).table("residency").num_rows == 0


def test_a_sealed_run_is_never_overwritten(tmp_path: Path) -> None:
    first = build_run(tmp_path, SyntheticRun())
    before = (first / "MANIFEST.sha256").read_bytes()
    second = build_partial(tmp_path, SyntheticRun(output_text="other"))
    with pytest.raises(EvidenceError, match="never overwritten"):
        finalise(second, complete=True)
    assert second.is_dir()
    assert (first / "MANIFEST.sha256").read_bytes() == before


def test_a_run_killed_while_it_was_cleared_away_is_only_cleared_away(partial: Path) -> None:
    copy = partial.with_name("copy")
    shutil.copytree(partial, copy)
    final = finalise(partial, complete=True)
    before = (final / "MANIFEST.sha256").read_bytes()
    copy.rename(partial)  # as if the rename of the partial directory had not happened yet
    assert finalise(partial, complete=True) == final
    assert finalise(partial, complete=True) == final  # nothing left to do
    assert (final / "MANIFEST.sha256").read_bytes() == before
    assert [path.name for path in final.parent.iterdir()] == [final.name]


def test_a_run_that_is_still_being_written_is_left_alone(partial: Path) -> None:
    with Journal(partial, "events"), pytest.raises(EvidenceError, match="another process"):
        recover(partial)
    assert recover(partial).is_dir()


@pytest.mark.parametrize(
    ("spoil", "named"),
    [
        (lambda partial: (partial / "run.json").unlink(), "plan cannot be read"),
        (lambda partial: (partial / "run.json").write_text("{"), "plan cannot be read"),
        (lambda partial: (partial / "run.json").write_text("{}"), "schema version"),
        (lambda partial: partial.rename(partial.with_name("x")), "no such unfinished run"),
        (lambda partial: (partial / "raw" / "a\nb").write_text(""), "cannot be printed"),
    ],
)
def test_what_cannot_be_sealed_stays_as_it_is(
    partial: Path, spoil: Callable[[Path], object], named: str
) -> None:
    spoil(partial)
    with pytest.raises(EvidenceError, match=named):
        finalise(partial, complete=True)
    assert find_runs(partial.parent) == []


def test_a_directory_with_another_runs_name_is_refused(partial: Path) -> None:
    other = partial.rename(partial.with_name("other.partial"))
    with pytest.raises(EvidenceError, match="the directory says 'other'"):
        finalise(other, complete=True)
    with pytest.raises(EvidenceError, match=r"does not end in \.partial"):
        finalise(other.parent, complete=True)


def test_a_full_disk_while_sealing_is_one_clear_error_and_loses_nothing(
    partial: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(pq.ParquetWriter, "write_table", full)
        with pytest.raises(SiteError, match="No space left on device"):
            finalise(partial, complete=True)
    assert find_runs(partial.parent) == []
    assert read_run(finalise(partial, complete=True)).run.complete


def test_recovering_marks_the_run_and_says_what_is_missing(partial: Path) -> None:
    (partial / "calibration.jsonl").unlink()
    content = json.loads((partial / "run.json").read_text())
    write_json_atomic(partial / "run.json", {**content, "note": "planned so"})
    with (partial / "chunks.jsonl").open("a") as file:
        file.write("{")
    run = read_run(recover(partial)).run
    assert run.complete is False
    assert run.note == (
        "planned so; 1 torn last line dropped from chunks.jsonl; no calibration.jsonl; "
        "recovered from journals; the run did not end by itself"
    )


def _killed(mode: str, tmp_path: Path, template: Path, *arguments: str) -> int:
    command = [sys.executable, "-m", "r8.tests.support.killed_finaliser", mode, str(template)]
    done = subprocess.run(
        [*command, str(tmp_path / "work"), *arguments],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return int(json.loads(done.stdout)["kills"])


def test_killed_before_any_of_its_calls_it_loses_and_invents_nothing(
    tmp_path: Path, partial: Path
) -> None:
    # Fewer kills than tables, copies, syncs and renames would mean that calls were missed.
    assert _killed("calls", tmp_path, partial) > 40


def test_killed_at_random_instants_it_loses_and_invents_nothing(
    tmp_path: Path, partial: Path
) -> None:
    _killed("instants", tmp_path, partial, "25")


def test_the_check_after_a_kill_would_see_lost_rows(tmp_path: Path, partial: Path) -> None:
    template = tmp_path / "template"
    shutil.copytree(partial, template)
    edit_rows(partial, "probes", lambda rows: rows[:-1])
    with pytest.raises(RuntimeError, match="lost rows"):
        check_recovers(partial.parent, partial, template)


def _recover(*directories: Path) -> int:
    parser = argparse.ArgumentParser()
    recover_verbs.add_verbs(parser.add_subparsers())
    args = parser.parse_args(["recover", *map(str, directories)])
    return int(args.func(args))


def test_recover_takes_every_unfinished_run_below_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for block in range(2):
        build_partial(tmp_path, SyntheticRun(block=block))
    assert _recover(tmp_path) == 0
    assert len(find_runs(tmp_path)) == 2
    assert capsys.readouterr().out.count("(incomplete)") == 2


def test_recover_goes_on_after_a_run_it_cannot_recover(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad, good = (build_partial(tmp_path, SyntheticRun(block=block)) for block in range(2))
    (bad / "run.json").unlink()
    assert _recover(bad, good) == EXIT_INVALID
    assert len(find_runs(tmp_path)) == 1
    assert "run.json" in capsys.readouterr().err


def test_recover_of_nothing_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no unfinished run"):
        _recover(tmp_path)
