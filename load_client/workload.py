"""Which requests a phase consists of: sessions, turns, instances, and the bytes of each.

Requests have positions, from 0. A position's session, instance and slot are the same in every
shard of a plan, so that processes share a plan by taking positions in turn.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from .chat_text import exact_text, server_counter, words_that_fit
from .connection import Connection
from .prompts import (
    prompt_id_text,
    prompt_token_ids,
    shared_token_ids,
    shared_words,
    trace_token_ids,
    turn_token_ids,
)
from .render import Message, Prompt, render_request
from .schedule import constant_offsets, poisson_offsets, trace_offsets
from .trace import TraceLine, read_trace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .plan import Plan
    from .target import Target


@dataclass(slots=True, eq=False, kw_only=True)
class Job:
    """One request. `plan` is that of its instance, with this request's own lengths."""

    plan: Plan
    target: Target
    position: int
    session: int
    turn: int
    prompt: Prompt
    connection: Connection


class Workload:
    """Makes jobs; asks the server to count tokens where chat needs it."""

    def __init__(self, plan: Plan, targets: list[tuple[Plan, Target]], nonce: str) -> None:
        """`nonce` keeps request ids of several runs apart in a server's log."""
        self._plan, self._targets, self._nonce = plan, targets, nonce
        self._trace: tuple[TraceLine, ...] = ()
        if plan.trace is not None:
            self._trace = read_trace(plan.trace)
        self._leads: dict[int, list[str]] = {}

    def positions(self) -> Iterator[int]:
        """This shard's positions of the listed sessions, in order."""
        index, count = self._plan.shard
        return iter(range(index, len(self._plan.sessions), count))

    def endless_positions(self) -> Iterator[int]:
        """The same, and after the listed sessions ever new ones."""
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
        if plan.shape == "trace":
            stamps = [self._trace[session].timestamp_ms for session in plan.sessions]
            return trace_offsets(stamps, plan.time_scale)
        rate = plan.rate_per_s or 0.0
        if plan.shape == "constant":
            return constant_offsets(count, rate)
        return poisson_offsets(count, rate, plan.seed)

    def job(self, position: int) -> Job:
        """The first turn of the session at `position`; raises ClientError: no exact prompt."""
        sessions = self._plan.sessions
        beyond = position - len(sessions)
        session = sessions[position] if beyond < 0 else max(sessions) + 1 + beyond
        plan, target = self._targets[position % len(self._targets)]
        if self._trace:
            line = self._trace[session]
            plan = replace(plan, prompt_tokens=line.input_length, output_tokens=line.output_length)
        return self._job(plan, target, position, session, 0, self._first_prompt(plan, session))

    def next_turn(self, job: Job, row: dict[str, Any]) -> Job | None:
        """What the user says after the answer in `row`; None when the conversation is over."""
        plan, turn, said_tokens = job.plan, job.turn + 1, job.plan.turn_tokens
        if turn >= plan.turns or row["outcome"] != "ok" or said_tokens is None:
            return None
        if plan.endpoint == "completions":
            answer = row["output_token_ids"]
            if answer is None:
                return None
            said = turn_token_ids(
                seed=plan.seed,
                session=job.session,
                turn=turn,
                count=said_tokens,
                vocab=plan.vocab,
            )
            prompt: Prompt = [*cast("list[int]", job.prompt), *answer, *said]
            plan = replace(plan, prompt_tokens=len(prompt))
        else:
            history: list[Message] = (
                [{"role": "user", "content": job.prompt}]
                if isinstance(job.prompt, str)
                else cast("list[Message]", job.prompt)
            )
            history = [*history, {"role": "assistant", "content": row["output_text"] or ""}]
            longer = plan.prompt_tokens + plan.output_tokens + said_tokens
            plan = replace(plan, prompt_tokens=longer)
            text = exact_text(
                server_counter(plan, history),
                seed=plan.seed,
                session=job.session,
                prompt_tokens=plan.prompt_tokens,
                turn=turn,
            )
            prompt = [*history, {"role": "user", "content": text}]
        return self._job(plan, job.target, job.position, job.session, turn, prompt)

    def _job(
        self, plan: Plan, target: Target, position: int, session: int, turn: int, prompt: Prompt
    ) -> Job:
        mark = f"-t{turn}" if plan.turns > 1 else ""
        request_id = f"{plan.phase}-{plan.instance}-{self._nonce}-s{session}{mark}"
        payload = render_request(plan, prompt, request_id)
        return Job(
            plan=plan,
            target=target,
            position=position,
            session=session,
            turn=turn,
            # Only a further turn needs it again; kept, it would be most of the memory.
            prompt=prompt if plan.turns > 1 else "",
            connection=Connection(request_id, payload, target),
        )

    def _first_prompt(self, plan: Plan, session: int) -> Prompt:
        if self._trace:
            return trace_token_ids(
                seed=plan.seed,
                line=session,
                hash_ids=self._trace[session].hash_ids,
                block_tokens=plan.trace_block_tokens,
                prompt_tokens=plan.prompt_tokens,
                vocab=plan.vocab,
            )
        group = session % plan.shared_prefix_groups
        shared = int(plan.shared_prefix_ratio * plan.prompt_tokens)
        if plan.endpoint == "chat":
            count = server_counter(plan)
            return exact_text(
                count,
                seed=plan.seed,
                session=session,
                prompt_tokens=plan.prompt_tokens,
                lead=self._lead(plan, group, shared),
            )
        # A further turn repeats the ids: it needs them as numbers.
        make = prompt_id_text if plan.turns == 1 else prompt_token_ids
        return make(
            seed=plan.seed,
            session=session,
            prompt_tokens=plan.prompt_tokens,
            vocab=plan.vocab,
            shared=shared_token_ids(seed=plan.seed, group=group, count=shared, vocab=plan.vocab),
        )

    def _lead(self, plan: Plan, group: int, shared: int) -> list[str]:
        """Words of a chat group's shared beginning, at most `shared` tokens with the template."""
        if shared and group not in self._leads:
            words = shared_words(seed=plan.seed, group=group, count=shared)
            fits = words_that_fit(server_counter(plan), words, shared)
            self._leads[group] = words[:fits]
        return self._leads.get(group, [])
