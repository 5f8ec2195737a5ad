"""The whole R2 matrix of the published platform, walked on stand-ins: words, order, resume."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest

from r8.errors import EngineError
from r8.evidence.reader import read_run
from r8.lab.campaign import phases
from r8.lab.campaign.campaign import Campaign, open_campaign, plan_campaign
from r8.lab.campaign.kv_cell import KvCells
from r8.lab.campaign.status import text
from r8.lab.instruments import probes
from r8.lab.machine.supervisor import Supervisor
from r8.lab.preflight.dry_run import dry_run
from r8.lab.site.load import load_site
from r8.lab.site.matrix import cell_states, find_matrix, mark_broken
from r8.lab.site.plan import places
from r8.tests.support.standins import Standins, free_port, stand_in, standin_site

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from r8.lab.site.file import LoadedSite
    from r8.lab.site.matrix import Matrix
    from r8.lab.site.plan import Place

pytestmark = pytest.mark.qualify

SCENARIO = "r2-cold-recovery"
ARMS = ("array", "local-nvme", "recompute")


@pytest.fixture
def standins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Standins:
    monkeypatch.setattr(probes, "SETTLE_S", 0.2)
    for name in ("QUIET_S", "DURABLE_LOOK_S"):
        monkeypatch.setattr(phases, name, 0.2)
    return stand_in(tmp_path, monkeypatch)


@pytest.fixture
def loaded(tmp_path: Path) -> LoadedSite:
    return load_site(standin_site(tmp_path, {8000: free_port(), 8001: free_port()}))


@contextlib.contextmanager
def campaign_on(
    tmp_path: Path, loaded: LoadedSite, matrix: Matrix, cells: tuple[Place, ...]
) -> Iterator[Campaign]:
    with (
        Supervisor(tmp_path / "supervisor") as supervisor,
        open_campaign(loaded, matrix, cells, supervisor, runs_root=tmp_path / "runs") as campaign,
    ):
        yield campaign


def engine_starts(standins: Standins) -> list[list[str]]:
    return [
        words for words in standins.calls("docker") if "vllm.entrypoints.openai.api_server" in words
    ]


def test_a_matrix_whose_server_dies_in_cell_three_is_finished_by_a_resume(
    tmp_path: Path, standins: Standins, loaded: LoadedSite
) -> None:
    matrix, cells = plan_campaign(loaded, SCENARIO, ARMS, blocks=1, seed=8)
    folder = tmp_path / "runs" / SCENARIO
    first = [cell for cell in cells if cell.lifetime == cells[0].lifetime]
    assert len(first) == 3
    with campaign_on(tmp_path, loaded, matrix, cells) as campaign:
        done = [campaign.run(cell) for cell in first[:2]]
        standins.dying.touch()
        with pytest.raises(EngineError, match="out of memory, says the stand-in"):
            campaign.run(first[2])
        standins.dying.unlink()
        assert isinstance(campaign.kind, KvCells)
        assert campaign.kind.lifetime is None
    states = {one.place: one.state for one in cell_states(folder, matrix)}
    assert [states[cell.name] for cell in first] == ["done", "done", "broken"]
    assert list(states.values()).count("left") == 4
    assert "BROKEN" in text(folder, matrix)
    assert f"--resume {matrix.campaign_id}" in text(folder, matrix)
    assert list((tmp_path / "array").iterdir()) == list((tmp_path / "nvme").iterdir()) == []

    begun_before = len(engine_starts(standins))
    found = find_matrix(folder, "last")
    assert found == matrix
    again = places(loaded.site, found.scenario, found.arms, found.blocks, found.seed)
    assert again == cells
    mark_broken(folder, found.campaign_id)
    with campaign_on(tmp_path, loaded, found, again) as campaign:
        paths = [campaign.run(cell) for cell in again]
    assert paths[:2] == done, "a finished run is never repeated"
    # One start for the cell that broke, one for each of the two other lives.
    assert len(engine_starts(standins)) - begun_before == 3
    assert [one.state for one in cell_states(folder, matrix)] == ["done"] * 7
    broken = read_run(folder / f"{matrix.campaign_id}-{first[2].name}")
    assert not broken.run.complete
    assert paths[2].name.endswith("-try2")
    assert {path.suffix for path in folder.iterdir()} == {"", ".json"}


def test_a_dry_run_prints_the_words_that_are_run(
    tmp_path: Path, standins: Standins, loaded: LoadedSite
) -> None:
    """Every command the stand-ins were called with stands in the dry run, word by word."""
    matrix, cells = plan_campaign(loaded, SCENARIO, ("recompute", "array"), blocks=1, seed=8)
    chosen = tuple(cell for cell in cells if cell.concurrency == 8 or cell.arm == "recompute")
    printed = "\n".join(dry_run(loaded, matrix, chosen, tmp_path / "runs"))
    assert standins.calls("docker") == []
    with campaign_on(tmp_path, loaded, matrix, chosen) as campaign:
        for cell in chosen:
            campaign.run(cell)
    for words in engine_starts(standins):
        for word in words:
            assert word in printed.replace("'\"'\"'", "'"), word
    for name in ("docker exec -i vllm python3 -", "docker top vllm", "r8-drop-caches"):
        assert name in printed
    assert len(standins.calls("r8-drop-caches")) == printed.count("$ r8-drop-caches") == 5


def test_a_cell_that_ran_alone_and_one_that_shared_its_engine_hold_the_same_phases(
    tmp_path: Path, standins: Standins, loaded: LoadedSite
) -> None:
    matrix, cells = plan_campaign(loaded, SCENARIO, ("array",), blocks=1, seed=8)
    with campaign_on(tmp_path, loaded, matrix, cells) as campaign:
        runs = [read_run(campaign.run(cell)) for cell in cells[:2]]
    assert len(engine_starts(standins)) == 1
    for run in runs:
        names = run.table("events").column("name").to_pylist()
        wanted = ["run_begin", "populate_end", "durable", "drop_end", "measure_begin", "run_end"]
        assert [name for name in names if name in wanted] == wanted
        phases_seen = set(run.table("requests").column("phase").to_pylist())
        assert {"populate", "flush", "rewarm", "measure", "warm", "control"} <= phases_seen
        given = {row["name"]: row for row in run.table("calibration").to_pylist()}
        assert given["ceiling"]["read_bytes"] == 8 << 20, "fio's own reading of this test's disk"
        assert given["serial"]["device"] == given["ceiling"]["device"] == "array"
    measured = [
        {row["session"] for row in run.table("requests").to_pylist() if row["phase"] == "measure"}
        for run in runs
    ]
    assert measured == [set(range(8)), set(range(8, 24))]
