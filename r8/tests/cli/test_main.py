"""The r8 command: its exit codes, its one-line errors, its verbs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from r8.cli import main as cli
from r8.tests.support.judged_run import judged_run
from r8.tests.support.run_factory import SyntheticRun, build_partial, build_run

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return judged_run(tmp_path_factory.mktemp("runs"), SyntheticRun(arm="unpatched")).path


def out_of(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    code = cli.main(argv)
    out, err = capsys.readouterr()
    return code, out, err


def usage_error(capsys: pytest.CaptureFixture[str], argv: Sequence[str]) -> str:
    with pytest.raises(SystemExit) as stopped:
        cli.main(argv)
    assert stopped.value.code == 4
    return capsys.readouterr().err


@pytest.mark.parametrize("argv", [[], ["nothing"], ["judge"], ["explain"], ["judge", "x", "--no"]])
def test_usage_errors_are_one_line_and_exit_four(
    capsys: pytest.CaptureFixture[str], argv: list[str]
) -> None:
    err = usage_error(capsys, argv)
    assert err.startswith("r8: ")
    assert err.count("\n") == 1
    assert "--help" in err


def test_help_names_the_four_doors(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(["--help"])
    assert stopped.value.code == 0
    out = capsys.readouterr().out
    places = [
        out.index(f"\n{door}: ") for door in ("newcomer", "third party", "analyst", "auditor")
    ]
    assert places == sorted(places)
    assert "\nother:" not in out, "give the new verb a door in r8/cli/help_map.py"
    assert max(len(line) for line in out.splitlines()) <= 100


def test_runs_are_listed_as_json_for_a_machine(
    capsys: pytest.CaptureFixture[str], run_dir: Path
) -> None:
    code, out, _ = out_of(capsys, "runs", str(run_dir.parent), "--json")
    assert code == 0
    assert [row["run"] for row in json.loads(out)] == [run_dir.name]


def test_nothing_that_is_printed_holds_a_colour_code(
    capsys: pytest.CaptureFixture[str], run_dir: Path
) -> None:
    for verb in ("judge", "certificate", "metrics", "report"):
        _, out, err = out_of(capsys, verb, str(run_dir))
        assert "\x1b" not in out + err


def test_what_is_no_run_is_one_line_and_exit_four(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    note = tmp_path / "note.txt"
    note.write_text("no run\n")
    for verb in ("judge", "report", "certificate", "metrics"):
        for path in (note, tmp_path, tmp_path / "absent"):
            code, out, err = out_of(capsys, verb, str(path))
            assert (code, out) == (4, "")
            assert "this is not a run" in err
            assert err.count("\n") == 1


def test_a_run_without_its_seal_is_one_line_and_exit_three(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    partial, torn = tmp_path / "x.partial", tmp_path / "y"
    for path in (partial, torn):
        path.mkdir()
    (torn / "run.json").write_text("{}")
    for verb in ("judge", "report", "certificate", "metrics"):
        for path in (partial, torn):
            code, out, err = out_of(capsys, verb, str(path))
            assert (code, out) == (3, "")
            assert ("never finalised" in err) is (path == partial)
            assert ("has no MANIFEST.sha256" in err) is (path == torn)
            # `recover` knows unfinished runs by their name: it would find nothing in the other.
            assert ("r8 recover" in err) is (path == partial)
            assert err.count("\n") == 1


def test_a_tampered_run_is_refused_by_name(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = judged_run(tmp_path, SyntheticRun()).path
    log = path / "raw" / "server-a.log"
    log.chmod(0o644)
    log.write_text("nothing happened\n")
    code, _, err = out_of(capsys, "judge", str(path))
    assert code == 3
    assert "server-a.log differs from its manifest" in err


def test_judge_exits_by_verdict(capsys: pytest.CaptureFixture[str], run_dir: Path) -> None:
    code, out, err = out_of(capsys, "judge", str(run_dir))
    assert (code, err) == (5, "")
    assert "no run of arm patched" in out
    assert out.splitlines()[-1].endswith("exit code 5")


def test_a_judge_without_references_says_so(
    capsys: pytest.CaptureFixture[str], run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the wheel is, which ships none."""
    monkeypatch.setattr("r8.cli.run_arguments.REFERENCE_ROOT", run_dir / "nowhere")
    code, out, _ = out_of(capsys, "judge", str(run_dir))
    assert code == 5
    assert out.splitlines()[-1].startswith("no reference runs: claims against them are not judged")


def test_judge_finds_runs_below_a_folder_and_prints_json(
    capsys: pytest.CaptureFixture[str], run_dir: Path
) -> None:
    code, out, _ = out_of(capsys, "judge", str(run_dir.parent), "--json")
    document = json.loads(out)
    assert document["exit_code"] == code == 5
    assert {one["claim"]["claim_id"] for one in document["verdicts"]} >= {"rehearsal.prediction"}


def test_certificate_prints_every_rule_and_exits_zero_when_held(
    capsys: pytest.CaptureFixture[str], run_dir: Path
) -> None:
    code, out, _ = out_of(capsys, "certificate", str(run_dir))
    assert code == 0
    assert "C4" in out
    assert "0 rules refuse this run" in out


def test_certificate_exits_three_when_a_rule_refuses(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = judged_run(tmp_path, SyntheticRun(resident_share=1.0)).path
    code, out, _ = out_of(capsys, "certificate", str(path), "--json")
    assert code == 3
    answers = {one["rule_id"]: one["answer"] for one in json.loads(out)}
    assert answers["C3"] == "refuted"
    assert answers["C4"] == "held"


def test_metrics_give_json_without_infinity(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = judged_run(tmp_path, SyntheticRun(failures=4)).path
    code, out, _ = out_of(capsys, "metrics", str(path), "--json")
    assert code == 0
    rows = json.loads(out, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    (p50,) = [
        row
        for row in rows
        if (row["metric"], row["statistic"], row["phase"]) == ("ttft", "p50", "measure")
    ]
    assert p50["value"] == "inf"


def test_report_goes_to_a_file_or_to_standard_output(
    capsys: pytest.CaptureFixture[str], run_dir: Path, tmp_path: Path
) -> None:
    out = tmp_path / "report.md"
    assert out_of(capsys, "report", str(run_dir), "-o", str(out))[0] == 0
    code, printed, _ = out_of(capsys, "report", str(run_dir))
    assert code == 0
    assert printed == out.read_text()
    code, _, err = out_of(capsys, "report", str(run_dir), "-o", str(tmp_path / "no" / "x.md"))
    assert code == 4
    assert err.count("\n") == 1


def test_a_report_for_machines_holds_what_the_other_verbs_print(
    capsys: pytest.CaptureFixture[str], run_dir: Path, tmp_path: Path
) -> None:
    code, printed, _ = out_of(capsys, "report", str(run_dir), "--json")
    assert code == 0
    found = json.loads(printed)
    assert found["metrics"] == json.loads(out_of(capsys, "metrics", str(run_dir), "--json")[1])
    certificate = json.loads(out_of(capsys, "certificate", str(run_dir), "--json")[1])
    assert found["certificate"] == certificate
    judged = json.loads(out_of(capsys, "judge", str(run_dir), "--json")[1])["verdicts"]
    here = [one for one in judged if one["claim"]["claim_id"] not in found["claims_not_asked"]]
    assert {one["claim"]["claim_id"]: one for one in found["verdicts"]} == {
        one["claim"]["claim_id"]: one for one in here
    }
    assert [one["run_id"] for one in found["runs"]] == [run_dir.name]
    with pytest.raises(SystemExit) as refused:
        cli.main(["report", str(run_dir), "--json", "-o", str(tmp_path / "x.md")])
    assert refused.value.code == 4


def test_runs_lists_what_is_below_a_folder_and_what_cannot_be_trusted(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert out_of(capsys, "runs", str(tmp_path))[1].startswith("no finished runs")
    path = judged_run(tmp_path, SyntheticRun(complete=False)).path
    assert "recovered, measures nothing" in out_of(capsys, "runs", str(tmp_path))[1]
    (path / "extra").write_text("")
    assert "cannot be trusted: extra is not in" in out_of(capsys, "runs", str(tmp_path))[1]


def test_explain_prints_a_rule_or_says_which_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, _ = out_of(capsys, "explain", "c3")
    assert code == 0
    assert out.startswith("C3  the page cache was dropped")
    code, _, err = out_of(capsys, "explain", "X1")
    assert code == 4
    assert "choose one of C1" in err


def test_lab_verbs_without_the_lab_say_that_they_need_the_checkout(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_lab(name: str) -> ModuleSpec | None:
        assert name.startswith("r8.lab")
        return None

    monkeypatch.setattr(cli, "find_spec", no_lab)
    for verb in (["patch", "status"], ["preflight", "--site", "x.toml"], ["status"], ["clean"]):
        code, _, err = out_of(capsys, *verb)
        assert code == 4
        assert f"`r8 {verb[0]}` acts on machines" in err
        assert "checkout" in err


def test_recover_is_a_verb_of_the_judge(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, _, err = out_of(capsys, "recover", str(tmp_path))
    assert code == 4
    assert "no unfinished run" in err


def test_a_reader_that_leaves_is_no_error(run_dir: Path) -> None:
    command = f"{sys.executable} -m r8 metrics {run_dir} --json | head -n 1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout == "[\n"


def test_python_m_r8_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "r8", "explain", "C1"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("C1  ")


# `patch` has four verbs of its own, with --json each.
WITHOUT_JSON = {"patch"}


def test_every_verb_has_json_for_machines(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    verbs = re.findall(r"^  ([a-z]+) +\S", capsys.readouterr().out, flags=re.MULTILINE)
    assert {"judge", "explain", "recover", "rounds", "status", "clean", "checklist"} <= {*verbs}
    for verb in {*verbs} - WITHOUT_JSON:
        with pytest.raises(SystemExit):
            cli.main([verb, "--help"])
        assert "--json" in capsys.readouterr().out, verb


@pytest.mark.parametrize("rule", ["C4", "a1"])
def test_a_rule_is_explained_to_a_machine(rule: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain", rule, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rule_id"] == rule.upper()


def test_recover_tells_a_machine_what_it_sealed_and_what_it_could_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    partial = build_partial(tmp_path, SyntheticRun())
    broken = build_partial(tmp_path, SyntheticRun(block=1))
    (broken / "run.json").write_text("{")
    assert cli.main(["recover", str(tmp_path), "--json"]) == 3
    found = json.loads(capsys.readouterr().out)
    assert found["exit_code"] == 3
    sealed = {row["partial"]: row["recovered"] for row in found["runs"]}
    assert sealed == {str(partial): str(partial.with_suffix("")), str(broken): None}


def test_what_is_printed_has_no_colour_whatever_the_environment_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    run = build_run(tmp_path, SyntheticRun())
    for verb in (["certificate", str(run)], ["metrics", str(run)], ["runs", str(tmp_path)]):
        cli.main(verb)
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("verb", "loaded"), [(["explain", "C3"], "0 []"), (["status"], "0 ['r8.lab']")]
)
def test_a_verb_that_reads_loads_nothing_of_the_lab(verb: list[str], loaded: str) -> None:
    """Neither code that acts on machines, nor a fifth of a second for what it does not use."""
    program = (
        f"import sys; from r8.cli.main import main; code = main({verb!r}); "
        "print(code, sorted(one for one in sys.modules if one in {'r8.lab', 'scipy'}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == loaded
