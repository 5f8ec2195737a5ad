"""SECURITY.md states the budgets that are in force, all of them, and is found from the README."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from r8.cli.limits import LIMITS
from r8.evidence.budgets import BUDGETS
from r8.seal import archive

ROOT = Path(__file__).resolve().parents[2]
SECURITY = (ROOT / "SECURITY.md").read_text()
ARCHIVE = ("MAX_BYTES", "MAX_RATIO", "SLACK_BYTES", "MAX_MEMBERS", "MAX_LEVELS", "MAX_NAME_CHARS")


def rows(header: str) -> list[list[str]]:
    """Cells of the table below a header."""
    table = SECURITY.partition(f"{header}\n|")[2].partition("\n\n")[0].splitlines()[1:]
    return [row.strip("| ").split(" | ") for row in table]


def stated(header: str) -> dict[str, int]:
    return {row[0].strip("`"): int(row[1].replace(",", "")) for row in rows(header)}


def test_the_limits_of_the_reading_process_are_those_in_force() -> None:
    header = "| variable | default | counts |"
    assert stated(header) == {one.variable: one.most for one in LIMITS.values()}
    assert [row[2] for row in rows(header)] == [one.counted for one in LIMITS.values()]


def test_the_budgets_of_archives_and_runs_are_those_in_force() -> None:
    archives, _, runs = SECURITY.partition("Of an archive")[2].partition("Of a run directory")
    for text, budgets in (
        (archives, {name: getattr(archive, name) for name in ARCHIVE}),
        (runs, {one.name: getattr(BUDGETS, one.name) for one in fields(BUDGETS)}),
    ):
        table = text.partition("|---|---|\n")[2].partition("\n\n")[0].splitlines()
        cells = [row.strip("| ").split(" | ") for row in table]
        assert {name.strip("`"): int(most.replace(",", "")) for name, most in cells} == budgets


def test_the_readme_points_at_it() -> None:
    assert "`SECURITY.md`" in (ROOT / "README.md").read_text()
