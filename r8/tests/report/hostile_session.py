"""A session whose every string is a stranger's: below the reader, which would refuse such names.

A small campaign is made with marked names, read and judged as always. Then the marks are replaced
by any text, in the runs, findings and verdicts and in every row that the connection gives; what is
asked of it by name is translated back. The same campaign with harmless texts is the one to compare
with: it may differ in words alone.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from r8.claims.reader import load_claims
from r8.message import parse_reason, spelled
from r8.report.document import as_markdown, sections
from r8.report.html import page
from r8.report.words import LANGUAGES
from r8.tests.support.judged_run import judged_run
from r8.tests.support.run_factory import SyntheticRun
from r8.verdict.judge import judge_session
from r8.verdict.session import Session, open_session

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import duckdb

    from r8.evidence.reader import Evidence
    from r8.model import Claim, Verdict
    from r8.tests.support.judged_run import Tables

T = TypeVar("T")
Answers = dict[tuple[str, str], list[Any]]
_MARK = re.compile("zq[a-z]+")
BLOCKS = 2
COLD = {"zqarmpatched": 0.76, "zqarmplain": 1.9}


def marked_campaign(root: Path) -> list[Evidence]:
    """Two blocks of two arms; every name a stranger chooses is marked, the last run refused."""
    return [
        judged_run(
            root,
            SyntheticRun(
                campaign_id="zqcampaign",
                block=block,
                order=order,
                arm=arm,
                patch="patched" if "patched" in arm else "unpatched",
                kv_device="zqdevice",
                concurrency=4,
                ttft_s=tuple(cold * (1 + 0.01 * block + 0.001 * n) for n in range(4)),
                warm_ttft_s=(0.1,) * 4,
                read_s=cold,
                fallback_level="zqlevel",
                comparability={"device": "zqshaped", "zqkey": "zqvalue"},
                fatal_line="zqfatal line" if block and order else None,
                failures=block * order,
            ),
            _mark,
        )
        for block in range(BLOCKS)
        for order, (arm, cold) in enumerate(COLD.items())
    ]


def _mark(tables: Tables) -> None:
    (run,) = tables["run"]
    run |= {"site": "zqsite", "note": f"zqnote of {run['arm']}"}
    run["versions"] |= {"vllm": f"zqversion{run['arm'][-1]}", "zqengine": "0.5.0"}
    run["host"] |= {"kernel": "zqkernel", "zqfact": "x86"}
    for row in tables["residency"]:
        row["path"] = f"zqpath{row['path']}"


class Judged:
    """A session and what was said of it; no record, which a failing property would print whole."""

    def __init__(
        self,
        session: Session,
        verdicts: tuple[Verdict, ...],
        claims: tuple[Claim, ...],
        known: Answers,
    ) -> None:
        """`known` is what the session's connection answered already."""
        self.session, self.verdicts, self.claims, self._known = session, verdicts, claims, known

    def as_told(self, words: Callable[[str], str]) -> Judged:
        """The same with `words(mark)` in place of every mark."""
        swap = _Swap(words)
        asked = _Asked(self.session.connection, swap, self._known)
        session = Session(
            runs=_told(self.session.runs, swap),
            findings=_told(self.session.findings, swap),
            connection=cast("duckdb.DuckDBPyConnection", asked),
        )
        return Judged(session, _told(self.verdicts, swap), _told(self.claims, swap), {})

    def markdown(self, language: str = "en") -> str:
        """The report."""
        return as_markdown(sections(self.session, self.verdicts, self.claims, language))

    def page(self) -> str:
        """The report with charts, both languages."""
        reports = {
            one: sections(self.session, self.verdicts, self.claims, one) for one in LANGUAGES
        }
        return page(reports, self.session, self.verdicts)


def judged(evidences: list[Evidence]) -> Judged:
    """The session of these runs and their verdicts."""
    session, claims = open_session(evidences), load_claims()
    return Judged(session, judge_session(session, claims, None), claims, {})


class _Swap:
    """From marked texts to a stranger's, remembered for the way back."""

    def __init__(self, words: Callable[[str], str]) -> None:
        self._words = words
        self.back: dict[str, str] = {}

    def __call__(self, text: str) -> str:
        # Where the runs lie is this machine's to say.
        if "zq" not in text or text.startswith("/"):
            return text
        try:
            told = spelled(_told(parse_reason(text), self)) if "=" in text else ""
        except ValueError:
            told = ""
        told = told or _MARK.sub(lambda one: self._words(one[0]), text)
        self.back[told] = text
        return told


def _told(value: T, swap: _Swap) -> T:
    """A value with all its strings swapped; computed fields of records stay as they are."""
    found: Any = value
    if type(value) is str:
        found = swap(str(value))
    elif isinstance(value, Mapping):
        found = {_told(key, swap): _told(one, swap) for key, one in value.items()}
    elif isinstance(value, tuple | list):
        found = type(value)(_told(one, swap) for one in value)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        found = object.__new__(type(value))
        for field in dataclasses.fields(value):
            object.__setattr__(found, field.name, _told(getattr(value, field.name), swap))
    return cast("T", found)


class _Asked:
    """A connection that is asked and answers in a stranger's words; it asks each question once."""

    def __init__(self, connection: Any, swap: _Swap, known: Answers) -> None:
        self._connection, self._swap, self._known = connection, swap, known
        self._rows: list[Any] = []

    def execute(self, sql: Any, named: Mapping[str, object] | None = None) -> _Asked:
        """The statement, its parameters translated back."""
        back = {key: self._swap.back.get(str(one), one) for key, one in (named or {}).items()}
        question = (getattr(sql, "query", sql), repr(back))
        if question not in self._known or question[0].startswith(("CREATE", "DROP")):
            answer = self._connection.execute(sql, back) if back else self._connection.execute(sql)
            self._known[question] = answer.fetchall()
        self._rows = self._known[question]
        return self

    def fetchall(self) -> list[Any]:
        """The rows, translated."""
        return _told(self._rows, self._swap)
