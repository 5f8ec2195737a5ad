from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from r8.cli import run_arguments as runs_verbs
from r8.cli.made_files import ROOT, differing
from r8.cli.references import GENERATED, REFERENCE, made_reports, main
from r8.errors import R8Error
from r8.lab.campaign.reference import record
from r8.tests.support.judged_run import judged_run
from r8.tests.support.run_factory import SyntheticRun

if TYPE_CHECKING:
    from pathlib import Path

REPORT = GENERATED / "r1-parallel-read.md"


@pytest.fixture(name="checkout")
def _checkout(tmp_path: Path) -> Path:
    runs = [judged_run(tmp_path / "runs", SyntheticRun(arm=a)) for a in ("patched", "unpatched")]
    record([run.path for run in runs], tmp_path / REFERENCE)
    return tmp_path


def test_without_reference_runs_one_line_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--root", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"no reference runs below {REFERENCE} yet: there is no report to make"
    ]


def test_a_written_report_is_what_the_check_makes_again(checkout: Path) -> None:
    assert main(["--root", str(checkout)]) == 1
    assert main(["--root", str(checkout), "--write"]) == 0
    assert main(["--root", str(checkout), "--check"]) == 0
    assert (checkout / REPORT).read_text().startswith("# R8 report: r1-parallel-read")
    assert (checkout / REPORT.with_suffix(".html")).is_file()


def test_references_of_another_scenario_are_not_even_read(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs_verbs, "REFERENCE_ROOT", checkout / REFERENCE)
    mine = judged_run(tmp_path / "mine", SyntheticRun(campaign_id="mine"))
    kept = [one.run.arm for one in runs_verbs.references(None, [mine])]
    assert sorted(kept) == ["patched", "unpatched"]
    same = checkout / REFERENCE / "r1-parallel-read"
    for path in same.rglob("run.json"):
        path.write_text("torn")
    with pytest.raises(R8Error):
        runs_verbs.references(None, [mine])
    same.rename(same.with_name("r2-cold-recovery"))
    assert runs_verbs.references(None, [mine]) == []


def test_a_report_edited_by_hand_is_found(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["--root", str(checkout), "--write"])
    (checkout / REPORT).write_text((checkout / REPORT).read_text() + "better than it is\n")
    assert main(["--root", str(checkout)]) == 1
    assert f"differs: {REPORT}" in capsys.readouterr().out


def test_a_report_whose_runs_are_gone_is_found_and_removed(checkout: Path) -> None:
    main(["--root", str(checkout), "--write"])
    (checkout / GENERATED / "audit.en.md").write_text("of the other session")
    shutil.rmtree(checkout / REFERENCE)
    assert main(["--root", str(checkout)]) == 1
    main(["--root", str(checkout), "--write"])
    assert [path.name for path in (checkout / GENERATED).iterdir()] == ["audit.en.md"]


def test_the_committed_reports_are_those_of_the_committed_references() -> None:
    assert differing(ROOT, made_reports(ROOT)) == []
