"""How the suite itself runs: what `conftest.py` at the root promises."""

from __future__ import annotations

from pathlib import Path

from hypothesis import settings

from conftest import group_of

HERE = "r8/tests/test_suite.py"


def test_no_property_has_a_deadline() -> None:
    assert settings.default is not None
    assert settings.default.deadline is None


def test_files_that_own_the_machine_stay_together_and_others_alone() -> None:
    assert group_of("r8/tests/lab/rehearsal/test_device.py") == "root"
    assert group_of("r8/tests/lab/campaign/test_fault_lab.py") == "root"
    assert group_of("r8/tests/lab/patching/test_parallel_read_faults.py") == "stack"
    assert group_of(HERE) == HERE
    assert Path(HERE).name == Path(__file__).name
