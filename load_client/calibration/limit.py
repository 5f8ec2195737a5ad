"""The concurrency at which this client is no longer exact on this machine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..errors import ClientError
from .measure import CalibrationBurst, calibrate

if TYPE_CHECKING:
    from collections.abc import Callable

# An error above these would show in a TTFT that is printed to a millisecond.
EXACT_P50_NS = 50_000
EXACT_P95_NS = 250_000
# Other work on a machine spoils one burst in a few; a client at its limit spoils every one.
TRIES = 3
ROW_NAME = "client-limit"  # rule C10 judges the rows named `client`, at the run's own concurrency


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactnessLimit:
    """`inexact_at` is None where every concurrency tried was exact."""

    exact_up_to: int | None
    inexact_at: int | None
    reason: str | None
    rows: list[dict[str, Any]]


def find_limit(
    asked: CalibrationBurst, up_to: int, measure: Callable[[CalibrationBurst], Any] = calibrate
) -> ExactnessLimit:
    """Double the concurrency from `asked.concurrency` until the client is late or `up_to`."""
    rows: list[dict[str, Any]] = []
    exact_up_to, concurrency = None, asked.concurrency
    while concurrency <= up_to:
        reason: str | None = None
        for _ in range(TRIES):
            reason = _why_inexact(replace(asked, concurrency=concurrency), rows, measure)
            if reason is None:
                break
        if reason is not None:
            return ExactnessLimit(
                exact_up_to=exact_up_to, inexact_at=concurrency, reason=reason, rows=rows
            )
        exact_up_to, concurrency = concurrency, 2 * concurrency
    return ExactnessLimit(exact_up_to=exact_up_to, inexact_at=None, reason=None, rows=rows)


def _why_inexact(
    asked: CalibrationBurst, rows: list[dict[str, Any]], measure: Callable[[CalibrationBurst], Any]
) -> str | None:
    """Measure once; the reason why the client was not exact."""
    try:
        found = measure(asked)
    except ClientError as failure:
        return failure.what
    rows.append(found.row | {"name": ROW_NAME})
    for name, value_ns, most_ns in (
        ("p50", found.row["ttft_error_p50_ns"], EXACT_P50_NS),
        ("p95", found.detail["ttft_error_p95_ns"], EXACT_P95_NS),
    ):
        if value_ns > most_ns:
            return f"TTFT error {name} is {value_ns / 1e6:.3f} ms, above {most_ns / 1e6:.3f} ms"
    return None
