from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from r8.errors import SiteError, TamperedRunError
from r8.evidence import read_run
from r8.lab.reference import record, size_bytes
from r8.tests.judged_run import judged_run
from r8.tests.run_factory import SyntheticRun

if TYPE_CHECKING:
    from pathlib import Path


def test_a_recorded_reference_is_the_run_byte_for_byte(tmp_path: Path) -> None:
    run = judged_run(tmp_path / "runs", SyntheticRun())
    (kept,) = record([run.path], tmp_path / "reference")
    assert kept == tmp_path / "reference" / run.run.scenario / run.run.run_id
    assert read_run(kept).manifest == run.manifest
    assert size_bytes(tmp_path / "reference") > 0


def test_a_reference_is_never_overwritten(tmp_path: Path) -> None:
    run = judged_run(tmp_path / "runs", SyntheticRun())
    record([run.path], tmp_path / "reference")
    with pytest.raises(SiteError, match="never overwritten"):
        record([run.path], tmp_path / "reference")


def test_a_recovered_run_is_no_reference(tmp_path: Path) -> None:
    run = judged_run(tmp_path / "runs", SyntheticRun(complete=False))
    with pytest.raises(SiteError, match="did not end by itself"):
        record([run.path], tmp_path / "reference")


def test_a_tampered_run_is_no_reference(tmp_path: Path) -> None:
    run = judged_run(tmp_path / "runs", SyntheticRun())
    (run.path / "requests.parquet").write_bytes(b"other")
    with pytest.raises(TamperedRunError):
        record([run.path], tmp_path / "reference")
