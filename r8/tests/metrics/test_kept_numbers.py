"""Metrics of reference runs are what they were when the runs were recorded, to the last digit.

`kept_numbers.csv` holds them for one run of each kind; its values were made by the release that
recorded the runs, not by the queries of today. A definition that changes on purpose changes rows of
it, by hand, and the changelog.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from r8.evidence.reader import read_run
from r8.metrics.measure import measure

KEPT = Path(__file__).with_name("kept_numbers.csv")
REFERENCE = Path(__file__).resolve().parents[3] / "data" / "reference"
Key = tuple[str, str, str, str]


@pytest.fixture(scope="module")
def kept() -> dict[Key, tuple[str, str, str]]:
    with KEPT.open(encoding="utf-8", newline="") as file:
        return {
            (row["run_id"], row["phase"], row["metric"], row["statistic"]): (
                row["value"],
                row["n"],
                row["reason"],
            )
            for row in csv.DictReader(file)
        }


def test_the_numbers_of_the_reference_runs_are_kept(
    kept: dict[Key, tuple[str, str, str]],
) -> None:
    names = {key[0] for key in kept}
    runs = [read_run(path) for path in sorted(REFERENCE.glob("*/*")) if path.name in names]
    assert len(runs) == len(names) > 0
    found = {
        (one.run_id, one.phase, one.metric, one.statistic): (
            "" if one.value is None else repr(one.value),
            str(one.n),
            one.reason or "",
        )
        for one in measure(runs)
    }
    assert set(found) == set(kept)
    assert {key: one for key, one in found.items() if one != kept[key]} == {}
