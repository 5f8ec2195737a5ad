"""Which requests a phase consists of: sessions, turns, instances, and the bytes of each.

Requests have positions, from 0. A position's session, instance and slot are the same in every
shard of a plan, so processes share a plan by taking positions in turn.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..wire.connection import Connection
from .chat_text import exact_text, server_counter, words_that_fit
from .render import ChatMessage, Prompt, render_request
from .schedule import constant_offsets, poisson_offsets, trace_offsets
from .token_generator import (
    joined_ids,
    prompt_token_ids,
    shared_words,
    trace_token_ids,
    turn_token_ids,
    written_ids,
)
from .trace import Trace, read_trace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..wire.target import Target
    from .plan import LoadPlan


@dataclass(slots=True, eq=False, kw_only=True)
class PlannedRequest:
    """One request. `plan` is that of its instance, with this request's own lengths."""

    plan: LoadPlan
    target: Target
    session: int
    turn: int
    prompt: Prompt
    connection: Connection


class Workload:
    """Makes the requests of a plan; asks the server to count tokens where chat needs it."""

    def __init__(self, plan: LoadPlan, targets: list[tuple[LoadPlan, Target]], nonce: str) -> None:
        """`nonce` keeps request ids of several runs apart in a server's log."""
        self._plan, self._targets, self._nonce = plan, targets, nonce
        self.trace: Trace | None = None
        if plan.trace is not None:
            self.trace = read_trace(plan.trace, plan.trace_format, plan.trace_block_tokens)
        self._leads: dict[int, list[str]] = {}

    def positions(self) -> Iterator[int]:
        """This shard's positions of the listed sessions, in order."""
        index, count = self._plan.shard
        return iter(range(index, len(self._plan.sessions), count))

    def endless_positions(self) -> Iterator[int]:
        """The same, then those of new sessions without end."""
        position, count = self._plan.shard
        while True:
            yield position
            position += count

    def bursts(self) -> Iterator[list[int]]:
        """This shard's part of each burst of exactly `concurrency`."""
        (index, count), size = self._plan.shard, self._plan.concurrency
        for begin in range(0, len(self._plan.sessions), size):
            yield list(range(begin + index, begin + size, count))

    def concurrency(self) -> int:
        """This shard's part of `concurrency`."""
        index, count = self._plan.shard
        return len(range(index, self._plan.concurrency, count))

    def plateau(self) -> int:
        """How many of this shard's requests can be in flight at once."""
        if self._plan.duration_s is not None:
            return self.concurrency()
        return min(self.concurrency(), len(list(self.positions())))

    def offsets(self) -> list[int]:
        """Slots of an open loop by position, in nanoseconds from its start."""
        plan, count = self._plan, len(self._plan.sessions)
        if self.trace is not None:
            stamps_ns = [self.trace.lines[session].timestamp_ns for session in plan.sessions]
            return trace_offsets(stamps_ns, plan.time_scale)
        rate = plan.rate_per_s or 0.0
        if plan.shape == "constant":
            return constant_offsets(count, rate)
        return poisson_offsets(count, rate, plan.seed)

    def request(self, position: int) -> PlannedRequest:
        """The first turn of the session at `position`; ClientError when no exact prompt exists."""
        sessions = self._plan.sessions
        beyond = position - len(sessions)
        session = sessions[position] if beyond < 0 else max(sessions) + 1 + beyond
        plan, target = self._targets[position % len(self._targets)]
        if self.trace is not None:
            line = self.trace.lines[session]
            plan = replace(plan, prompt_tokens=line.input_length, output_tokens=line.output_length)
        prompt = self._first_prompt(plan, target, session)
        return self._request(plan, target, session, 0, prompt)

    def next_turn(self, before: PlannedRequest, row: dict[str, Any]) -> PlannedRequest | None:
        """What the user says after the answer in `row`; None when the conversation is over."""
        plan, turn, said_tokens = before.plan, before.turn + 1, before.plan.turn_tokens
        if turn >= plan.turns or row["outcome"] != "ok" or said_tokens is None:
            return None
        if isinstance(before.prompt, bytes):
            answer = row["output_token_ids"]
            if answer is None:
                return None
            said = turn_token_ids(
                seed=plan.seed,
                session=before.session,
                turn=turn,
                count=said_tokens,
                vocab=plan.vocab,
            )
            prompt: Prompt = joined_ids(before.prompt, written_ids(answer), said)
            plan = replace(plan, prompt_tokens=plan.prompt_tokens + len(answer) + said_tokens)
        else:
            asked: list[ChatMessage] = (
                [{"role": "user", "content": before.prompt}]
                if isinstance(before.prompt, str)
                else before.prompt
            )
            history = [*asked, {"role": "assistant", "content": row["output_text"] or ""}]
            longer = plan.prompt_tokens + plan.output_tokens + said_tokens
            plan = replace(plan, prompt_tokens=longer)
            text = exact_text(
                server_counter(plan, before.target, history),
                seed=plan.seed,
                session=before.session,
                prompt_tokens=plan.prompt_tokens,
                turn=turn,
            )
            prompt = [*history, {"role": "user", "content": text}]
        return self._request(plan, before.target, before.session, turn, prompt)

    def _request(
        self, plan: LoadPlan, target: Target, session: int, turn: int, prompt: Prompt
    ) -> PlannedRequest:
        mark = f"-t{turn}" if plan.turns > 1 else ""
        request_id = f"{plan.phase}-{plan.instance}-{self._nonce}-s{session}{mark}"
        payload = render_request(plan, prompt, request_id)
        return PlannedRequest(
            plan=plan,
            target=target,
            session=session,
            turn=turn,
            # Only a further turn needs it again; kept, it would be most of the memory.
            prompt=prompt if plan.turns > 1 else "",
            connection=Connection(request_id, payload, target),
        )

    def _first_prompt(self, plan: LoadPlan, target: Target, session: int) -> Prompt:
        if self.trace is not None:
            return trace_token_ids(
                seed=plan.seed,
                line=session,
                hash_ids=self.trace.lines[session].hash_ids,
                block_tokens=self.trace.block_tokens,
                prompt_tokens=plan.prompt_tokens,
                vocab=plan.vocab,
            )
        group = session % plan.shared_prefix_groups
        shared = int(plan.shared_prefix_ratio * plan.prompt_tokens)
        if plan.endpoint == "chat":
            return exact_text(
                server_counter(plan, target),
                seed=plan.seed,
                session=session,
                prompt_tokens=plan.prompt_tokens,
                lead=self._lead(plan, target, group, shared),
            )
        return prompt_token_ids(
            seed=plan.seed,
            session=session,
            prompt_tokens=plan.prompt_tokens,
            vocab=plan.vocab,
            group=group,
            shared=shared,
        )

    def _lead(self, plan: LoadPlan, target: Target, group: int, shared: int) -> list[str]:
        """Words of a chat group's shared beginning, at most `shared` tokens with the template."""
        if shared and group not in self._leads:
            words = shared_words(seed=plan.seed, group=group, count=shared)
            fits = words_that_fit(server_counter(plan, target), words, shared)
            self._leads[group] = words[:fits]
        return self._leads.get(group, [])
