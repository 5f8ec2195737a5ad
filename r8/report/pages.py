"""Sections that make the report whole: what differs from the page, and every rule's arithmetic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from r8.claims.reader import is_published
from r8.report.tables import MARKS, markdown
from r8.report.words import render_checks

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from r8.model import Claim, Run
    from r8.verdict.session import Session

BEFORE = "## Rows behind the tables"


def with_pages(text: str, session: Session, claims: Iterable[Claim], language: str = "en") -> str:
    """The report's text with these sections before its last one."""
    pages = [
        _differences(session.runs, claims),
        _between_arms(session.runs),
        _arithmetic(session, language),
    ]
    more = "\n\n".join(page for page in pages if page)
    head, found, tail = text.partition(BEFORE)
    return f"{head}{more}\n\n{found}{tail}" if found else f"{text}\n\n{more}\n"


def _differences(runs: Sequence[Run], claims: Iterable[Claim]) -> str:
    """What published claims need to be compared, beside what these runs are."""
    wanted: dict[tuple[str, str], list[str]] = {}
    scenarios = {run.scenario for run in runs}
    for claim in claims:
        if is_published(claim) and claim.scenario in scenarios:
            for key, value in claim.comparability.items():
                wanted.setdefault((key, value), []).append(claim.claim_id)
    rows = []
    for (key, value), claim_ids in sorted(wanted.items()):
        here = sorted({run.comparability.get(key, "not stated") for run in runs})
        same = "same" if here == [value] else "DIFFERS"
        rows.append([key, value, ", ".join(here), same, len(claim_ids)])
    if not rows:
        return ""
    headers = ["what must match", "published", "here", "comparison", "claims"]
    return "## Environment, published against here\n\n" + markdown(rows, headers)


def _between_arms(runs: Sequence[Run]) -> str:
    """Facts in which the arms of these runs differ, an arm a column."""
    arms = sorted({run.arm for run in runs})
    facts: dict[str, dict[str, set[str]]] = {}
    for run in runs:
        patch = run.patch
        mine = {"kv device": run.kv_device, **{f"host {k}": v for k, v in run.host.items()}}
        mine |= {f"version {key}": value for key, value in run.versions.items()}
        mine |= dict(run.comparability)
        if patch:
            mine |= {"LMCache": patch.lmcache_version, "patch": patch.expected}
            mine |= {"LMCache file sha256": patch.target_sha256[:12]}
        for key, value in mine.items():
            facts.setdefault(key, {}).setdefault(run.arm, set()).add(value)
    rows = [
        [key, *(", ".join(sorted(found.get(arm, ()))) for arm in arms)]
        for key, found in sorted(facts.items())
        if len({frozenset(found.get(arm, ())) for arm in arms}) > 1
        or any(len(values) > 1 for values in found.values())
    ]
    if not rows:
        return "## Environment, arm against arm\n\nNo recorded fact differs between runs."
    return "## Environment, arm against arm\n\n" + markdown(rows, ["what differs", *arms])


def _arithmetic(session: Session, language: str) -> str:
    parts = ["## Certificate, with its arithmetic"]
    for run in session.runs:
        rows = [
            [one.rule_id, MARKS[one.answer], render_checks(one.checks, language)]
            for one in session.findings
            if one.run_id == run.run_id
        ]
        parts.append(f"### {run.run_id}")
        parts.append(markdown(rows, ["rule", "answer", "arithmetic"]))
    return "\n\n".join(parts)
