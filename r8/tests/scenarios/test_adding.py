"""Adding an arm and a scenario as CONTRIBUTING says, in a copy: nothing else is touched."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from r8.errors import EXIT_USAGE, SiteError
from r8.forensics.certificate import connect_settled
from r8.lab.site.load import load_site
from r8.lab.site.plan import places
from r8.roles import Role
from r8.scenarios.scenario import Scenario
from r8.tests.support.judged_run import judged_run
from r8.tests.support.run_factory import SyntheticRun

ROOT = Path(__file__).resolve().parents[3]
REHEARSAL = ROOT / "data" / "sites" / "rehearsal.toml"

CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def _blocks(title: str) -> list[str]:
    """The code blocks of one section of CONTRIBUTING."""
    section = re.search(rf"^## {title}$(.*?)^## ", CONTRIBUTING, re.MULTILINE | re.DOTALL)
    assert section is not None
    return re.findall(r"^```\w+\n(.*?)^```$", section[1], re.MULTILINE | re.DOTALL)


def _ended(*words: str, cwd: Path = ROOT) -> str:
    ended = subprocess.run(
        [sys.executable, "-m", *words], cwd=cwd, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def _dry_run(file: Path, site: Path, *more: str) -> str:
    """The dry run of a scenario file, wherever it lies."""
    options = ("--dry-run", "--blocks=1", f"--site={site}", f"--runs-root={site.parent / 'runs'}")
    plugins = ("-p", "no:cacheprovider", "-p", "r8.scenarios.conftest")
    where = () if file.is_relative_to(ROOT) else ("--rootdir", str(file.parent))
    return _ended(
        "pytest",
        "-s",
        "-q",
        *(plugins if where else plugins[:2]),
        *where,
        str(file),
        *options,
        *more,
    )


@pytest.fixture
def with_rdma(tmp_path: Path) -> Path:
    """The rehearsal with an arm of its own: a table, and its name in the scenario's `arms`."""
    arm, plan = _blocks("Add an arm")
    text = REHEARSAL.read_text().replace("\n[scenarios.", f"\n{arm}\n[scenarios.", 1)
    head, names = plan.splitlines()
    text, count = re.subn(
        rf"^{re.escape(head)}\narms = .*$", plan.strip(), text, flags=re.MULTILINE
    )
    assert count == 1
    assert '"array-rdma"' in names
    site = tmp_path / "site.toml"
    site.write_text(text)
    return site


def test_an_arm_is_a_table_of_the_site_and_a_name_in_a_plan(with_rdma: Path) -> None:
    site = load_site(with_rdma).site
    plan = site.scenarios["r2-cold-recovery"]
    cells = places(site, "r2-cold-recovery", plan.arms, 1, 8)
    assert {(one.arm, one.concurrency) for one in cells if one.arm == "array-rdma"} == {
        ("array-rdma", level) for level in (8, 16, 32)
    }
    shown = _dry_run(ROOT / "r8" / "scenarios" / "test_r2_cold_recovery.py", with_rdma)
    assert "array-rdma c8, array-rdma c16, array-rdma c32 on one engine start" in shown
    (start,) = (line for line in shown.splitlines() if "UCX_TLS=rc" in line)
    assert "--kv-transfer-config" in start


def test_a_run_of_an_added_arm_gets_the_prediction_of_its_role_and_reader(
    with_rdma: Path, tmp_path: Path
) -> None:
    """Everything equal but the name: the prediction is the same number."""
    site = load_site(with_rdma).site
    predicted = []
    for number, name in enumerate(("array", "array-rdma")):
        arm = site.arms[name]
        assert arm.reads == "parallel"  # as the factory makes patched runs of any name
        spec = SyntheticRun(
            scenario="r2-cold-recovery", arm=name, role=arm.role, patch=arm.treatment.patch
        )
        evidence = judged_run(tmp_path / str(number), spec)
        predicted.append(
            connect_settled([evidence])
            .execute(
                "SELECT statistic, value, reason FROM metrics "
                "WHERE metric = 'predicted_ttft' ORDER BY statistic"
            )
            .fetchall()
        )
    assert predicted[0] == predicted[1]
    assert {row[0] for row in predicted[1]} == {"p50", "max"}
    assert all(value > 0 and reason is None for _, value, reason in predicted[1])


def test_an_arm_keeps_to_the_roles_that_its_scenario_compares(with_rdma: Path) -> None:
    loaded = load_site(with_rdma)
    declared = Scenario(name="r2-cold-recovery", table="scenarios", roles=(Role.LOCAL, Role.ARRAY))
    declared.require(loaded, ("array-rdma", "local-nvme"))
    alone = Scenario(name="r2-cold-recovery", table="scenarios", roles=(Role.ARRAY,))
    both = "does not compare these arms: local-nvme has the role local, recompute has the role rec"
    with pytest.raises(SiteError, match=both):
        alone.require(loaded, ("array-rdma", "local-nvme", "recompute"))
    other = Scenario(name="r2-cold-recovery", table="transfers", roles=(Role.ARRAY,))
    with pytest.raises(SiteError, match=r"plan it in \[transfers\.r2-cold-recovery\]"):
        other.require(loaded, ("array-rdma",))


def test_a_scenario_is_one_file_that_nox_finds_and_a_table_of_the_site(tmp_path: Path) -> None:
    for name in ("noxfile.py", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    file = tmp_path / "r8" / "scenarios" / "test_r4_small_chunks.py"
    file.parent.mkdir(parents=True)
    (source,) = _blocks("Add a scenario")
    file.write_text(source)
    assert "- reproduce-r4 -> R4: small_chunks;" in _ended("nox", "--list", cwd=tmp_path)

    text = REHEARSAL.read_text()
    begin = text.index("[scenarios.r1-parallel-read]")
    table = text[begin : text.index("\n\n", begin)].replace("r1-parallel-read", "r4-small-chunks")
    shapes = text.replace('scenarios = ["r1-parallel-read", ', 'scenarios = ["r4-small-chunks", ')
    site = tmp_path / "site.toml"
    site.write_text(shapes.replace("\n[scenarios.", f"\n{table}\n\n[scenarios.", 1))
    shown = _dry_run(file, site)
    assert "# campaign r4-small-chunks-" in shown
    assert "# cell b0-patched-c16: 16 sessions" in shown
    # Where the site has no table for it, that is said, and nothing is run.
    with pytest.raises(AssertionError, match="the site file has no plan for r4-small-chunks"):
        _dry_run(file, REHEARSAL)


def test_a_command_with_an_unknown_name_ends_a_dry_run_with_one_line(tmp_path: Path) -> None:
    site = tmp_path / "site.toml"
    text = REHEARSAL.read_text()
    assert '"--model", "{model_dir}"' in text
    site.write_text(text.replace('"--model", "{model_dir}"', '"--model", "{model_dirr}"'))
    file = ROOT / "r8" / "scenarios" / "test_r2_cold_recovery.py"
    argv = [sys.executable, "-m", "pytest", "-s", "-q", "-p", "no:cacheprovider", str(file)]
    argv += ["--dry-run", "--blocks=1", f"--site={site}", f"--runs-root={tmp_path}"]
    ended = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == EXIT_USAGE, ended.stdout
    assert "uses a name that is not defined: 'model_dirr'" in ended.stdout + ended.stderr
    assert "Traceback" not in ended.stdout + ended.stderr
