from __future__ import annotations

from typing import TYPE_CHECKING

from r8.evidence.database import add_rule_views, connect
from r8.evidence.finalise import finalise
from r8.evidence.reader import read_run
from r8.tests.support.run_factory import Row, SyntheticRun, build_partial, edit_rows

if TYPE_CHECKING:
    from pathlib import Path


def _identity(root: Path, wrong_session: int | None) -> dict[tuple[str, str, str, str], str]:
    """`same/n` of two arms of one block, one measured session of `patched` answered otherwise."""
    runs = []
    for order, arm in enumerate(("unpatched", "patched")):
        partial = build_partial(root, SyntheticRun(arm=arm, order=order))

        def change(rows: list[Row], arm: str = arm) -> list[Row]:
            for row in rows:
                hit = arm == "patched" and row["phase"] == "measure"
                if hit and row["session"] == wrong_session:
                    row["output_token_ids"] = [0]
            return rows

        edit_rows(partial, "requests", change)
        runs.append(read_run(finalise(partial, complete=True)))
    with connect(runs) as connection:
        add_rule_views(connection)
        found = connection.execute(
            "SELECT arm, phase, other_arm, other_phase, identical, n FROM identity"
        ).fetchall()
    return {(a, p, o, q): f"{same}/{n}" for a, p, o, q, same, n in found}


def test_equal_outputs_are_counted_as_equal(tmp_path: Path) -> None:
    found = _identity(tmp_path, None)
    n = found["patched", "measure", "patched", "populate"].partition("/")[2]
    assert set(found.values()) == {f"{n}/{n}"}
    assert ("patched", "measure", "unpatched", "measure") in found
    assert ("patched", "populate", "unpatched", "populate") in found


def test_one_wrong_session_is_counted_where_it_matters(tmp_path: Path) -> None:
    found = _identity(tmp_path, 3)
    n = int(found["patched", "populate", "unpatched", "populate"].partition("/")[2])
    assert found["patched", "measure", "unpatched", "measure"] == f"{n - 1}/{n}"
    assert found["patched", "measure", "patched", "populate"] == f"{n - 1}/{n}"
    assert found["unpatched", "measure", "unpatched", "populate"] == f"{n}/{n}"
