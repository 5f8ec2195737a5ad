"""Engines as loaders before the judge: their words, their overlap, what they served, their page."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from r8.forensics.certificate import PASSING
from r8.message import Answer
from r8.metrics.measure import measure, pick
from r8.report.document import report
from r8.tests.support.findings import said
from r8.tests.support.judged_run import Tables, findings
from r8.tests.support.transfer_runs import WORKERS, S, change_work, loading_spec, work_run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from r8.evidence.reader import Evidence
    from r8.model import Measurement

EACH_BYTES = 16_777_216  # of a worker in a synthetic run
LOG = """\
(Worker pid=7) INFO 11-30 11:53:37 [runner.py:131] Starting to load model {path}...
(Worker pid=7) INFO 11-30 11:53:37 [utils.py:867] Filesystem type for checkpoints: XFS. \
Checkpoint size: {gib:.2f} GiB. Available RAM: 19.23 GiB.
(Worker pid=7) INFO 11-30 11:53:40 [loader.py:430] Loading weights took {seconds:.2f} seconds
"""


def engine_run(
    root: Path, edit: Callable[[Tables], None] | None = None, job: str = "load", **said: Any
) -> Evidence:
    """Two engines that load for 4 s after 30 s of starting; `said` changes one of them's words."""

    def become(tables: Tables) -> None:
        tables["run"][0]["tool"] = "engine"
        words: dict[str, Any] = {"seconds": 3.9, "gib": EACH_BYTES / (1 << 30)}
        tables["logs"] = []
        for worker in WORKERS:
            told = words | {"path": f"/kv/model-{worker}"} | (said if worker == "w1" else {})
            tables["logs"].append({"instance": worker, "text": LOG.format(**told)})
            _as_engine(tables, worker, wait_s=2 if worker == "w1" and job == "switch" else 0)
        if edit is not None:
            edit(tables)

    spec = loading_spec(scenario=f"r1-model-{job}")
    how: dict[str, Any] = {"period_s": 60.0, "time_scale": 30.0} if job == "switch" else {}
    return work_run(root, spec, become, job=job, load_s=4.0, **how)


def _as_engine(tables: Tables, worker: str, wait_s: int) -> None:
    """The worker's row as an engine's: it starts at its instant, loads 30 s later, then answers."""
    for row in tables["events"]:
        detail = json.loads(row["detail"] or "{}") if row["name"] == "work" else {}
        if (detail.get("worker"), detail.get("phase")) != (worker, "measure"):
            continue
        turn = detail["begin_ns"] + wait_s * S
        detail |= {"started_ns": detail["begin_ns"], "turn_ns": turn, "path": f"/kv/model-{worker}"}
        detail |= {"begin_ns": turn + 30 * S, "end_ns": turn + 34 * S}
        row["detail"] = json.dumps(detail | {"serve_begin_ns": turn + 36 * S})


def _value(run: Evidence, metric: str, statistic: str = "mean") -> Measurement:
    return pick(measure([run]), run_id=run.run.run_id, metric=metric, statistic=statistic)


def test_engines_whose_words_agree_are_certified_and_their_words_are_shown(tmp_path: Path) -> None:
    run = engine_run(tmp_path)
    found = findings(run)
    assert found["E2"].answer is Answer.HELD, said(found["E2"])
    assert found["C10"].answer is Answer.HELD, said(found["C10"])
    assert "2 engines loaded together for 4.000 s" in said(found["C10"])
    assert all(one.answer in PASSING for one in found.values())
    assert _value(run, "work_time").value == 4 * S
    assert _value(run, "engine_start").value == 36 * S
    assert _value(run, "engine_said_load").value == pytest.approx(3.9 * S)
    section = report([run], ()).split("The engine as the loader")[1]
    row = next(line for line in section.splitlines() if line.startswith("| 0 "))
    assert [cell.strip() for cell in row.split("|")[4:7]] == ["36", "4", "3.9"]


@pytest.mark.parametrize(
    ("told", "answer", "word"),
    [
        ({"seconds": 4.5}, Answer.REFUTED, "engine says 4.5 s"),
        ({"seconds": 4.03}, Answer.REFUTED, "engine says 4.03 s"),
        ({"seconds": 4.02}, Answer.HELD, "engine says 4.02 s"),
        ({"path": "/other/model"}, Answer.REFUTED, "loaded /other/model = /kv/model-w1"),
        ({"gib": 0.5}, Answer.REFUTED, "engine says 0.5 GiB"),
    ],
)
def test_an_engine_that_says_something_else_is_refused(
    tmp_path: Path, told: dict[str, Any], answer: Answer, word: str
) -> None:
    found = findings(engine_run(tmp_path, **told))["E2"]
    assert (found.answer, word in said(found)) == (answer, True), said(found)


def begin_ns(tables: Tables, worker: str) -> int:
    """When a worker's load began."""
    found = next(
        json.loads(row["detail"])["begin_ns"]
        for row in tables["events"]
        if row["name"] == "work" and f'"{worker}"' in row["detail"]
    )
    assert isinstance(found, int)
    return found


def test_an_engine_that_says_nothing_is_not_believed(tmp_path: Path) -> None:
    def silent(tables: Tables) -> None:
        tables["logs"] = tables["logs"][:1]

    run = engine_run(tmp_path, silent)
    assert findings(run)["E2"].answer is Answer.UNKNOWN
    found = _value(run, "engine_said_load")
    assert (found.value, found.reason) == (None, "engines_silent n=1 of=2")


def test_engines_that_load_one_after_the_other_are_no_concurrent_load(tmp_path: Path) -> None:
    def later(tables: Tables) -> None:
        begin = begin_ns(tables, "w1")
        change_work(tables, "w1", begin_ns=begin + 3 * S, end_ns=begin + 7 * S)

    found = findings(engine_run(tmp_path, later))["C10"]
    assert found.answer is Answer.REFUTED
    assert "together for 1.000 s >= 2.000 s" in said(found)


def test_what_switched_engines_served_counts_from_their_first_answers(tmp_path: Path) -> None:
    run = engine_run(tmp_path, job="switch")
    # Two switches 60 s apart: the first serves 24 s less a millisecond, the second waits 2 s more.
    window_s = 120 - 0.001
    assert _value(run, "utilisation_measured", "").value == pytest.approx(
        (24 + 22 - 0.002) / window_s
    )
    assert _value(run, "utilisation_modelled", "pace").value == pytest.approx(1 - 4 / 60)
    whole = _value(run, "utilisation_modelled", "whole").value
    assert whole == pytest.approx(1 - (36 + 38 + 0.002) / 2 / 60)
    over = _value(run, "utilisation_over_modelled", "whole").value
    assert over == pytest.approx(1, abs=0.01)
    assert _value(run, "utilisation_modelled", "n20").value == pytest.approx(1 - 20 * 120 / 3600)
    assert _value(run, "engine_wait").value == 1 * S
    assert "Engines switched for real" in report([run], ())


def test_an_engine_that_answers_after_the_next_switch_is_refused_not_cut(tmp_path: Path) -> None:
    def late(tables: Tables) -> None:
        begin = begin_ns(tables, "w0")
        change_work(tables, "w0", serve_begin_ns=begin + 61 * S)

    found = _value(engine_run(tmp_path, late, job="switch"), "utilisation_measured", "")
    assert found.value is None
    assert found.reason == "loads_late n=1 of=2"
