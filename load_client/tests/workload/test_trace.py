"""Traces of others: their units and blocks are known or asked for, and contradictions refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from load_client.errors import ClientError
from load_client.workload.plan import make_plan
from load_client.workload.requests import Workload
from load_client.workload.token_generator import trace_token_ids
from load_client.workload.trace import block_sizes, fitting_block, read_trace
from load_client.workload.trace_formats import FORMATS

from ..support.runs import good, plan, rows, run, values
from ..support.scripted_server import scripted

if TYPE_CHECKING:
    from pathlib import Path

URL = "http://127.0.0.1:1"
MS, S = 1_000_000, 1_000_000_000


def line(stamp: Any, prompt: int, answer: int, ids: list[int] | None, **more: Any) -> str:
    said = {"timestamp": stamp, "input_length": prompt, "output_length": answer, **more}
    return json.dumps(said if ids is None else said | {"hash_ids": ids})


def chat(number: int, stamp: float, prompt: int, ids: list[int]) -> str:
    """A line of the Bailian traces."""
    return line(
        stamp, prompt, 4, ids, chat_id=number, parent_chat_id=-1, type="text", turn=1
    )  # fmt: skip


AZURE_2023 = (
    "TIMESTAMP,ContextTokens,GeneratedTokens",
    "2023-11-16 18:15:46.6805900,374,44",
    "2023-11-16 18:15:50.9951690,396,109",
)
AZURE_2024 = (
    "TIMESTAMP,ContextTokens,GeneratedTokens",
    "2024-05-10 00:00:00.009930+00:00,2162,5",
    "2024-05-10 02:00:00+02:00,2399,6",
    "2024-05-10 00:00:01.5+00:00,76,15",
)
BURST = (
    "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type",
    "5,ChatGPT,472,18,490,Conversation log",
    "45,ChatGPT,1087,0,1087,Conversation log",
    "118.25,GPT-4,417,276,693,API log",
)
MOONCAKE = (
    line(27482, 6955, 52, [*range(46, 58), 2353, 2354]),
    line(30535, 6472, 26, [*range(46, 58), 2366]),
)
BAILIAN = (
    chat(10, 0.0, 64, [0, 1, 2, 3]),
    chat(11, 0.5, 96, [0, 1, 2, 3, 4, 5]),
    chat(12, 1.0, 128, [*range(8)]),
    chat(13, 1.5, 64, [100, 101, 102, 103]),
)
SHARE_16 = (
    chat(0, 0.0, 500, [*range(32)]),
    chat(1, 0.5, 500, [0, *range(1000, 1031)]),
)


def written(path: Path, lines: tuple[str, ...]) -> str:
    (path / "trace").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path / "trace")


@pytest.mark.parametrize(
    ("lines", "stamps_ns", "block", "lengths"),
    [
        (MOONCAKE, [27482 * MS, 30535 * MS], 512, [(6955, 52), (6472, 26)]),
        (BAILIAN, [0, S // 2, S, 3 * S // 2], 16, [(64, 4), (96, 4), (128, 4), (64, 4)]),
        (AZURE_2023, [0, 4_314_579_000], 1, [(374, 44), (396, 109)]),
        (BURST, [5 * S, 45 * S, 118_250 * MS], 1, [(472, 18), (1087, 0), (417, 276)]),
    ],
    ids=["mooncake", "bailian", "azure", "burstgpt"],
)
def test_a_published_trace_is_known_by_its_columns(
    tmp_path: Path,
    lines: tuple[str, ...],
    stamps_ns: list[int],
    block: int,
    lengths: list[tuple[int, int]],
) -> None:
    trace = read_trace(written(tmp_path, lines))
    first_ns = trace.lines[0].timestamp_ns - stamps_ns[0]
    assert [one.timestamp_ns - first_ns for one in trace.lines] == stamps_ns
    assert trace.block_tokens == block
    assert [(one.input_length, one.output_length) for one in trace.lines] == lengths


def test_dates_of_all_zones_and_digits_are_one_clock(tmp_path: Path) -> None:
    late = (AZURE_2024[0], AZURE_2024[2], AZURE_2024[1], AZURE_2024[3])
    trace = read_trace(written(tmp_path, late))
    midnight_ns = 1_715_299_200 * S
    stamps_ns = [one.timestamp_ns - midnight_ns for one in trace.lines]
    assert stamps_ns == [0, 9_930_000, 1_500_000_000]
    with pytest.raises(ClientError, match="earlier than"):
        read_trace(written(tmp_path, AZURE_2024))


def test_a_mark_of_byte_order_and_line_ends_of_windows_are_no_columns(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(AZURE_2023).encode())
    assert len(read_trace(str(path)).lines) == 2


@pytest.mark.parametrize(
    ("lines", "name", "block"),
    [
        # vllm-project/guidellm PR#948: seconds in Mooncake's columns
        ((line(0.0, 10, 5, [0]), line(0.2, 20, 8, [0]), line(0.4, 15, 6, [2])), None, None),
        # ai-dynamo/aiperf PR#273: without blocks, milliseconds as well as anything
        ((line(0, 10, 5, None), line(200, 20, 8, None)), None, None),
        # ai-dynamo/aiperf: sessions of its own in Mooncake's columns
        ((line(0, 10, 5, [0], session_id="a"),), None, None),
        (("TIME,PROMPT,ANSWER", "0,10,5"), None, None),
        (("0,10,5", "1,10,5"), None, None),
        (("{}",), None, None),
    ],
)
def test_a_trace_whose_unit_nobody_says_is_refused_with_what_to_type(
    tmp_path: Path, lines: tuple[str, ...], name: str | None, block: int | None
) -> None:
    with pytest.raises(ClientError, match="unit of time") as caught:
        read_trace(written(tmp_path, lines), name, block)
    assert "--trace-format" in caught.value.next_step
    assert all(one in caught.value.next_step for one in FORMATS)


def test_the_unit_that_is_said_is_the_unit(tmp_path: Path) -> None:
    lines = (line(0.0, 10, 5, [0]), line(0.25, 20, 8, [0]))
    path = written(tmp_path, lines)
    assert read_trace(path, "mooncake").lines[1].timestamp_ns == MS // 4
    assert read_trace(path, "bailian", 512).lines[1].timestamp_ns == S // 4


@pytest.mark.parametrize(
    ("lines", "name", "block", "what", "advice"),
    [
        # alibaba-edu/qwen-bailian-usagetraces-anon, read as Mooncake's
        (SHARE_16, "mooncake", None, "32 hash ids for 500 tokens are no blocks of 512", "of 16 "),
        (SHARE_16, "bailian", 512, "32 hash ids for 500 tokens", "--trace-block-tokens 16"),
        # vllm-project/guidellm PR#948: two ids for 20 tokens
        ((line(0, 10, 5, [0]), line(200, 20, 8, [0, 1])), None, None, "2 hash ids for 20", "of 16"),
        # the example of ai-dynamo/aiperf's guide: three ids for 655 tokens; its PR#581 says why not
        ((line(0, 655, 52, [0, 1, 2]),), None, None, "3 hash ids for 655 tokens", "of 256 "),
        # ai-dynamo/dynamo PR#8998: captured with blocks of 64, which the lines do not say
        ((line(0, 6400, 52, [*range(100)]),), None, None, "100 hash ids for 6400", "of 64 "),
        # Mooncake's own, with Bailian's blocks: most of each prompt would be shared by nobody
        (MOONCAKE, "mooncake", 16, "14 hash ids for 6955 tokens", "of 512"),
        (
            (line(0, 500, 4, [*range(32)]), line(9, 500, 4, [*range(4)])),
            *(
                "mooncake",
                16,
                "4 hash ids for 500 tokens are no blocks of 16",
                "no block size fits",
            ),
        ),
        ((line(0, 2, 4, [1, 2, 3]),), "mooncake", None, "3 hash ids for 2", "no block size fits"),
    ],
)
def test_ids_that_are_no_blocks_of_that_size_are_refused_with_the_size_that_fits(
    tmp_path: Path, lines: tuple[str, ...], name: str | None, block: int | None, what: str,
    advice: str,
) -> None:  # fmt: skip
    with pytest.raises(ClientError, match=what) as caught:
        read_trace(written(tmp_path, lines), name, block)
    assert advice in caught.value.next_step
    assert "line " in caught.value.where


@pytest.mark.parametrize(
    ("tokens", "ids", "fits", "too_small", "too_large"),
    [
        (500, 32, (16,), 15, 17),
        (500, 31, (16,), 15, 17),  # the part of a block at the end has no id of its own
        (1024, 2, (512, 1023), 341, 1024),
        (6955, 14, (464, 512, 534), 463, 535),
        (64, 1, (33, 64, 512), 32, None),
    ],
)
def test_the_blocks_of_a_line(
    tmp_path: Path, tokens: int, ids: int, fits: tuple[int, ...], too_small: int,
    too_large: int | None,
) -> None:  # fmt: skip
    (one,) = read_trace(
        written(tmp_path, (line(0, tokens, 1, [*range(ids)]),)), "mooncake", fits[0]
    ).lines
    low, high = block_sizes(one)
    assert all(low <= size <= high for size in fits)
    assert not low <= too_small <= high
    assert too_large is None or not low <= too_large <= high
    assert low <= (fitting_block([one]) or 0) <= high


@pytest.mark.parametrize(
    ("lines", "name", "what", "where"),
    [
        ((), None, "empty", "trace"),
        ((MOONCAKE[0], "{oops"), None, "no JSON", "line 2"),
        ((MOONCAKE[0], "[1]"), None, "no JSON object", "line 2"),
        ((MOONCAKE[0], line(30000, 0, 1, [])), None, "0 is not a whole number of 1", "line 2"),
        ((MOONCAKE[0], line(30000, 1, -1, [])), None, "-1 is not a whole number of 0", "line 2"),
        ((MOONCAKE[0], line(30000, 1, 1, [-7])), "mooncake", "-7", "line 2"),
        ((line(True, 1, 1, []),), "mooncake", "no time", "line 1"),
        ((line("x", 1, 1, []),), "mooncake", "no time", "line 1"),
        ((line(float("inf"), 1, 1, []),), "mooncake", "no time", "line 1"),
        ((line(-1, 1, 1, []),), "mooncake", "no time", "line 1"),
        ((line(10**30, 1, 1, []),), "mooncake", "no time", "line 1"),
        (('{"timestamp": 1e999999999, "input_length": 1, "output_length": 1}',), "mooncake",
         "no time", "line 1"),
        (("TIMESTAMP,ContextTokens,GeneratedTokens", "today,1,1"), None, "no date", "line 2"),
        (("TIMESTAMP,ContextTokens,GeneratedTokens", "2023-02-30 10:00:00,1,1"), None,
         "day is out of range", "line 2"),
        ((*AZURE_2023, "2023-11-16 18:16:00,1.5,1"), None, "'1.5' is not a whole", "line 4"),
        ((*AZURE_2023, "2023-11-16 18:16:00,1"), None, "2 cells under 3 columns", "line 4"),
        ((*AZURE_2023, "2023-11-16 18:16:00," + "9" * 200_000 + ",1"), None, "no CSV", "line 4"),
        ((line(0, 1, 1, None, hash_ids={"a": 1}),), "mooncake", "'a' is not a whole", "line 1"),
        ((line(0, 1, 1, None, hash_ids=None),), "mooncake", "not iterable", "line 1"),
        (MOONCAKE, "azure", "no column 'TIMESTAMP'", "line 1"),
        (AZURE_2023, "mooncake", "no column 'timestamp'", "line 2"),
        ((line(0, 1, 0, []),), "mooncake", "every line has output length 0", "trace"),
    ],
)  # fmt: skip
def test_a_bad_trace_names_its_line(
    tmp_path: Path, lines: tuple[str, ...], name: str | None, what: str, where: str
) -> None:
    with pytest.raises(ClientError, match=what) as caught:
        read_trace(written(tmp_path, lines), name)
    assert where in caught.value.where
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_text_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "trace").write_bytes(b"\xff\xfe\x00")
    for path in (tmp_path / "trace", tmp_path / "none"):
        with pytest.raises(ClientError, match="the trace"):
            read_trace(str(path))


def asked(trace: str, url: str = URL, **more: Any) -> dict[str, Any]:
    own = {"sessions", "prompt_tokens", "output_tokens", "concurrency"}
    rest = {key: value for key, value in values(url).items() if key not in own}
    return rest | {"shape": "trace", "trace": trace} | more


def prompts(trace: str, **more: Any) -> list[list[int]]:
    made = make_plan(asked(trace, **more), "test")
    workload = Workload(made, [], "")
    assert workload.trace is not None
    return [
        [int(one) for one in trace_token_ids(
            seed=made.seed, line=place, hash_ids=found.hash_ids,
            block_tokens=workload.trace.block_tokens, prompt_tokens=found.input_length,
            vocab=made.vocab,
        ).split(b",")]
        for place, found in enumerate(workload.trace.lines)
    ]  # fmt: skip


def shared(one: list[int], other: list[int]) -> int:
    pairs = zip(one, other, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def test_prompts_share_exactly_the_blocks_that_their_ids_name(tmp_path: Path) -> None:
    one, other = prompts(written(tmp_path, SHARE_16))
    assert (len(one), len(other)) == (500, 500)
    assert shared(one, other) == 16
    one, other = prompts(written(tmp_path, MOONCAKE))
    assert (len(one), len(other)) == (6955, 6472)
    assert shared(one, other) == 12 * 512


def test_prompts_of_a_trace_without_blocks_share_nothing(tmp_path: Path) -> None:
    one, other = prompts(written(tmp_path, AZURE_2023))
    assert shared(one, other) == 0


def test_lines_that_ask_for_no_token_are_not_sent_and_are_counted(tmp_path: Path) -> None:
    """HPMLL/BurstGPT#11: failed requests stand in the trace with 0 response tokens."""
    burst = tuple(one.replace("45,", "5.05,").replace("118.25,", "5.1,") for one in BURST)
    with scripted(good) as server:
        some = make_plan(asked(written(tmp_path, burst), server.url), "test")
        summary, said = run(some, tmp_path / "out")
        sent = [body["max_tokens"] for body in server.bodies()]
    assert some.sessions == (0, 2)
    assert (some.prompt_tokens, some.output_tokens) == (1087, 276)
    assert sent == [18, 276]
    assert summary.outcomes == {"ok": 2}
    assert "1 of 3 lines of the trace ask for no token; not sent" in said
    found = sorted(rows(tmp_path / "out" / "requests.jsonl"), key=lambda row: row["session"])
    assert found[1]["scheduled_ns"] - found[0]["scheduled_ns"] == 100 * MS


def test_times_of_a_bailian_trace_are_seconds_when_it_is_sent(tmp_path: Path) -> None:
    trace = written(tmp_path, (*BAILIAN[:2],))
    with scripted(good) as server:
        run(make_plan(asked(trace, server.url), "test"), tmp_path / "out")
    found = sorted(rows(tmp_path / "out" / "requests.jsonl"), key=lambda row: row["session"])
    assert found[1]["scheduled_ns"] - found[0]["scheduled_ns"] == S // 2


@pytest.mark.parametrize("session", [1, 3])
def test_a_line_that_is_not_there_or_asks_for_nothing_cannot_be_chosen(
    tmp_path: Path, session: int
) -> None:
    with pytest.raises(ClientError, match=f"session {session} is no line"):
        make_plan(asked(written(tmp_path, BURST), sessions=[0, session], concurrency=1), "test")


def test_a_trace_is_replayed_as_token_ids_alone(tmp_path: Path) -> None:
    with pytest.raises(ClientError, match="replayed as token ids"):
        make_plan(asked(written(tmp_path, BURST), endpoint="chat"), "test")


def test_without_its_shape_a_trace_has_no_meaning(tmp_path: Path) -> None:
    with pytest.raises(ClientError, match="'trace' has no meaning with shape burst"):
        plan(URL, trace=written(tmp_path, BURST))
