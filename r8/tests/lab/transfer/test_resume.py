"""`--resume` without a KV engine: killed in the middle of a cell, it goes on where it stopped.

The campaign, the run directories and the kill are real; the job is a stand-in that writes one file
and has one worker say that it read it, so that nothing but an interpreter is needed.
"""

from __future__ import annotations

import hashlib
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from r8.errors import InstrumentError, SiteError, told
from r8.evidence.reader import read_run
from r8.lab.campaign.campaign import open_campaign, plan_campaign
from r8.lab.machine.supervisor import Supervisor
from r8.lab.site.load import load_site
from r8.lab.site.matrix import cell_states, mark_broken, write_matrix
from r8.lab.transfer import jobs, loading
from r8.lab.transfer.stage import Files, Job, Stage, Transfer, act
from r8.scenarios.planning import Round, planned
from r8.scenarios.test_r1_model_load import SCENARIO as DECLARED
from r8.seal.plan import require_declared

if TYPE_CHECKING:
    from collections.abc import Callable

SCENARIO = DECLARED.name
CHECKOUT = Path(__file__).resolve().parents[4]
HELD_FILE = "held"  # appears when the second cell is in its middle
PATIENCE_S = 120.0
SITE = """
schema = 2
name = "resumed"
basis = "modelled"
[comparability]
platform = "this machine"
[[hosts]]
name = "here"
drop_caches = ["true"]
[[devices]]
name = "array"
host = "here"
kv_dir = "{dir}"
block_device = "none0"
fio = {{ read_bytes = 0 }}
[engine]
host = "here"
python = ["{python}"]
[transfers.r1-model-load]
job = "load"
arms = ["one", "two"]
concurrency = [1]
worker_bytes = 5
shard_bytes = 5
blocks = 1
[transfers.r1-model-load.arm.one]
role = "array"
device = "array"
tool = "safetensors"
[transfers.r1-model-load.arm.two]
role = "array"
device = "array"
tool = "safetensors"
"""
WORKER = """
import json, os, sys, time
def say(row):
    with open(sys.argv[-1], "a") as sink: sink.write(json.dumps(row) + "\\n")
say({"ready": True, "pid": os.getpid()})
for line in sys.stdin:
    now = time.monotonic_ns()
    row = {"begin_ns": now, "end_ns": now, "bytes": 5, "files": 1, "outcome": "ok"}
    say({"order": json.loads(line)["order"], **row})
"""


def _make(transfer: Transfer) -> Files:
    (transfer.path / "file").write_bytes(b"12345")
    return Files(files=1, total_bytes=5, made=True)


def _jobs(home: Path, in_the_middle: Callable[[Stage], None]) -> tuple[Job]:
    """The loading job with a worker and phases of this test."""
    tool = home / "worker.py"
    tool.write_text(WORKER)

    def phases(stage: Stage, _files: Files) -> None:
        act(stage, "rewarm", {name: {} for name in stage.workers})
        in_the_middle(stage)

    return (replace(loading.JOB, tool=lambda _arm: tool, make=_make, phases=phases),)


def _site(home: Path) -> Path:
    path = home / "site.toml"
    if not path.exists():
        (home / "device").mkdir()
        path.write_text(SITE.format(dir=home / "device", python=sys.executable))
    return path


def begin_and_hang(home: Path) -> None:
    """What the process that will be killed does: the first cell, and half of the second."""

    def hang(_stage: Stage) -> None:
        if list(home.glob("runs/*/*/MANIFEST*")):
            (home / HELD_FILE).touch()
            time.sleep(PATIENCE_S)

    jobs.JOBS = _jobs(home, hang)
    loaded = load_site(_site(home))
    matrix, cells = plan_campaign(loaded, SCENARIO, ("one", "two"), blocks=1, seed=8)
    with (
        Supervisor(home / "supervisor") as supervisor,
        open_campaign(loaded, matrix, cells, supervisor, runs_root=home / "runs") as campaign,
    ):
        for cell in cells:
            campaign.run(cell)


def _killed(home: Path) -> None:
    """A campaign that was killed with its second cell under way, and its supervisor has cleaned
    up."""
    _site(home)
    words = "from pathlib import Path; from r8.tests.lab.transfer import test_resume as t; "
    code = f"{words}t.begin_and_hang(Path({str(home)!r}))"
    with subprocess.Popen([sys.executable, "-c", code], cwd=CHECKOUT) as process:
        deadline = time.monotonic() + PATIENCE_S
        while not (home / HELD_FILE).exists() and time.monotonic() < deadline:
            assert process.poll() is None, "it ended by itself"
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
    while list((home / "device").iterdir()) and time.monotonic() < deadline:
        time.sleep(0.05)


def _resume(home: Path, wanted: str = "last", **more: Any) -> list[Round]:
    options: dict[str, Any] = {"--resume": wanted, "--arms": None, "--runs-root": home / "runs"}
    options |= {f"--{name}": value for name, value in more.items()}
    config = cast("pytest.Config", SimpleNamespace(getoption=options.get))
    found = planned(config, load_site(home / "site.toml"), DECLARED)
    assert isinstance(found, list), found
    return found


def _digests(path: Path) -> dict[str, str]:
    files = (one for one in sorted(path.rglob("*")) if one.is_file())
    return {str(one): hashlib.sha256(one.read_bytes()).hexdigest() for one in files}


def test_a_killed_campaign_goes_on_with_the_cells_it_had_not_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _killed(tmp_path)
    folder = tmp_path / "runs" / SCENARIO
    (one,) = _resume(tmp_path)
    states: list[Any] = [state.state for state in cell_states(folder, one.matrix)]
    assert states == ["done", "broken"]
    assert list((tmp_path / "device").iterdir()) == [], "files of the killed cell"
    before = _digests(folder / f"{one.matrix.campaign_id}-{one.places[0].name}")
    assert before

    monkeypatch.setattr(jobs, "JOBS", _jobs(tmp_path, lambda _stage: None))
    mark_broken(folder, one.matrix.campaign_id)
    with (
        Supervisor(tmp_path / "supervisor") as supervisor,
        open_campaign(
            one.loaded, one.matrix, one.places, supervisor, runs_root=tmp_path / "runs"
        ) as campaign,
    ):
        paths = [campaign.run(place) for place in one.places]
    # The finished cell is as it was, byte for byte; the broken one is kept and was run anew.
    assert _digests(paths[0]) == before
    assert paths[1].name == f"{one.matrix.campaign_id}-{one.places[1].name}-try2"
    runs = [read_run(path) for path in paths]
    assert [one.run.complete for one in runs] == [True, True]
    assert {one.run.plan_sha256 for one in runs} == {campaign.kind.matrix.plan_sha256}
    require_declared(runs)
    assert not read_run(folder / paths[1].name.removesuffix("-try2")).run.complete
    assert [state.state for state in cell_states(folder, one.matrix)] == ["done", "done"]


def test_a_campaign_is_not_resumed_on_another_site(tmp_path: Path) -> None:
    loaded = load_site(_site(tmp_path))
    matrix, cells = plan_campaign(loaded, SCENARIO, ("one",), blocks=1, seed=8)
    with (
        Supervisor(tmp_path / "supervisor") as supervisor,
        open_campaign(loaded, matrix, cells, supervisor, runs_root=tmp_path / "runs"),
    ):
        pass
    site = tmp_path / "site.toml"
    site.write_text(site.read_text().replace("worker_bytes = 5", "worker_bytes = 6"))
    with pytest.raises(SiteError, match="was started with another site file"):
        _resume(tmp_path)


@pytest.mark.parametrize("other", [{"arms": "two"}, {"arms": "one,two"}, {"blocks": 2}])
def test_a_campaign_is_not_resumed_with_another_plan(tmp_path: Path, other: dict[str, Any]) -> None:
    loaded = load_site(_site(tmp_path))
    matrix, cells = plan_campaign(loaded, SCENARIO, ("one",), blocks=1, seed=8)
    with (
        Supervisor(tmp_path / "supervisor") as supervisor,
        open_campaign(loaded, matrix, cells, supervisor, runs_root=tmp_path / "runs"),
    ):
        pass
    assert _resume(tmp_path, arms="one", blocks=1)
    with pytest.raises(SiteError, match="was started with arms one and 1 blocks"):
        _resume(tmp_path, **other)


def test_campaigns_with_other_cells_are_not_resumed_as_rounds(tmp_path: Path) -> None:
    loaded = load_site(_site(tmp_path))
    folder = tmp_path / "runs" / SCENARIO
    plans = {"a": ("one",), "b": ("one", "two"), "c": ("one",)}
    for name, arms in plans.items():
        plan, _ = plan_campaign(loaded, SCENARIO, arms, blocks=1, seed=8, campaign_id=name)
        write_matrix(folder, plan)
    assert len(_resume(tmp_path, "a,c")) == 2
    with pytest.raises(SiteError, match="a and b have different cells"):
        _resume(tmp_path, "a,b")


def test_a_whole_campaign_is_not_resumed_as_a_smoke_run_whose_verdict_need_not_hold(
    tmp_path: Path,
) -> None:
    loaded = load_site(_site(tmp_path))
    for blocks in (1, 2):
        name = f"of-{blocks}"
        plan, _ = plan_campaign(loaded, SCENARIO, ("one",), blocks=blocks, seed=8, campaign_id=name)
        write_matrix(tmp_path / "runs" / SCENARIO, plan)
    assert _resume(tmp_path, "of-1", smoke=True)
    with pytest.raises(SiteError, match="was started with arms one and 2 blocks"):
        _resume(tmp_path, "of-2", smoke=True)


def test_a_campaign_named_twice_is_one_round_and_a_name_of_none_is_refused(tmp_path: Path) -> None:
    """Two rounds of the same runs are refused by the judge, after all of them."""
    loaded = load_site(_site(tmp_path))
    plan, _ = plan_campaign(loaded, SCENARIO, ("one",), blocks=1, seed=8, campaign_id="a")
    write_matrix(tmp_path / "runs" / SCENARIO, plan)
    write_matrix(tmp_path / "runs" / "r2-cold-recovery", replace(plan, campaign_id="of-another"))
    for names in ("a,a", "a,last", "a,of-another"):
        assert len(_resume(tmp_path, names)) == 1, names
    with pytest.raises(SiteError, match="no campaign of any scenario to resume by the name b"):
        _resume(tmp_path, "a,b")


def test_what_broke_a_cell_stands_before_what_broke_in_taking_its_files_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a device that is gone: neither can the cell go on, nor can its files be removed."""

    def fails(stage: Stage) -> None:
        monkeypatch.setattr(stage.testbed.supervisor, "undo", cannot)
        raise InstrumentError("rank w0 failed: EIO", where="/kv", next_step="look at the device")

    def cannot(_token: int) -> None:
        raise SiteError("not undone: files of a transfer", where="supervisor", next_step="mend it")

    monkeypatch.setattr(jobs, "JOBS", _jobs(tmp_path, fails))
    loaded = load_site(_site(tmp_path))
    matrix, cells = plan_campaign(loaded, SCENARIO, ("one",), blocks=1, seed=8)
    with (
        Supervisor(tmp_path / "supervisor") as supervisor,
        open_campaign(loaded, matrix, cells, supervisor, runs_root=tmp_path / "runs") as campaign,
    ):
        with pytest.raises(SiteError) as raised:
            campaign.run(cells[0])
        monkeypatch.undo()
    first, last = told(raised.value)
    assert first.startswith("InstrumentError: rank w0 failed: EIO")
    assert last.startswith("SiteError: not undone")
    broken = tmp_path / "runs" / SCENARIO / f"{matrix.campaign_id}-{cells[0].name}"
    assert not read_run(broken).run.complete
