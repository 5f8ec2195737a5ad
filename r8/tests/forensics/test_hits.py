"""C6: exact hits, none from DRAM or from the engine's own cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from r8.message import Answer
from r8.tests.support.judged_run import Tables, drop_events, findings, judged_run, set_detail
from r8.tests.support.run_factory import SyntheticRun

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_c6_holds_for_whole_chunks_from_the_device(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun()))["C6"]
    assert found.answer is Answer.HELD
    assert "4 of 4 requests hit 256*floor((prompt-1)/256) = 1024 tokens" in found.arithmetic
    assert "4096 tokens retrieved by 4 requests = 4096" in found.arithmetic


def test_c6_refutes_a_request_that_hit_one_chunk_less(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(hit_tokens=768)))["C6"]
    assert found.answer is Answer.REFUTED
    assert "0 of 4 requests hit" in found.arithmetic
    assert "measure-0 hit 768 of 1024" in found.arithmetic


def test_c6_refutes_a_hit_that_was_not_loaded(tmp_path: Path) -> None:
    def edit_log(text: str) -> str:
        return text.replace("Retrieved 1024 out of", "Retrieved 768 out of")

    found = findings(judged_run(tmp_path, SyntheticRun(), edit_log=edit_log))["C6"]
    assert found.answer is Answer.REFUTED
    assert "3072 tokens retrieved by 4 requests = 4096 [refuted]" in found.arithmetic


def test_c6_refutes_tokens_from_the_engines_own_prefix_cache(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(computed_tokens=256)))["C6"]
    assert found.answer is Answer.REFUTED
    assert "prefix cache: 256 [refuted]" in found.arithmetic


def test_c6_refutes_a_server_with_prefix_caching_on(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(enable_prefix_caching=True)))["C6"]
    assert found.answer is Answer.REFUTED
    assert "a: enable_prefix_caching True = False [refuted]" in found.arithmetic


def test_c6_refutes_a_tier_in_dram_that_served_half(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(device_read_bytes=16_777_216)))["C6"]
    assert found.answer is Answer.REFUTED
    assert "not covered by the device 16777216 B <= 671089 B [refuted]" in found.arithmetic


@pytest.mark.parametrize("key", ["chunk_tokens", "cpu_tier_bytes"])
def test_c6_refutes_a_running_server_that_differs_from_the_plan(tmp_path: Path, key: str) -> None:
    def edit(tables: Tables) -> None:
        set_detail(tables, "server_config", **{key: 128})

    found = findings(judged_run(tmp_path, SyntheticRun(), edit))["C6"]
    assert found.answer is Answer.REFUTED
    assert f"a: {key} 128 = " in found.arithmetic


def no_config(tables: Tables) -> None:
    drop_events(tables, "server_config")


def config_of_another_instance(tables: Tables) -> None:
    set_detail(tables, "server_config", instance="b")


def config_without_prefix_caching(tables: Tables) -> None:
    set_detail(tables, "server_config", enable_prefix_caching=None)


def no_measured_requests(tables: Tables) -> None:
    tables["requests"] = [row for row in tables["requests"] if row["phase"] != "measure"]


def no_device(tables: Tables) -> None:
    tables["probes"] = [row for row in tables["probes"] if row["probe"] != "disk"]


@pytest.mark.parametrize(
    "edit",
    [
        no_config,
        config_of_another_instance,
        config_without_prefix_caching,
        no_measured_requests,
        no_device,
    ],
    ids=lambda f: f.__name__,
)
def test_c6_is_unknown_when_its_evidence_is_missing(
    tmp_path: Path, edit: Callable[[Tables], None]
) -> None:
    assert findings(judged_run(tmp_path, SyntheticRun(), edit))["C6"].answer is Answer.UNKNOWN


def test_c6_is_unknown_when_one_request_has_no_lookup_line(tmp_path: Path) -> None:
    def edit_log(text: str) -> str:
        lines = [line for line in text.splitlines() if "Reqid: cmpl-measure-2-" not in line]
        return "\n".join(lines) + "\n"

    found = findings(judged_run(tmp_path, SyntheticRun(), edit_log=edit_log))["C6"]
    assert found.answer is Answer.UNKNOWN
    assert "3 of 4 requests hit" in found.arithmetic
    assert "1 without a lookup line [unknown]" in found.arithmetic
