"""Loaders on a cluster: models that are found and not made, and devices that several share."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest

from r8.errors import SiteError
from r8.lab.campaign.campaign import plan_campaign
from r8.lab.site.load import load_site
from r8.lab.testbed import imagined
from r8.lab.transfer import checkpointing, loading, model_files, switching
from r8.lab.transfer import stage as stages
from r8.lab.transfer.stage import make_durable, transfer_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from r8.lab.transfer.stage import Stage

WEIGHTS = b"w" * 1000
SITE = load_site(Path(__file__).resolve().parents[4] / "data" / "sites" / "mi308x-r1-models.toml")


def _models(root: Path, count: int) -> None:
    for number in range(count):
        folder = root / f"model-{number}"
        folder.mkdir(parents=True)
        (folder / "model-00001-of-00001.safetensors").write_bytes(WEIGHTS)
        (folder / "tokenizer.json").write_bytes(b"t" * 77)


def _stage(root: Path, workers: int) -> tuple[Stage, list[dict[str, Any]]]:
    """A switching cell that finds its models below `root`, and the events it leaves."""
    events: list[dict[str, Any]] = []
    recording = SimpleNamespace(event=lambda name, **detail: events.append({"name": name} | detail))
    _, cells = plan_campaign(SITE, "r1-model-switch", ("array",), blocks=1, seed=8)
    place = replace(cells[0], concurrency=workers)
    transfer = transfer_of(imagined(SITE.site), "r1-model-switch", place, run_id="r", seed=8)
    arm = msgspec.structs.replace(transfer.arm, files_dir=str(root))
    directory = replace(transfer.directory, path=str(root))
    transfer = replace(transfer, arm=arm, directory=directory)
    return transfer.begun(cast("Any", recording), cast("Any", None)), events


def test_a_directory_with_more_models_than_workers_is_durable_and_only_weights_are_to_be_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight models lie there for loading; a switching run of four uses the first four."""
    monkeypatch.setattr(stages, "QUIET_S", 0.01)
    _models(tmp_path, 8)
    stage, events = _stage(tmp_path, 4)
    files = loading.make_models(stage)
    assert (files.files, files.total_bytes) == (4, 4 * len(WEIGHTS))
    make_durable(stage, files)
    (durable,) = events
    assert (durable["files"], durable["bytes"]) == (16, 8 * (len(WEIGHTS) + 77))
    assert (durable["expected_files"], durable["expected_bytes"]) == (16, 8 * (len(WEIGHTS) + 77))
    assert durable["quiet_ns"] > 0


def test_weights_that_are_links_lie_elsewhere_and_are_no_model(tmp_path: Path) -> None:
    _models(tmp_path / "elsewhere", 1)
    linked = tmp_path / "models" / "model-0"
    linked.mkdir(parents=True)
    weights = tmp_path / "elsewhere" / "model-0" / "model-00001-of-00001.safetensors"
    (linked / weights.name).symlink_to(weights)
    (tmp_path / "models" / "model-1").symlink_to(weights.parent)
    assert model_files.model_directories(tmp_path / "models") == []
    assert model_files.model_directories(tmp_path / "nowhere") == []
    with pytest.raises(SiteError, match="0 model directories for 1 workers"):
        model_files.found_models(tmp_path / "models", 1)


def test_switched_loaders_share_a_device_so_the_last_alone_loads_warm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _models(tmp_path, 3)
    stage, _ = _stage(tmp_path, 3)
    acted: dict[str, list[str]] = {}
    monkeypatch.setattr(switching, "act", lambda _s, phase, to: acted.update({phase: list(to)}))
    for name in ("make_durable", "drop", "rewarm", "look"):
        monkeypatch.setattr(switching, name, lambda *_: None)
    switching.JOB.phases(stage, loading.make_models(stage))
    assert acted == {"measure": ["w0", "w1", "w2"], "warm": ["w2"]}


def test_bytes_of_a_readback_are_sampled_on_both_sides() -> None:
    """W2 asks the device's counter for them; the earlier checkpoint is read right after."""
    assert {"measure", "warm", "readback"} == stages.BALANCED
    assert "readback" in checkpointing.checkpoint.__code__.co_consts


def _loader(monkeypatch: pytest.MonkeyPatch, empty_cache: Callable[[], None]) -> ModuleType:
    """The loader, with as much of torch as giving memory back asks for."""
    torch = ModuleType("torch")
    backend = SimpleNamespace(empty_cache=empty_cache)
    vars(torch).update(
        Tensor=object,
        cuda=backend,
        npu=backend,
        device=lambda name: SimpleNamespace(type=name.partition(":")[0]),
    )
    safetensors = ModuleType("safetensors")
    vars(safetensors).update(__version__="0", safe_open=None)
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "safetensors", safetensors)
    spec = importlib.util.spec_from_file_location("r8.lab.transfer.tools.loader", loading.TOOL)
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    return tool


@pytest.mark.parametrize(("device", "emptied"), [("cuda:3", 1), ("npu:0", 1), ("cpu", 0)])
def test_a_loader_gives_the_accelerator_its_memory_back_also_when_it_could_not_load(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, device: str, emptied: int
) -> None:
    calls: list[str] = []
    tool = _loader(monkeypatch, lambda: calls.append("emptied"))
    answer = tool._answer({"start_ns": 0, "path": str(tmp_path)}, device)
    assert answer["outcome"] == "failed"
    assert len(calls) == emptied


def test_a_device_that_fails_again_does_not_take_the_answer_away(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail() -> None:
        raise RuntimeError("device lost")

    answer = _loader(monkeypatch, fail)._answer({"start_ns": 0, "path": str(tmp_path)}, "cuda:0")
    assert "no *.safetensors" in answer["error"]
    assert answer["let_go_error"] == "RuntimeError: device lost"
