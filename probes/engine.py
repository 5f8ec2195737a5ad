"""The engine probe: the /metrics page of one instance, in a thread of its own.

An engine that is busy answers late, and must not hold up the disks: hence the thread, and a
timeout longer than the period. A page that came late or not at all is a missed tick or a reason.
"""

from __future__ import annotations

import http.client
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from .epochs import EpochTracker
from .errors import reason_of
from .prometheus import Series, parse_metrics
from .readings import INT64_MAX, Reading, Sample, Stopwatch

if TYPE_CHECKING:
    from collections.abc import Sequence

# A busy engine was seen to answer after seconds; later than this its page is of another time.
TIMEOUT_S = 5.0
# A page of vLLM and LMCache together has some 100 KiB.
MAX_PAGE_BYTES = 16 << 20
_HTTP_OK = 200


class EngineProbe:
    """Fetches and parses one instance's page. `device` of its rows is the instance."""

    name = "engine"

    def __init__(self, instance: str, url: str, *, timeout_s: float = TIMEOUT_S) -> None:
        parts = urlsplit(url)
        secure = parts.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        self._instance = instance
        self._connection = kind(parts.hostname or "", parts.port, timeout=timeout_s)
        self._target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._epochs = EpochTracker()

    def sample(self) -> Sequence[Sample]:
        """Every series of the page; `page_bytes` is null with its reason when there is none."""
        watch = Stopwatch()
        try:
            page = self._fetch()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            return [watch.sample(self.name, [self._no_page(reason_of(error))])]
        watch.stop()
        if isinstance(page, str):
            return [watch.sample(self.name, [self._no_page(page)])]
        series = parse_metrics(page.decode("utf-8", "replace"))
        return [watch.sample(self.name, self._readings(series, len(page)))]

    def close(self) -> None:
        """Let go of the kept connection."""
        self._connection.close()

    def _fetch(self) -> bytes | str:
        """The page, or the reason why the answer is none."""
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

    def _no_page(self, reason: str) -> Reading:
        epoch = self._epochs.current(self._instance)
        return Reading(device=self._instance, counter="page_bytes", reason=reason, epoch=epoch)

    def _readings(self, series: list[Series], page_bytes: int) -> list[Reading]:
        device = self._instance
        growing = {one.counter: one.value for one in series if one.grows and one.value is not None}
        cause = self._epochs.counters(device, growing)
        epoch = self._epochs.current(device)
        readings = [Reading(device=device, counter="page_bytes", value=page_bytes, epoch=epoch)]
        readings += [_reading(device, one, epoch) for one in series]
        if cause is not None:
            readings.append(Reading(device=device, counter="epoch_cause", text=cause, epoch=epoch))
        return readings


def _reading(device: str, series: Series, epoch: int) -> Reading:
    """Floats at their source; a whole number stands in `value` as well."""
    real = series.value
    whole = real is not None and real.is_integer() and abs(real) < INT64_MAX
    return Reading(
        device=device,
        counter=series.counter,
        value=int(real) if whole and real is not None else None,
        value_real=real,
        reason=series.reason,
        epoch=epoch,
    )
