"""Short ways for tests to run a phase and to read what it left."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

from load_client.clock import Clock
from load_client.phase.progress import PhaseProgress
from load_client.phase.run import run_phase
from load_client.workload.plan import LoadPlan, make_plan

from .streams import DONE, chunk, chunked, completion, head, usage

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from load_client.phase.summary import PhaseSummary

    from .scripted_server import Step

GOOD = chunked(completion("a"), completion("b"), completion("c"), usage(), DONE)


def three_faults(body: dict[str, Any], _number: int) -> list[Step]:
    session = body["prompt"][0] - 1000
    faults: dict[int, list[Step]] = {
        3: [head("500 Oops", "Content-Length: 4") + b"boom"],
        7: [chunked(completion("a"), completion("b"))],
        11: [GOOD[:200], "hang"],
    }
    return faults.get(session, [GOOD])


def good(_body: dict[str, Any], _number: int) -> list[Step]:
    return [GOOD]


def paced(_body: dict[str, Any], _number: int) -> list[Step]:
    """The same answer, its tokens a few milliseconds apart: GOOD comes at once."""
    whole = GOOD
    pieces: list[Step] = []
    for letter in "abc":
        at = whole.index(chunk(completion(letter))) + len(chunk(completion(letter)))
        pieces += [whole[:at], 0.005]
        whole = whole[at:]
    return [*pieces, whole]


def values(url: str, **changes: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "phase": "measure",
        "instance": "e0",
        "base_url": url,
        "model": "m",
        "sessions": [0, 1, 2, 3],
        "prompt_tokens": 12,
        "output_tokens": 3,
        "concurrency": 4,
        "seed": 1,
        "timeout_s": 5,
    }
    return base | changes


def plan(url: str, **changes: Any) -> LoadPlan:
    return make_plan(values(url, **changes), "test")


def run(
    a_plan: LoadPlan,
    out: Path,
    clock: Clock | None = None,
    gate: Callable[[], int] | None = None,
) -> tuple[PhaseSummary, str]:
    """The summary, and what was said on stderr."""
    said = io.StringIO()
    progress = PhaseProgress(said, "test", len(a_plan.sessions), quiet=True)
    summary = run_phase(a_plan, out, progress, clock or Clock(), gate)
    return summary, said.getvalue()


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="ascii").splitlines()]


def most_at_once(path: Path) -> int:
    """Most requests under way at one instant, by the client's own instants.

    A server counts a request until it has noticed its end, which a busy machine delays.
    """
    found = rows(path / "requests.jsonl")
    marks = [(row["sent_ns"], 1) for row in found] + [(row["done_ns"], -1) for row in found]
    under_way = most = 0
    for _, step in sorted(marks):
        under_way += step
        most = max(most, under_way)
    return most


def by_session(out: Path) -> dict[int, dict[str, Any]]:
    return {row["session"]: row for row in rows(out / "requests.jsonl")}
