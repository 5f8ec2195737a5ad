"""Sessions whose output is the same: who is compared with whom."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from r8.evidence.database import add_rule_views, connect
from r8.evidence.finalise import finalise
from r8.evidence.reader import read_run
from r8.tests.support.run_factory import Row, SyntheticRun, build_partial, build_run, edit_rows

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


def test_only_a_session_of_the_same_block_level_and_scenario_is_compared(tmp_path: Path) -> None:
    """Beside one whole block: an arm of another block, of another level, of another campaign."""
    here = SyntheticRun(arm="patched")
    every = [
        here,
        replace(here, arm="unpatched", order=1),
        replace(here, arm="unpatched", block=1),
        replace(here, arm="unpatched", concurrency=here.concurrency + 1),
        replace(here, arm="unpatched", campaign_id="another"),
    ]
    runs = [read_run(build_run(tmp_path, spec)) for spec in every]
    with connect(runs) as connection:
        add_rule_views(connection)
        found = connection.execute(
            "SELECT campaign_id, level, block, n, identical FROM identity "
            "WHERE arm <> other_arm AND phase = 'measure'"
        ).fetchall()
        alone = connection.execute("SELECT n FROM identity WHERE arm = other_arm").fetchall()
    sessions = len(here.ttft_s)
    level = f"c{here.concurrency}"
    assert found == [(here.campaign_id, level, 0, sessions, sessions)]
    assert alone == [(sessions,)] * len(every)
