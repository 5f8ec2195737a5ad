"""C7: the arm that computes everything, and what the other rules say of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from r8.forensics.certificate import objections
from r8.forensics.recompute import recompute_reads_no_kv
from r8.forensics.rules import RULES
from r8.message import Answer
from r8.roles import Role
from r8.tests.support.findings import meant, said
from r8.tests.support.judged_run import Tables, findings, judged_run, set_detail
from r8.tests.support.run_factory import SyntheticRun, synthetic_run
from r8.tests.support.stub_case import H, R, StubCase, answers_of, below

if TYPE_CHECKING:
    from pathlib import Path

ABOUT_KV = "C1 C2 C3 C4 C5 C6 C11 E1 E2 E3 N1 N2"
RECOMPUTE = {"arm": "recompute", "role": Role.RECOMPUTE}


def spec(**facts: object) -> SyntheticRun:
    made = {"device_read_bytes": 0, "hit_tokens": 0, "patch_mode": None, **RECOMPUTE, **facts}
    return SyntheticRun(**made)  # type: ignore[arg-type]


def bare(tables: Tables) -> None:
    set_detail(tables, "server_config", kv_connector="none")


@pytest.mark.parametrize(("read", "answer"), below(10_000))
def test_c7_wants_less_than_one_percent_of_the_kv(read: int, answer: Answer) -> None:
    run = replace(synthetic_run(spec(chunk_bytes=62_500)), other_kv_devices=())
    case = StubCase(run=run, reads={"loop0": read}, answers={"engine_requests": [(0, 0, 0)]})
    assert answers_of(recompute_reads_no_kv(case), "c7-device-read") == [answer]


@pytest.mark.parametrize("place", [0, 1, 2], ids=["hit", "computed", "retrieved"])
def test_c7_wants_no_token_from_any_cache(place: int) -> None:
    for tokens, answer in ((0, H), (1, R)):
        row = tuple(tokens if at == place else 0 for at in range(3))
        case = StubCase(run=synthetic_run(spec()), answers={"engine_requests": [row]})
        assert answers_of(recompute_reads_no_kv(case), "c7-tokens-found") == [answer]


def test_an_arm_without_kv_is_not_asked_about_the_reading_of_kv(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, spec(), bare))
    spared = {
        one.rule_id
        for one in found.values()
        if [check.message for check in one.checks] == ["recompute-reads-no-kv"]
    }
    assert spared == set(ABOUT_KV.split())


def test_c7_does_not_apply_to_an_arm_with_a_tier(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun()))["C7"]
    assert found.answer is Answer.NOT_APPLICABLE
    assert "arm patched has a KV tier" in said(found)


def test_c7_holds_for_an_arm_that_read_nothing_and_has_no_connector(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, spec(), bare))
    assert found["C7"].answer is Answer.HELD
    assert "loop0 read 0 B" in said(found["C7"])
    assert "a: kv_connector none = none" in said(found["C7"])


def test_rules_about_kv_do_not_apply_to_it_and_do_not_object(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, spec(), bare))
    silent = {name for name, one in found.items() if one.answer is Answer.NOT_APPLICABLE}
    # Nor do those of GPUs, of several engines, and of writes.
    of_kv = {rule.rule_id for rule in RULES if rule.of_kv}
    assert silent == of_kv | {"C9", "G1", "S1", "W1", "W2", "W3"}
    run = synthetic_run(spec())
    assert objections([run], found.values(), [run]) == []


def test_c7_refutes_reads_of_any_kv_device(tmp_path: Path) -> None:
    for name, facts in {
        "a": {"device_read_bytes": 1 << 20},
        "b": {"other_device_read_bytes": 1 << 20},
    }.items():
        found = findings(judged_run(tmp_path, spec(run_id=name, **facts), bare))["C7"]
        assert found.answer is Answer.REFUTED
        assert "did not only compute" in meant(found)


def test_c7_refutes_a_connector_in_the_running_server(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, spec()))["C7"]
    assert found.answer is Answer.REFUTED
    assert "kv_connector LMCacheConnectorV1 = none [refuted]" in said(found)


def test_c7_refutes_tokens_found_in_a_cache(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, spec(hit_tokens=256), bare))["C7"]
    assert found.answer is Answer.REFUTED
    assert "tokens hit 256" in said(found)


def test_c7_is_unknown_when_a_device_or_the_server_was_not_asked(tmp_path: Path) -> None:
    def unread(tables: Tables) -> None:
        set_detail(tables, "server_config", kv_connector=None)

    assert findings(judged_run(tmp_path, spec(run_id="s"), unread))["C7"].answer is Answer.UNKNOWN
    unsampled = spec(run_id="d", device_read_bytes=None, process_read_bytes=0)
    assert findings(judged_run(tmp_path, unsampled, bare))["C7"].answer is Answer.UNKNOWN
