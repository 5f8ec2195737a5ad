"""What tables of a report are made of: heads of the catalogues, numbers as people read them."""

from __future__ import annotations

import math
import re
from functools import cache
from typing import TYPE_CHECKING

from tabulate import tabulate

from r8.message import Answer
from r8.model import Outcome, TransferRun
from r8.report.words import LANGUAGES, InMarkdown, say
from r8.text import Markdown
from r8.verdict.intervals import log_interval

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from r8.model import Run, Verdict
    from r8.verdict.session import Session

NOTHING = "-"
PARAGRAPHS, LIST = Markdown("\n\n"), Markdown(", ")
# Answers of R8, by the entry of their word.
ANSWERS = (
    *(f"outcome-{one}" for one in Outcome),
    *("answer-held", "answer-refuted", "answer-unknown", "answer-not-applicable"),
    *("word-same", "word-differs"),
)
_ANSWERS = {
    Answer.HELD: "answer-held",
    Answer.REFUTED: "answer-refuted",
    Answer.UNKNOWN: "answer-unknown",
    Answer.NOT_APPLICABLE: "answer-not-applicable",
}
_OUTCOMES = {str(one) for one in Outcome}
_BAR = re.compile(r"(?<!\\)\|")
# Of a row of the view `metrics`.
METRIC_HEADS = (
    *("head-run", "head-phase", "head-metric", "head-statistic"),
    *("head-value", "head-unit", "head-n"),
)
# Metrics the tables of a report show, repeated unrounded at its end.
SHOWN_METRICS = (
    ("measure", "ttft", "p50"),
    ("measure", "ttft", "p90"),
    ("measure", "ttft", "max"),
    ("warm", "ttft", "p50"),
    ("measure", "predicted_ttft", "p50"),
    ("measure", "predicted_ttft", "max"),
    ("measure", "first_step_requests", ""),
    ("measure", "output_throughput", ""),
    ("measure", "n_failed", ""),
    ("measure", "engine_hit_bytes", ""),
    ("measure", "device_read_bytes", ""),
    ("measure", "process_read_bytes", ""),
    ("measure", "patch_read_bytes", ""),
    ("measure", "device_read_bandwidth", "mean"),
    ("measure", "device_read_bandwidth", "busy"),
    ("measure", "device_read_bandwidth", "peak_1s"),
    ("measure", "ceiling_fraction", "busy"),
    ("calibration", "ceiling_bandwidth", ""),
    ("calibration", "serial_bandwidth", ""),
)
# Of a run without a KV engine.
TRANSFER_METRICS = (
    ("measure", "work_wall", ""),
    ("measure", "work_time", "mean"),
    ("measure", "work_time", "max"),
    ("measure", "work_bytes", ""),
    ("measure", "work_bandwidth", ""),
    ("measure", "device_read_bytes", ""),
    ("measure", "process_read_bytes", ""),
    ("measure", "device_read_bandwidth", "mean"),
    ("measure", "device_read_bandwidth", "busy"),
    ("calibration", "ceiling_bandwidth", ""),
)
# Where engines are the loaders, as well.
ENGINE_METRICS = (
    ("measure", "engine_wait", "mean"),
    ("measure", "engine_start", "mean"),
    ("measure", "engine_said_load", "mean"),
)


def metrics_of(run: Run) -> tuple[tuple[str, str, str], ...]:
    """What the tables show of one run: phase, metric, statistic."""
    if not isinstance(run, TransferRun):
        return SHOWN_METRICS
    return TRANSFER_METRICS + (ENGINE_METRICS if run.tool == "engine" else ())


def table(rows: Iterable[Sequence[object]], heads: Sequence[str], language: str) -> Markdown:
    """A GitHub table whose heads are entries `head-...` of the catalogues."""
    return markdown(rows, [say(InMarkdown(language), one) for one in heads])


def markdown(rows: Iterable[Sequence[object]], headers: Sequence[str]) -> Markdown:
    """A GitHub table; absent cells are a dash; what is no `Markdown` yet becomes it."""
    cells = [[_cell(value) for value in row] for row in rows]
    heads = [_cell(one) for one in headers]
    text = tabulate(cells, headers=heads, tablefmt="github", disable_numparse=True)
    return Markdown(text)


def _cell(value: object) -> str:
    if value is None or value == "":
        return NOTHING
    text = _BAR.sub(r"\\|", Markdown.of(value))
    return f'"{text}"' if answered(text) and not isinstance(value, Badge) else text


def bullets(lines: Iterable[object]) -> Markdown:
    """A list, one line an item."""
    return Markdown("\n").join(Markdown("* {}").format(one) for one in lines)


class Badge(Markdown):
    """A cell with an answer of R8, which the page shows as a badge."""

    __slots__ = ()


def answered(text: str) -> tuple[str, str] | None:
    """The entry of an answer and the code behind its word, where a cell holds an answer of R8.

    The page shows these as badges: what a run calls so stands in quotes.
    """
    plain = text.strip("*")
    # An outcome has its own word behind that of the language.
    name, _, code = plain.rpartition(" ")
    word, behind = (name, code) if name and code in _OUTCOMES else (plain, "")
    entry = _entries().get(word)
    return None if entry is None else (entry, behind)


@cache
def _entries() -> dict[str, str]:
    return {str(say(language, entry)): entry for language in LANGUAGES for entry in ANSWERS}


def answer_word(answer: Answer, language: str) -> Badge:
    """What a rule found, as a cell says it."""
    return Badge(say(language, _ANSWERS[answer]))


def number(value: float | None) -> str:
    """Four significant digits, a dash when absent."""
    return NOTHING if value is None else f"{value:.4g}"


def converted(value: float | None, convert: Callable[[float], float]) -> str:
    """A number in the unit a reader expects, a dash when absent."""
    return number(None if value is None else convert(value))


def shown(
    session: Session,
    run: Run,
    metric: str,
    statistic: str,
    convert: Callable[[float], float],
    *,
    phase: str = "measure",
) -> str:
    """One value of a run in the unit a reader expects; NOTHING where it cannot be had."""
    return converted(session.value(run, metric, statistic, phase=phase).value, convert)


def quotient(above: float | None, below: float | None) -> float | None:
    """One number over another; `None` where either is absent or the result is no number."""
    if above is None or not below or not math.isfinite(above / below):
        return None
    return above / below


def over_blocks(values: Sequence[float]) -> str:
    """Geometric mean of the blocks with its 90 % interval; the value itself where one is all."""
    interval = log_interval(values)
    if interval is None:
        return number(values[0]) if len(values) == 1 else NOTHING
    at, low, high = (number(one) for one in (interval.estimate, interval.low, interval.high))
    return Markdown(f"{at} [{low}, {high}]")


def span(verdict: Verdict) -> Markdown:
    """A verdict's interval as it was used: a bound for one-sided kinds."""
    if verdict.low is None or verdict.high is None or verdict.confidence is None:
        return Markdown(NOTHING)
    level = f"({verdict.confidence:.3g})"
    if verdict.claim.kind in {"at-least", "prediction"}:
        return Markdown(f">= {number(verdict.low)} {level}")
    return Markdown(f"{number(verdict.low)} to {number(verdict.high)} {level}")
