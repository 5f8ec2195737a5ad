"""A device that is not shaped is measured by fio before every block, and nothing is left of it."""

from __future__ import annotations

import hashlib
import shlex
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from r8.claims.ledger import load_ledger
from r8.claims.reports import load_reports
from r8.errors import SiteError
from r8.lab.campaign.campaign import plan_campaign
from r8.lab.instruments.fio import fio_plan
from r8.lab.instruments.readers import CEILING, SERIAL
from r8.lab.machine.supervisor import Supervisor
from r8.lab.preflight.dry_run import dry_run
from r8.lab.preflight.preflight import preflight
from r8.lab.site.load import load_site
from r8.lab.site.machines import ALIGNMENT_BYTES, Device, Host, Stress
from r8.lab.testbed import prepare
from r8.message import Check, Message
from r8.model import Outcome
from r8.tests.support.cluster_runs import R1, cluster_spec
from r8.tests.support.findings import all_held
from r8.tests.support.judged_run import judged_run
from r8.verdict.gates import gate
from r8.verdict.session import open_session

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from r8.lab.site.file import LoadedSite

SITES = Path(__file__).resolve().parents[4] / "data" / "sites"
MIB = 1 << 20
SMALL = Stress(read_bytes=16 * MIB, queue_depth=8, threads=2, seconds=5)
CHUNK_TOKENS, BYTES_PER_TOKEN = 256, 4096
with_fio = pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")


def _site(tmp_path: Path, **device: Any) -> LoadedSite:
    """The published R1 platform with its array in a directory of this test."""
    loaded = load_site(SITES / "mi308x-r1.toml")
    fields: dict[str, Any] = {"kv_dir": str(tmp_path), "fio": SMALL} | device
    array = Device(name="array", host="node0", **fields)
    plan = msgspec.structs.replace(
        loaded.site.scenarios[R1], chunk_tokens=CHUNK_TOKENS, bytes_per_token=BYTES_PER_TOKEN
    )
    host = Host(name="node0", drop_caches=("true",))
    site = msgspec.structs.replace(
        loaded.site, devices=(array,), hosts=(host,), scenarios={R1: plan}
    )
    return msgspec.structs.replace(loaded, site=site)


@pytest.fixture
def supervisor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Supervisor]:
    with Supervisor(tmp_path_factory.mktemp("supervisor")) as one:
        yield one


def _rows(loaded: LoadedSite, supervisor: Supervisor) -> list[dict[str, Any]]:
    with prepare(loaded, R1, supervisor, lambda _: None) as testbed:
        return list(testbed.calibration("array", 0))


@with_fio
def test_a_cluster_records_what_fio_got_from_its_device(
    tmp_path: Path, supervisor: Supervisor
) -> None:
    ceiling, serial = _rows(_site(tmp_path), supervisor)
    assert (ceiling["name"], serial["name"]) == ("ceiling", "serial")
    assert ceiling["read_bytes"] == 16 * MIB
    assert serial["read_bytes"] == 2 * MIB
    assert (ceiling["direct"], serial["direct"]) == (True, False)
    assert (ceiling["queue_depth"], serial["queue_depth"]) == (8, 1)
    assert {row["tool"] for row in (ceiling, serial)} == {"fio"}
    assert {row["device"] for row in (ceiling, serial)} == {"array"}
    assert ceiling["elapsed_ns"] > 0
    assert list(tmp_path.iterdir()) == [], "the files are removed"


@with_fio
def test_a_block_is_measured_once_and_the_next_block_anew(
    tmp_path: Path, supervisor: Supervisor
) -> None:
    loaded = _site(tmp_path)
    with prepare(loaded, R1, supervisor, lambda _: None) as testbed:
        first, same, next_block = (testbed.calibration("array", block) for block in (0, 0, 1))
    assert first == same
    assert first[0]["mono_ns"] < next_block[0]["mono_ns"]


@with_fio
@pytest.mark.parametrize("kind", [CEILING, SERIAL])
def test_no_two_blocks_of_the_files_are_equal(tmp_path: Path, kind: str) -> None:
    loaded = _site(tmp_path)
    plan = fio_plan(loaded.site, loaded.site.scenarios[R1], "array")
    assert plan is not None
    Path(plan.folder.path).mkdir()
    subprocess.run(plan.argv(kind, write=True), check=True, capture_output=True)
    seen = [
        hashlib.sha256(content[at : at + 4096]).digest()
        for path in Path(plan.folder.path).iterdir()
        for content in [path.read_bytes()]
        for at in range(0, len(content), 4096)
    ]
    assert len(seen) >= 2 * MIB // 4096
    assert len(set(seen)) == len(seen)


def test_sizes_follow_the_declared_link_and_the_site_file() -> None:
    assert Stress().ceiling_bytes(12_500_000_000) == pytest.approx(62.5e9, rel=1e-3)
    assert Stress().ceiling_bytes(None) == 16 << 30
    assert Stress(read_bytes=5, threads=2).ceiling_bytes(None) == 2 * MIB
    assert Stress().serial_files(16 << 30, 64 * MIB) == 32
    assert Stress().serial_files(16 * MIB, 64 * MIB) == 2
    plan = load_site(SITES / "mi308x-r1.toml").site.scenarios["r1-parallel-read"]
    assert msgspec.structs.replace(plan, bytes_per_token=262144).file_bytes == 64 * MIB
    odd = msgspec.structs.replace(plan, bytes_per_token=1000, ranks=8)
    assert odd.file_bytes % ALIGNMENT_BYTES == 0


def test_the_site_file_sets_size_block_depth_and_time(tmp_path: Path) -> None:
    stress = Stress(read_bytes=64 * MIB, block_bytes=4 * MIB, queue_depth=32, threads=2, seconds=3)
    site = _site(tmp_path, fio=stress).site
    plan = fio_plan(site, site.scenarios[R1], "array", "x")
    assert plan is not None
    line = shlex.join(plan.argv(CEILING, write=False))
    assert line.startswith("timeout -k 5 23 fio ")
    for word in (f"--bs={4 * MIB}", "--iodepth=16", "--numjobs=2", "--runtime=3", "--direct=1"):
        assert word in line
    assert f"--size={32 * MIB}" in plan.argv(CEILING, write=True)


@pytest.mark.parametrize(
    "line", ["read_bytes = -1", "block_bytes = 1000", "threads = 0", "seconds = 0", "depth = 3"]
)
def test_settings_that_cannot_be_are_refused_by_name(tmp_path: Path, line: str) -> None:
    text = (SITES / "mi308x-r1.toml").read_text()
    path = tmp_path / "site.toml"
    path.write_text(text.replace('block_device = "md0"\n', f"fio = {{ {line} }}\n"))
    with pytest.raises(SiteError, match=r"fio|depth"):
        load_site(path)


def test_too_little_room_is_refused_with_both_numbers(
    tmp_path: Path, supervisor: Supervisor
) -> None:
    loaded = _site(tmp_path, fio=Stress(read_bytes=1 << 60))
    with pytest.raises(SiteError, match=r"bytes free, fio's files need \d+.*fio.read_bytes"):
        _rows(loaded, supervisor)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("echo 'file system does not support direct=1' >&2; exit 1", "code 1: file system does"),
        ("echo not json", "its answer says"),
        ('echo \'{"jobs": [{"read": {"io_bytes": 0, "runtime": 0}}]}\'', "0 bytes in 0 ms"),
    ],
)
def test_a_failing_fio_is_told_in_its_own_words_and_leaves_nothing(
    tmp_path: Path, supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch, body: str, words: str
) -> None:
    stand_in = tmp_path / "bin" / "fio"
    stand_in.parent.mkdir()
    stand_in.write_text(f"#!/bin/sh\n{body}\n")
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", f"{stand_in.parent}:/usr/bin:/bin")
    pool = tmp_path / "pool"
    pool.mkdir()
    with pytest.raises(SiteError, match=words):
        _rows(_site(pool), supervisor)
    assert list(pool.iterdir()) == []


def test_a_device_can_be_left_unmeasured_by_name(tmp_path: Path, supervisor: Supervisor) -> None:
    loaded = _site(tmp_path, fio=Stress(read_bytes=0))
    assert _rows(loaded, supervisor) == []
    lines = _dry_run(loaded, tmp_path)
    assert "array is not read by fio (fio.read_bytes = 0)" in "\n".join(lines)
    assert _fios(lines) == []


def _fios(lines: Iterable[str]) -> list[str]:
    """The commands among them that run fio; a comment may name it as well."""
    return [line for line in lines if " fio " in line and not line.startswith("#")]


def _dry_run(loaded: LoadedSite, tmp_path: Path) -> list[str]:
    arms = ("unpatched", "patched")
    matrix, cells = plan_campaign(loaded, R1, arms, blocks=2, seed=8)
    return list(dry_run(loaded, matrix, cells, tmp_path))


def test_a_dry_run_shows_every_fio_once_a_block(tmp_path: Path) -> None:
    lines = _dry_run(_site(tmp_path), tmp_path)
    fios = _fios(lines)
    assert len(fios) == 2 * 4
    site = _site(tmp_path).site
    plan = fio_plan(site, site.scenarios[R1], "array", "TOKEN")
    assert plan is not None
    assert f"here$ {shlex.join(plan.argv(SERIAL, write=False))}" in fios
    at = [lines.index(fios[0]), next(i for i, line in enumerate(lines) if "api_server" in line)]
    assert at == sorted(at), "the device is measured before the engine starts"


def test_behind_ssh_fio_is_one_quoted_word(tmp_path: Path) -> None:
    loaded = load_site(SITES / "nvidia.toml")
    scenario = "r2-cold-recovery"
    matrix, cells = plan_campaign(loaded, scenario, ("array",), blocks=1, seed=8)
    lines = _fios(dry_run(loaded, matrix, cells, tmp_path))
    assert len(lines) == 4
    for line in lines:
        words = shlex.split(line.partition("$ ")[2])
        assert words[:4] == ["ssh", "-o", "BatchMode=yes", "node0"]
        assert len(words) == 5


def test_preflight_counts_fio_into_the_time_and_looks_for_room(tmp_path: Path) -> None:
    found = {one.name: one for one in preflight(_site(tmp_path), R1, tmp_path)}
    # 5 blocks x 2 x (5 s + 60 s)
    assert "at most 11 min of fio" in found["duration"].saw
    big = _site(tmp_path, fio=Stress(read_bytes=1 << 60))
    refused = {one.name: one for one in preflight(big, R1, tmp_path)}["fio on array"]
    assert not refused.ok
    if shutil.which("fio"):
        assert "fio's files need" in refused.saw


def test_preflight_names_a_missing_fio(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    for name in ("sh", "df", "test"):
        (tmp_path / "bin" / name).symlink_to(str(shutil.which(name)))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    found = {one.name: one for one in preflight(_site(tmp_path), R1, tmp_path)}["fio on array"]
    assert not found.ok
    assert "install fio" in found.next_step


@with_fio
@pytest.mark.parametrize("measured", [True, False])
def test_gate_g2_judges_the_line_by_the_rows_fio_left(
    tmp_path: Path, supervisor: Supervisor, *, measured: bool
) -> None:
    """The rows are fio's, of this machine; the run around them is made up."""
    pool = tmp_path / "pool"
    pool.mkdir()
    rows = _rows(_site(pool, **({} if measured else {"fio": Stress(read_bytes=0)})), supervisor)

    def put(tables: dict[str, list[dict[str, Any]]]) -> None:
        client = [row for row in tables["calibration"] if row["name"] == "client"]
        tables["calibration"] = [*client, *rows]

    spec = cluster_spec(R1, "patched", 0, 9.3, concurrency=16)
    session = open_session([judged_run(tmp_path, spec, put)])
    held = all_held(session.findings)
    items = gate("G2", replace(session, findings=held), load_ledger(), load_reports(), 1000)
    line = next(one for one in items if one.name == "line-efficiency")
    if not measured:
        assert line.outcome is Outcome.INVALID
        assert isinstance(line.reasons[0], Message)
        assert line.reasons[0].id == "gate-no-stress"
        return
    assert line.outcome is Outcome.REPRODUCED, "1000 B/s is a slow line"
    share = rows[0]["read_bytes"] * 1e9 / rows[0]["elapsed_ns"] / 1000
    slowest = line.reasons[1]
    assert isinstance(slowest, Check)
    assert slowest.measured == pytest.approx(share)
