"""The bench's own arithmetic: what it makes of a client's words and the server's truth."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from load_client.bench.contestants import StreamReport, ours
from load_client.bench.table import cell_lines, ratio_lines
from load_client.bench.trial import _chunk_lags, _chunks_per_s

if TYPE_CHECKING:
    from pathlib import Path

MS = 1_000_000
TRUTH = [{"writes_ns": [5 * MS, 25 * MS]}, {"writes_ns": [6 * MS, 26 * MS]}]


def said(*arrivals_ns: int) -> StreamReport:
    return StreamReport(0, 1, 2, arrivals_ns)


def test_a_chunks_lag_is_its_arrival_less_its_hand_over() -> None:
    both = [said(5 * MS + 10, 25 * MS + 20), said(6 * MS, 26 * MS + 40)]
    assert _chunk_lags(both, TRUTH) == [10, 20, 0, 40]
    assert _chunk_lags([said(), said()], TRUTH) == []


def test_the_rate_offered_is_that_of_the_time_when_all_streams_run() -> None:
    pace = [{"writes_ns": [(begin + i * 20) * MS for i in range(5)]} for begin in (0, 5, 10, 15)]
    assert _chunks_per_s(pace) == 200  # four streams of fifty a second, from 15 to 80 ms
    assert _chunks_per_s([{"writes_ns": [1, 2]}, {"writes_ns": [3, 4]}]) is None


@pytest.mark.parametrize("arrivals_ns", [(5 * MS,), (5 * MS, 6 * MS, 7 * MS)])
def test_chunks_that_do_not_match_those_sent_are_no_lags(arrivals_ns: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="zip"):
        _chunk_lags([said(*arrivals_ns), said()], TRUTH)


def test_our_client_says_the_instant_of_every_content_chunk(tmp_path: Path) -> None:
    row = {
        "request_id": "r", "outcome": "ok", "output_text": " #000007", "sent_ns": 1,
        "first_content_ns": 5, "last_content_ns": 9,
    }  # fmt: skip
    chunks = [("empty", 4), ("content", 5), ("content", 9), ("usage", 9), ("done", 9)]
    lines = [{"request_id": "r", "kind": kind, "arrival_ns": at} for kind, at in chunks]
    (tmp_path / "requests.jsonl").write_text(json.dumps(row))
    (tmp_path / "chunks.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert ours().read(tmp_path) == [StreamReport(7, 4, 8, [5, 9])]


def test_the_tables_show_what_only_ours_has_and_make_no_ratio_of_it() -> None:
    mine: dict[str, Any] = {"chunk_lag_p50_ns": MS, "skew_ns": MS}
    rounds = {"ours": [mine], "peer": [{"chunk_lag_p50_ns": None, "skew_ns": 2 * MS}]}
    ratios = "\n".join(ratio_lines({"N=1, 1 KB": rounds}))
    assert "skew ms" in ratios
    assert "0.5 (0.5)" in ratios
    assert "chunk lag" not in ratios
    header, own, peer = cell_lines("N=1, 1 KB", rounds)[1:]
    at = header.index("chunk lag p50 ms") + len("chunk lag p50 ms")
    assert (own[:at].split()[-2:], peer[:at].split()[-1]) == (["1", "(1)"], "-")
