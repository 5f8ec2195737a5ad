from __future__ import annotations

import json
import os
import sys
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from r8.claims.reader import load_claims
from r8.cli.run_arguments import REFERENCE_ROOT
from r8.errors import SiteError, TamperedRunError
from r8.evidence.finalise import finalise
from r8.evidence.manifest import MANIFEST, sha256_file
from r8.evidence.reader import find_runs, read_run
from r8.lab.campaign.reference import (
    RAW_SUFFIX,
    RECORD,
    RECORDED_MANIFEST,
    SHIPPED_BYTES_MAX,
    record,
    size_bytes,
    weight,
)
from r8.schema import TABLES
from r8.seal.bundle import state
from r8.tests.support.judged_run import judged_run
from r8.tests.support.run_factory import SyntheticRun, build_partial

if TYPE_CHECKING:
    from r8.evidence.reader import Evidence

CHECKOUT = Path(__file__).resolve().parents[4]
STREAMS = ("client-measure-a-0.raw.gz", "client-measure-b-0.jsonl.gz")  # the second: the older name


def _with_raw(directory: Path) -> Evidence:
    """A synthetic run with the raw files the instruments leave."""
    partial = build_partial(directory, SyntheticRun())
    raw = partial / "raw"
    raw.mkdir(exist_ok=True)
    log = f"config at {CHECKOUT}/model, python {sys.base_prefix}/lib\n" * 100
    (raw / "iostat.json").write_text(log)
    for name in STREAMS:
        (raw / name).write_bytes(os.urandom(2000))
    (raw / "plan-measure.json").write_text("{}")
    return read_run(finalise(partial, complete=True))


def test_a_reference_says_everything_its_run_said(tmp_path: Path) -> None:
    run = _with_raw(tmp_path / "runs")
    (kept,) = record([run.path], tmp_path / "reference")
    assert kept == tmp_path / "reference" / run.run.scenario / run.run.run_id
    claims = load_claims(run.run.scenario)
    assert state([read_run(kept)], claims) == state([run], claims)


def _raw(kept: Path, name: str) -> bytes:
    """A raw text of a reference, out of the archive of its campaign."""
    said = json.loads((kept / RECORD).read_text())
    archive = kept.parent / said["raw"]
    assert sha256_file(archive) == said["raw_sha256"]
    with tarfile.open(archive) as tar:
        member = tar.extractfile(f"{kept.name}/{name}")
        assert member is not None
        return member.read()


def test_tables_of_a_reference_are_the_runs_own_bytes(tmp_path: Path) -> None:
    run = _with_raw(tmp_path / "runs")
    (kept,) = record([run.path], tmp_path / "reference")
    mine = read_run(kept).manifest
    ours = ["run.json", *(f"{name}.parquet" for name in TABLES)]
    assert {name: mine[name] for name in ours} == {name: run.manifest[name] for name in ours}
    assert set(mine) == {*ours, RECORD}
    assert _raw(kept, RECORDED_MANIFEST) == (run.path / MANIFEST).read_bytes()
    assert _raw(kept, "raw/plan-measure.json") == b"{}"


def test_a_reference_leaves_out_streams_packs_texts_and_names_no_place(tmp_path: Path) -> None:
    run = _with_raw(tmp_path / "runs")
    (kept,) = record([run.path], tmp_path / "reference")
    became = json.loads((kept / RECORD).read_text())["files"]
    assert set(became) == set(run.manifest)
    assert {became[f"raw/{name}"] for name in STREAMS} == {"left out"}
    assert became["raw/iostat.json"] == "packed, places replaced"
    text = _raw(kept, "raw/iostat.json").decode()
    assert text.startswith("config at CHECKOUT/model, python PYTHON/lib\n")
    assert size_bytes(kept.parent) < size_bytes(run.path)


def test_the_runs_of_a_campaign_share_one_archive(tmp_path: Path) -> None:
    specs = [SyntheticRun(run_id=f"campaign-1-b{n}", block=n) for n in range(2)]
    runs = [judged_run(tmp_path / "runs", spec) for spec in specs]
    kept = record([run.path for run in runs], tmp_path / "reference")
    (archive,) = (tmp_path / "reference").rglob(f"*{RAW_SUFFIX}")
    assert archive.name == f"{runs[0].run.campaign_id}{RAW_SUFFIX}"
    assert [_raw(one, RECORDED_MANIFEST) for one in kept] == [
        (run.path / MANIFEST).read_bytes() for run in runs
    ]
    with pytest.raises(SiteError, match="never overwritten"):
        record([runs[1].path], tmp_path / "reference")


def test_the_same_run_is_the_same_reference_byte_for_byte(tmp_path: Path) -> None:
    run = _with_raw(tmp_path / "runs")
    (first,) = record([run.path], tmp_path / "one")
    (second,) = record([run.path], tmp_path / "two")
    assert read_run(first).manifest == read_run(second).manifest  # with the archive's digest


def test_more_references_than_may_travel_are_called_too_much(tmp_path: Path) -> None:
    (tmp_path / "run").write_bytes(b"1234")
    assert "TOO MUCH" not in weight(tmp_path)
    os.truncate(tmp_path / "run", SHIPPED_BYTES_MAX + 1)
    assert "TOO MUCH" in weight(tmp_path)


def test_the_references_of_this_checkout_may_travel() -> None:
    assert size_bytes(REFERENCE_ROOT) <= SHIPPED_BYTES_MAX
    for path in find_runs(REFERENCE_ROOT):
        assert read_run(path).run.complete


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
