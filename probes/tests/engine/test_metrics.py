from __future__ import annotations

import contextlib
import threading
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from probes.engine import metrics
from probes.engine.metrics import EngineSampler
from probes.engine.prometheus import parse_metrics
from probes.tests.support.samplers import taken

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

    from probes.samples import Sample

PAGE = """\
# HELP python_gc_objects_collected_total Objects collected during gc
# TYPE python_gc_objects_collected_total counter
python_gc_objects_collected_total{generation="0"} 913.0
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{model_name="qwen",engine="0"} 2.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="qwen"} 0.0125
# TYPE vllm:prompt_tokens counter
vllm:prompt_tokens_total{engine="0",model_name="qwen"} 1.6e+04
vllm:prompt_tokens_created{engine="0",model_name="qwen"} 1.796e+09
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.5",model_name="qwen"} 3.0
vllm:time_to_first_token_seconds_count{engine="0",model_name="qwen"} 16.0
vllm:time_to_first_token_seconds_sum{engine="0",model_name="qwen"} 31.25
# TYPE lmcache:local_cache_usage gauge
lmcache:local_cache_usage{note="a, \\"b\\" {c}"} NaN
"""
TOKENS = 'vllm:prompt_tokens_total{engine="0",model_name="qwen"}'


class FakeEngine(BaseHTTPRequestHandler):
    """A fake /metrics that answers what the test put into `page`, `status` and `hold`."""

    protocol_version = "HTTP/1.1"
    page = PAGE
    status = 200
    announced: int | None = None
    hold: threading.Event | None = None

    def do_GET(self) -> None:
        if self.hold is not None:
            self.hold.wait(10)
        body = self.page.encode()
        self.send_response(self.status)
        self.send_header("Content-Length", str(self.announced or len(body)))
        self.end_headers()
        with contextlib.suppress(BrokenPipeError):  # the probe that was held up has gone
            self.wfile.write(body)
        self.close_connection = self.announced is not None

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@contextmanager
def _engine() -> Iterator[tuple[type[FakeEngine], str]]:
    class Handler(FakeEngine):
        """One test's own state."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield Handler, f"http://127.0.0.1:{server.server_port}/metrics"
        finally:
            server.shutdown()
            thread.join()


def _rows(sampler: EngineSampler) -> dict[str, Sample]:
    return {row.counter: row for row in taken(sampler)}


def test_series_of_the_engine_are_kept_with_their_labels_sorted_and_others_are_not() -> None:
    found = {one.counter: one for one in parse_metrics(PAGE)}
    assert list(found) == [
        'vllm:num_requests_running{engine="0",model_name="qwen"}',
        'vllm:kv_cache_usage_perc{engine="0",model_name="qwen"}',
        TOKENS,
        'vllm:time_to_first_token_seconds_count{engine="0",model_name="qwen"}',
        'vllm:time_to_first_token_seconds_sum{engine="0",model_name="qwen"}',
        'lmcache:local_cache_usage{note="a, \\"b\\" {c}"}',
    ]
    assert found[TOKENS].value == 16000.0
    assert [one.grows for one in found.values()] == [False, False, True, True, True, False]


def test_not_a_number_is_a_reason() -> None:
    last = parse_metrics(PAGE)[-1]
    assert (last.value, last.reason) == (None, "absent: NaN at the source")


def test_every_series_is_a_number_whole_or_not() -> None:
    with _engine() as (_, url), closing(EngineSampler("a", url)) as probe:
        rows = _rows(probe)
    assert rows[TOKENS].value == 16000
    assert rows['vllm:kv_cache_usage_perc{engine="0",model_name="qwen"}'].value == 0.0125
    assert rows["page_bytes"].value == len(PAGE)


def test_an_engine_that_restarted_begins_an_epoch_and_a_falling_gauge_does_not() -> None:
    with _engine() as (handler, url), closing(EngineSampler("a", url)) as probe:
        probe.sample()
        handler.page = PAGE.replace('qwen",engine="0"} 2.0', 'qwen",engine="0"} 1.0')
        assert _rows(probe)[TOKENS].epoch == 0
        handler.page = PAGE.replace("1.6e+04", "12.0")
        rows = _rows(probe)
    assert rows[TOKENS].epoch == 1
    assert "went back" in (rows["epoch_cause"].text or "")


def test_no_engine_an_error_page_and_a_cut_page_are_reasons_and_then_it_recovers() -> None:
    with _engine() as (handler, url), closing(EngineSampler("a", url)) as probe:
        handler.status = 503
        reason = _rows(probe)["page_bytes"].reason or ""
        assert reason.startswith("failed: HTTP 503")
        handler.status, handler.announced = 200, 100_000
        assert (_rows(probe)["page_bytes"].reason or "").startswith("failed: ")
        handler.announced = None
        assert _rows(probe)[TOKENS].value == 16000
    rows = _rows(EngineSampler("a", url))
    assert list(rows) == ["page_bytes"]
    assert (rows["page_bytes"].reason or "").startswith("failed: ConnectionRefusedError")


def test_a_page_beyond_the_limit_is_a_reason_and_one_at_the_limit_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for limit, wanted in ((len(PAGE), None), (len(PAGE) - 1, "failed: the page is larger than")):
        monkeypatch.setattr(metrics, "MAX_PAGE_BYTES", limit)
        with _engine() as (_, url), closing(EngineSampler("a", url)) as probe:
            reason = _rows(probe)["page_bytes"].reason
        assert (reason is None) if wanted is None else (reason or "").startswith(wanted)


def test_an_engine_that_does_not_answer_is_a_timeout_and_no_hang() -> None:
    with _engine() as (handler, url):
        handler.hold = threading.Event()
        reason = _rows(EngineSampler("a", url, timeout_s=0.2))["page_bytes"].reason or ""
        handler.hold.set()
    assert reason.startswith("failed: TimeoutError")


@given(data=st.data(), inserted=st.text(max_size=8), length=st.integers(0, 30))
def test_a_mutated_page_raises_nothing_and_makes_no_zero(
    data: st.DataObject, inserted: str, length: int
) -> None:
    position = data.draw(st.integers(0, len(PAGE)))
    mutated = PAGE[:position] + inserted + PAGE[position + length :]
    mutated = mutated[: data.draw(st.integers(0, len(mutated)))]
    for one in parse_metrics(mutated):
        assert (one.value is None) == (one.reason is not None)
        assert one.value != 0 or "0" in mutated


def test_a_page_cut_inside_a_number_gives_no_part_of_that_number() -> None:
    cut = PAGE[: PAGE.index("6e+04") + 1]
    assert TOKENS not in {one.counter for one in parse_metrics(cut)}
