"""C6: exact hits, none from DRAM or from the engine's own cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from r8.forensics.hits import hits_exact
from r8.message import Answer
from r8.tests.support.findings import check_of, said
from r8.tests.support.judged_run import Tables, drop_events, findings, judged_run, set_detail
from r8.tests.support.run_factory import SyntheticRun
from r8.tests.support.stub_case import KV_RUN, H, R, StubCase, U, answers_of, at_most, exactly

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from r8.forensics.case import Case


WANT = KV_RUN.expectation.hit_tokens_per_session


def asked(
    *rows: tuple[object, ...],
    hits: int = 1_000_000,
    device: int = 1_000_000,
    prompt: int = KV_RUN.expectation.prompt_tokens,
) -> Case:
    """Requests as (hit, computed, retrieved) of one engine whose settings are as planned."""
    expectation = KV_RUN.expectation
    config = {"instance": "a", "enable_prefix_caching": False, "chunk_tokens": 256}
    loaded = [int(str(row[2])) for row in rows if row[2] is not None]
    return StubCase(
        metrics={"engine_hit_bytes": hits},
        balances={"uncovered_hit_bytes": max(0, hits - device)},
        told={"server_config": (1, {**config, "cpu_tier_bytes": expectation.cpu_tier_bytes})},
        answers={
            "FROM engine_requests": [
                (f"r{at}", prompt, 1, *row[:2]) for at, row in enumerate(rows)
            ],
            "FROM engine_sums": [(len(rows), sum(loaded) if loaded else None, len(loaded))],
        },
    )


@pytest.mark.parametrize(("hit", "answer"), exactly(WANT))
def test_c6_wants_exactly_the_whole_chunks(hit: int, answer: Answer) -> None:
    checks = hits_exact(asked((WANT, 0, WANT), (hit, 0, WANT)))
    assert checks[0].answer is answer
    assert checks[0].message == ("c6-hit-tokens" if answer is H else "c6-wrong-hit-tokens")


@pytest.mark.parametrize(("prompt", "wanted"), [(1023, 768), (1024, 768), (1025, 1024)])
def test_c6_leaves_the_last_token_of_a_prompt_to_be_computed(prompt: int, wanted: int) -> None:
    """A prompt of whole chunks hits one less: its last token is computed in any case."""
    for hit, answer in exactly(wanted):
        assert hits_exact(asked((hit, 0, hit), prompt=prompt))[0].answer is answer


def test_c6_does_not_know_a_request_without_a_line_but_refutes_a_wrong_one_beside_it() -> None:
    assert hits_exact(asked((WANT, 0, WANT), (None, None, None)))[0].answer is U
    assert hits_exact(asked((WANT - 256, 0, WANT), (None, None, None)))[0].answer is R


@pytest.mark.parametrize(
    ("computed", "answer"), [((0, 0), H), ((0, 1), R), ((0, None), U), ((1, None), R), ((None,), U)]
)
def test_c6_wants_every_request_to_say_that_no_prefix_was_cached(
    computed: tuple[int | None, ...], answer: Answer
) -> None:
    checks = hits_exact(asked(*((WANT, one, WANT) for one in computed)))
    assert answers_of(checks, "c6-prefix-cache") == [answer]


@pytest.mark.parametrize(("loaded", "answer"), exactly(WANT))
def test_c6_wants_all_that_was_hit_to_be_loaded(loaded: int, answer: Answer) -> None:
    checks = hits_exact(asked((WANT, 0, WANT), (WANT, 0, loaded)))
    assert answers_of(checks, "c6-retrieved") == [answer]


@pytest.mark.parametrize(("served", "answer"), at_most(20_000))
def test_c6_allows_two_percent_of_the_hits_not_covered_by_the_device(
    served: int, answer: Answer
) -> None:
    case = asked((WANT, 0, WANT), device=1_000_000 - served)
    assert answers_of(hits_exact(case), "c6-dram-hits") == [answer]


def test_c6_refutes_hits_of_nothing_though_the_device_covers_them() -> None:
    checks = hits_exact(asked((WANT, 0, WANT), hits=0, device=0))
    assert answers_of(checks, "c6-nothing-hit") == [R]


def test_c6_holds_for_whole_chunks_from_the_device(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun()))["C6"]
    assert found.answer is Answer.HELD
    assert "4 of 4 requests hit 256*floor((prompt-1)/256) = 1024 tokens" in said(found)
    assert "4096 tokens retrieved by 4 requests = 4096" in said(found)


def test_c6_refutes_a_request_that_hit_one_chunk_less(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(hit_tokens=768)))["C6"]
    assert found.answer is Answer.REFUTED
    assert "0 of 4 requests hit" in said(found)
    assert "measure-0 hit 768 of 1024" in said(found)


def test_c6_refutes_a_hit_that_was_not_loaded(tmp_path: Path) -> None:
    def edit_log(text: str) -> str:
        return text.replace("Retrieved 1024 out of", "Retrieved 768 out of")

    found = findings(judged_run(tmp_path, SyntheticRun(), edit_log=edit_log))["C6"]
    assert found.answer is Answer.REFUTED
    assert "3072 tokens retrieved by 4 requests = 4096 [refuted]" in said(found)


def test_c6_refutes_tokens_from_the_engines_own_prefix_cache(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(computed_tokens=256)))["C6"]
    assert found.answer is Answer.REFUTED
    assert check_of(found, "c6-prefix-cache").measured == 256


def test_c6_refutes_a_server_with_prefix_caching_on(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(enable_prefix_caching=True)))["C6"]
    assert found.answer is Answer.REFUTED
    assert "a: enable_prefix_caching true = false [refuted]" in said(found)


def test_c6_refutes_a_tier_in_dram_that_served_half(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(device_read_bytes=16_777_216)))["C6"]
    assert found.answer is Answer.REFUTED
    assert "not covered by the device 16 MiB <= 671089 B [refuted]" in said(found)


@pytest.mark.parametrize("key", ["chunk_tokens", "cpu_tier_bytes"])
def test_c6_refutes_a_running_server_that_differs_from_the_plan(tmp_path: Path, key: str) -> None:
    def edit(tables: Tables) -> None:
        set_detail(tables, "server_config", **{key: 128})

    found = findings(judged_run(tmp_path, SyntheticRun(), edit))["C6"]
    assert found.answer is Answer.REFUTED
    assert f"a: {key} 128 = " in said(found)


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
    assert "3 of 4 requests hit" in said(found)
    assert "1 without a lookup line [unknown]" in said(found)


LOADED = (
    "[2026-11-30 03:14:16,000] LMCache INFO: [req_id={id}] Retrieved {got} out of {want} "
    "required tokens (from {total} total tokens)."
)


def by_ranks(*lines: tuple[str, int]) -> Callable[[str], str]:
    """An edit that writes the first request's line of its load once a (prefix, tokens loaded)."""

    def edit(text: str) -> str:
        found = []
        for line in text.splitlines():
            if "Retrieved" in line and "cmpl-measure-0-" in line:
                request = line.split("[req_id=")[1].split("]")[0]
                found += [
                    prefix + LOADED.format(id=request, got=got, want=WANT, total=WANT + 1)
                    for prefix, got in lines
                ]
            else:
                found.append(line)
        return "\n".join(found) + "\n"

    return edit


@pytest.mark.parametrize(
    ("lines", "answer"),
    [
        ([(f"(Worker_TP{rank} pid={70 + rank}) ", WANT) for rank in range(8)], H),
        # One rank of eight got nothing: the request was computed again, or is wrong.
        ([(f"(Worker_TP{rank} pid={70 + rank}) ", WANT * (rank < 7)) for rank in range(8)], R),
        ([("", WANT), ("", 0)], R),
        # A rank that loads again after a preemption says so twice; the fuller load counts.
        ([("(Worker_TP0 pid=70) ", 0), ("(Worker_TP0 pid=70) ", WANT)], H),
    ],
)
def test_c6_counts_the_rank_that_loaded_least(
    tmp_path: Path, lines: list[tuple[str, int]], answer: Answer
) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(), edit_log=by_ranks(*lines)))["C6"]
    assert answers_of(list(found.checks), "c6-retrieved") == [answer], said(found)


def test_lookups_of_lmcache_0_3_leave_c6_unknown_where_they_say_nothing(tmp_path: Path) -> None:
    def edit(text: str) -> str:
        return text.replace("Inference Engine computed tokens: 0, ", "")

    found = findings(judged_run(tmp_path, SyntheticRun(), edit_log=edit))
    assert answers_of(list(found["C6"].checks), "c6-hit-tokens") == [H]
    assert answers_of(list(found["C6"].checks), "c6-prefix-cache") == [U]
    assert found["E2"].answer is H, said(found["E2"])
