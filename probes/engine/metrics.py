"""The engine probe: the /metrics page of one instance, in a thread of its own.

An engine that is busy answers late, and must not hold up the disks: hence the thread, and a
timeout longer than the period. A page that came late or not at all is a missed tick or a reason.
"""

from __future__ import annotations

import http.client
from contextlib import closing
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ..epochs import EpochTracker
from ..errors import reason_of
from ..plan import Setting
from ..probe import Context, Probe, Sampler, Status, Thread
from ..samples import Batch, Sample, Stopwatch, samples_of
from .prometheus import Series, parse_metrics

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NAME = "engine"
# A busy engine was seen to answer after seconds; later than this its page is of another time.
TIMEOUT_S = 5.0
# A page of vLLM and LMCache together has some 100 KiB.
MAX_PAGE_BYTES = 16 << 20
_HTTP_OK = 200


def _urls(value: Any) -> dict[str, str] | None:
    return value if isinstance(value, dict) and all(map(_is_url, value.values())) else None


def _is_url(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    try:
        parts = urlsplit(value)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


METRICS: Setting[Mapping[str, str]] = Setting(
    key="metrics",  # instance -> URL
    default={},
    accept=_urls,
    example='a URL each: {"a": "http://127.0.0.1:8000/metrics"}',
)


class EngineSampler:
    """Fetches and parses one instance's page. `device` of its samples is the instance."""

    def __init__(self, instance: str, url: str, *, timeout_s: float = TIMEOUT_S) -> None:
        parts = urlsplit(url)
        secure = parts.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        self._instance = instance
        self._connection = kind(parts.hostname or "", parts.port, timeout=timeout_s)
        self._target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._epochs = EpochTracker()

    def sample(self) -> Sequence[Batch]:
        """Every series of the page; `page_bytes` has a reason when there is no page."""
        watch = Stopwatch()
        try:
            page = self._fetch()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            page = reason_of(error)
        watch.stop()
        if isinstance(page, str):
            epoch = self._epochs.current(self._instance)
            lost = samples_of(self._instance, reasons={"page_bytes": page}, epoch=epoch)
            return [watch.batch(NAME, lost)]
        series = parse_metrics(page.decode("utf-8", "replace"))
        return [watch.batch(NAME, self._samples(series, len(page)))]

    def close(self) -> None:
        """Close the kept connection."""
        self._connection.close()

    def _fetch(self) -> bytes | str:
        """The page, or the reason why there is none."""
        # One kept connection; http.client opens it again by itself after close().
        self._connection.request("GET", self._target, headers={"Accept": "text/plain"})
        response = self._connection.getresponse()
        page = response.read(MAX_PAGE_BYTES + 1)
        if len(page) > MAX_PAGE_BYTES:
            self._connection.close()
            return f"failed: the page is larger than {MAX_PAGE_BYTES} bytes"
        if response.status != _HTTP_OK:
            return f"failed: HTTP {response.status} {response.reason}"
        if response.length:
            self._connection.close()
            return f"failed: the page was cut, {response.length} bytes are missing"
        return page

    def _samples(self, series: list[Series], page_bytes: int) -> list[Sample]:
        device = self._instance
        growing = {one.counter: one.value for one in series if one.grows and one.value is not None}
        cause = self._epochs.counters(device, growing)
        epoch = self._epochs.current(device)
        # In the page's order, each on its own: a page may carry one name twice.
        samples = [Sample(device=device, counter="page_bytes", value=page_bytes, epoch=epoch)]
        samples += [
            Sample(
                device=device, counter=one.counter, value=one.value, reason=one.reason, epoch=epoch
            )
            for one in series
        ]
        return samples + samples_of(device, epoch=epoch, causes=[cause])


def _start(context: Context) -> Mapping[str, Sampler]:
    urls = context.plan[METRICS]
    return {f"{NAME}:{instance}": EngineSampler(instance, url) for instance, url in urls.items()}


def _check(context: Context) -> Status:
    for url in context.plan[METRICS].values():
        with closing(EngineSampler("status", url)) as sampler:
            first, *others = sampler.sample()[0].samples
        if first.reason is not None:
            return Status(works="no", detail=first.reason)
        return Status(works="yes", detail=f"{len(others)} series at {url}")
    return Status(works="-", detail="give --metrics URL to try one")


ENGINE = Probe(
    name=NAME,
    start=_start,
    check=_check,
    rate_hz=1.0,
    thread=Thread.OWN,
    settings=(METRICS,),
)
