"""The warm control reads back what it stored, whichever cells of a lifetime did the two."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from r8.lab.campaign import controls
from r8.lab.instruments import probes
from r8.lab.site.plan import special_session

if TYPE_CHECKING:
    import pytest

FILES_READ = "100663296"


class FakeKv:
    """A KV directory that is at rest and full."""

    def now(self) -> str:
        return "2026-11-30T00:00:00"

    def state(self) -> tuple[int, int]:
        return 3, 1

    def read_in(self, since: str, until: str) -> SimpleNamespace:
        assert since <= until
        return SimpleNamespace(output=FILES_READ, returncode=0, error="")


def stage_of(cell: int, lifetime: SimpleNamespace) -> Any:
    """What the controls ask of a stage, for one engine and the cell of this number."""
    return SimpleNamespace(
        lifetime=lifetime,
        plan=SimpleNamespace(ranks=1),
        chunks_per_session=3,
        recording=SimpleNamespace(event=lambda *_, **__: None),
        special=lambda base: [[special_session(base, cell=cell, instance=0)]],
    )


def test_the_last_cell_of_a_lifetime_reads_the_session_its_first_cell_stored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loaded: dict[str, list[list[int]]] = {}
    monkeypatch.setattr(
        controls,
        "_load",
        lambda _, name, sessions: loaded.update({name: [list(one) for one in sessions]}),
    )
    monkeypatch.setattr(probes, "drop_caches", lambda _: {})
    monkeypatch.setattr(controls, "residency", lambda *_: None)
    monkeypatch.setattr(controls, "STORED_QUIET_S", 0.0)
    monkeypatch.setattr(probes, "SETTLE_S", 0.0)
    lifetime = SimpleNamespace(kv=FakeKv(), drops=[], stored=[0], require_alive=lambda: None)

    stored = controls.store(stage_of(0, lifetime))
    assert stored is not None
    controls.run(stage_of(2, lifetime), stored)

    assert loaded[controls.WARM_READ] == loaded[controls.STORE]
    assert loaded[controls.RANDOM_PROMPT] != loaded[controls.STORE]
