"""What is known of the reports beyond their figures: `data/published/reports.toml`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from r8.errors import UsageError
from r8.resources import published_path

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

REPORTS = "reports.toml"
FORMAT = 1


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
    topology: Mapping[str, str]  # language -> instances and how the array is reached
    pages: tuple[Page, ...]
    organisation: str  # the tester a third-party report names
    raw_data: str  # "published" when anybody can fetch the rows behind the figures
    third_party: Mapping[str, str]  # language -> who else reports it
    reproduction: Mapping[str, str]  # language -> what there is to repeat it with
    about: Mapping[str, str]  # language -> what it is about, in our own words


@dataclass(frozen=True, slots=True, kw_only=True)
class Reports:
    """All reports, the baselines of their scenarios, and the keys absolute values need."""

    reports: Mapping[str, Report]
    baselines: Mapping[str, Mapping[str, str]]  # scenario -> language -> text
    comparability: Mapping[str, Mapping[str, str]]  # scenario -> key -> value

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
    try:
        document = _document(path)
        pages = {table["file"]: Page(**table) for table in document["page"]}
        return Reports(
            reports={table["id"]: _report(table, pages) for table in document["report"]},
            baselines={
                table["scenario"]: {"en": table["en"], "zh": table["zh"]}
                for table in document["baseline"]
            },
            comparability={
                table["scenario"]: {key: value for key, value in table.items() if key != "scenario"}
                for table in document["comparability"]
            },
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"the reports cannot be read: {error}", where=str(path), next_step="correct the file"
        ) from error


def _document(path: Path) -> dict[str, Any]:
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    if document.get("format") != FORMAT:
        raise ValueError(f"format {document.get('format')!r}, this R8 reads {FORMAT}")
    return document


def _report(table: dict[str, Any], pages: Mapping[str, Page]) -> Report:
    return Report(
        report_id=table["id"],
        date=table["date"],
        platform=table["platform"],
        topology=table["topology"],
        pages=tuple(pages[name] for name in table["pages"]),
        organisation=table["organisation"],
        raw_data=table["raw_data"],
        third_party=table["third_party"],
        reproduction=table["reproduction"],
        about={"en": table["en"], "zh": table["zh"]},
    )
