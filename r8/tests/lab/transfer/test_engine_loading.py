"""What the lab tells a worker that starts engines, and what it refuses before anything is made."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest

from r8.errors import SiteError
from r8.lab.campaign.campaign import plan_campaign
from r8.lab.preflight.dry_run import dry_run
from r8.lab.preflight.preflight import preflight
from r8.lab.rehearsal import build
from r8.lab.site.load import load_site
from r8.lab.testbed import imagined
from r8.lab.transfer import engine_loading
from r8.lab.transfer.stage import transfer_of

if TYPE_CHECKING:
    from r8.lab.site.file import LoadedSite, Site
    from r8.lab.transfer.stage import Stage

SITE = load_site(Path(__file__).resolve().parents[4] / "data" / "sites" / "rehearsal.toml")
LOAD, SWITCH, ARM = "r1-model-load", "r1-model-switch", "array-engine"
MODELS = {"w0": Path("/kv/model-w0"), "w1": Path("/kv/model-w1")}


def _changed(**fields: Any) -> LoadedSite:
    return msgspec.structs.replace(SITE, site=msgspec.structs.replace(SITE.site, **fields))


def _stage(tmp_path: Path, scenario: str = LOAD, site: Site = SITE.site, workers: int = 2) -> Stage:
    """A cell on a testbed that is not built, without workers."""
    _, cells = plan_campaign(SITE, scenario, (ARM,), blocks=1, seed=8)
    place = replace(cells[0], concurrency=workers)
    recording = SimpleNamespace(raw=lambda name: tmp_path / name)
    transfer = transfer_of(imagined(site), scenario, place, run_id="r", seed=8)
    return transfer.begun(cast("Any", recording), cast("Any", None))


def test_the_model_that_was_loaded_last_is_loaded_warm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where memory does not hold all of them, the first one is cold again."""
    acted: list[dict[str, dict[str, Any]]] = []
    monkeypatch.setattr(engine_loading, "act", lambda _stage, _phase, to: acted.append(to))
    engine_loading.warm(_stage(tmp_path), MODELS)
    assert [(list(to), to["w1"]["path"]) for to in acted] == [(["w1"], "/kv/model-w1")]


def test_every_loader_gets_an_instance_the_arms_model_and_no_kv_tier(tmp_path: Path) -> None:
    one, two = engine_loading.loads(_stage(tmp_path), MODELS).values()
    assert "--model /kv/model-w0 " in " ".join(one["argv"])
    assert "--model /kv/model-w1 " in " ".join(two["argv"])
    assert (one["url"], two["url"]) == ("http://127.0.0.1:8197", "http://127.0.0.1:8198")
    assert "--kv-transfer-config" not in one["argv"]
    assert not [key for key in one["env"] if key.startswith("LMCACHE_")]
    assert one["env"]["VLLM_CPU_KVCACHE_SPACE"] == "1", "the arm's own, not the site's 4"
    assert (one["keep"], one["log"]) == (True, str(tmp_path / "server-w0.log"))


def test_switched_engines_share_one_instance_and_take_turns(tmp_path: Path) -> None:
    planned = {"w0": {"after_ns": 0}, "w1": {"after_ns": 90}}
    orders = engine_loading.switches(_stage(tmp_path, SWITCH), MODELS, planned)
    assert {order["url"] for order in orders.values()} == {"http://127.0.0.1:8197"}
    assert [order["turn"]["number"] for order in orders.values()] == [0, 1]
    assert orders["w1"]["after_ns"] == 90
    assert "keep" not in orders["w0"]


def test_a_log_that_is_not_the_measured_ones_is_not_judged() -> None:
    assert engine_loading.log_name("w0", "measure") == "server-w0.log"
    assert not engine_loading.log_name("w0", "warm").startswith("server-")


@pytest.mark.parametrize(
    ("count", "fields", "word"),
    [
        (3, {}, "the site has 2 instances"),
        (
            1,
            {"engine": msgspec.structs.replace(SITE.site.engine, command=("vllm", "serve", "/m"))},
            "has no {model_dir}",
        ),
    ],
)
def test_a_site_that_cannot_start_them_is_refused(
    tmp_path: Path, count: int, fields: dict[str, Any], word: str
) -> None:
    loaded = _changed(**fields)
    with pytest.raises(SiteError, match=word):
        engine_loading.require_engines(_stage(tmp_path, site=loaded.site, workers=count))
    if fields:
        failed = [one for one in preflight(loaded, LOAD, tmp_path) if not one.ok]
        assert f"engines of {ARM}" in [one.name for one in failed]


def test_engines_that_do_not_fit_in_memory_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_loading, "available_memory_bytes", lambda: 11 * 10**9)
    engine_loading.require_engines(_stage(tmp_path, workers=1))
    with pytest.raises(SiteError, match="2 engines of 6000000000 bytes do not fit"):
        engine_loading.require_engines(_stage(tmp_path, workers=2))


def test_without_a_rehearsal_there_is_no_model_to_make(tmp_path: Path) -> None:
    site = _changed(rehearsal=None).site
    with pytest.raises(SiteError, match="files_dir"):
        engine_loading.make_models(_stage(tmp_path, site=site), MODELS)


@pytest.mark.parametrize("scenario", [LOAD, SWITCH])
def test_a_dry_run_prints_the_engines_command(scenario: str) -> None:
    matrix, cells = plan_campaign(SITE, scenario, (ARM,), blocks=1, seed=8)
    text = "\n".join(dry_run(SITE, matrix, cells, Path("runs")))
    # Each has a model of its own, whether they run at once or follow one another.
    starts = [one for one in text.splitlines() if "vllm.entrypoints.openai.api_server" in one]
    assert len(starts) == cells[0].concurrency
    assert "/model-w0 " in starts[0]
    assert f"{cells[0].concurrency} workers" in text


def test_only_arms_that_start_engines_have_a_model_made() -> None:
    rehearsal = SITE.site.rehearsal
    assert rehearsal is not None
    assert build._needs(SITE.site, rehearsal, LOAD, ("array", "local-nvme")).model is None
    needs = build._needs(SITE.site, rehearsal, LOAD, ("array", ARM))
    assert needs.model == {"layers": 32, "kv_heads": 16, "head_dim": 128, "hidden": 256, "seed": 8}
