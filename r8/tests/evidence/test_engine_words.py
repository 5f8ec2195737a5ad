"""Lines of engines as public reports show them, written anew: what each is taken to mean."""

from __future__ import annotations

import pytest

from r8.evidence.engine_log import parse_line
from r8.evidence.engine_words import FORMS

LMCACHE = "[2026-11-01 10:00:00,100] LMCache "
VLLM = "(EngineCore pid=7) "


def kind(text: str) -> str | None:
    row = parse_line(text.encode() + b"\n")
    return None if row is None else str(row["kind"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # zmq_transport.py of LMCache 0.4.4-0.5.6: any rank
        (LMCACHE + "ERROR: Timeout occurred for rank 0, recreating all sockets. Error: x", "fatal"),
        (LMCACHE + "ERROR: Timeout occurred for rank 3, recreating all sockets. Error: x", "fatal"),
        (LMCACHE + "ERROR: ZMQ error for rank (1, 0): gone, recreating all sockets", "fatal"),
        (LMCACHE + "WARNING: LMCache is unhealthy, skipping retrieve operation", "fatal"),
        (LMCACHE + "WARNING: LMCache is unhealthy, skipping store_layer operation", "fatal"),
        (LMCACHE + "WARNING: HealthMonitor: System unhealthy, entering degraded mode", "fatal"),
        (LMCACHE + "ERROR: HealthMonitor: System unhealthy, entering degraded mode", "fatal"),
        (
            LMCACHE + "ERROR: Failed during post_init: x. System will operate in degraded mode "
            "(recompute).",
            "fatal",
        ),
        # vLLM 0.27.1's scheduler; vllm#44249
        (
            VLLM + "WARNING 11-01 10:00:00 [scheduler.py:2906] Recovered from KV load failure: 3 "
            "request(s) rescheduled (2816 tokens affected).",
            "trouble",
        ),
        (
            VLLM + "ERROR 11-01 10:00:00 [scheduler.py:2915] Failing 2 request(s) due to KV load "
            "failure (failure_policy=fail, 512 tokens affected).",
            "trouble",
        ),
        (LMCACHE + "WARNING: File not found on disk: /kv/a.pt", "trouble"),
        (
            LMCACHE + "WARNING: Request a is still waiting for async lookup after 60 seconds, "
            "returning 0 lmcache cached tokens so vllm can recompute",
            "trouble",
        ),
        (LMCACHE + "WARNING: Request r failed to load 512 tokens across 32 blocks", "trouble"),
        # nobody knows these: kept under the engine's own level
        (LMCACHE + "WARNING: Something that was never printed before", "warning"),
        (LMCACHE + "CRITICAL: Something that was never printed before", "error"),
        ("WARNING 11-01 10:00:00 [envs.py:83] Unknown variable", "warning"),
        ("WARNING 11-01 10:00:00.123 [envs.py:83] Unknown variable", "warning"),
        (VLLM + "ERROR 11-01 10:00:00 [core.py:842] EngineCore failed to start.", "error"),
        ("ERROR:    Exception in ASGI application", "error"),
        # an INFO line that quotes one is no warning
        (LMCACHE + "INFO: a WARNING was counted", None),
        ("INFO 11-01 10:00:00 [a.py:1] ERROR_RATE=0", None),
    ],
)
def test_a_line_has_the_meaning_of_its_words_or_of_its_level(
    text: str, expected: str | None
) -> None:
    assert kind(text) == expected


def test_colours_and_a_progress_bar_before_a_line_change_nothing() -> None:
    text = "Loading: 100%|####| 2/2\r\x1b[33;20m[2026-11-01 10:00:00,100] LMCache WARNING:\x1b[0m "
    assert kind(text + "LMCache is unhealthy, skipping lookup operation") == "fatal"
    assert kind(text + "something new") == "warning"


def test_every_form_says_who_prints_it_and_is_found_by_its_words() -> None:
    for form in FORMS:
        assert form.source
        plain = form.words.replace("\\", "").replace("d+", "7").replace(".{1,200}", "3")
        plain = plain.replace("a?sync", "async").replace(".*", "r while the")
        assert kind(LMCACHE + "WARNING: " + plain) == form.kind, form


def test_lookups_of_lmcache_0_3_are_read_and_their_prefix_cache_stays_unknown() -> None:
    row = parse_line(
        (
            LMCACHE + "INFO: Reqid: cmpl-7-0, Total tokens 4000, LMCache hit tokens: 3840, "
            "need to load: 3840"
        ).encode()
    )
    assert row is not None
    assert (row["kind"], row["computed_tokens"]) == ("lookup", None)
    assert (row["hit_tokens"], row["need_tokens"]) == (3840, 3840)


def test_layer_by_layer_the_same_is_said_in_other_words() -> None:
    row = parse_line(
        (LMCACHE + "INFO: [req_id=a-0] Retrieved 256 out of 512 out of total 600 tokens").encode()
    )
    assert row is not None
    assert (row["kind"], row["server_request_id"]) == ("retrieved", "a-0")
    assert (row["retrieved_tokens"], row["required_tokens"]) == (256, 512)
    assert row["total_tokens"] == 600


def test_lines_that_name_no_request_are_kept_without_one() -> None:
    for text in (
        "Retrieved 256 out of 512 required tokens (from 600 total tokens).",
        "Retrieved 256 out of 512 out of total 600 tokens",
    ):
        row = parse_line((LMCACHE + "INFO: " + text).encode())
        assert row is not None
        assert (row["kind"], row["server_request_id"]) == ("retrieved", None)
        assert row["retrieved_tokens"] == 256
