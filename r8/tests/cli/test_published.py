"""The committed files are what the code makes of the published figures; an edit is seen."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from r8.claims.ledger import load_ledger
from r8.claims.reports import load_reports
from r8.claims.table import figures_table
from r8.cli.made_files import ROOT, differing
from r8.cli.published import PARQUET, made_files, main, parquet_bytes
from r8.report.words import LANGUAGES

if TYPE_CHECKING:
    from collections.abc import Mapping

MADE = made_files()
LEDGER, REPORTS = load_ledger(), load_reports()


def test_the_committed_files_are_what_the_code_makes() -> None:
    assert differing(ROOT, MADE) == [], "python -m r8.cli.published --write"


def test_an_edited_file_would_be_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("r8.cli.published.made_files", lambda: MADE)
    assert main(["--root", str(tmp_path), "--write"]) == 0
    assert differing(tmp_path, MADE) == []
    page = Path("reports/published/en/R2.md")
    victim = tmp_path / page
    victim.write_text(victim.read_text().replace("7.53", "7.54"))
    assert differing(tmp_path, MADE) == [page]
    capsys.readouterr()
    assert main(["--root", str(tmp_path)]) == 1
    assert capsys.readouterr().out == f"differs: {page}\n"
    table = pq.read_table(tmp_path / PARQUET)
    values = table.column("value").to_pylist()
    place = table.column_names.index("value")
    other = pa.array([values[0] + 0.01, *values[1:]], type=pa.float64())
    pq.write_table(table.set_column(place, table.field("value"), other), tmp_path / PARQUET)
    assert differing(tmp_path, MADE) == [PARQUET, page]
    shutil.copy(ROOT / "data/published/figures.csv", tmp_path / PARQUET)
    with pytest.raises(pa.ArrowInvalid, match="Parquet"):
        differing(tmp_path, MADE)


def test_a_file_that_should_not_be_there_is_seen_and_removed(tmp_path: Path) -> None:
    path = Path("reports/old.md")
    (tmp_path / "reports").mkdir()
    (tmp_path / path).write_text("of runs that are gone")
    assert differing(tmp_path, {path: None}) == [path]
    (tmp_path / path).unlink()
    assert differing(tmp_path, {path: None}) == []


def test_the_parquet_file_is_the_same_bytes_each_time() -> None:
    made = figures_table(LEDGER, REPORTS)
    assert parquet_bytes(made) == parquet_bytes(made) == MADE[PARQUET]


def test_published_pages_carry_the_digests_of_their_sources() -> None:
    for report in REPORTS.reports.values():
        for language in LANGUAGES:
            made = MADE[Path("reports/published") / language / f"{report.report_id}.md"]
            assert made is not None
            assert all(page.sha256 in made.decode() for page in report.pages)


def test_what_the_pages_say_stands_in_every_language() -> None:
    texts: list[Mapping[str, str]] = [
        text
        for report in REPORTS.reports.values()
        for text in (report.topology, report.third_party, report.reproduction, report.about)
    ]
    texts += [one.baseline for one in REPORTS.scenarios.values()]
    texts += [one.about for one in LEDGER.relations if one.about]
    for text in texts:
        assert set(text) == set(LANGUAGES)
        assert len({bool(one) for one in text.values()}) == 1, text
