from __future__ import annotations

import pytest

from r8.evidence.engine_log import parse_line, parse_log
from r8.evidence.journal import journal_columns, row_fault

DIGEST = "0123456789abcdef" * 4
HEAD = b"\x1b[32;20m[2026-11-30 03:14:15,926] LMCache INFO:\x1b[0m "
TAIL = b" \x1b[3m(vllm_v1_adapter.py:1461:lmcache.integration)\x1b[0m\n"


def line(text: str) -> bytes:
    return HEAD + text.encode() + TAIL


def test_a_lookup_line_gives_the_request_and_its_tokens() -> None:
    row = parse_line(
        line(
            "Reqid: cmpl-7-0-ab, Total tokens 4000, Inference Engine computed tokens: 16, "
            "LMCache hit tokens: 3840, need to load: 3824"
        )
    )
    assert row is not None
    text = row.pop("text")
    assert row == {
        "kind": "lookup",
        "server_request_id": "cmpl-7-0-ab",
        "total_tokens": 4000,
        "computed_tokens": 16,
        "hit_tokens": 3840,
        "need_tokens": 3824,
    }
    assert isinstance(text, str)
    assert text.startswith("[2026-11-30 03:14:15,926] LMCache INFO: Reqid: cmpl-7-0-ab")
    assert "\x1b" not in text


def test_a_lookup_still_waiting_has_no_hit_rather_than_none_hit() -> None:
    row = parse_line(
        line(
            "Reqid: r, Total tokens 9, Inference Engine computed tokens: 0, "
            "LMCache hit tokens: None."
        )
    )
    assert row is not None
    assert row["hit_tokens"] is None
    assert row["need_tokens"] is None


def test_a_hit_below_the_minimum_loads_nothing() -> None:
    row = parse_line(
        line(
            "Reqid: r, Total tokens 300, Inference Engine computed tokens: 0, LMCache hit "
            "tokens: 256, but need to load: 256 < min_retrieve 512, skip retrieve but record"
        )
    )
    assert row is not None
    assert (row["hit_tokens"], row["need_tokens"]) == (256, 0)


def test_retrieved_and_stored_lines_give_their_tokens() -> None:
    retrieved = parse_line(
        line(
            "[req_id=cmpl-1-0] Retrieved 3840 out of 3840 required tokens (from 4000 total "
            "tokens). size: 0.0293 gb, cost 22.5 ms, throughput: 1.3 GB/s;"
        )
    )
    stored = parse_line(
        line("[req_id=cmpl-2-0] Stored 512 out of total 600 tokens. size: 0.1 GB, cost 1 ms")
    )
    assert retrieved is not None
    assert stored is not None
    assert retrieved["kind"] == "retrieved"
    assert retrieved["server_request_id"] == "cmpl-1-0"
    assert retrieved["retrieved_tokens"] == retrieved["required_tokens"] == 3840
    assert retrieved["total_tokens"] == 4000
    assert (stored["kind"], stored["stored_tokens"], stored["total_tokens"]) == ("stored", 512, 600)


def test_the_lines_of_the_patch_give_digest_mode_and_bytes() -> None:
    loaded = parse_line(
        line(
            f"R8-PATCH loaded module_sha256={DIGEST} mode=serial threads=32 "
            "segment_bytes=1048576 odirect=1 path=/mnt/kv"
        )
    )
    read = parse_line(
        line("R8-PATCH read id=3 path=async keys=15 segments=30 bytes=31457280 misses=1")
    )
    assert loaded is not None
    assert read is not None
    assert (loaded["kind"], loaded["digest"], loaded["mode"]) == ("patch_loaded", DIGEST, "serial")
    assert (read["kind"], read["keys"], read["segments"]) == ("patch_read", 15, 30)
    assert (read["read_bytes"], read["misses"]) == (31457280, 1)


@pytest.mark.parametrize(
    "text",
    [
        "Starting vLLM server, no ERROR so far",
        "R8-PATCH loaded module_sha256=abc mode=parallel",
        f"R8-PATCH loaded module_sha256={DIGEST} mode=magic",
        "R8-PATCH read id=3 path=sync keys=many segments=1 bytes=1 misses=0",
        "",
    ],
)
def test_a_line_of_another_form_says_nothing(text: str) -> None:
    assert parse_line(line(text)) is None


def test_bytes_that_are_no_text_do_not_hide_a_line() -> None:
    raw = b"\xff\xfe progress\r" + line("[req_id=r] Stored 1 out of total 2 tokens.")
    row = parse_line(raw)
    assert row is not None
    assert row["kind"] == "stored"
    assert "\\xff\\xfe" in str(row["text"])


def test_a_log_gives_rows_of_the_table_with_line_numbers_from_one() -> None:
    lines = [line("nothing"), line("[req_id=r] Stored 1 out of total 2 tokens."), b"\x00\x80\n"]
    rows = list(parse_log(lines, instance="a"))
    assert [(row["instance"], row["line"]) for row in rows] == [("a", 2)]
    assert row_fault(journal_columns("engine_log"), rows[0]) is None
