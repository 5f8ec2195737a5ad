from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from r8.cli.main import main
from r8.errors import EXIT_USAGE, EvidenceError, SiteError
from r8.evidence.finalise import recover
from r8.evidence.journal import lock_directory
from r8.lab.campaign.campaign import plan_campaign
from r8.lab.campaign.status import RUNS_ROOT, facts, text
from r8.lab.site.load import load_site
from r8.lab.site.matrix import (
    Matrix,
    cell_states,
    eta_s,
    find_matrix,
    finished_run,
    has_matrix,
    mark_broken,
    matrix_path,
    next_run_id,
    write_matrix,
)
from r8.tests.support.run_factory import SyntheticRun, build_partial

PLACES = ("b0-array-c8", "b0-array-c16", "b0-local-nvme-c8")


def matrix(campaign_id: str = "r2-x") -> Matrix:
    return Matrix(
        format=2,
        campaign_id=campaign_id,
        scenario="r2-cold-recovery",
        site="site.toml",
        site_sha256="0" * 64,
        seed=8,
        blocks=1,
        arms=("array", "local-nvme"),
        tables={"scenario": {"concurrency": [8, 16]}, "arms": {}},
        places=PLACES,
        starts=("b0-array-c8", "b0-local-nvme-c8"),
        start_estimate_s=100.0,
        cell_estimate_s=30.0,
        started_wall_ns=1,
    )


def run_at(folder: Path, name: str, *, complete: bool) -> None:
    folder.joinpath(name).mkdir(parents=True)
    (folder / name / "MANIFEST.sha256").write_text("")
    facts_of_run = {"complete": complete, "started_wall_ns": 0}
    (folder / name / "run.json").write_text(json.dumps(facts_of_run))


def states(folder: Path) -> dict[str, str]:
    return {one.place: one.state for one in cell_states(folder, matrix())}


def test_a_cell_is_done_broken_or_left_by_what_lies_on_disk(tmp_path: Path) -> None:
    run_at(tmp_path, "r2-x-b0-array-c8", complete=True)
    run_at(tmp_path, "r2-x-b0-array-c16", complete=False)
    assert states(tmp_path) == {
        "b0-array-c8": "done",
        "b0-array-c16": "broken",
        "b0-local-nvme-c8": "left",
    }
    assert "BROKEN" in text(tmp_path, matrix())
    assert facts(tmp_path, matrix())["broken_attempts"] == 1


def test_a_run_that_is_being_written_is_running_and_is_not_touched(tmp_path: Path) -> None:
    partial = tmp_path / "r2-x-b0-array-c8.partial"
    partial.mkdir()
    held = lock_directory(partial, exclusive=False)
    assert states(tmp_path)["b0-array-c8"] == "running"
    with pytest.raises(EvidenceError, match="another process"):
        mark_broken(tmp_path, "r2-x")
    assert partial.is_dir()
    assert held > 0


def test_an_interrupted_run_is_kept_and_marked(tmp_path: Path) -> None:
    partial = build_partial(tmp_path, SyntheticRun(campaign_id="r2-x", arm="array", concurrency=8))
    (tmp_path / "r2-x-b0-array-c8.lifetime").mkdir()
    (sealed,) = mark_broken(partial.parent, "r2-x")
    assert not json.loads((sealed / "run.json").read_text())["complete"]
    assert sealed.is_dir()
    assert not partial.exists()


def test_a_broken_attempt_keeps_its_id_and_the_next_one_gets_its_own(tmp_path: Path) -> None:
    assert next_run_id(tmp_path, "r2-x", "b0-array-c8") == "r2-x-b0-array-c8"
    run_at(tmp_path, "r2-x-b0-array-c8", complete=False)
    assert next_run_id(tmp_path, "r2-x", "b0-array-c8") == "r2-x-b0-array-c8-try2"
    run_at(tmp_path, "r2-x-b0-array-c8-try2", complete=True)
    found = finished_run(tmp_path, "r2-x", "b0-array-c8")
    assert found is not None
    assert found.name == "r2-x-b0-array-c8-try2"
    # Another level that begins alike is another cell.
    assert finished_run(tmp_path, "r2-x", "b0-array-c") is None


def test_the_eta_learns_each_kind_of_cell_by_itself(tmp_path: Path) -> None:
    before = eta_s(matrix(), cell_states(tmp_path, matrix()))
    assert before == 100.0 + 30.0 + 30.0 + 100.0 + 30.0
    run_at(tmp_path, "r2-x-b0-array-c8", complete=True)
    found = cell_states(tmp_path, matrix())
    taken = found[0].seconds
    assert taken is not None
    assert eta_s(matrix(), found) == 30.0 + taken


def test_the_last_campaign_and_a_named_one_are_found(tmp_path: Path) -> None:
    write_matrix(tmp_path, matrix("r2-a"))
    write_matrix(tmp_path, matrix("r2-b"))
    assert find_matrix(tmp_path, "last").campaign_id == "r2-b"
    assert find_matrix(tmp_path, "r2-a") == matrix("r2-a")
    with pytest.raises(SiteError, match="no campaign r2-c"):
        find_matrix(tmp_path, "r2-c")


def test_a_campaigns_plan_is_never_rewritten(tmp_path: Path) -> None:
    write_matrix(tmp_path, matrix())
    path = matrix_path(tmp_path, "r2-x")
    path.write_text(path.read_text().replace("site.toml", "mine.toml"))
    write_matrix(tmp_path, matrix())
    assert find_matrix(tmp_path, "r2-x").site == "mine.toml"


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"format": 2}'])
def test_a_damaged_plan_is_named(tmp_path: Path, text: str) -> None:
    matrix_path(tmp_path, "r2-x").write_text(text)
    with pytest.raises(SiteError, match="cannot be read"):
        find_matrix(tmp_path, "r2-x")


@pytest.mark.parametrize("written", [1, 3])
def test_a_plan_of_another_format_is_not_resumed(tmp_path: Path, written: int) -> None:
    matrix_path(tmp_path, "r2-x").write_text(json.dumps({"format": written}))
    with pytest.raises(SiteError, match=f"campaign format {written}, this R8 reads 2"):
        find_matrix(tmp_path, "r2-x")


@pytest.mark.parametrize(
    "change",
    [{"seed": 9}, {"arms": ["array"]}, {"blocks": 2}, {"places": PLACES[:2]}, {"tables": {}}],
)
def test_a_plan_that_was_changed_after_it_was_declared_is_refused(
    tmp_path: Path, change: dict[str, object]
) -> None:
    write_matrix(tmp_path, matrix())
    path = matrix_path(tmp_path, "r2-x")
    kept = {"tables": {"scenario": {"concurrency": [4]}, "arms": {}}} if "tables" in change else {}
    path.write_text(json.dumps(json.loads(path.read_text()) | change | kept))
    with pytest.raises(SiteError, match="changed after it was declared"):
        find_matrix(tmp_path, "r2-x")


def test_a_plan_declares_what_the_site_says_of_scenario_and_arms() -> None:
    loaded = load_site(Path("data/sites/rehearsal.toml"))
    found = []
    for seed in (8, 8, 9):
        planned, cells = plan_campaign(loaded, "r2-cold-recovery", ("array",), blocks=1, seed=seed)
        found.append(planned.plan_sha256)
        assert planned.plan["places"] == [one.name for one in cells]
        assert planned.plan["tables"]["scenario"]["prompt_tokens"] == 788
        assert planned.plan["tables"]["arms"]["array"]["treatment"]["patch"] == "patched"
    assert found[0] == found[1] != found[2]


def test_recovering_by_hand_counts_as_broken_too(tmp_path: Path) -> None:
    spec = SyntheticRun(campaign_id="r2-x", arm="array", concurrency=8, run_id="r2-x-b0-array-c8")
    partial = build_partial(tmp_path, spec)
    recover(partial)
    assert states(partial.parent)["b0-array-c8"] == "broken"


def test_one_damaged_plan_hides_no_other_campaign(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_matrix(tmp_path / "r2-cold-recovery", matrix("r2-whole"))
    for name, words in (("half", '{"format": 1, "campai'), ("list", "[]")):
        matrix_path(tmp_path / "r2-cold-recovery", name).write_text(words)
    assert main(["status", "--runs-root", str(tmp_path)]) == EXIT_USAGE
    told = capsys.readouterr()
    assert "r2-whole (r2-cold-recovery, site.toml): 3 left" in told.out
    assert [
        line.startswith("r8: the campaign's plan cannot") for line in told.err.splitlines()
    ] == [
        True,
        True,
    ]


@pytest.mark.parametrize("words", [None, "{}", '{"compl', "[]"])
def test_a_run_whose_own_words_are_damaged_is_listed_as_such(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: str | None
) -> None:
    run_at(tmp_path / "r1-model-load", "whole", complete=True)
    run_at(tmp_path / "r1-model-load", "damaged", complete=True)
    path = tmp_path / "r1-model-load" / "damaged" / "run.json"
    path.unlink()
    if words is not None:
        path.write_text(words)
    assert main(["status", "--runs-root", str(tmp_path)]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert any("damaged" in row and "run.json cannot be read" in row for row in rows)
    assert any("whole" in row and "finished" in row for row in rows)


@pytest.mark.parametrize(
    "wanted", ["/a/path/to/r2-a.campaign.json", "*", "r2-[", "../r2-a", "r2-c"]
)
def test_what_is_no_id_of_a_campaign_is_none(tmp_path: Path, wanted: str) -> None:
    write_matrix(tmp_path, matrix("r2-a"))
    assert has_matrix(tmp_path, "r2-a")
    assert has_matrix(tmp_path, "last")
    assert not has_matrix(tmp_path, wanted)


def test_what_to_type_next_finds_the_campaign_where_it_lies(tmp_path: Path) -> None:
    folder = tmp_path / "my runs" / "r2-cold-recovery"
    shown = text(folder, matrix()).splitlines()[-1]
    words = shlex.split(shown.partition("go on with: ")[2])
    assert words[-4:] == ["--resume", "r2-x", "--runs-root", str(tmp_path / "my runs")]
    assert "--runs-root" not in text(RUNS_ROOT / "r2-cold-recovery", matrix())


def test_a_folder_that_is_not_there_has_no_status(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A typo would read as "nothing was ever run"."""
    assert main(["status", "--runs-root", str(tmp_path / "rnus")]) == EXIT_USAGE
    assert "there is no such folder" in capsys.readouterr().err
