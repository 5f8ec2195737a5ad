"""The five checks, answered from the ledger; each answer can be the other one."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest

from r8.audit.checklist import ChecklistItem, Status, checklist
from r8.claims.ledger import load_ledger
from r8.claims.reports import Reports, load_reports
from r8.cli import main as cli
from r8.errors import UsageError
from r8.report.audit import checklist_markdown
from r8.report.words import LANGUAGES

if TYPE_CHECKING:
    from r8.claims.ledger import Ledger

LEDGER, REPORTS = load_ledger(), load_reports()


CHECKS = ("baseline", "platform", "deviation", "third-party", "material")


def answers(
    report: str, ledger: Ledger = LEDGER, reports: Reports = REPORTS
) -> dict[str, ChecklistItem]:
    found = checklist(ledger, reports, report)
    return {one.check.message.removeprefix("checklist-"): one for one in found}


def text_of(items: list[ChecklistItem], report: str) -> str:
    return checklist_markdown(items, REPORTS, report, "en")


def test_r2_states_baseline_and_platform_and_no_deviation() -> None:
    found = answers("R2")
    assert tuple(found) == CHECKS
    assert found["baseline"].status is Status.STATED
    assert found["platform"].status is Status.STATED
    assert found["deviation"].status is Status.NOT_PUBLISHED
    assert found["third-party"].status is Status.PARTLY
    assert found["material"].status is Status.PARTLY


def test_r1_names_some_baselines_and_publishes_some_readings() -> None:
    found = answers("R1")
    assert found["baseline"].status is Status.PARTLY
    text = text_of(list(found.values()), "R1")
    assert "r1-checkpoint: what it is compared with is not published" in text
    assert "r1.load.single (30%)" in text
    assert found["third-party"].status is Status.NOT_PUBLISHED


def test_r3_states_a_deviation_that_its_own_pairs_do_not_all_keep() -> None:
    found = answers("R3")["deviation"]
    assert found.status is Status.PARTLY
    text = text_of([found], "R3")
    # 9 cells: throughput and TTFT; peak and busy mean of the 7 that read a disk.
    assert (
        "32 printed pairs: 25 keep it under either denominator, 4 under neither, 3 depend" in text
    )


def test_a_deviation_that_every_pair_keeps_is_stated() -> None:
    stated = replace(LEDGER.figures["r3.deviation"], value=Fraction(50))
    wide = replace(LEDGER, figures={**LEDGER.figures, "r3.deviation": stated})
    assert answers("R3", wide)["deviation"].status is Status.STATED


def test_a_deviation_without_pairs_is_not_supported() -> None:
    alone = replace(LEDGER, relations=tuple(r for r in LEDGER.relations if r.kind != "pair"))
    assert answers("R3", alone)["deviation"].status is Status.PARTLY


def with_report(**changes: object) -> Reports:
    changed = replace(REPORTS.reports["R2"], **changes)  # type: ignore[arg-type]
    return replace(REPORTS, reports={**REPORTS.reports, "R2": changed})


def test_a_named_tester_and_published_rows_are_stated() -> None:
    found = answers("R2", reports=with_report(organisation="A laboratory", raw_data="published"))
    assert found["third-party"].status is Status.STATED
    assert found["material"].status is Status.STATED


@pytest.mark.parametrize(
    ("changes", "check", "status"),
    [
        ({"topology": {"en": "", "zh": ""}}, "platform", Status.PARTLY),
        ({"topology": {"en": "", "zh": ""}, "platform": ""}, "platform", Status.NOT_PUBLISHED),
        ({"third_party": {"en": "", "zh": ""}}, "third-party", Status.NOT_PUBLISHED),
        ({"reproduction": {"en": "", "zh": ""}}, "material", Status.NOT_PUBLISHED),
    ],
)
def test_what_is_not_on_the_pages_is_not_stated(
    changes: dict[str, object], check: str, status: Status
) -> None:
    assert answers("R2", reports=with_report(**changes))[check].status is status


def test_a_report_without_baselines_publishes_none() -> None:
    bare = replace(REPORTS, scenarios={})
    assert answers("R2", reports=bare)["baseline"].status is Status.NOT_PUBLISHED


@pytest.mark.parametrize("report", list(REPORTS.reports))
def test_every_report_is_answered_in_both_languages(report: str) -> None:
    found = checklist(LEDGER, REPORTS, report)
    texts = [checklist_markdown(found, REPORTS, report, language) for language in LANGUAGES]
    assert texts[0] != texts[1]
    assert all(text.count("- **") == 5 for text in texts)


def test_the_command_answers_and_refuses(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["checklist", "R2", "--lang", "zh"]) == 0
    assert "对照基线" in capsys.readouterr().out
    assert cli.main(["checklist", "R99"]) == 4
    assert capsys.readouterr().err.count("\n") == 1
    with pytest.raises(UsageError):
        checklist(LEDGER, REPORTS, "R99")
