"""One load phase from plan to rows: prompts, a load shape, raw streams, journals."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .capture import Capture
from .clock import Clock, clock_map, window
from .journal import append_bytes, append_lines, append_rows, create_numbered
from .raw_stream import SUFFIX, encode_batch
from .redact import redacted
from .render import api_key
from .rows import Row, burst_rows, request_rows
from .series import LATE_SEND_NS, Series, Slices
from .shapes import run_shape
from .target import reach
from .wire import Wire
from .workload import Job, Workload

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .connection import Connection
    from .plan import Plan
    from .progress import Progress

_NS_PER_S = 1_000_000_000
_NONCE_BYTES = 4
_REASON_CHARACTERS = 300  # on one line of stderr; the row keeps more
_OPEN_LOOPS = {"constant", "poisson", "trace"}


@dataclass(slots=True)
class Summary:
    """What became of a phase: counts of outcomes and what a person should know."""

    outcomes: Counter[str] = field(default_factory=Counter)
    first_failure: str | None = None
    unsent_turns: int = 0
    findings: list[str] = field(default_factory=list)
    interrupted: bool = False

    @property
    def all_ok(self) -> bool:
        """Every planned request was sent and came back whole."""
        return not (self.interrupted or self.unsent_turns) and set(self.outcomes) <= {"ok"}


class Phase:
    """Runs a plan into a directory. `run()` once; the rest is for the shape that runs."""

    def __init__(
        self,
        plan: Plan,
        out: Path,
        progress: Progress,
        clock: Clock,
        gate: Callable[[], int] | None = None,
    ) -> None:
        """Nothing is touched before `run`; `gate` returns the instant of a common start."""
        self.plan, self.clock = plan, clock
        self.gate = gate or clock.mono_ns
        self._out, self._progress = out, progress
        self._jobs: dict[str, Job] = {}
        self._finished: list[Connection] = []
        self._summary = Summary()
        self._largest_lag_ns = 0
        self._slices: Slices | None = None
        self._key = api_key(plan)

    def run(self) -> Summary:
        """Send everything, append every row; a stop by signal still writes what was in flight.

        Raises ClientError: unreachable server, no exact prompt, refusing disk.
        """
        plan = self.plan
        targets = [(one, reach(one)) for one in plan.instances()]
        # The server builds its own ids from ours, and its log may cover several runs.
        self.workload = Workload(plan, targets, os.urandom(_NONCE_BYTES).hex())
        stem = f"{plan.phase}-{plan.instance}"
        self._raw_path = create_numbered(self._out / "raw", f"client-{stem}", SUFFIX)
        self._load_path = create_numbered(self._out / "raw", f"load-{stem}", ".jsonl")
        wanted = None if plan.shape in _OPEN_LOOPS else self.workload.plateau()
        self.series = Series(wanted)
        if plan.duration_s is not None:
            self._slices = Slices(round(plan.slice_s * _NS_PER_S), self.clock.mono_ns())
        self.wire = Wire(
            timeout_ns=round(plan.timeout_s * _NS_PER_S),
            clock=self.clock,
            on_tick=self._tick,
            on_level=self.series.moved,
        )
        try:
            run_shape(self)
        except KeyboardInterrupt:
            self._summary.interrupted = True
        finally:
            self.wire.close()
        self.series.release(self.clock.mono_ns())
        self.collect()
        self.flush()
        self._conclude()
        return self._summary

    def make(self, position: int) -> Job:
        """The job at `position`, remembered until its rows are written."""
        return self._remember(self.workload.job(position))

    def next_turn(self, connection: Connection) -> Job | None:
        """The conversation's next job after this answer; None when there is none."""
        if self.plan.turns == 1:
            return None
        job = self._jobs[connection.request_id]
        row, _ = request_rows(self._capture(connection), None)
        following = self.workload.next_turn(job, row)
        if following is None:
            self._summary.unsent_turns += self.plan.turns - job.turn - 1
            return None
        return self._remember(following)

    def collect(self) -> list[Connection]:
        """Take over what has ended on the wire; returns it."""
        ended = self.wire.take_ended()
        self._finished.extend(ended)
        return ended

    def flush(self) -> None:
        """Raw bytes first, the request rows last: a request row vouches for the other two."""
        finished, self._finished = self._finished, []
        if finished:
            self._write(finished)
            self.wire.forget_samples()
        if self._slices is not None:
            row = self._slices.cut(self.clock.mono_ns())
            self.series.rows.extend([row] if row else [])
        if self.series.rows:
            append_rows(self._load_path, self.series.rows)
            self.series.rows.clear()

    def _remember(self, job: Job) -> Job:
        self._jobs[job.connection.request_id] = job
        return job

    def _tick(self, now_ns: int) -> None:
        self.series.tick(now_ns)
        done = self._summary.outcomes.total() + len(self._finished) + len(self.wire.ended)
        self._progress.update(done, len(self.wire.active))

    def _write(self, connections: list[Connection]) -> None:
        samples = [*self.wire.samples, self.clock.sample()]
        captures = [self._capture(one) for one in connections]
        begins = [one.sent_ns for one in captures if one.sent_ns is not None]
        clock = clock_map(window(samples, min(begins, default=None)))
        requests, chunks, distrust = burst_rows(captures, clock)
        if distrust is not None:
            self._progress.warn(f"arrivals are stamped by the program: {distrust}")
        append_bytes(self._raw_path, encode_batch(captures, clock))
        append_lines(self._out / "chunks.jsonl", "".join([one.lines() for one in chunks]))
        append_rows(self._out / "requests.jsonl", requests)
        self._account(requests)
        for one in connections:
            del self._jobs[one.request_id]

    def _account(self, requests: list[Row]) -> None:
        outcomes = Counter(row["outcome"] for row in requests)
        self._summary.outcomes.update(outcomes)
        if self._slices is not None:
            self._slices.ended.update(outcomes)
            self._slices.sent += sum(row["sent_ns"] is not None for row in requests)
        for row in requests:
            if row["sent_ns"] is not None and row["scheduled_ns"] is not None:
                lag_ns = row["sent_ns"] - row["scheduled_ns"]
                self._largest_lag_ns = max(self._largest_lag_ns, lag_ns)
        failed = next((row for row in requests if row["outcome"] != "ok"), None)
        if failed is not None and self._summary.first_failure is None:
            reason = " ".join(str(failed["error"])[:_REASON_CHARACTERS].split())
            self._summary.first_failure = f"{failed['request_id']}: {reason}"
        for name in ("prompt_tokens", "output_tokens"):
            plans = [(row[name], self._planned(row, name)) for row in requests]
            odd = [(said, planned) for said, planned in plans if said not in {None, planned}]
            if odd:
                self._progress.warn(
                    f"the server counts other {name} than the plan's {odd[0][1]}"
                    f" in {len(odd)} requests, for example {odd[0][0]}"
                )

    def _planned(self, row: Row, name: str) -> int:
        return int(getattr(self._jobs[row["request_id"]].plan, name))

    def _conclude(self) -> None:
        summary, found = self._summary, self.series.finding()
        if found is not None and not summary.interrupted:
            summary.findings.append(found)
        if self.plan.shape in _OPEN_LOOPS and self._largest_lag_ns > LATE_SEND_NS:
            lag_ms = self._largest_lag_ns / 1e6
            summary.findings.append(f"the client was late: up to {lag_ms:.1f} ms after a slot")
        if summary.unsent_turns:
            summary.findings.append(f"{summary.unsent_turns} turns were not sent: the one before")
            summary.findings[-1] += " failed, or its token ids were not returned"
        rows = [{"kind": "finding", "text": text} for text in summary.findings]
        if self._slices is not None:
            last = self._slices.cut(self.clock.mono_ns(), last=True)
            rows = [*([last] if last else []), *rows]
        append_rows(self._load_path, rows)
        counts = ", ".join(f"{n} {name}" for name, n in sorted(summary.outcomes.items()))
        self._progress.note(f"finished: {counts or 'nothing sent'}")
        for text in summary.findings:
            self._progress.warn(text)
        if summary.first_failure is not None:
            self._progress.warn(f"first failure: {summary.first_failure}")

    def _capture(self, connection: Connection) -> Capture:
        job = self._jobs[connection.request_id]
        return Capture(
            request_id=connection.request_id,
            instance=job.plan.instance,
            phase=job.plan.phase,
            session=job.session,
            endpoint=job.plan.endpoint,
            prompt_tokens_planned=job.plan.prompt_tokens,
            output_tokens_planned=job.plan.output_tokens,
            request_bytes=connection.request_bytes,
            scheduled_ns=connection.scheduled_ns,
            connected_ns=connection.connected_ns,
            sent_ns=connection.sent_ns,
            sent_done_ns=connection.sent_done_ns,
            ended=connection.ended or "interrupted",
            ended_ns=connection.ended_ns,
            ended_detail=connection.ended_detail,
            reads=redacted(connection.reads(), self._key),
            path=job.target.path,
        )
