"""A case whose answers are told, so that a limit is tested in microseconds, without a run.

What a rule asks in SQL is answered by the first of `rows` whose key stands in the question; a
question that nobody told an answer to is a mistake of the test.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from r8.forensics import transfer
from r8.forensics.case import Case, Event, Window
from r8.message import Answer
from r8.model import Device, Run, TransferRun
from r8.tests.support.run_factory import SyntheticRun, synthetic_run

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from r8.message import Check


KV_RUN = synthetic_run(SyntheticRun())


def job_run(**job: Any) -> TransferRun:
    """A run of a job by two workers: a load by a loader unless `job` says otherwise."""
    shared = {one.name: getattr(KV_RUN, one.name) for one in fields(Run)}
    facts: dict[str, Any] = {"job": "load", "moves": "read", "tool": "safetensors", "files": 4}
    facts |= {"workers": ("w0", "w1"), "total_bytes": 1_000_000, "time_scale": 1.0, **job}
    return TransferRun(**shared, **facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class StubCase(Case):
    run: Run = KV_RUN
    connection: Any = None
    metrics: Mapping[str, int | None] = field(default_factory=dict)
    reads: Mapping[str, int | None] = field(default_factory=dict)  # device: bytes, in any phase
    texts: Mapping[tuple[str, str], str] = field(default_factory=dict)  # (device, counter): word
    told: Mapping[str, tuple[int, dict[str, Any]]] = field(default_factory=dict)  # last event
    answers: Mapping[str, list[tuple[Any, ...]]] = field(default_factory=dict)
    growth: Mapping[str, int | None] = field(default_factory=dict)  # counter: by how much
    balances: Mapping[str, int | None] = field(default_factory=dict)  # columns of `balance`

    def rows(self, sql: str, **parameters: Any) -> list[tuple[Any, ...]]:
        asked = f"{sql} {parameters}"
        return next(rows for part, rows in self.answers.items() if part in asked)

    def events(self, name: str) -> list[Event]:
        found = [self.told[name]] if name in self.told else []
        return [Event(mono_ns=at, detail=facts) for at, facts in found]

    def metric(self, name: str, statistic: str = "") -> int | None:
        return self.metrics[f"{name} {statistic}".rstrip()]

    def balance(self, column: str) -> int | None:
        return self.balances.get(column)

    def read_bytes(self, device: Device, phase: str, occurrence: int = 1) -> int | None:
        return self.reads.get(device.name)

    def text(self, device: Device, counter: str) -> str | None:
        return self.texts.get((device.name, counter))

    def members(self, device: Device) -> tuple[Device, ...]:
        names = self.texts.get((device.name, "members"), "")
        return tuple(Device(host=device.host, name=name) for name in names.split(",") if name)

    def grown(self, probe: str, device: Device, counter: str, window: Window) -> int | None:
        return self.growth.get(counter)


def answers_of(checks: Iterable[Check], message: str) -> list[Answer]:
    """The answers of every check of that message."""
    return [check.answer for check in checks if check.message == message]


def work_sums(**known: int | None) -> list[tuple[Any, ...]]:
    """The row of the view `work_sums`, as `transfer.together` asks for it."""
    return [tuple(known.get(name) for name in transfer.SUMS)]


H, R, U = Answer.HELD, Answer.REFUTED, Answer.UNKNOWN
Around = list[tuple[Any, Answer]]


def at_most(limit: int) -> Around:
    """Just below a limit, at it, and just above it, each with the answer it must get."""
    return [(limit - 1, H), (limit, H), (limit + 1, R)]


def at_least(limit: int) -> Around:
    """The same for a limit from below."""
    return [(limit - 1, R), (limit, H), (limit + 1, H)]


def below(limit: int) -> Around:
    """The same for a limit that is not allowed itself."""
    return [(limit - 1, H), (limit, R), (limit + 1, R)]


def exactly(limit: int) -> Around:
    """The same where nothing else is allowed."""
    return [(limit - 1, R), (limit, H), (limit + 1, R)]


def between(low: int, high: int) -> Around:
    """Both ends of a range."""
    return [(low - 1, R), (low, H), (high, H), (high + 1, R)]
