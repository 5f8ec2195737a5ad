"""What the runs stood on: every recorded fact, against the published page, and arm against arm."""

from __future__ import annotations

from typing import TYPE_CHECKING

from r8.claims.reader import is_published
from r8.model import KvRun
from r8.report.tables import LIST, Badge, markdown, table
from r8.report.words import say
from r8.text import Markdown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from r8.model import Claim, Run

DIGEST_CHARS = 12


def environment(runs: Sequence[Run], language: str) -> Markdown:
    """Every fact the runs say of themselves, each value once."""
    rows: dict[tuple[str, str], dict[str, None]] = {}
    for run in runs:
        for group, key, value in _facts(run):
            rows.setdefault((group, key), {})[value] = None
    cells = [[group, key, LIST.join(values)] for (group, key), values in sorted(rows.items())]
    return table(cells, ("head-what", "head-which", "head-value"), language)


def _facts(run: Run) -> Iterator[tuple[str, str, str]]:
    yield from [("site", "name", run.site), ("site", "sha256", run.site_sha256)]
    yield from [("site", "step", run.fallback_level), ("basis", "", str(run.basis))]
    yield "seed", f"block {run.block}", str(run.seed)
    for group, facts in (
        ("versions", run.versions),
        ("comparability", run.comparability),
        ("host", run.host),
    ):
        yield from ((group, key, value) for key, value in facts.items())
    yield "kv device", run.arm, run.kv_device
    if isinstance(run, KvRun) and run.patch:
        yield "LMCache", run.arm, f"{run.patch.lmcache_version}, {run.treatment.patch}"
        yield "LMCache file sha256", run.arm, run.patch.target_sha256
    if run.note:
        yield "note", run.run_id, run.note


def against_page(runs: Sequence[Run], claims: Iterable[Claim], language: str) -> Markdown:
    """What published claims need to be compared, beside what these runs are; "" for none."""
    wanted: dict[tuple[str, str], int] = {}
    scenarios = {run.scenario for run in runs}
    for claim in claims:
        if is_published(claim) and claim.scenario in scenarios:
            for pair in claim.comparability.items():
                wanted[pair] = wanted.get(pair, 0) + 1
    rows = []
    for (key, value), n_claims in sorted(wanted.items()):
        unstated = say(language, "word-not-stated")
        here = sorted({run.comparability.get(key, unstated) for run in runs})
        same = Badge(say(language, "word-same" if here == [value] else "word-differs"))
        rows.append([key, value, LIST.join(here), same, n_claims])
    heads = ["head-must-match", "head-published", "head-here", "head-comparison", "head-claims"]
    return table(rows, heads, language) if rows else Markdown()


def between_arms(runs: Sequence[Run], language: str) -> Markdown:
    """Facts in which the arms of these runs differ, an arm a column."""
    arms = sorted({run.arm for run in runs})
    facts: dict[str, dict[str, set[str]]] = {}
    for run in runs:
        for key, value in _own_facts(run).items():
            facts.setdefault(key, {}).setdefault(run.arm, set()).add(value)
    rows = [
        [key, *(LIST.join(sorted(found.get(arm, ()))) for arm in arms)]
        for key, found in sorted(facts.items())
        if len({frozenset(found.get(arm, ())) for arm in arms}) > 1
        or any(len(values) > 1 for values in found.values())
    ]
    if not rows:
        return Markdown.of(say(language, "note-no-difference"))
    return markdown(rows, [say(language, "head-differs"), *arms])


def _own_facts(run: Run) -> dict[str, str]:
    mine = {"kv device": run.kv_device, **{f"host {k}": v for k, v in run.host.items()}}
    mine |= {f"version {key}": value for key, value in run.versions.items()}
    mine |= dict(run.comparability)
    if isinstance(run, KvRun) and run.patch:
        mine |= {"LMCache": run.patch.lmcache_version, "patch": str(run.treatment.patch)}
        mine |= {"LMCache file sha256": run.patch.target_sha256[:DIGEST_CHARS]}
    return mine
