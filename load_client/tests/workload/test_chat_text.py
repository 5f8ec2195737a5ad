from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from load_client.errors import ClientError
from load_client.wire.target import reach
from load_client.workload.chat_text import exact_text, server_counter

from ..support.runs import plan, rows, run
from ..support.scripted_server import Step, scripted
from ..support.streams import DONE, chat, chunked, head, usage

if TYPE_CHECKING:
    from pathlib import Path

TEMPLATE_TOKENS = 9


def fake_count(text: str) -> int:
    """A fake tokenizer: pieces of at most three letters, and a template around."""
    return TEMPLATE_TOKENS + sum(1 for _ in re.finditer(r" ?[a-z]{1,3}| ?\d|[^a-z\d]", text))


@pytest.mark.parametrize("size", [16, 17, 18, 19, 100, 101, 333])
def test_chat_text_reaches_the_exact_count_whatever_the_words_give(size: int) -> None:
    texts = [exact_text(fake_count, seed=1, session=s, prompt_tokens=size) for s in (0, 1)]
    assert [fake_count(text) for text in texts] == [size, size]
    assert texts[0].split()[0] != texts[1].split()[0]


def test_a_count_that_cannot_be_reached_exactly_is_refused() -> None:
    with pytest.raises(ClientError, match="no text of exactly 101 tokens"):
        exact_text(lambda text: 2 * len(text.split()), seed=1, session=0, prompt_tokens=101)


def test_a_prompt_shorter_than_the_template_is_refused() -> None:
    with pytest.raises(ClientError, match="no text of exactly 5 tokens"):
        exact_text(fake_count, seed=1, session=0, prompt_tokens=5)


def answer(body: dict[str, Any], _number: int) -> list[Step]:
    if "stream" in body:
        return [chunked(chat(role="assistant"), chat(content="x"), usage(), DONE)]
    text = body["messages"][0]["content"]
    counted = json.dumps({"count": fake_count(text)}).encode()
    return [head("200 OK", f"Content-Length: {len(counted)}") + counted]


def test_the_server_counts_and_the_counted_text_is_what_is_sent(tmp_path: Path) -> None:
    with scripted(answer) as server:
        chats = plan(server.url, endpoint="chat", prompt_tokens=40, sessions=[3], concurrency=1)
        run(chats, tmp_path)
        sent = server.bodies()[-1]
    (row,) = rows(tmp_path / "requests.jsonl")
    assert (row["outcome"], row["prompt_tokens_planned"]) == ("ok", 40)
    assert fake_count(sent["messages"][0]["content"]) == 40


@pytest.mark.parametrize(
    "reply", [b"HTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\nno", b"HTTP/1.1 200 OK\r\n\r\n[1]", b""]
)
def test_a_server_that_does_not_count_is_one_clear_error(reply: bytes) -> None:
    with scripted(lambda _b, _n: [reply]) as server:
        count = server_counter(
            plan(server.url, endpoint="chat"), reach(server.url, proxy=None, ca_file=None)
        )
        with pytest.raises(ClientError, match="does not count tokens"):
            count("text")
