"""The mutants tool: what it changes, what it leaves alone, and when it says no."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from r8.tests.mutants import __main__ as tool
from r8.tests.mutants.changes import mutants
from r8.tests.mutants.trial import ROOT, Fate, Trial, beside

if TYPE_CHECKING:
    from pathlib import Path

    from r8.tests.mutants.changes import Mutant

PYTHON = """
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os

LIMIT = 0.05


@dataclass(frozen=True)
class Row:
    value: int


def allowed(value, *, others):
    return value <= LIMIT and not others
"""
SQL = """
-- a comment of 10 words: 1 < 2
SELECT *, count(*) AS n, max(value) * 2 AS twice, 'a < b' AS words
FROM rows WHERE value <= 0.05 AND value > 3;
"""


def _found(tmp_path: Path, name: str, text: str) -> list[Mutant]:
    (tmp_path / name).write_text(text)
    return mutants(tmp_path, name)


def test_python_gets_the_faults_a_person_makes(tmp_path: Path) -> None:
    found = {one.now for one in _found(tmp_path, "module.py", PYTHON)}
    assert "return value < LIMIT and not others" in found
    assert "return value <= LIMIT or not others" in found
    assert "return value <= LIMIT and  others" in found
    assert {"LIMIT = 0.1", "LIMIT = 0.025"} <= found
    assert not [one for one in found if "TYPE_CHECKING" in one or "@dataclass" in one]


def test_sql_gets_faults_outside_comments_and_texts(tmp_path: Path) -> None:
    found = {one.now for one in _found(tmp_path, "view.sql", SQL)}
    assert "FROM rows WHERE value < 0.05 AND value > 3;" in found
    assert "FROM rows WHERE value <= 0.1 AND value > 3;" in found
    assert "FROM rows WHERE value <= 0.05 OR value > 3;" in found
    assert "FROM rows WHERE value <= 0.05 AND value > 4;" in found
    assert any("min(value) * 2" in one for one in found)
    assert any("max(value) / 2" in one for one in found)
    assert not [one for one in found if "comment" in one or "a > b" in one or "a <= b" in one]
    assert not [one for one in found if one.startswith("SELECT /") or "count(/)" in one]


def test_the_tests_beside_a_file_begin_with_its_own() -> None:
    own, package = beside("r8/verdict/intervals.py")
    assert own == "r8/tests/verdict/test_intervals.py"
    assert package == "r8/tests/verdict"
    assert beside("r8/message.py") == ["r8/tests/test_message.py"]
    assert beside("data/queries/metrics.sql")[0] == "r8/tests/metrics"


@pytest.mark.parametrize(("survived", "code"), [(1, 0), (2, 1)])
def test_nine_of_ten_must_be_killed(
    survived: int, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mutant = _found(tmp_path, "module.py", PYTHON)[0]
    fates = [Fate.SURVIVED] * survived + [Fate.KILLED] * (9 - survived) + [Fate.TIMED_OUT]
    trials = [Trial(mutant=mutant, fate=fate, spent_s=1.0) for fate in fates]
    assert tool._told(trials, tmp_path / "trials.json") == code
    assert mutant.name in capsys.readouterr().out
    assert (tmp_path / "trials.json").read_text().count('"fate"') == 10


def test_every_argued_survivor_is_still_in_the_code() -> None:
    for name in tool.argued():
        path, _, change = name.partition(": `")
        assert change.partition("` -> `")[0] in (ROOT / path).read_text(), name
