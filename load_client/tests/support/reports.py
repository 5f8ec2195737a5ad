"""Streams of public reports, written anew: what a server sent, and what must be understood of it.

A float is a pause of the server in seconds; what stands between two pauses arrives in one read.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .streams import DONE, chat, chunk, completion, event, head

if TYPE_CHECKING:
    from collections.abc import Mapping

Part = bytes | float
_END = b"0\r\n\r\n"
_HEAD = head("200 OK", "Transfer-Encoding: chunked")
ROLE = chat(role="assistant", content="")


def final(reason: str | None, **delta: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return event({"id": "chatcmpl-1", "choices": [choice]})


def counts(said: Any, **more: Any) -> bytes:
    return event({"id": "chatcmpl-1", "choices": [], "usage": said, **more})


def with_counts(part: bytes, said: Any) -> bytes:
    return part.replace(b"}\n\n", b', "usage": %s}\n\n' % json.dumps(said).encode())


def used(prompt: int, answer: int) -> dict[str, int]:
    return {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer}


A, B, C, D = (chat(content=letter) for letter in "abcd")
LAST = final("length", content="d")
FOUR = (0.1, A, 0.05, B, 0.05, C, 0.05, LAST)  # a paced answer of four tokens
USED = counts(used(32, 4))


@dataclass(frozen=True, kw_only=True)
class Report:
    """One report: `kinds` as in `streams.Case`, `row` columns of its row."""

    name: str
    source: str
    parts: tuple[Part, ...]
    outcome: str = "ok"
    kinds: str
    row: Mapping[str, Any] = field(default_factory=dict)
    error: str | None = None  # a part of it
    tokens: tuple[int | None, ...] | None = None  # of each event that carries some
    ttft_ms: int | None = None
    marks: tuple[str, ...] = ()
    endpoint: str = "chat"
    framed: bool = True  # the parts are events of a good chunked answer

    def reads(self) -> list[tuple[int, bytes]]:
        """What arrived, each piece with its milliseconds after the request."""
        found: list[tuple[int, bytes]] = []
        now_ms, piece = 0, _HEAD if self.framed else b""
        for part in (*self.parts, _END if self.framed else b""):
            if isinstance(part, float):
                found.append((now_ms, piece))
                now_ms, piece = now_ms + round(1000 * part), b""
            else:
                piece += chunk(part) if self.framed and part != _END else part
        return [(ms, piece) for ms, piece in [*found, (now_ms, piece)] if piece]


def fine(prompt: int | None, answer: int | None, finish: str | None = "length") -> dict[str, Any]:
    return {"prompt_tokens": prompt, "output_tokens": answer, "finish_reason": finish}


_PLAIN = _HEAD + b"".join(map(chunk, (ROLE, A, B, C, LAST, USED, DONE))) + _END
_MIXED = counts({"prompt_tokens": 19, "completion_tokens": 4})

REPORTS = (
    # How an answer ends.
    Report(
        name="S01 aborted, then [DONE]", source="vllm-project/vllm#57082",
        parts=(ROLE, 0.1, A, 0.05, B, final("abort", content=""), counts(used(32, 2)), DONE),
        outcome="finish_failed", kinds="RCCEUD", row=fine(32, 2, "abort"), error="'abort'",
    ),
    Report(
        name="aborted with no ids in its last event", source="vllm-project/vllm PR#47933",
        parts=(
            completion("a", token_ids=[5]), 0.05,
            completion("", token_ids=[], finish_reason="abort"), counts(used(32, 1)), DONE,
        ),
        outcome="finish_failed", kinds="CEUD", row=fine(32, 1, "abort"), endpoint="completions",
    ),
    Report(
        name="aborted, said by an error event without [DONE]", source="vllm-project/vllm PR#57089",
        parts=(ROLE, 0.1, A, event({"error": {"message": "aborted", "code": 500}})),
        outcome="stream_error", kinds="RCX", error="aborted",
    ),
    Report(
        name="repetition found", source="vllm v1/engine/__init__.py",
        parts=(ROLE, 0.1, A, 0.05, B, final("repetition"), counts(used(32, 2)), DONE),
        outcome="finish_failed", kinds="RCCEUD", error="'repetition'",
    ),
    Report(
        name="filtered in the middle", source="BerriAI/litellm#6104",
        parts=(ROLE, 0.1, A, 0.05, final("content_filter"), counts(used(32, 1)), DONE),
        outcome="finish_failed", kinds="RCEUD", row=fine(32, 1, "content_filter"),
    ),
    Report(
        name="filtered before any token", source="sugarforever/chat-ollama#695",
        parts=(ROLE, 0.1, final("content_filter"), counts(used(1296, 0)), DONE),
        outcome="finish_failed", kinds="REUD", row=fine(1296, 0, "content_filter"),
    ),
    Report(
        name="filtered, closed without [DONE]", source="experientiallabs/experiential PR#962",
        parts=(ROLE, 0.1, A, 0.05, B, final("content_filter")),
        outcome="cut", kinds="RCCE", row=fine(None, None, "content_filter"),
    ),
    Report(
        name="a word of no server", source="CherryHQ/cherry-studio PR#16079",
        parts=(ROLE, *FOUR[:-1], final("network_fuss", content="d"), USED, DONE),
        outcome="finish_unknown", kinds="RCCCCUD", row=fine(32, 4, "network_fuss"),
        error="'network_fuss'",
    ),
    Report(
        name="TGI's own words", source="huggingface/text-generation-inference router/src/lib.rs",
        parts=(ROLE, *FOUR[:-1], final("eos_token", content="d"), USED, DONE),
        kinds="RCCCCUD", row=fine(32, 4, "eos_token"), ttft_ms=100,
    ),
    Report(
        name="S02 [DONE] alone", source="vllm-project/vllm PR#40986", parts=(0.1, DONE),
        outcome="stream_error", kinds="D", error="holds no content",
    ),
    Report(
        name="S03 ends in silence", source="vllm-project/vllm#52852", parts=(ROLE, 0.1, A, B),
        outcome="cut", kinds="RCC",
    ),
    Report(
        name="S16 no object, no finish_reason", source="NVIDIA/TensorRT-Edge-LLM#93",
        parts=(ROLE, 0.1, A, 0.05, B, 0.05, C, 0.05, D, USED, DONE),
        kinds="RCCCCUD", row=fine(32, 4, None),
    ),
    Report(
        name="S19 an error after text", source="huggingface/text-generation-inference PR#2668",
        parts=(ROLE, 0.1, A, event({"error": {"message": "out of pages"}}), DONE),
        outcome="stream_error", kinds="RCXD", error="out of pages",
    ),
    Report(
        name="usage after [DONE]", source="Continuum-AI-Corp/OrcaRouter-Lite#127",
        parts=(ROLE, *FOUR, DONE, USED),
        outcome="stream_error", kinds="RCCCCD", error="1 data events came after [DONE]",
    ),
    Report(
        name="[DONE] of the engine and of the gateway", source="ray-project/ray PR#62246",
        parts=(ROLE, *FOUR, USED, DONE, DONE), kinds="RCCCCUD", row=fine(32, 4),
    ),
    # What stands between the tokens.
    Report(
        name="keep-alives of an empty data line", source="netease-lcap/wave-agent PR#1326",
        parts=(ROLE, b"data:\n\n", 0.1, A, 0.05, b"data: \n\n", B, 0.05, C, 0.05, LAST, USED, DONE),
        kinds="RMCMCCCUD", row=fine(32, 4), ttft_ms=100,
    ),
    Report(
        name="keep-alives between events with ids", source="theopenco/llmgateway PR#2334",
        parts=(ROLE, 0.1, b"id: 1\n" + A, 0.05, b": ping\n\n", b"id: 2\n\n", B, 0.05, C, 0.05, LAST,
               USED, DONE),
        kinds="RCMMCCCUD", row=fine(32, 4), ttft_ms=100,
    ),
    Report(
        name="a keep-alive in words is no protocol", source="aaif-goose/goose PR#11816",
        parts=(ROLE, b"data: ping\n\n", *FOUR, USED, DONE),
        outcome="stream_error", kinds="RXCCCCUD", error="ping",
    ),
    Report(
        name="a filter's results before the role", source="meilisearch/meilisearch PR#6477",
        parts=(
            event({"id": "", "model": "", "object": "", "choices": [],
                   "prompt_filter_results": [{"prompt_index": 0}]}),
            0.05, ROLE, *FOUR, USED, DONE,
        ),
        kinds="ERCCCCUD", row={"server_request_id": "chatcmpl-1"}, ttft_ms=150,
    ),
    Report(
        name="a filter's notes in a choice without delta", source="microsoft/autogen#6465",
        parts=(
            ROLE, *FOUR, event({"id": "", "choices": [{"index": 0, "finish_reason": None,
                                                       "content_filter_offsets": {}}]}), USED, DONE,
        ),
        kinds="RCCCCEUD", row=fine(32, 4),
    ),
    # How many tokens it had.
    Report(
        name="S04 half a usage in the role event", source="vercel/ai#2763",
        parts=(with_counts(ROLE, {"prompt_tokens": 32, "total_tokens": 32}), *FOUR, USED, DONE),
        kinds="RCCCCUD", row=fine(32, 4), ttft_ms=100,
    ),
    Report(
        name="S05 usage by other names", source="earendil-works/pi#2326",
        parts=(ROLE, *FOUR, counts({"input_tokens": 32, "output_tokens": 4}), DONE),
        kinds="RCCCCUD", row=fine(32, 4),
    ),
    Report(
        name="S18 no usage", source="TheTom/vllm-swift#19", parts=(ROLE, *FOUR, DONE),
        outcome="no_usage", kinds="RCCCCD", row=fine(None, None),
    ),
    Report(
        name="usage null in every event", source="sgl-project/sglang#954",
        parts=(ROLE, 0.1, with_counts(A, None), 0.05, with_counts(LAST, None), DONE),
        outcome="no_usage", kinds="RCCD",
    ),
    Report(
        name="usage null between timing comments", source="fr0ster/llm-agent#39",
        parts=(ROLE, 0.1, A, b": timing llm_call_1=1955ms\n\n", with_counts(LAST, None), DONE),
        outcome="no_usage", kinds="RCMCD",
    ),
    Report(
        name="only the prompt is counted", source="ai-dynamo/dynamo PR#11062",
        parts=(ROLE, *FOUR, counts({"prompt_tokens": 32, "completion_tokens": None}), DONE),
        outcome="no_usage", kinds="RCCCCUD", row=fine(32, None),
    ),
    Report(
        name="an empty usage", source="ai-dynamo/dynamo PR#11062",
        parts=(ROLE, *FOUR, counts({}), DONE), outcome="no_usage", kinds="RCCCCED",
    ),
    Report(
        name="usage in the last event with text", source="vllm-project/vllm PR#12394",
        parts=(ROLE, *FOUR[:-1], with_counts(LAST, used(32, 4)), DONE),
        kinds="RCCCCD", row=fine(32, 4), ttft_ms=100,
    ),
    Report(
        name="usage inside a choice", source="northes/go-moonshot#17",
        parts=(
            ROLE, *FOUR[:-1], D,
            event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop",
                                "usage": used(19, 4)}]}), DONE,
        ),
        kinds="RCCCCED", row=fine(19, 4, "stop"),
    ),
    Report(
        name="usage in x_groq", source="Groq API reference, chat completions",
        parts=(ROLE, *FOUR, event({"choices": [], "x_groq": {"usage": used(32, 4)}}), DONE),
        kinds="RCCCCUD", row=fine(32, 4),
    ),
    Report(
        name="usage before a last event without any", source="BerriAI/litellm#17136",
        parts=(ROLE, *FOUR[:-1], with_counts(LAST, used(32, 4)), event({"choices": []}), DONE),
        kinds="RCCCCED", row=fine(32, 4),
    ),
    Report(
        name="usage beside a choice that says nothing", source="agentjido/req_llm#781",
        parts=(ROLE, *FOUR, with_counts(chat(), used(32, 4)), DONE),
        kinds="RCCCCED", row=fine(32, 4),
    ),
    Report(
        name="usage without its total", source="PaddlePaddle/FastDeploy PR#3247",
        parts=(ROLE, *FOUR, _MIXED, DONE), kinds="RCCCCUD", row=fine(19, 4),
    ),
    Report(
        name="more ids than the usage counts", source="vllm-project/vllm PR#45678",
        parts=(
            completion("a", token_ids=[5]), 0.05, completion("bc", token_ids=[6, 7]), 0.05,
            completion("", finish_reason="stop"), counts(used(32, 2)), DONE,
        ),
        kinds="CCEUD", row=fine(32, 2, "stop"), tokens=(1, 2), marks=("surplus",),
        endpoint="completions",
    ),
    Report(
        name="more events than the usage counts", source="lm-sys/FastChat PR#3843",
        parts=(ROLE, *FOUR, counts(used(32, 3)), DONE),
        kinds="RCCCCUD", row=fine(32, 3), marks=("surplus",),
    ),
    Report(
        name="a usage that adds up every event", source="vllm-project/vllm-omni PR#2313",
        parts=(ROLE, *FOUR, counts(used(32, 19503)), DONE), kinds="RCCCCUD", row=fine(32, 19503),
    ),
    Report(
        name="an empty usage as PHP writes it", source="PHP manual, json_encode",
        parts=(ROLE, *FOUR, counts([]), DONE), outcome="no_usage", kinds="RCCCCED",
    ),
    # When they arrived.
    Report(
        name="S06 pings of a colon alone", source="ggml-org/llama.cpp PR#24013",
        parts=(b":\n\n", 0.05, b":\n\n", 0.05, ROLE, 0.05, A, 0.05, B, 0.05, C, 0.05, LAST,
               b":\n\n", USED, DONE),
        kinds="MMRCCCCMUD", row=fine(32, 4), ttft_ms=150,
    ),
    Report(
        name="S09 a proxy keeps all of it", source="dstackai/dstack#4269, BerriAI/litellm#26102",
        parts=(0.6, ROLE, A, B, C, LAST, USED, DONE),
        kinds="RCCCCUD", row=fine(32, 4), ttft_ms=600, marks=("held",),
    ),
    Report(
        name="the role at once, the rest at the end", source="kekzl/imp#754",
        parts=(ROLE, 1.7, A, B, C, LAST, USED, DONE),
        kinds="RCCCCUD", ttft_ms=1700, marks=("held",),
    ),
    Report(
        name="streamed as one event", source="nicedreamzapp/claude-code-local#39",
        parts=(ROLE, 0.5, final("stop", content="a b c d"), USED, DONE),
        kinds="RCUD", row=fine(32, 4, "stop"), ttft_ms=500, marks=("held",),
    ),
    Report(
        name="released in two clumps", source="confidential-dot-ai/c8s#140",
        parts=(0.3, ROLE, A, B, 0.3, C, LAST, USED, DONE), kinds="RCCCCUD", ttft_ms=300,
    ),
    Report(
        name="S10 the role long before the text", source="vllm-project/vllm#15106, #3759",
        parts=(ROLE, 0.3, A, 0.05, B, 0.05, C, 0.05, LAST, USED, DONE),
        kinds="RCCCCUD", ttft_ms=300,
    ),
    Report(
        name="S11 reasoning first", source="vllm-project/guidellm#737",
        parts=(ROLE, 0.1, chat(reasoning="x"), 0.2, chat(reasoning_content="y"), 0.1, C, LAST,
               USED, DONE),
        kinds="RAACCUD", row={"output_text": "xycd"}, ttft_ms=100,
    ),
    Report(
        name="S13 three tokens in an event", source="vllm-project/vllm PR#45678",
        parts=(
            ROLE, 0.1, with_counts(chat(content="a b c"), used(32, 3)), 0.1,
            with_counts(final("length", content=" d"), used(32, 4)), USED, DONE,
        ),
        kinds="RCCUD", row=fine(32, 4), tokens=(3, 1), ttft_ms=100,
    ),
    Report(
        name="sixteen tokens before an event", source="sgl-project/sglang PR#36272",
        parts=(
            ROLE, 0.1, with_counts(chat(content="ab"), used(9, 1)), 0.2,
            with_counts(chat(tool_calls=[{"index": 0}]), used(9, 17)), counts(used(9, 17)), DONE,
        ),
        kinds="RCCUD", row={"output_tokens": 17}, tokens=(1, 16), ttft_ms=100,
    ),
    Report(
        name="tokens of an event without text", source="PaddlePaddle/FastDeploy PR#8113",
        parts=(
            ROLE, 0.1, with_counts(A, used(9, 1)), 0.1, with_counts(chat(content=""), used(9, 4)),
            0.1, with_counts(LAST, used(9, 5)), counts(used(9, 5)), DONE,
        ),
        kinds="RCECUD", row={"output_tokens": 5}, tokens=(1, 3, 1),
    ),
    Report(
        name="two tokens an event, nobody says which", source="paiml/probar#27",
        parts=(ROLE, 0.1, chat(content="a b"), 0.1, final("stop", content=" c d"), USED, DONE),
        kinds="RCCUD", row=fine(32, 4, "stop"), tokens=(),
    ),
    Report(
        name="H12 tool calls alone", source="vllm-project/vllm#27572",
        parts=(
            ROLE, 0.1, chat(tool_calls=[{"index": 0, "function": {"arguments": "{"}}]), 0.1,
            chat(tool_calls=[{"index": 0, "function": {"arguments": "}"}}]), final("tool_calls"),
            USED, DONE,
        ),
        kinds="RCCEUD", row=fine(32, 4, "tool_calls"), ttft_ms=100,
    ),
    # How HTTP carried it.
    Report(
        name="H01 100 Continue", source="RFC 9110, 15.2.1",
        parts=(b"HTTP/1.1 100 Continue\r\n\r\n", 0.1, _PLAIN), kinds="RCCCCUD", framed=False,
        marks=("held",),
    ),
    Report(
        name="H02 103 Early Hints", source="RFC 8297",
        parts=(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", 0.1, _PLAIN), kinds="RCCCCUD",
        framed=False, marks=("held",),
    ),
    Report(
        name="H03 HTTP/1.0 that closes", source="confidential-dot-ai/c8s PR#144",
        parts=(
            head("200 OK", "Connection: close").replace(b"HTTP/1.1", b"HTTP/1.0"), ROLE, *FOUR,
            USED, DONE,
        ),
        kinds="RCCCCUD", row=fine(32, 4), ttft_ms=100, framed=False,
    ),
    Report(
        name="H04 gzip though identity was asked", source="compressing proxies; RFC 9110, 12.5.3",
        parts=(head("200 OK", "Content-Encoding: gzip") + b"\x1f\x8b\x08",),
        outcome="stream_error", kinds="", error="compressed the stream (gzip)", framed=False,
    ),
    Report(
        name="H05 200 and a JSON error", source="gateways, such as BerriAI/litellm",
        parts=(
            head("200 OK", "Content-Length: 25").replace(b"text/event-stream", b"application/json")
            + b'{"error": {"code": "no"}}',
        ),
        outcome="stream_error", kinds="", error='{"error": {"code": "no"}}', framed=False,
    ),
    Report(
        name="H06 a key that the server does not know", source="sipeed/picoclaw#1019",
        parts=(
            head("400 Bad Request", "Content-Length: 39")
            + b'{"error": "Extra inputs not permitted"}',
        ),
        outcome="http_error", kinds="", error="Extra inputs not permitted", framed=False,
    ),
)  # fmt: skip
