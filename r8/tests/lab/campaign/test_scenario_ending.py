"""What a person sees when a cell ends with an error of R8's own: its line, no traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from r8.errors import EvidenceError
from r8.lab.site.matrix import Matrix, write_matrix
from r8.scenarios.cells import judge_all, require_whole
from r8.scenarios.conftest import Session
from r8.tests.support.judged_run import Tables, judged_run
from r8.tests.support.run_factory import SyntheticRun

ROOT = Path(__file__).resolve().parents[4]
R2 = "r8/scenarios/test_r2_cold_recovery.py"
FAILING = """
from r8.errors import EngineError, SiteError

def test_ours():
    raise EngineError("the engine ended", where="server-a.log", next_step="read its last lines")

def test_hidden():
    try:
        raise EngineError("rank w0 failed: Input/output error", where="/kv", next_step="look there")
    finally:
        raise SiteError("not undone: files of a transfer", where="supervisor", next_step="mend it")

def test_named():
    try:
        open("/nowhere/at/all")
    except OSError as error:
        raise SiteError("no such thing", where="there", next_step="make it") from error

def test_theirs():
    raise KeyError("a defect")
"""


def test_an_error_of_r8_is_one_line_and_a_defect_keeps_its_traceback(tmp_path: Path) -> None:
    case = tmp_path / "test_failing.py"
    case.write_text(FAILING)
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    ended = subprocess.run(
        [*argv, "-p", "r8.scenarios.conftest", "--rootdir", str(tmp_path), str(case)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1, ended.stdout
    ours, theirs = ended.stdout.split("test_theirs", 1)
    assert "EngineError: the engine ended [server-a.log] -> read its last lines" in ours
    assert "raise EngineError" not in ours
    assert "raise KeyError" in theirs
    # What broke first stands first; cleaning up after it failed too, and does not hide it.
    hidden = ours.split("test_hidden", 1)[1]
    first, then = hidden.index("EngineError: rank w0 failed"), hidden.index("then SiteError: not")
    assert first < then
    assert "FileNotFoundError" not in hidden.split("test_named", 1)[1]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("colour = 'red'\n", "colour"),
        ("x = \n", "not TOML"),
        (None, "cannot be read"),
    ],
)
def test_a_site_file_that_cannot_be_is_one_line_and_exit_four(
    tmp_path: Path, text: str | None, words: str
) -> None:
    """Also while tests are collected, where pytest would make a traceback of it."""
    site = tmp_path / "site.toml"
    if text is not None:
        site.write_text(text)
    scenario = "r8/scenarios/test_r1_parallel_read.py"
    ended = subprocess.run(
        [*[sys.executable, "-m", "pytest", "-q", scenario], "--site", str(site)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 4, ended.stdout
    assert words in ended.stdout
    assert "Traceback" not in ended.stdout
    assert ended.stdout.count("\n") <= 14


@pytest.mark.parametrize(("measured", "code"), [("", 3), ("session.run_paths.append('run')", 1)])
def test_a_session_that_measured_nothing_does_not_end_as_one_whose_claims_deviate(
    tmp_path: Path, measured: str, code: int
) -> None:
    """The gate goes on after the second, and judges the newest runs it finds."""
    case = tmp_path / "test_case.py"
    words = "from r8.scenarios.test_r1_parallel_read import SCENARIO\n"
    words += f"def test_it(session):\n    {measured}\n    assert 0\n"
    case.write_text(words)
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    ended = subprocess.run(
        [*argv, "-p", "r8.scenarios.conftest", "--rootdir", str(tmp_path), str(case)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    # 3 is pytest's own word for an internal error as well.
    assert "1 failed" in ended.stdout
    assert ended.returncode == code, ended.stdout


def test_without_a_measured_cell_there_is_nothing_to_judge() -> None:
    with pytest.raises(EvidenceError, match="no cell was measured"):
        judge_all(Session(), "r1-parallel-read")


def pytest_of(*words: str) -> subprocess.CompletedProcess[str]:
    """A pytest of its own, as nox starts one."""
    argv = [sys.executable, "-m", "pytest", "-q", *words]
    return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("option", "word", "said"),
    [
        ("--blocks", "0", "'0' is no whole number of at least 1"),
        ("--blocks", "-3", "'-3' is no whole number of at least 1"),
        ("--rounds", "0", "'0' is no whole number of at least 1"),
        ("--level", "x", "'x' is no whole number of at least 1"),
        ("--order-seed", "-1", "'-1' is no whole number of at least 0"),
        ("--resume", "", "give a campaign's id"),
        ("--resume", "nonsense", "no campaign of any scenario to resume by the name nonsense"),
        ("--resume", "last", "no campaign of r2-cold-recovery to resume by the name last"),
        ("--resume", "/x/r2-x.campaign.json", "r8 status lists them"),
        ("--level", "8", "nothing that is selected reads --level [the command line] -> leave it"),
        ("--arms", "nothing", "no such arm of r2-cold-recovery: nothing; known: array"),
    ],
)
def test_an_option_that_cannot_be_is_named_and_nothing_is_run(
    tmp_path: Path, option: str, word: str, said: str
) -> None:
    ended = pytest_of(R2, "--dry-run", f"{option}={word}", f"--runs-root={tmp_path}")
    assert ended.returncode == 4, ended.stdout
    assert said in ended.stdout + ended.stderr
    assert "Traceback" not in ended.stdout + ended.stderr
    assert "$ " not in ended.stdout


def test_a_smoke_run_of_many_blocks_is_refused(tmp_path: Path) -> None:
    codes = {}
    for blocks in ("1", "2"):
        words = ("--smoke", "--dry-run", f"--blocks={blocks}", f"--runs-root={tmp_path}")
        ended = pytest_of(R2, *words)
        codes[blocks] = ended.returncode, "and --blocks asks for 2" in ended.stdout
    assert codes == {"1": (0, False), "2": (4, True)}


@pytest.mark.parametrize(("file", "code"), [("test_cross_check.py", 0), ("test_bench_data.py", 4)])
def test_an_option_of_the_cross_check_alone_is_none_of_a_bench(file: str, code: int) -> None:
    ended = pytest_of(f"r8/scenarios/{file}", "--collect-only", "--level=8")
    assert ended.returncode == code, ended.stdout


def test_the_cells_of_rounds_do_not_bear_the_names_of_another_rounds_order(tmp_path: Path) -> None:
    root = f"--runs-root={tmp_path}"
    listed = {
        rounds: pytest_of(R2, "--collect-only", f"--rounds={rounds}", root).stdout
        for rounds in ("1", "2")
    }
    assert "test_cell[block0-local-nvme-c16]" in listed["1"]
    assert "test_cell[round2-cell21]" in listed["2"]
    assert "local-nvme" not in listed["2"]


def _plan(folder: Path, campaign_id: str, places: tuple[str, ...]) -> None:
    plan = Matrix(
        format=2,
        campaign_id=campaign_id,
        scenario=folder.name,
        site="site.toml",
        site_sha256="0" * 64,
        seed=8,
        blocks=1,
        arms=("patched",),
        tables={"scenario": {"concurrency": [16]}, "arms": {}},
        places=places,
        starts=places[:1],
        start_estimate_s=1.0,
        cell_estimate_s=1.0,
        started_wall_ns=1,
    )
    write_matrix(folder, plan)


def test_what_is_not_whole_or_not_certified_is_no_reference(tmp_path: Path) -> None:
    whole = judged_run(tmp_path / "whole", SyntheticRun(campaign_id="c", run_id="c-b0-patched-c16"))
    _plan(whole.path.parent, "c", ("b0-patched-c16",))
    require_whole([whole.path])

    part = judged_run(tmp_path / "part", SyntheticRun(campaign_id="c", run_id="c-b0-patched-c16"))
    _plan(part.path.parent, "c", ("b0-patched-c16", "b1-patched-c16"))
    with pytest.raises(EvidenceError, match=r"1 cells of c are not here \(b1-patched-c16\)"):
        require_whole([part.path])
    # Finished, but not among those this session judged (`-k`): they would not be kept.
    other = judged_run(
        tmp_path / "part", SyntheticRun(campaign_id="c", run_id="c-b1-patched-c16", block=1)
    )
    with pytest.raises(EvidenceError, match=r"1 cells of c are not here \(b1-patched-c16\)"):
        require_whole([part.path])
    # A cell that is run to hit nothing is there and takes part in no claim.
    require_whole([part.path], [other.path])

    def warm(tables: Tables) -> None:
        tables["events"] = [row for row in tables["events"] if row["name"] != "drop_end"]

    spec = SyntheticRun(campaign_id="c", run_id="c-b0-patched-c16")
    refused = judged_run(tmp_path / "refused", spec, warm)
    _plan(refused.path.parent, "c", ("b0-patched-c16",))
    with pytest.raises(EvidenceError, match=r"C3.* refuse c-b0-patched-c16"):
        require_whole([refused.path])
