"""Real runs that must not count: the rule meant for the fault refuses them, with numbers."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from r8.evidence.database import connect
from r8.evidence.reader import Evidence, find_runs, read_run
from r8.forensics.gate import not_held
from r8.tests.qualify import rehearse
from r8.tests.support.findings import said

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.qualify, pytest.mark.root, pytest.mark.stack]

TIMEOUT_S = 600.0
FAILING_SERVER = Path(__file__).with_name("failing_server.py")


def _run(
    tmp_path: Path,
    *pairs: tuple[str, str],
    runs_root: Path | None = None,
    during: Callable[[rehearse.Rehearsal], None] | None = None,
) -> str:
    site = rehearse.changed_site(tmp_path, *pairs)
    run = rehearse.start(
        tmp_path, "--blocks", "1", "--arms", "patched", site=site, runs_root=runs_root
    )
    if during is not None:
        during(run)
    run.process.wait(timeout=TIMEOUT_S)
    assert rehearse.wait_until_clean(run) == []
    return run.output()


def _wait_for(run: rehearse.Rehearsal, look: Callable[[], list[Path]]) -> Path:
    deadline = time.monotonic() + TIMEOUT_S
    while not (found := look()):
        assert run.process.poll() is None, run.output()[-2000:]
        assert time.monotonic() < deadline, run.output()[-2000:]
        time.sleep(0.02)
    return found[0]


def _lead_elsewhere(run: rehearse.Rehearsal, elsewhere: Path) -> None:
    """Another file system stands over the run's KV directory, from its making to the run's end."""
    target = _wait_for(run, lambda: list(run.home.glob("r8-*/array/xfs/kv/r8-*")))
    subprocess.run(["mount", "--bind", str(elsewhere), str(target)], check=True, timeout=30)
    try:
        _wait_for(run, lambda: find_runs(run.runs_root))
    finally:
        subprocess.run(["umount", str(target)], check=True, timeout=30)


def _evidence(tmp_path: Path) -> Evidence:
    (path,) = find_runs(tmp_path / "runs")
    evidence = read_run(path)
    # A run that broke off is refused by every rule at once, which shows nothing of the one meant.
    assert evidence.run.complete
    return evidence


def test_a_run_whose_page_cache_was_not_dropped_is_refused(tmp_path: Path) -> None:
    output = _run(tmp_path, ('name = "local"', 'name = "local"\ndrop_caches = ["true"]'))
    refused = {one.rule_id: said(one) for one in not_held(_evidence(tmp_path))}
    print(refused)
    assert {"C3", "C4"} <= set(refused), output[-2000:]
    assert "refuted" in refused["C3"]
    assert "C3" in output


def test_a_run_whose_kv_lies_on_another_device_is_refused(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    output = _run(tmp_path, during=lambda run: _lead_elsewhere(run, elsewhere))
    refused = {one.rule_id: said(one) for one in not_held(_evidence(tmp_path))}
    print(refused)
    assert "refuted" in refused["C1"], output[-2000:]
    assert "C4" in refused


def test_a_run_in_which_one_of_sixteen_requests_failed_is_refused(tmp_path: Path) -> None:
    engine = '"-m", "vllm.entrypoints.openai.api_server"'
    output = _run(tmp_path, (engine, f'"{FAILING_SERVER}"'))
    evidence = _evidence(tmp_path)
    refused = {one.rule_id: said(one) for one in not_held(evidence)}
    print(refused)
    assert "1 of 16 requests failed" in refused.get("Q1", ""), output[-2000:]
    with connect([evidence]) as base:
        rows = base.sql(
            "SELECT outcome, count(*) FROM requests WHERE phase = 'measure' GROUP BY outcome"
        ).fetchall()
    assert dict(rows) == {"ok": 15, "http_error": 1}


def test_a_full_disk_ends_with_one_clear_line_and_keeps_what_was_written(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(small)], check=True, timeout=30
    )
    try:
        output = _run(tmp_path, ("blocks = 3", "blocks = 3"), runs_root=small / "runs")
        assert "Traceback" not in output
        assert "No space" in output or "full" in output or "bytes free" in output
        for path in find_runs(small / "runs"):
            assert not read_run(path).run.complete
    finally:
        subprocess.run(["umount", str(small)], check=True, timeout=30)
