"""Is the rehearsal's model a test? One wrong chunk must change its hash and tokens, no other.

A run on the real engine with the KV check on: every buffer stored and every buffer handed to the
engine is hashed. After the drop one chunk file of one session is overwritten.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from r8.evidence.database import connect
from r8.evidence.reader import read_run
from r8.lab.campaign import phases
from r8.lab.campaign.campaign import open_campaign, plan_campaign
from r8.lab.machine.supervisor import Supervisor
from r8.lab.site.load import load_site
from r8.tests.qualify import rehearse

if TYPE_CHECKING:
    from collections.abc import Callable

    from r8.lab.campaign.phases import Stage

pytestmark = [pytest.mark.qualify, pytest.mark.root, pytest.mark.stack]

VICTIM = 5


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _lines(check: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in check.read_text().splitlines()]


def _of_session(line: dict[str, object], phase: str, session: int) -> bool:
    return f"{phase}-a-" in str(line["req_id"]) and f"-s{session}-" in f"{line['req_id']}-"


def _planting(check: Path, planted: list[str]) -> Callable[[Stage], None]:
    """The drop, after which the second chunk of the victim holds other bytes."""
    original = phases.drop

    def drop(stage: Stage) -> None:
        original(stage)
        stored = [
            line["sha256"]
            for line in _lines(check)
            if line["op"] == "store" and _of_session(line, "populate", VICTIM)
        ]
        pool = Path(stage.recording.run.kv_dir)
        target = next(path for path in pool.rglob("*.pt") if _hash(path) == stored[1])
        status = target.stat()
        target.write_bytes(os.urandom(status.st_size))
        os.sync()
        planted.extend([str(stored[1]), _hash(target)])
        original(stage)

    return drop


def test_a_planted_chunk_changes_hash_and_tokens_of_its_session_and_of_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = tmp_path / "check.jsonl"
    site = rehearse.changed_site(
        tmp_path, ("[engine.env]", f'[engine.env]\nR8_KV_CHECK = "{check}"')
    )
    planted: list[str] = []
    monkeypatch.setattr(phases, "drop", _planting(check, planted))
    loaded = load_site(site)
    matrix, cells = plan_campaign(loaded, "r1-parallel-read", ("patched",), blocks=1, seed=1)
    with (
        Supervisor(tmp_path / "supervisor") as supervisor,
        open_campaign(loaded, matrix, cells, supervisor, runs_root=tmp_path / "runs") as campaign,
    ):
        path = campaign.run(cells[0])
    right, wrong = planted
    loads = [line for line in _lines(check) if line["op"] == "load"]
    stores = {line["sha256"] for line in _lines(check) if line["op"] == "store"}
    measured = [line for line in loads if "measure-a-" in str(line["req_id"])]
    sessions = cells[0].sessions
    assert len(measured) == sessions * 3
    # Every buffer handed to the engine is one that was stored, but for the planted one.
    strange = [line for line in measured if line["sha256"] not in stores]
    assert [line["sha256"] for line in strange] == [wrong]
    assert _of_session(strange[0], "measure", VICTIM)
    assert right not in {line["sha256"] for line in measured}
    rows = connect([read_run(path)]).sql(
        "SELECT a.session, a.output = b.output FROM outputs a JOIN outputs b USING (session) "
        "WHERE a.phase = 'measure' AND b.phase = 'populate'"
    )
    same = dict(rows.fetchall())
    assert len(same) == sessions
    assert [session for session, equal in same.items() if not equal] == [VICTIM]
