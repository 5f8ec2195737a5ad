"""Loaders on a real loop device with a real page cache: cold is certified, warm is refused.

The planted run differs in one word of its site file: the command that drops the page cache does
nothing, so the models just written are still in it. Nothing else is told that they are.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from r8.evidence.reader import read_run
from r8.lab.campaign.campaign import open_campaign, plan_campaign
from r8.lab.machine.supervisor import Supervisor
from r8.lab.rehearsal.build import STACK_DIR
from r8.lab.rehearsal.fallback import LOOP, capabilities
from r8.lab.rehearsal.stack import is_ready
from r8.lab.site.load import load_site
from r8.message import Answer
from r8.tests.support.findings import said
from r8.tests.support.judged_run import findings

if TYPE_CHECKING:
    from r8.model import Finding

ROOT = Path(__file__).resolve().parents[4]
SCENARIO = "r1-model-load"
PRESENT = {one.name for one in capabilities() if one.present}
ABSENT = [name for name in LOOP.needs if name not in PRESENT]

pytestmark = [
    pytest.mark.root,
    pytest.mark.stack,
    pytest.mark.skipif(bool(ABSENT), reason=f"no shaped device here: {', '.join(ABSENT)}"),
    pytest.mark.skipif(not is_ready(STACK_DIR, []), reason="no engine environment: nox -s stack"),
]


def _load_once(tmp_path: Path, *, drops: bool) -> dict[str, Finding]:
    text = (ROOT / "data" / "sites" / "rehearsal.toml").read_text()
    if not drops:
        text = text.replace('name = "local"\n', 'name = "local"\ndrop_caches = ["true"]\n', 1)
    site = tmp_path / "site.toml"
    site.write_text(text)
    loaded = load_site(site)
    matrix, cells = plan_campaign(loaded, SCENARIO, ("array",), blocks=1, seed=8)
    with (
        Supervisor(tmp_path / ".supervisor") as supervisor,
        open_campaign(loaded, matrix, cells, supervisor, runs_root=tmp_path) as campaign,
    ):
        path = campaign.run(cells[0])
    return findings(read_run(path))


def test_a_loader_that_reads_the_page_cache_is_refused_by_c3_and_c4(tmp_path: Path) -> None:
    found = _load_once(tmp_path, drops=False)
    assert found["C3"].answer is Answer.REFUTED, said(found["C3"])
    assert found["C4"].answer is Answer.REFUTED, said(found["C4"])
    assert found["Q1"].answer is Answer.HELD, said(found["Q1"])


def test_the_same_loader_after_a_drop_that_works_is_certified(tmp_path: Path) -> None:
    found = _load_once(tmp_path, drops=True)
    for rule in ("C1", "C2", "C3", "C4", "C5", "C8", "C10", "Q1", "Q2"):
        assert found[rule].answer is Answer.HELD, f"{rule}: {said(found[rule])}"
