"""One load phase from plan to rows: prompts, bursts or closed loop, raw streams, journals."""

from __future__ import annotations

import gc
import os
import socket
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .capture import Capture
from .chat_text import TokenCounter, exact_text, server_counter
from .clock import Clock, clock_map, window
from .errors import ClientError
from .journal import append_bytes, append_rows, create_numbered
from .prompts import prompt_token_ids
from .raw_stream import encode_batch
from .render import render_request
from .rows import Row, burst_rows
from .wire import Connection, Wire

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from .plan import Plan
    from .progress import Progress

# `kill -9` in a closed loop loses at most this much of finished requests.
FLUSH_NS = 500_000_000
_NS_PER_S = 1_000_000_000
_PREFLIGHT_TIMEOUT_S = 10.0
_NONCE_BYTES = 4
_REASON_CHARACTERS = 300  # on one line of stderr; the row keeps more

Address = tuple[socket.AddressFamily, tuple[object, ...]]


@dataclass(slots=True)
class Summary:
    """What became of a phase: counts of outcomes and what a person should know."""

    outcomes: Counter[str] = field(default_factory=Counter)
    first_failure: str | None = None
    interrupted: bool = False

    @property
    def all_ok(self) -> bool:
        """Every planned request was sent and came back whole."""
        return not self.interrupted and set(self.outcomes) <= {"ok"}


def reach(plan: Plan) -> Address:
    """The first address of the server that accepts a connection; raises ClientError if none."""
    host, port, _ = plan.url()
    refusal: OSError | None = None
    try:
        for family, _, _, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            try:
                with socket.socket(family, socket.SOCK_STREAM) as sock:
                    sock.settimeout(_PREFLIGHT_TIMEOUT_S)
                    sock.connect(address)
            except OSError as seen:
                refusal = seen
            else:
                return family, address
    except OSError as unknown:
        refusal = unknown
    raise ClientError(
        f"cannot reach the server: {refusal}",
        where=plan.base_url,
        next_step="start the server, or correct --base-url",
    )


class Phase:
    """Runs a plan into a directory. `run()` once."""

    def __init__(self, plan: Plan, out: Path, progress: Progress, clock: Clock) -> None:
        """Nothing is touched before `run`."""
        self._plan, self._out, self._progress, self._clock = plan, out, progress, clock
        self._sessions: dict[str, int] = {}
        self._summary = Summary()
        self._raw_path = out
        # The server builds its own ids from ours, and its log may cover several runs.
        self._nonce = os.urandom(_NONCE_BYTES).hex()

    def run(self) -> Summary:
        """Send everything, append every row; a stop by signal still writes what was in flight.

        Raises ClientError: unreachable server, no exact prompt, refusing disk.
        """
        address = reach(self._plan)
        stem = f"client-{self._plan.phase}-{self._plan.instance}"
        self._raw_path = create_numbered(self._out / "raw", stem, ".jsonl.gz")
        if self._plan.shape == "burst":
            for sessions in self._plan.bursts:
                if not self._summary.interrupted:
                    self._burst(address, self._render(sessions))
        else:
            self._closed(address, self._render(self._plan.sessions))
        counts = ", ".join(f"{n} {name}" for name, n in sorted(self._summary.outcomes.items()))
        self._progress.note(f"finished: {counts or 'nothing sent'}")
        if self._summary.first_failure is not None:
            self._progress.warn(f"first failure: {self._summary.first_failure}")
        return self._summary

    def _render(self, sessions: Sequence[int]) -> list[Connection]:
        """A connection with its request's bytes for every session, in order."""
        plan = self._plan
        count = server_counter(plan) if plan.endpoint == "chat" else None
        connections: list[Connection] = []
        for session in sessions:
            request_id = f"{plan.phase}-{plan.instance}-{self._nonce}-s{session}"
            payload = render_request(plan, _prompt(plan, session, count), request_id)
            self._sessions[request_id] = session
            connections.append(Connection(request_id, payload))
        return connections

    def _wire(self, address: Address) -> Wire:
        def show(_now_ns: int) -> None:
            done = self._summary.outcomes.total() + len(wire.ended)
            self._progress.update(done, len(wire.active))

        timeout_ns = round(self._plan.timeout_s * _NS_PER_S)
        wire = Wire(address, timeout_ns=timeout_ns, clock=self._clock, on_tick=show)
        return wire

    def _burst(self, address: Address, connections: list[Connection]) -> None:
        wire = self._wire(address)
        try:
            ready = wire.connect_all(connections)
            with quiet_interpreter():
                wire.samples[:] = [self._clock.sample()]
                wire.release(ready)
                while wire.active:
                    wire.turn()
        except KeyboardInterrupt:
            self._summary.interrupted = True
        finally:
            wire.close()
        self._write(wire, connections)

    def _closed(self, address: Address, connections: list[Connection]) -> None:
        wire = self._wire(address)
        waiting = connections[::-1]
        unsent: list[Connection] = []
        flushed_ns = self._clock.mono_ns()
        try:
            with quiet_interpreter():
                while waiting or wire.active:
                    while waiting and len(wire.active) < self._plan.concurrency:
                        unsent.append(waiting.pop())
                        wire.open(unsent[-1])
                        unsent[-1].scheduled_ns = unsent[-1].opened_ns
                    wire.turn()
                    unsent = _send_connected(wire, unsent)
                    if self._clock.mono_ns() - flushed_ns >= FLUSH_NS:
                        flushed_ns = self._clock.mono_ns()
                        self._flush(wire)
        except KeyboardInterrupt:
            self._summary.interrupted = True
        finally:
            wire.close()
        self._flush(wire)

    def _flush(self, wire: Wire) -> None:
        finished, wire.ended = wire.ended, []
        if finished:
            self._write(wire, finished)

    def _write(self, wire: Wire, connections: list[Connection]) -> None:
        """Raw bytes first, the request rows last: a request row vouches for the other two."""
        wire.samples.append(self._clock.sample())
        captures = [self._capture(one) for one in connections if one.ended is not None]
        begins = [one.sent_ns for one in captures if one.sent_ns is not None]
        clock = clock_map(window(wire.samples, min(begins, default=None)))
        requests, chunks, distrust = burst_rows(captures, clock)
        if distrust is not None:
            self._progress.warn(f"arrivals are stamped by the program: {distrust}")
        append_bytes(self._raw_path, encode_batch(captures, clock))
        append_rows(self._out / "chunks.jsonl", chunks)
        append_rows(self._out / "requests.jsonl", requests)
        self._account(requests)

    def _account(self, requests: list[Row]) -> None:
        self._summary.outcomes.update(row["outcome"] for row in requests)
        failed = next((row for row in requests if row["outcome"] != "ok"), None)
        if failed is not None and self._summary.first_failure is None:
            reason = " ".join(str(failed["error"])[:_REASON_CHARACTERS].split())
            self._summary.first_failure = f"{failed['request_id']}: {reason}"
        for name, planned in (
            ("prompt_tokens", self._plan.prompt_tokens),
            ("output_tokens", self._plan.output_tokens),
        ):
            odd = [row[name] for row in requests if row[name] not in {None, planned}]
            if odd:
                self._progress.warn(
                    f"the server counts other {name} than the plan's {planned}"
                    f" in {len(odd)} requests, for example {odd[0]}"
                )

    def _capture(self, connection: Connection) -> Capture:
        plan = self._plan
        return Capture(
            request_id=connection.request_id,
            instance=plan.instance,
            phase=plan.phase,
            session=self._sessions[connection.request_id],
            endpoint=plan.endpoint,
            prompt_tokens_planned=plan.prompt_tokens,
            output_tokens_planned=plan.output_tokens,
            request_bytes=len(connection.payload),
            scheduled_ns=connection.scheduled_ns,
            connected_ns=connection.connected_ns,
            sent_ns=connection.sent_ns,
            sent_done_ns=connection.sent_done_ns,
            ended=connection.ended or "interrupted",
            ended_ns=connection.ended_ns,
            ended_detail=connection.ended_detail,
            reads=connection.reads(),
        )


def _prompt(plan: Plan, session: int, count: TokenCounter | None) -> list[int] | str:
    """Text where the server counts its tokens, token ids elsewhere; exactly `prompt_tokens`."""
    if count is not None:
        return exact_text(count, seed=plan.seed, session=session, prompt_tokens=plan.prompt_tokens)
    return prompt_token_ids(
        seed=plan.seed, session=session, prompt_tokens=plan.prompt_tokens, vocab=plan.vocab
    )


def _send_connected(wire: Wire, unsent: list[Connection]) -> list[Connection]:
    """Send on every connection that now stands; returns those still connecting."""
    for connection in unsent:
        if connection.connected_ns is not None and connection.ended is None:
            wire.send(connection)
    return [one for one in unsent if one.sent_ns is None and one.ended is None]


@contextmanager
def quiet_interpreter() -> Iterator[None]:
    """No garbage collection inside: a pass over all objects costs milliseconds."""
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()
