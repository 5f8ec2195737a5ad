"""What is asked: traces, conversations, shared prefixes, chats with exact counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from load_client.workload.plan import make_plan

from ..support.runs import good, plan, rows, run, values
from ..support.scripted_server import Step, scripted
from ..support.streams import DONE, chat, chunked, completion, head, usage

ROOT = Path(__file__).resolve().parents[3]
MS = 1_000_000
URL = "http://127.0.0.1:1"


TRACE = (
    '{"timestamp": 0, "input_length": 20, "output_length": 3, "hash_ids": [1, 2, 3]}\n'
    '{"timestamp": 100, "input_length": 12, "output_length": 5, "hash_ids": [1, 9]}\n'
    '{"timestamp": 300, "input_length": 9, "output_length": 3, "hash_ids": []}\n'
)


def test_a_trace_is_replayed_with_its_lengths_times_and_shared_blocks(tmp_path: Path) -> None:
    (tmp_path / "trace.jsonl").write_text(TRACE)
    chosen = {
        key: value
        for key, value in values(URL).items()
        if key not in {"sessions", "prompt_tokens", "output_tokens", "concurrency"}
    }
    with scripted(good) as server:
        asked = {
            **chosen, "base_url": server.url, "shape": "trace", "time_scale": 0.5,
            "trace": str(tmp_path / "trace.jsonl"), "trace_block_tokens": 8,
        }  # fmt: skip
        run(make_plan(asked, "test"), tmp_path)
        bodies = server.bodies()
    assert [len(body["prompt"]) for body in bodies] == [20, 12, 9]
    assert [body["max_tokens"] for body in bodies] == [3, 5, 3]
    one, two, three = (body["prompt"] for body in bodies)
    assert one[:8] == two[:8]
    assert one[8:12] != two[8:12]
    assert three[:8] != one[:8]
    found = sorted(rows(tmp_path / "requests.jsonl"), key=lambda row: row["session"])
    slots = [row["scheduled_ns"] - found[0]["scheduled_ns"] for row in found]
    assert slots == [0, 50 * MS, 150 * MS]
    assert [row["prompt_tokens_planned"] for row in found] == [20, 12, 9]


def test_a_conversation_repeats_what_was_said_and_counts_its_tokens_exactly(
    tmp_path: Path,
) -> None:
    answer = chunked(
        completion("ab", token_ids=[7, 8]), completion("c", token_ids=[9]), usage(), DONE
    )
    with scripted(lambda _b, _n: [answer]) as server:
        talk = plan(
            server.url, shape="closed", turns=3, turn_tokens=5, sessions=[0, 1], concurrency=2
        )
        summary, _ = run(talk, tmp_path)
        bodies = [body for body in server.bodies() if body["prompt"][0] == 1000]
    assert summary.outcomes == {"ok": 6}
    first, second, third = (body["prompt"] for body in bodies)
    assert second[:15] == [*first, 7, 8, 9]
    assert third[:23] == [*second, 7, 8, 9]
    assert [len(one) for one in (first, second, third)] == [12, 20, 28]
    assert second[15:] != third[23:]
    found = rows(tmp_path / "requests.jsonl")
    assert sorted(row["prompt_tokens_planned"] for row in found) == [12, 12, 20, 20, 28, 28]
    assert sorted(row["request_id"][-3:] for row in found) == [
        "-t0",
        "-t0",
        "-t1",
        "-t1",
        "-t2",
        "-t2",
    ]


def test_turns_after_a_failure_are_accounted_for_and_fail_the_phase(tmp_path: Path) -> None:
    with scripted(lambda _b, _n: [head("500 No", "Content-Length: 0")]) as server:
        talk = plan(server.url, shape="closed", turns=3, turn_tokens=5, sessions=[0], concurrency=1)
        summary, said = run(talk, tmp_path)
    assert (summary.outcomes, summary.unsent_turns, summary.all_ok) == ({"http_error": 1}, 2, False)
    assert "2 turns were not sent" in said


@pytest.mark.parametrize("groups", [1, 2])
def test_a_prefix_is_shared_by_ratio_inside_a_group_and_nothing_beyond_it(
    tmp_path: Path, groups: int
) -> None:
    with scripted(good) as server:
        shared = plan(
            server.url, prompt_tokens=40, shared_prefix_ratio=0.5, shared_prefix_groups=groups
        )
        run(shared, tmp_path)
        prompts = [body["prompt"] for body in server.bodies()]
    assert {len(prompt) for prompt in prompts} == {40}
    assert len({tuple(prompt[:20]) for prompt in prompts}) == groups
    assert len({tuple(prompt[20:24]) for prompt in prompts}) == 4


def words_of(messages: list[dict[str, str]]) -> int:
    """A fake tokenizer: a token a word, three more a message for the template."""
    return sum(3 + len(message["content"].split()) for message in messages)


def chatty(body: dict[str, Any], _number: int) -> list[Step]:
    if "stream" in body:
        return [chunked(chat(role="assistant", content=""), chat(content="a b c"), usage(), DONE)]
    answer = json.dumps({"count": words_of(body["messages"])}).encode()
    plain = head("200 OK", f"Content-Length: {len(answer)}", "Connection: close")
    return [plain.replace(b"text/event-stream", b"application/json") + answer]


def test_a_chat_has_exact_counts_in_every_turn_and_shares_its_beginning(tmp_path: Path) -> None:
    with scripted(chatty) as server:
        talk = plan(
            server.url, endpoint="chat", shape="closed", turns=2, turn_tokens=20, sessions=[0, 1],
            concurrency=1, prompt_tokens=40, shared_prefix_ratio=0.5,
        )  # fmt: skip
        summary, said = run(talk, tmp_path)
        sent = [body["messages"] for body in server.bodies() if "stream" in body]
    assert summary.outcomes == {"ok": 4}, said
    assert [len(messages) for messages in sent] == [1, 3, 1, 3]
    assert [words_of(messages) for messages in sent] == [40, 63, 40, 63]
    assert [message["role"] for message in sent[1]] == ["user", "assistant", "user"]
    assert sent[1][1]["content"] == "a b c"
    first, other = (sent[i][0]["content"].split() for i in (0, 2))
    assert first[:17] == other[:17]
    assert (first[17], other[17]) == ("0:1", "1:1")
