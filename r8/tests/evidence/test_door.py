"""Directories that a stranger made: what is opened, and what is refused by name."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import shutil
import socket
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from r8.errors import EvidenceError, SiteError
from r8.evidence import door
from r8.evidence.budgets import BUDGETS, Budgets
from r8.evidence.database import add_rule_views, connect
from r8.evidence.finalise import recover
from r8.evidence.manifest import MANIFEST, manifest_text
from r8.evidence.reader import find_runs, read_run
from r8.tests.support.run_factory import SyntheticRun, build_partial, build_run

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture(scope="module", name="built")
def _built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_run(tmp_path_factory.mktemp("built"), SyntheticRun())


@pytest.fixture(name="run")
def _run(built: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built, tmp_path / "theirs" / built.name))


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as bound:
        folder = os.open(path.parent, os.O_RDONLY)  # a socket's whole path has 108 bytes at most
        try:
            bound.bind(f"/proc/self/fd/{folder}/{path.name}")
        finally:
            os.close(folder)


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (os.mkfifo, "a pipe"),
        (_socket, "a socket"),
        (lambda path: path.symlink_to("/dev/zero"), "a symbolic link"),
        (lambda path: path.symlink_to("raw"), "a symbolic link"),
        (lambda path: path.symlink_to("nowhere"), "a symbolic link"),
    ],
)
@pytest.mark.parametrize("name", ["raw/site.toml", "probes.parquet", "run.json", MANIFEST, "more"])
def test_what_is_no_regular_file_is_refused_by_its_name(
    run: Path, name: str, make: Callable[[Path], object], kind: str
) -> None:
    (run / name).unlink(missing_ok=True)
    make(run / name)
    with pytest.raises(EvidenceError, match=f"{name} is {kind}, not a regular file"):
        read_run(run)


def test_a_folder_that_is_a_link_is_not_entered(run: Path, tmp_path: Path) -> None:
    (run / "raw").rename(tmp_path / "raw")
    (run / "raw").symlink_to(tmp_path / "raw")
    with pytest.raises(EvidenceError, match="raw is a symbolic link"):
        read_run(run)
    with pytest.raises(EvidenceError, match=r"raw/site\.toml cannot be opened"):
        door.read(run, "raw/site.toml", limit="json_bytes")


def test_a_file_that_became_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x")
    with pytest.raises(EvidenceError, match="x is a pipe"):
        door.digest(tmp_path, "x")
    with pytest.raises(EvidenceError, match="x is a pipe"):
        door.read(tmp_path / "x", limit="json_bytes")


def test_names_that_no_terminal_shows_are_refused(run: Path) -> None:
    for name in ("a\x1b[2J", "a\nb", "a\u202eb", os.fsdecode(b"\xff")):
        path = run / "raw" / name
        path.write_text("")
        with pytest.raises(EvidenceError, match="cannot be printed") as caught:
            read_run(run)
        assert str(caught.value).isprintable()
        path.unlink()
    read_run(run)


@pytest.mark.parametrize(
    ("budgets", "name"),
    [
        ({"files": 11}, "files"),
        ({"entries": 12}, "entries"),
        ({"depth": 0}, "depth"),
        ({"file_bytes": 100}, "file_bytes"),
        ({"run_bytes": 1000}, "run_bytes"),
    ],
)
def test_a_directory_beyond_a_budget_is_refused_by_the_budgets_name(
    run: Path, budgets: dict[str, int], name: str
) -> None:
    door.files(run, dataclasses.replace(BUDGETS, files=12, entries=13, depth=1))
    with pytest.raises(EvidenceError, match=f"budget {name} = "):
        door.files(run, Budgets(**budgets))


def test_a_file_longer_than_its_budget_is_not_read_to_its_end(tmp_path: Path) -> None:
    with (tmp_path / "long").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(EvidenceError, match=f"manifest_bytes = {BUDGETS.manifest_bytes}"):
        door.read(tmp_path, "long", limit="manifest_bytes")


def test_runs_are_looked_for_without_following_a_link(run: Path, tmp_path: Path) -> None:
    root = tmp_path / "theirs"
    (root / "again").symlink_to(root)
    (root / "pipe").mkdir()
    os.mkfifo(root / "pipe" / MANIFEST)
    (root / "linked").mkdir()
    (root / "linked" / MANIFEST).symlink_to(run / MANIFEST)
    assert find_runs(root) == [run, root / "linked", root / "pipe"]
    assert find_runs(tmp_path / "nowhere") == []
    for path in (root / "linked", root / "pipe"):
        with pytest.raises(EvidenceError, match=f"{MANIFEST} is a"):
            read_run(path)


def test_a_run_lies_in_a_directory_of_its_own_name(run: Path) -> None:
    other = run.rename(run.with_name("another"))
    with pytest.raises(EvidenceError, match=f"run_id is {run.name}, the directory says another"):
        read_run(other)


@pytest.mark.parametrize("folder", ["resident_bytes=0", "arm=patched", "a*", "[it's]"])
def test_what_folders_are_called_changes_no_row(built: Path, tmp_path: Path, folder: str) -> None:
    there = Path(shutil.copytree(built, tmp_path / folder / built.name))
    asked = (
        "SELECT path, resident_bytes FROM residency",
        "SELECT probe, device, counter, value FROM probes",
        "SELECT arm, role FROM runs",
        "SELECT metric, statistic, phase, value FROM metrics",
    )
    with connect([read_run(built)]) as ours, connect([read_run(there)]) as theirs:
        add_rule_views(ours)
        add_rule_views(theirs)
        for question in asked:
            rows = ours.sql(f"FROM ({question}) ORDER BY ALL").fetchall()
            assert rows
            assert theirs.sql(f"FROM ({question}) ORDER BY ALL").fetchall() == rows


def test_what_is_read_is_a_copy_that_nobody_else_can_change(run: Path) -> None:
    evidence = read_run(run)
    rows = evidence.table("requests").num_rows
    shutil.rmtree(run)
    assert evidence.table("requests").num_rows == rows
    assert evidence.tables.is_relative_to(door.home())
    assert stat.S_IMODE(door.home().stat().st_mode) == 0o700


def test_a_copy_is_made_once_but_the_bytes_are_hashed_each_time(run: Path) -> None:
    first = read_run(run)
    assert read_run(run).tables == first.tables
    (run / "probes.parquet").write_bytes(b"other")
    with pytest.raises(EvidenceError, match=r"probes\.parquet differs"):
        read_run(run)
    assert (
        hashlib.sha256((first.tables / "probes.parquet").read_bytes()).hexdigest()
        == (first.manifest["probes.parquet"])
    )


def test_what_we_unpacked_ourselves_is_not_copied_again(built: Path) -> None:
    ours = Path(shutil.copytree(built, door.home() / "unpacked" / built.name))
    (ours / "raw" / "more").write_text("so that it is a run of its own")
    (ours / MANIFEST).write_text(manifest_text(ours))
    evidence = read_run(ours)
    assert evidence.table_path("probes").samefile(ours / "probes.parquet")


def test_no_room_for_the_copy_is_said_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    door.home.cache_clear()
    try:
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
        with pytest.raises(SiteError, match="set TMPDIR"):
            door.home()
        (tmp_path / "a*b").mkdir()
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "a*b"))
        with pytest.raises(SiteError, match="takes for a pattern"):
            door.home()
    finally:
        door.home.cache_clear()


def test_recovering_opens_no_link_and_no_pipe(tmp_path: Path) -> None:
    partial = build_partial(tmp_path, SyntheticRun())
    (partial / "probes.jsonl").unlink()
    os.mkfifo(partial / "probes.jsonl")
    with pytest.raises(EvidenceError, match=r"probes\.jsonl is a pipe"):
        recover(partial)
    (partial / "probes.jsonl").unlink()
    (partial / "raw" / "shadow").symlink_to("/etc/passwd")
    with pytest.raises(EvidenceError, match="raw/shadow is a symbolic link"):
        recover(partial)
