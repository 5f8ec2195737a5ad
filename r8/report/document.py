"""A report of run directories: the same runs give the same text, byte for byte, in any language."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from r8.model import Basis, Outcome
from r8.report.arms import arms, calibration, outputs, patched_arm, ratios
from r8.report.certificate import arithmetic, certificate
from r8.report.checkpoint import checkpoints
from r8.report.environment import against_page, between_arms, environment
from r8.report.scaling import scaling
from r8.report.tables import (
    LIST,
    METRIC_HEADS,
    PARAGRAPHS,
    Badge,
    bullets,
    metrics_of,
    number,
    span,
    table,
)
from r8.report.transfer import loads, switches
from r8.report.words import InMarkdown, render_reason, render_reasons, say
from r8.text import Markdown, Visible
from r8.verdict.judge import judge_session
from r8.verdict.session import open_session

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from r8.evidence.reader import Evidence
    from r8.model import Claim, Verdict
    from r8.verdict.session import Session

UNJUDGED = (Outcome.NOT_COMPARABLE, Outcome.NOT_MEASURED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of the report under one heading."""

    key: str  # the entry of its title, which is the same in every language
    title: Markdown
    text: Markdown


def report(
    evidences: Sequence[Evidence],
    claims: Iterable[Claim],
    *,
    references: Sequence[Evidence] = (),
    language: str = "en",
) -> str:
    """The whole report as Markdown; no clock, no host name, no path of the machine it is made on.

    Raises:
        UsageError: as `r8.verdict.judge.judge`.
        MetricError: no runs.

    """
    claims = tuple(claims)
    session = open_session(evidences)
    reference = open_session(references) if references else None
    verdicts = judge_session(session, claims, reference)
    return as_markdown(sections(session, verdicts, claims, language))


def as_markdown(parts: Sequence[Section]) -> str:
    """The sections as one text; the first is the head of it all."""
    marks = ["#", *["##"] * (len(parts) - 1)]
    texts = [
        Markdown("{} {}\n\n{}").format(Markdown(mark), one.title, one.text)
        for mark, one in zip(marks, parts, strict=True)
    ]
    return PARAGRAPHS.join(texts) + "\n"


def sections(
    session: Session, verdicts: Sequence[Verdict], claims: Sequence[Claim], language: str
) -> list[Section]:
    """The parts of a report over a session that is open and verdicts that are passed."""
    language = InMarkdown(language)
    here, elsewhere = asked(session, verdicts)
    scenarios = ", ".join(sorted({run.scenario for run in session.runs}))
    base = patched_arm(session)
    texts: dict[str, Markdown] = {
        "title-verdicts": _verdicts(here, language),
        "title-arms": arms(session, language),
        "title-ratios": Markdown() if base is None else ratios(session, base, language),
        "title-scaling": scaling(session, language),
        "title-checkpoints": checkpoints(session, language),
        "title-loads": loads(session, language),
        "title-switches": switches(session, language),
        "title-tokens": outputs(session, language),
        "title-certificate": certificate(session, language),
        "title-calibration": calibration(session, language),
        "title-environment": environment(session.runs, language),
        "title-not-measured": _not_measured(session, here, elsewhere, language),
        "title-published-here": against_page(session.runs, claims, language),
        "title-arm-against-arm": between_arms(session.runs, language),
        "title-arithmetic": arithmetic(session, language),
        "title-rows": PARAGRAPHS.join([say(language, "note-rows"), _rows(session, language)]),
    }
    head = Section(
        key="report-title",
        title=Markdown.of(say(language, "report-title", scenarios=scenarios)),
        text=_head(session, here, language),
    )
    return [
        head,
        *(
            Section(key=key, title=Markdown.of(say(language, key, arm=base)), text=text)
            for key, text in texts.items()
            if text
        ),
    ]


def asked(
    session: Session, verdicts: Sequence[Verdict]
) -> tuple[tuple[Verdict, ...], tuple[Verdict, ...]]:
    """Verdicts on claims of these runs' scenarios, judged ones first; and all others.

    A claim of another scenario that these runs could speak to all the same stays with the first.
    """
    scenarios = {run.scenario for run in session.runs}
    elsewhere = tuple(
        one
        for one in verdicts
        if one.claim.scenario not in scenarios and one.outcome is Outcome.NOT_MEASURED
    )
    here = [one for one in verdicts if one not in elsewhere]
    return tuple(sorted(here, key=lambda one: one.outcome in UNJUDGED)), elsewhere


def outcome_word(outcome: Outcome, language: str) -> Visible:
    """The outcome as a reader of that language knows it, its own word behind it."""
    word = say(language, f"outcome-{outcome}")
    return word if word == str(outcome) else type(word)("{} {}").format(word, outcome)


def headline(verdicts: Sequence[Verdict], language: str) -> Visible:
    """One line: how many claims came to what."""
    counts = [
        Markdown("{} {}").format(n, outcome_word(outcome, language))
        for outcome in Outcome
        if (n := sum(one.outcome is outcome for one in verdicts))
    ]
    named = LIST.join(counts) or "0"
    return say(language, "report-headline", n=len(verdicts), counts=named)


def _head(session: Session, verdicts: Sequence[Verdict], language: str) -> Markdown:
    runs = session.runs
    lead = say(
        language,
        "report-head",
        headline=headline(verdicts, language),
        runs=len(runs),
        blocks=len({(run.campaign_id, run.block) for run in runs}),
        campaigns=LIST.join(sorted({run.campaign_id for run in runs})),
    )
    if all(run.basis is not Basis.MODELLED for run in runs):
        return Markdown.of(lead)
    levels = LIST.join(sorted({run.fallback_level for run in runs}))
    return PARAGRAPHS.join([lead, say(language, "report-modelled", levels=levels)])


def _verdicts(verdicts: Iterable[Verdict], language: str) -> Markdown:
    """Every verdict with its claim, interval and reason."""
    rows = [
        [
            one.claim.claim_id,
            one.claim.source,
            one.claim.as_printed,
            Badge(f"**{outcome_word(one.outcome, language)}**"),
            number(one.estimate),
            span(one),
            one.n_blocks,
            say(language, f"basis-{one.basis}"),
            render_reasons(one.reasons, language),
        ]
        for one in verdicts
    ]
    heads = ["head-claim", "head-source", "head-printed", "head-outcome", "head-estimate"]
    heads += ["head-interval", "head-blocks", "head-basis", "head-why"]
    return table(rows, heads, language)


def _not_measured(
    session: Session,
    verdicts: Sequence[Verdict],
    elsewhere: Sequence[Verdict],
    language: str,
) -> Markdown:
    lines = [
        say(
            language,
            "not-measured-claim",
            claim=one.claim.claim_id,
            printed=one.claim.as_printed,
            outcome=outcome_word(one.outcome, language),
            why=render_reasons(one.reasons, language),
        )
        for one in verdicts
        if one.outcome in UNJUDGED
    ]
    lines += _absent_metrics(session, language)
    if elsewhere:
        names = LIST.join(sorted({one.claim.scenario for one in elsewhere}))
        lines.append(say(language, "not-measured-elsewhere", n=len(elsewhere), scenarios=names))
    return bullets(lines) if lines else Markdown.of(say(language, "note-nothing"))


def _absent_metrics(session: Session, language: str) -> Iterator[Visible]:
    absent: dict[tuple[str, str], list[str]] = {}
    for run in session.runs:
        for phase, metric, statistic in metrics_of(run):
            found = session.value(run, metric, statistic, phase=phase)
            if found.value is None:
                name = f"{metric} {statistic}".strip() + f" ({phase})"
                why = render_reason(found.reason, language) if found.reason else ""
                absent.setdefault((name, why), []).append(run.run_id)
    for (name, why), run_ids in absent.items():
        why_said = why or say(language, "note-no-reason")
        runs = LIST.join(run_ids)
        yield say(language, "not-measured-metric", name=name, why=why_said, runs=runs)


def _rows(session: Session, language: str) -> Markdown:
    """The rows behind the tables, as the shared SQL gave them, with every digit."""
    rows = []
    for run in session.runs:
        for phase, metric, statistic in metrics_of(run):
            found = session.value(run, metric, statistic, phase=phase)
            if found.value is not None:
                value, unit, n = repr(found.value), found.unit, found.n
                rows.append([run.run_id, phase, metric, statistic, value, unit, n, found.estimator])
    return table(rows, [*METRIC_HEADS, "head-estimator"], language)
