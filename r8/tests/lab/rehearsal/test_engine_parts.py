"""The tiny model and the CPU connector, in the engine's own environment."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

CHECKOUT = Path(__file__).resolve().parents[4]
VERSIONS = ("0.5.0", "0.5.1", "0.5.6")

stack = os.environ.get("R8_STACK")
needs_stack = pytest.mark.skipif(
    stack is None, reason="no engine environment: python -m r8.lab.rehearsal.stack ensure"
)
PYTHON = f"{stack}/bin/python"

CONNECTOR_CODE = """
import sys, types, torch
from r8.lab.rehearsal.cpu_connector import PagedCpuConnector
layers, heads, size, block, chunk = 2, 3, 4, 8, 16
layout = sys.argv[1]
shape = [9, heads, block, 2 * size] if layout == "packed" else [2, 9, heads, block, size]
there = [torch.randn(shape) for _ in range(layers)]
back = [torch.zeros(shape) for _ in range(layers)]
connector = PagedCpuConnector(types.SimpleNamespace(kv_shape=(layers, 2, chunk, heads, size)))
blocks = torch.tensor([7, 2])
slots = torch.cat([torch.arange(block) + b * block for b in blocks.tolist()])
memory = types.SimpleNamespace(tensor=torch.zeros(connector.get_shape(chunk)))
facts = {"slot_mapping": slots, "req_id": "r"}
connector.batched_from_gpu([memory], [0], [chunk], kvcaches=there, **facts)
connector.batched_to_gpu([memory], [0], [chunk], kvcaches=back, **facts)
axis = 0 if layout == "packed" else 1
for before, after in zip(there, back):
    assert torch.equal(before.index_select(axis, blocks), after.index_select(axis, blocks))
    assert float(after.index_select(axis, torch.tensor([0, 1, 3, 4, 5, 6, 8])).abs().sum()) == 0
skipped = [torch.zeros(shape) for _ in range(layers)]
connector.to_gpu(memory, 0, chunk, kvcaches=skipped, vllm_cached_tokens=block, **facts)
assert float(skipped[0].index_select(axis, torch.tensor([7])).abs().sum()) == 0
assert torch.equal(skipped[0].select(axis, 2), there[0].select(axis, 2))
for wrong in ({"slot_mapping": slots + 1}, {"slot_mapping": slots[:-1]}):
    try:
        connector.from_gpu(memory, 0, chunk, kvcaches=there, **wrong)
    except ValueError as error:
        assert "whole blocks" in str(error)
    else:
        raise SystemExit("a partial block was accepted")
import lmcache, lmcache.v1.gpu_connector as created
from lmcache.utils import EngineType
metadata = types.SimpleNamespace(kv_shape=(layers, 2, chunk, heads, size))
assert isinstance(created.CreateGPUConnector(None, metadata, EngineType.VLLM), PagedCpuConnector)
print(lmcache.__file__)
"""


def run_python(code: str, *args: str, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        [PYTHON, "-W", "ignore", "-c", code, *args],
        cwd=CHECKOUT,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT), **(env or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.stack
@needs_stack
@pytest.mark.parametrize("version", VERSIONS)
def test_chunks_go_and_come_as_whole_blocks_with_every_supported_lmcache(
    tmp_path: Path, version: str
) -> None:
    overlay = os.environ.get(f"R8_LMCACHE_{version.replace('.', '_')}")
    if overlay is None:
        pytest.skip(f"no LMCache {version} beside the engine environment")
    check = tmp_path / "check.jsonl"
    layout = "split" if version == "0.5.1" else "packed"
    env = {"PYTHONPATH": f"{overlay}:{CHECKOUT}", "R8_KV_CHECK": str(check)}
    said = run_python(CONNECTOR_CODE, layout, env=env)
    assert overlay in said.splitlines()[-1]
    lines = [json.loads(line) for line in check.read_text().splitlines()]
    assert [line["op"] for line in lines] == ["store", "load", "load"]
    assert len({line["sha256"] for line in lines}) == 1
    assert lines[0]["bytes"] == 2 * 2 * 16 * 3 * 4 * 4
    assert (lines[0]["start"], lines[0]["end"], lines[0]["req_id"]) == (0, 16, "r")


def build(out: Path, *options: str) -> dict[str, Any]:
    code = "import sys; from r8.lab.rehearsal.tiny_model import main; main(sys.argv[1:])"
    facts: dict[str, Any] = json.loads(run_python(code, str(out), *options).splitlines()[-1])
    return facts


SMALL = ("--layers", "3", "--kv-heads", "4", "--head-dim", "32", "--hidden", "64")

GENERATE = """
import json, sys, torch
from transformers import AutoModelForCausalLM, AutoTokenizer
model = AutoModelForCausalLM.from_pretrained(sys.argv[1])
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
draw = torch.Generator().manual_seed(1)
def speak(ids, cache=None):
    out = model.generate(ids, past_key_values=cache, max_new_tokens=16, do_sample=False)
    return tokenizer.decode(out[0, ids.shape[1]:])
said, changed = [], []
for _ in range(4):
    ids = torch.randint(35, 130, (1, 600), generator=draw)
    said.append(speak(ids))
    with torch.no_grad():
        cache = model(ids[:, :-1], use_cache=True).past_key_values
    for layer in cache.layers:
        layer.keys[:, :, 256:512] = layer.keys[:, :, 256:512].flip(2)
    changed.append(speak(ids, cache))
print(json.dumps({"said": said, "changed": changed, "ids": tokenizer("A b").input_ids,
                  "round": tokenizer.decode(tokenizer("A b").input_ids)}))
"""


@pytest.mark.stack
@needs_stack
def test_what_the_model_says_hangs_on_every_chunk_of_its_cache(tmp_path: Path) -> None:
    facts = build(tmp_path / "model", *SMALL)
    assert facts["bytes_per_token"] == 2 * 3 * 4 * 32 * 4
    low, high = facts["vocab"]
    spoken = json.loads(run_python(GENERATE, str(tmp_path / "model")).splitlines()[-1])
    assert len(set(spoken["said"])) == 4
    for said, changed in zip(spoken["said"], spoken["changed"], strict=True):
        assert len(said) == 16, "one printable byte a token"
        assert said.isprintable()
        assert len(set(said)) >= 4, "not one token over and over"
        assert said != changed, "a corrupted chunk must be heard"
    assert spoken["round"] == "A b"
    assert all(low <= token < high for token in spoken["ids"])


@pytest.mark.stack
@needs_stack
def test_the_same_seed_gives_the_same_model_and_another_seed_another(tmp_path: Path) -> None:
    weights = []
    for name, seed in (("a", "8"), ("b", "8"), ("c", "9")):
        build(tmp_path / name, *SMALL, "--seed", seed)
        weights.append((tmp_path / name / "model.safetensors").read_bytes())
    assert weights[0] == weights[1]
    assert weights[0] != weights[2]


@pytest.mark.stack
@needs_stack
def test_a_model_already_there_is_not_built_again_unless_it_is_another(tmp_path: Path) -> None:
    build(tmp_path, *SMALL)
    before = (tmp_path / "model.safetensors").stat().st_mtime_ns
    build(tmp_path, *SMALL)
    assert (tmp_path / "model.safetensors").stat().st_mtime_ns == before
    build(tmp_path, *SMALL, "--seed", "9")
    assert (tmp_path / "model.safetensors").stat().st_mtime_ns != before
