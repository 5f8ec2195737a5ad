"""A phase while it runs: its requests, the socket loop, and the files their rows go to."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING

from ..clock import NS_PER_S, Clock, clock_map, window
from ..record.capture import Capture, redacted
from ..record.journal import append_bytes, append_lines, append_rows, create_numbered
from ..record.levels import InFlightLevels, TimeSlices
from ..record.marks import marks_of
from ..record.raw_stream import SUFFIX, encode_batch
from ..record.rows import Row, burst_rows, request_rows
from ..wire.loop import SocketLoop
from ..wire.target import reach
from ..workload.render import api_key
from ..workload.requests import PlannedRequest, Workload
from ..workload.rules import OPEN_LOOPS
from .summary import PhaseSummary

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ..wire.connection import Connection
    from ..workload.plan import LoadPlan
    from .progress import PhaseProgress

_NONCE_BYTES = 4
_REASON_CHARACTERS = 300  # on one line of stderr; the row keeps more


class RunningPhase:
    """What a load shape drives: it makes requests, collects those that ended, and writes rows."""

    def __init__(
        self,
        plan: LoadPlan,
        out: Path,
        progress: PhaseProgress,
        clock: Clock,
        gate: Callable[[], int] | None,
    ) -> None:
        """Opens the journals; ClientError: unreachable server, refusing disk.

        `gate` returns the instant of a start that several processes share.
        """
        self.plan, self.clock, self.summary = plan, clock, PhaseSummary()
        self.gate = gate or clock.mono_ns
        self.largest_lag_ns = 0
        self._out, self._progress, self._key = out, progress, api_key(plan)
        self._planned: dict[str, PlannedRequest] = {}
        self._finished: list[Connection] = []
        targets = [(one, reach(one.base_url, one.proxy, one.ca_file)) for one in plan.instances()]
        # The server builds its own ids from ours, and its log may cover several runs.
        self.workload = Workload(plan, targets, os.urandom(_NONCE_BYTES).hex())
        stem = f"{plan.phase}-{plan.instance}"
        self._raw_path = create_numbered(out / "raw", f"client-{stem}", SUFFIX)
        self._load_path = create_numbered(out / "raw", f"load-{stem}", ".jsonl")
        self.levels = InFlightLevels(None if plan.shape in OPEN_LOOPS else self.workload.plateau())
        self._slices: TimeSlices | None = None
        if plan.duration_s is not None:
            self._slices = TimeSlices(round(plan.slice_s * NS_PER_S), clock.mono_ns())
        self.loop = SocketLoop(
            timeout_ns=round(plan.timeout_s * NS_PER_S),
            clock=clock,
            on_tick=self._tick,
            on_level=self.levels.moved,
        )

    def make(self, position: int) -> PlannedRequest:
        """The request at `position`, remembered until its rows are written."""
        return self._remember(self.workload.request(position))

    def next_turn(self, connection: Connection) -> PlannedRequest | None:
        """The conversation's next request after this answer; None when there is none."""
        if self.plan.turns == 1:
            return None
        before = self._planned[connection.request_id]
        row, _ = request_rows(self._capture(connection), None)
        following = self.workload.next_turn(before, row)
        if following is None:
            self.summary.unsent_turns += self.plan.turns - before.turn - 1
            return None
        return self._remember(following)

    def collect(self) -> list[Connection]:
        """Take over the connections that have ended in the loop; returns them."""
        ended = self.loop.take_ended()
        self._finished.extend(ended)
        return ended

    def flush(self, *, last: bool = False) -> None:
        """Write raw bytes first and request rows last: where a request row is, the others are."""
        finished, self._finished = self._finished, []
        if finished:
            self._write(finished)
            self.loop.forget_samples()
        if self._slices is not None:
            self.levels.rows += self._slices.cut(self.clock.mono_ns(), last=last)
        if last:
            findings = self.summary.findings
            self.levels.rows += [{"kind": "finding", "text": text} for text in findings]
        if self.levels.rows:
            append_rows(self._load_path, self.levels.rows)
            self.levels.rows.clear()

    def _remember(self, planned: PlannedRequest) -> PlannedRequest:
        self._planned[planned.connection.request_id] = planned
        return planned

    def _tick(self, now_ns: int) -> None:
        self.levels.tick(now_ns)
        done = self.summary.outcomes.total() + len(self._finished) + len(self.loop.ended)
        self._progress.update(done, len(self.loop.active))

    def _write(self, connections: list[Connection]) -> None:
        samples = [*self.loop.samples, self.clock.sample()]
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
        for row, rows in zip(requests, chunks, strict=True):
            self.summary.marks.update(marks_of(row, rows))
        for one in connections:
            del self._planned[one.request_id]

    def _account(self, requests: list[Row]) -> None:
        outcomes = Counter(row["outcome"] for row in requests)
        self.summary.outcomes.update(outcomes)
        sent = [row for row in requests if row["sent_ns"] is not None]
        if self._slices is not None:
            self._slices.ended.update(outcomes)
            self._slices.sent += len(sent)
        lags_ns = [
            row["sent_ns"] - row["scheduled_ns"] for row in sent if row["scheduled_ns"] is not None
        ]
        self.largest_lag_ns = max([self.largest_lag_ns, *lags_ns])
        failed = next((row for row in requests if row["outcome"] != "ok"), None)
        if failed is not None and self.summary.first_failure is None:
            reason = " ".join(str(failed["error"])[:_REASON_CHARACTERS].split())
            self.summary.first_failure = f"{failed['request_id']}: {reason}"
        for name in ("prompt_tokens", "output_tokens"):
            self._warn_of_other_counts(requests, name)

    def _warn_of_other_counts(self, requests: list[Row], name: str) -> None:
        plans = [getattr(self._planned[row["request_id"]].plan, name) for row in requests]
        pairs = zip((row[name] for row in requests), plans, strict=True)
        odd = [(said, planned) for said, planned in pairs if said not in {None, planned}]
        if odd:
            self._progress.warn(
                f"the server counts other {name} than the plan's {odd[0][1]}"
                f" in {len(odd)} requests, for example {odd[0][0]}"
            )

    def _capture(self, connection: Connection) -> Capture:
        planned = self._planned[connection.request_id]
        return Capture(
            request_id=connection.request_id,
            instance=planned.plan.instance,
            phase=planned.plan.phase,
            session=planned.session,
            endpoint=planned.plan.endpoint,
            prompt_tokens_planned=planned.plan.prompt_tokens,
            output_tokens_planned=planned.plan.output_tokens,
            request_bytes=connection.request_bytes,
            scheduled_ns=connection.scheduled_ns,
            connected_ns=connection.connected_ns,
            sent_ns=connection.sent_ns,
            sent_done_ns=connection.sent_done_ns,
            ended=connection.ended or "interrupted",
            ended_ns=connection.ended_ns,
            ended_detail=connection.ended_detail,
            reads=redacted(connection.reads(), self._key),
            path=planned.target.path,
        )
