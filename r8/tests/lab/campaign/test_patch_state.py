"""LMCache as it was found, also when the process that patched it is killed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from r8.lab.campaign.patch_state import PatchStates
from r8.lab.instruments.probes import CHECKOUT
from r8.lab.machine import undo_log
from r8.lab.machine.supervisor import Supervisor
from r8.lab.patching import patching
from r8.lab.site.load import load_site

SITE = load_site(CHECKOUT / "data" / "sites" / "rehearsal.toml").site
PATCHED = SITE.arms["patched"]
# A campaign that patches and is not asked any more.
PARENT = """
import sys, time
from pathlib import Path
from types import SimpleNamespace
from r8.lab.machine.supervisor import Supervisor
from r8.lab.site.load import load_site
from r8.lab.campaign.patch_state import PatchStates
site = load_site(Path("data/sites/rehearsal.toml")).site
with Supervisor(Path(sys.argv[1])) as supervisor:
    python = lambda host: [sys.argv[2]]
    testbed = SimpleNamespace(site=site, python=python, supervisor=supervisor)
    found = PatchStates(testbed=testbed, instances=("a",))
    found.set(site.arms["patched"], {"PYTHONPATH": sys.argv[3]})
    print("patched", flush=True)
    time.sleep(600)
"""


def _noted(state_dir: Path) -> list[undo_log.Undo]:
    return [one for path in state_dir.glob(undo_log.PATTERN) for one in undo_log.read(path)]


def _status(state: str) -> patching.PatchStatus:
    return patching.PatchStatus(
        state=cast("Any", state),
        name="0.5.0",
        lmcache_version="0.5.0",
        path="/lmcache",
        target_sha256="a" * 64,
        base_sha256="b" * 64,
        module_sha256=None,
        what=state,
    )


@pytest.mark.parametrize(("found", "back"), [("base", "revert"), ("patched", "apply")])
def test_the_way_back_is_known_before_the_first_change_and_forgotten_after_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: str, back: str
) -> None:
    seen: list[list[undo_log.Undo]] = []

    def act(_target: patching.PatchTarget) -> patching.PatchStatus:
        seen.append(_noted(tmp_path / "supervisor"))
        return _status("patched")

    monkeypatch.setattr(patching, "status", lambda _target: _status(found))
    monkeypatch.setattr(patching, "apply", act)
    monkeypatch.setattr(patching, "revert", act)
    with Supervisor(tmp_path / "supervisor") as supervisor:
        testbed = SimpleNamespace(
            site=SITE, python=lambda host: ["docker", "a b"], supervisor=supervisor
        )
        campaign = PatchStates(testbed=cast("Any", testbed), instances=("a",))
        for _cell in range(2):
            campaign.set(PATCHED, {"PYTHONPATH": "/tree:/more"})
        campaign.restore()
        assert _noted(tmp_path / "supervisor") == []
    assert [len(one) for one in seen] == [1, 1, 1]
    words = f"-m r8 patch {back} --python docker 'a b' --lmcache /tree:/more"
    assert " ".join(seen[0][0].argv).endswith(words)
    # Cut short, its agent would go on behind the prefix beside that of the next attempt.
    assert seen[0][0].grace_s >= patching.AGENT_TIMEOUT_S


@pytest.mark.stack
def test_a_campaign_that_is_killed_leaves_lmcache_as_it_was(tmp_path: Path) -> None:
    python, overlay = os.environ.get("R8_STACK"), os.environ.get("R8_LMCACHE_0_5_0")
    if python is None or overlay is None:
        pytest.skip("needs the engine environment: nox -s stack")
    tree = tmp_path / "tree"
    shutil.copytree(overlay, tree)
    target = patching.PatchTarget(
        command=(str(Path(python) / "bin" / "python"),), env={"PYTHONPATH": str(tree)}
    )
    patching.revert(target)
    state = tmp_path / "supervisor"
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, state, target.command[0], tree],
        cwd=CHECKOUT,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert parent.stdout is not None
    assert parent.stdout.readline() == "patched\n"
    parent.stdout.close()
    assert patching.status(target).state == "patched"
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    deadline = time.monotonic() + 60
    while patching.status(target).state != "base" and time.monotonic() < deadline:
        time.sleep(0.2)
    assert patching.status(target).state == "base"
