"""Runs of schema 1: the pinned reference runs are read as schema 2, every other one is refused."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from r8.errors import EvidenceError
from r8.evidence.manifest import MANIFEST, manifest_text
from r8.evidence.reader import find_runs, read_run
from r8.evidence.upgrade import pins
from r8.model import Device, KvRun, TransferRun, Treatment
from r8.roles import Role

REFERENCE = Path(__file__).resolve().parents[3] / "data" / "reference"
PATCHED = "r1-parallel-read/r1-parallel-read-20261130T125346Z-r1-b0-patched-c16"
CHECKPOINT = "r1-checkpoint/r1-checkpoint-20261130T160536Z-b0-local-sharded-c4"


def test_every_reference_run_of_schema_1_is_pinned_and_nothing_else() -> None:
    old = [
        path
        for path in find_runs(REFERENCE)
        if json.loads((path / "run.json").read_text())["schema_version"] == 1
    ]
    assert {path.name for path in old} == set(pins())
    assert all(re.fullmatch(r"[0-9a-f]{64}", digest) for digest in pins().values())


def test_an_upgraded_kv_run_says_what_a_run_of_schema_2_says() -> None:
    run = read_run(REFERENCE / PATCHED).run
    assert isinstance(run, KvRun)
    assert (run.schema_version, run.role, run.plan_sha256) == (2, Role.ARRAY, None)
    assert run.treatment == Treatment(patch="patched", connector="disk", reads="parallel")
    assert (run.kv_host, run.kv_device) == ("local", "loop0")
    assert run.other_kv_devices == ()
    assert (run.fallback_level, run.instances) == ("loop-xfs", ("a",))
    assert run.expected_bytes == 16 * 3 * run.expectation.chunk_bytes


def test_an_upgraded_checkpoint_is_a_transfer() -> None:
    run = read_run(REFERENCE / CHECKPOINT).run
    assert isinstance(run, TransferRun)
    assert (run.role, run.job, run.moves, run.tool) == (
        *(Role.LOCAL, "checkpoint", "write", "sharded"),
    )
    assert run.workers == ("w0", "w1", "w2", "w3")
    assert run.other_kv_devices == (Device(host="local", name="loop0"),)
    assert run.expected_bytes == run.total_bytes == 201_326_592


@pytest.mark.parametrize(
    ("scenario", "roles"),
    [
        ("r2-cold-recovery", {"array": "array", "local-nvme": "local", "recompute": "recompute"}),
        ("r3-tp4x2", {"pool": "pool", "fs-own": "shared", "fs-cross": "shared"}),
    ],
)
def test_arms_of_reference_runs_have_their_roles(scenario: str, roles: dict[str, str]) -> None:
    first = {
        path.name.rpartition("-c")[0].partition("-b0-")[2]: path
        for path in find_runs(REFERENCE / scenario)
        if "-b0-" in path.name
    }
    runs = {arm: read_run(first[arm]).run for arm in roles}
    assert {arm: str(run.role) for arm, run in runs.items()} == roles
    treated = {arm: run.treatment for arm, run in runs.items() if isinstance(run, KvRun)}
    nothing = Treatment(patch=None, connector=None, reads=None)
    shared = Treatment(patch="unpatched", connector="fs", reads=None)
    assert treated.get("recompute", nothing) == nothing
    assert treated.get("fs-own", shared) == shared


def test_upgraded_tables_hold_the_rows_that_were_there(tmp_path: Path) -> None:
    evidence = read_run(REFERENCE / PATCHED)
    old = pq.read_table(evidence.path / "probes.parquet")
    new = evidence.table("probes")
    reals = old.column("value_real").to_pylist()
    wholes = old.column("value").to_pylist()
    wanted = [whole if real is None else real for real, whole in zip(reals, wholes, strict=True)]
    assert new.column("value").to_pylist() == wanted
    assert set(evidence.table("residency").column("host").to_pylist()) == {"local"}
    assert set(evidence.table("calibration").column("host").to_pylist()) == {"local"}
    for name in ("requests", "chunks", "events"):
        kept = pq.read_table(evidence.path / f"{name}.parquet")
        assert evidence.table(name).to_pylist() == kept.to_pylist()


def test_the_lines_of_an_upgraded_log_lie_inside_the_requests_they_name() -> None:
    evidence = read_run(REFERENCE / PATCHED)
    sent = {
        row["server_request_id"]: (row["sent_ns"], row["first_content_ns"])
        for row in evidence.table("requests").to_pylist()
        if row["phase"] == "measure"
    }
    found = 0
    for row in evidence.table("engine_log").to_pylist():
        name = (row["server_request_id"] or "").rsplit("-", 2)[0]
        if row["kind"] == "retrieved" and name in sent:
            begin, end = sent[name]
            assert begin < row["mono_ns"] < end
            found += 1
    assert found == 16


def _refused(path: Path) -> EvidenceError:
    with pytest.raises(EvidenceError) as caught:
        read_run(path)
    return caught.value


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 99},  # another content under a pinned name
        {"run_id": "r1-parallel-read-of-somebody-b0-patched-c16"},
    ],
)
def test_another_run_of_schema_1_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    facts = json.loads((REFERENCE / PATCHED / "run.json").read_text()) | change
    path = tmp_path / facts["run_id"]
    shutil.copytree(REFERENCE / PATCHED, path)
    (path / "run.json").write_text(json.dumps(facts))
    (path / MANIFEST).write_text(manifest_text(path))
    error = _refused(path)
    assert f"run {path.name} is of schema 1" in error.what
    assert error.where == str(path)
    assert "r8_version" in error.next_step


def test_a_pinned_run_is_read_wherever_it_lies(tmp_path: Path) -> None:
    path = tmp_path / Path(PATCHED).name
    shutil.copytree(REFERENCE / PATCHED, path)
    assert read_run(path).run == read_run(REFERENCE / PATCHED).run
