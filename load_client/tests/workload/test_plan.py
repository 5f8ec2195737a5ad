from __future__ import annotations

import json
import re
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pytest

from load_client.cli import main
from load_client.errors import ClientError
from load_client.workload.plan import KEYS, make_plan, read_plan
from load_client.workload.profiles import PROFILES
from load_client.workload.render import render_body, render_request
from load_client.workload.token_generator import prompt_token_ids, prompt_words, session_digits

from ..support.runs import plan, values

if TYPE_CHECKING:
    from pathlib import Path

URL = "http://127.0.0.1:8000"


@pytest.mark.parametrize(
    ("changes", "what", "next_step"),
    [
        ({"promt_tokens": 5}, "unknown plan key 'promt_tokens'", "did you mean prompt_tokens?"),
        ({"zzz": 5}, "unknown plan key 'zzz'", "known keys: phase"),
        ({"phase": "measur"}, "'phase' is \"measur\"", "probe, populate"),
        ({"instance": "a/b"}, "'instance'", "letters, digits"),
        ({"base_url": "ftp://x"}, "'base_url'", "http://host:port"),
        ({"base_url": "localhost:8000"}, "'base_url'", "http://host:port"),
        ({"base_url": 3}, "'base_url'", "http://host:port"),
        ({"sessions": []}, "'sessions' is []", "list of session numbers"),
        ({"sessions": [0, True, 2, 3]}, "'sessions'", "list of session numbers"),
        ({"sessions": [0, 1, 2, 2]}, "session 2 is listed twice", "each session once"),
        ({"sessions": [0, 1, 2]}, "3 sessions do not make bursts of exactly 4", "multiple of 4"),
        ({"sessions": list(range(6))}, "6 sessions do not make bursts", "--shape closed"),
        ({"concurrency": 0}, "'concurrency' is 0", "1 or more"),
        ({"prompt_tokens": 2.5}, "'prompt_tokens' is 2.5", "whole number"),
        ({"endpoint": "chats"}, "'endpoint'", "one of completions, chat"),
        ({"vocab": [5, 6]}, "'vocab'", "[low, high)"),
        ({"vocab": [5, 10**8 + 1]}, "'vocab'", "[low, high)"),
        ({"timeout_s": 0}, "'timeout_s' is 0", "seconds above 0"),
        ({"extra_body": []}, "'extra_body'", "JSON object"),
        ({"extra_body": {"max_tokens": 1}}, "extra_body may not set 'max_tokens'", "own keys"),
        ({"profile": "nim", "extra_body": {"nvext": {}}}, "may not set 'nvext'", "own keys"),
        ({"profile": "tgi"}, "'profile' is \"tgi\"", "vllm, sglang, trtllm, nim, openai"),
        ({"trace_format": "azure"}, "no trace to read so", "--shape trace"),
        ({"trace_block_tokens": 16}, "no trace to read so", "--shape trace"),
        ({"api_key_env": "NO_SUCH_KEY_HERE"}, "NO_SUCH_KEY_HERE is empty", "export"),
    ],
)
def test_a_bad_plan_names_the_key_the_place_and_what_to_type(
    changes: dict[str, Any], what: str, next_step: str
) -> None:
    with pytest.raises(ClientError) as caught:
        make_plan(values(URL, **changes), "plan.json")
    assert what in caught.value.what
    assert caught.value.where == "plan.json"
    assert next_step in caught.value.next_step
    assert "\n" not in str(caught.value)


def test_a_vocabulary_may_reach_as_far_as_the_generator_writes() -> None:
    assert plan(URL, vocab=[0, 10**8]).vocab == (0, 10**8)


def test_a_missing_key_is_named_with_its_flag() -> None:
    short = {key: value for key, value in values(URL).items() if key != "base_url"}
    with pytest.raises(ClientError, match=r"'base_url' is missing.*--base-url: http://host:port"):
        make_plan(short, "plan.json")


@pytest.mark.parametrize("text", ["{", "[1]", None])
def test_an_unreadable_plan_file_is_one_clear_error(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "plan.json"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(ClientError) as caught:
        read_plan(path)
    assert caught.value.where == str(path)


@pytest.mark.parametrize("words", [["run", "--out", "x", "--sesions", "1"], ["walk"], []])
def test_a_bad_command_line_is_one_line_and_exit_4(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 4
    assert capsys.readouterr().err.count("\n") == 1


def test_every_plan_key_is_a_flag(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    shown = capsys.readouterr().out
    flags = set(re.findall(r"--[a-z-]+", shown))
    assert {f"--{key.replace('_', '-')}" for key in KEYS} - flags == {"--shard"}
    assert "one of completions, chat" in " ".join(shown.split())


def ids(*, seed: int, session: int, prompt_tokens: int, vocab: tuple[int, int]) -> list[int]:
    text = prompt_token_ids(
        seed=seed, session=session, prompt_tokens=prompt_tokens, vocab=vocab, group=0, shared=0
    )
    return [int(one) for one in text.split(b",")]


def test_a_prompt_is_a_pure_function_of_seed_session_length_and_vocab() -> None:
    known = ids(seed=1, session=5, prompt_tokens=8, vocab=(1000, 2000))
    # Frozen: other values would make new runs incomparable with stored KV.
    assert known == KNOWN
    assert known == ids(seed=1, session=5, prompt_tokens=8, vocab=(1000, 2000))
    assert known[4:] != ids(seed=2, session=5, prompt_tokens=8, vocab=(1000, 2000))[4:]


KNOWN = [1005, 1000, 1000, 1000, 1840, 1208, 1271, 1887]


@pytest.mark.parametrize("vocab", [(0, 2), (1000, 1256), (10, 50_000)])
def test_prompts_have_the_exact_length_stay_in_the_vocab_and_never_share_a_prefix(
    vocab: tuple[int, int],
) -> None:
    digits = session_digits(vocab)
    sessions = [*range(300), (1 << 31) - 1]
    prompts = [ids(seed=3, session=one, prompt_tokens=digits + 50, vocab=vocab) for one in sessions]
    assert {len(prompt) for prompt in prompts} == {digits + 50}
    assert all(vocab[0] <= token < vocab[1] for prompt in prompts for token in prompt)
    assert len({tuple(prompt[:digits]) for prompt in prompts}) == len(sessions)


def test_a_prompt_too_short_to_tell_sessions_apart_is_refused() -> None:
    with pytest.raises(ClientError, match="4 are needed"):
        ids(seed=1, session=0, prompt_tokens=3, vocab=(1000, 2000))


def test_chat_words_begin_with_the_session() -> None:
    assert prompt_words(seed=1, session=7, count=3)[0] == "7:1"
    assert prompt_words(seed=1, session=7, count=3) == prompt_words(seed=1, session=7, count=9)[:3]


def test_a_completions_request_asks_for_exact_greedy_streamed_output_with_usage() -> None:
    body = render_body(plan(URL, extra_body={"user": "u"}), b"1,2")
    assert json.loads(body) == {
        "model": "m", "prompt": [1, 2], "max_tokens": 3, "min_tokens": 3, "temperature": 0.0,
        "ignore_eos": True, "stream": True, "stream_options": {"include_usage": True},
        "return_token_ids": True, "user": "u",
    }  # fmt: skip


OPENAI_KEYS = {"model", "prompt", "max_tokens", "temperature", "stream", "stream_options"}


@pytest.mark.parametrize(
    ("profile", "extras"),
    [
        ("vllm", {"ignore_eos": True, "min_tokens": 3, "return_token_ids": True}),
        ("sglang", {"ignore_eos": True, "min_tokens": 3, "return_token_ids": True}),
        ("trtllm", {"ignore_eos": True, "min_tokens": 3}),
        ("nim", {"nvext": {"ignore_eos": True}}),
        ("openai", {}),
    ],
)
def test_a_profile_decides_which_keys_beyond_openais_are_sent(
    profile: str, extras: dict[str, Any]
) -> None:
    body = json.loads(render_body(plan(URL, profile=profile), b"1,2"))
    assert {key: body.pop(key) for key in body.keys() - OPENAI_KEYS} == extras
    assert body.keys() == OPENAI_KEYS


def test_every_profile_is_tried() -> None:
    assert set(PROFILES) == {"vllm", "sglang", "trtllm", "nim", "openai"}


def test_a_switch_gives_its_keys_value_where_the_profile_has_the_key() -> None:
    off = {"ignore_eos": False, "return_token_ids": False}
    body = json.loads(render_body(plan(URL, **off), b"1,2"))
    assert body["ignore_eos"] is False
    assert "return_token_ids" not in body
    body = json.loads(render_body(plan(URL, profile="nim", **off), b"1,2"))
    assert body["nvext"] == {"ignore_eos": False}
    body = json.loads(render_body(plan(URL, profile="openai", **off), b"1,2"))
    assert body.keys() == OPENAI_KEYS


def test_a_dynamo_plan_may_bring_an_nvext_of_its_own_where_the_profile_sends_none() -> None:
    nvext = {"nvext": {"annotations": ["timing"]}}
    body = json.loads(render_body(plan(URL, profile="openai", extra_body=nvext), b"1,2"))
    assert body["nvext"] == nvext["nvext"]


@pytest.mark.parametrize(("profile", "refused"), [("vllm", False), ("trtllm", True)])
def test_further_turns_of_token_ids_need_a_server_that_returns_them(
    profile: str, *, refused: bool
) -> None:
    talk = {"shape": "closed", "turns": 2, "turn_tokens": 5, "profile": profile}
    with pytest.raises(ClientError, match="token ids") if refused else nullcontext():
        plan(URL, **talk)


def test_a_request_is_rendered_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THE_KEY", "s3cret")
    chat = plan(f"{URL}/pre/v1", endpoint="chat", api_key_env="THE_KEY", return_token_ids=False)
    head, _, body = render_request(chat, "h\u00e9", "id-1").partition(b"\r\n\r\n")
    lines = head.decode("ascii").split("\r\n")
    assert lines[0] == "POST /pre/v1/chat/completions HTTP/1.1"
    assert f"Content-Length: {len(body)}" in lines
    assert {"Host: 127.0.0.1:8000", "X-Request-Id: id-1", "Authorization: Bearer s3cret"} <= set(
        lines
    )
    assert json.loads(body)["messages"] == [{"role": "user", "content": "h\u00e9"}]
    assert "return_token_ids" not in json.loads(body)
