"""The mutants tool: what it changes, what it leaves alone, and when it says no."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from r8.tests.mutants import __main__ as tool
from r8.tests.mutants.changes import mutants, replaced
from r8.tests.mutants.trial import ROOT, Fate, Trial, beside

if TYPE_CHECKING:
    from pathlib import Path

    from r8.tests.mutants.changes import Mutant

PYTHON = """
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os

# Not 0.06.
LIMIT = 0.05


@dataclass(frozen=True)
class Row:
    value: int


def allowed(value, *, others):
    return value <= LIMIT and not others
"""
SQL = """
-- a comment of 10 words: 1 < 2
CREATE OR REPLACE VIEW twice AS
SELECT *, count(*) AS n, max(value) * 2 AS twice, 'a < b' AS words
FROM rows WHERE value <= 0.05 AND value > 3;
.read data/queries/more.sql
SELECT 7 // 2;
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
    assert not [one for one in found if one.startswith("#")]
    assert not [one for one in found if "TYPE_CHECKING" in one or "@dataclass" in one]


def test_sql_gets_faults_outside_comments_and_texts(tmp_path: Path) -> None:
    found = {one.now for one in _found(tmp_path, "view.sql", SQL)}
    assert "FROM rows WHERE value < 0.05 AND value > 3;" in found
    assert "FROM rows WHERE value <= 0.1 AND value > 3;" in found
    assert "FROM rows WHERE value <= 0.05 OR value > 3;" in found
    assert "FROM rows WHERE value <= 0.05 AND value > 4;" in found
    assert any("min(value) * 2" in one for one in found)
    assert {one for one in found if one.startswith("SELECT 7 ") and one.endswith(" 2;")} == {
        "SELECT 7 * 2;"
    }
    assert not [one for one in found if "REPLACE" in one or one.startswith(".read")]
    assert any("max(value) / 2" in one for one in found)
    assert not [one for one in found if "comment" in one or "a > b" in one or "a <= b" in one]
    assert not [one for one in found if one.startswith("SELECT /") or "count(/)" in one]


def test_the_tests_beside_a_file_begin_with_its_own() -> None:
    own, package = beside("r8/verdict/intervals.py")
    assert own == "r8/tests/verdict/test_intervals.py"
    assert package == "r8/tests/verdict"
    assert beside("r8/message.py") == ["r8/tests/test_message.py"]
    folders = ["r8/tests/metrics", "r8/tests/forensics"]
    assert beside("data/queries/metrics.sql") == folders
    assert beside("data/queries/timelines.sql") == ["r8/tests/metrics/test_timelines.py", *folders]


def _trials(tmp_path: Path, survived: int) -> list[Trial]:
    mutant = _found(tmp_path, "module.py", PYTHON)[0]
    fates = [Fate.SURVIVED] * survived + [Fate.KILLED] * (9 - survived) + [Fate.TIMED_OUT]
    return [Trial(mutant=mutant, fate=fate, spent_s=1.0) for fate in fates]


def _code(
    monkeypatch: pytest.MonkeyPatch, asked: list[str], old: list[Trial], new: list[Trial]
) -> int:
    monkeypatch.setattr("sys.argv", ["mutants", *asked])
    monkeypatch.setattr(tool, "known", lambda: [one.mutant for one in old])
    monkeypatch.setattr(tool, "_drawn", lambda options: [one.mutant for one in new])
    answers = {len(old) + len(new): [*old, *new], len(old): old, len(new): new}
    monkeypatch.setattr(tool, "_tried", lambda drawn, jobs: answers[len(drawn)])
    return tool.main()


@pytest.mark.parametrize(("survived", "code"), [(1, 0), (2, 1)])
def test_nine_of_ten_must_be_killed(
    survived: int,
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    trials = _trials(tmp_path, survived)
    written = tmp_path / "trials.json"
    assert _code(monkeypatch, ["--json", str(written)], [], trials) == code
    assert trials[0].mutant.name in capsys.readouterr().out
    assert written.read_text().count('"fate"') == 10


@pytest.mark.parametrize(("is_argued", "code"), [(False, 1), (True, 0)])
def test_a_known_mutant_must_be_killed_or_argued(
    *, is_argued: bool, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = _trials(tmp_path, 1), _trials(tmp_path, 0)[:3]
    reasons = {old[0].mutant.change: "nobody could see it"} if is_argued else {}
    monkeypatch.setattr(tool, "argued", lambda: reasons)
    assert _code(monkeypatch, [], old, new) == code
    assert _code(monkeypatch, ["--known"], old, new) == code
    # Who asks about some files alone is told about these alone.
    assert _code(monkeypatch, ["--where", "r8/verdict/*.py"], old, new) == 0


def test_every_known_mutant_still_changes_the_code() -> None:
    known = tool.known()
    assert len(known) >= 20
    assert all(one.text != (ROOT / one.path).read_text() for one in known)


def test_a_known_mutant_whose_line_is_gone_is_told(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(PYTHON)
    assert replaced(tmp_path, "module.py", "LIMIT = 0.05", "LIMIT = 0.5").line == 8
    with pytest.raises(ValueError, match="holds 0 times"):
        replaced(tmp_path, "module.py", "LIMIT = 0.06", "LIMIT = 0.5")
    with pytest.raises(ValueError, match="holds 2 times"):
        replaced(tmp_path, "module.py", "others", "other")


def test_every_argued_survivor_is_still_in_the_code() -> None:
    for name in tool.argued():
        path, _, change = name.partition(": `")
        assert change.partition("` -> `")[0] in (ROOT / path).read_text(), name
