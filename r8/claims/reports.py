"""What is known of the reports beyond their figures: `data/published/reports.toml`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from r8.claims.document import bad_document, read_document
from r8.errors import UsageError
from r8.resources import published_path
from r8.roles import Role

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

REPORTS = "reports.toml"
FORMAT = 2
Texts = dict[str, str]  # language -> text, empty where the pages do not say it


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page as it was fetched."""

    file: str
    url: str
    language: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One report; an empty text means that the pages do not say it."""

    report_id: str
    date: str
    platform: str
    topology: Texts  # instances and how the array is reached
    pages: tuple[Page, ...]
    organisation: str  # the tester a third-party report names
    raw_data: str  # "published" when anybody can fetch the rows behind the figures
    third_party: Texts  # who else reports it
    reproduction: Texts  # what there is to repeat it with
    about: Texts  # what it is about, in our own words


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedArm:
    """An arm of the figures: what R8's runs call it, and what it is in the comparison."""

    run: str
    role: Role


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedScenario:
    """A scenario as the pages have it, and how R8's own runs meet it."""

    baseline: Texts  # what comparisons are made against
    comparability: Mapping[str, str] = field(default_factory=dict)  # keys of absolute values
    arms: Mapping[str, PublishedArm] = field(default_factory=dict)  # by the arm of the figures
    level: str = ""  # level of figures that print one size of the machine and no level
    judged_by: str = ""  # the claims file of figures that no formula turns into a measure


@dataclass(frozen=True, slots=True, kw_only=True)
class Reports:
    """All reports, and the scenarios of their figures."""

    reports: Mapping[str, Report]
    scenarios: Mapping[str, PublishedScenario]

    def report(self, report_id: str) -> Report:
        """One report; raises UsageError naming the known ones."""
        if report_id not in self.reports:
            raise UsageError(
                f"no report {report_id!r}",
                where=REPORTS,
                next_step=f"choose one of {', '.join(self.reports)}",
            )
        return self.reports[report_id]


def load_reports(path: Path | None = None) -> Reports:
    """Read the file; raises UsageError when it is not what this R8 knows."""
    path = published_path(REPORTS) if path is None else path
    document = read_document(path, FORMAT)
    try:
        pages = {table["file"]: Page(**table) for table in document["page"]}
        return Reports(
            reports={table["report_id"]: _report(table, pages) for table in document["report"]},
            scenarios={table.pop("scenario"): _scenario(table) for table in document["scenario"]},
        )
    except (ValueError, KeyError, TypeError) as error:
        raise bad_document(path, f"the reports cannot be read: {error}") from error


def _report(table: dict[str, Any], pages: Mapping[str, Page]) -> Report:
    return Report(**table | {"pages": tuple(pages[name] for name in table["pages"])})


def _scenario(table: dict[str, Any]) -> PublishedScenario:
    arms = {
        name: PublishedArm(run=run, role=Role(role))
        for name, (run, role) in table.pop("arms", {}).items()
    }
    return PublishedScenario(**table, arms=arms)
