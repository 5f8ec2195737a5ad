"""Every file that is made from the published figures, made again: `python -m r8.cli.published`.

Without an option it says which committed files differ from what it makes, and exits 1 if any does;
`--write` writes them. Nobody edits the made files by hand, and `nox -s audit` proves it.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from r8.audit.rules import audit
from r8.claims.ledger import load_ledger
from r8.claims.reports import load_reports
from r8.claims.table import figures_table
from r8.cli.made_files import check_or_write
from r8.crash import guarded
from r8.report.audit import as_markdown
from r8.report.published import other_page, page
from r8.report.words import LANGUAGES

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from r8.cli.made_files import Made

PARQUET = Path("data/published/figures.parquet")
AUDIT, PAGES = Path("reports/generated"), Path("reports/published")


def made_files() -> Made:
    """Path below the checkout to content, the same bytes each time."""
    ledger, reports = load_ledger(), load_reports()
    found = audit(ledger)
    texts: dict[Path, str] = {}
    for language in LANGUAGES:
        texts[AUDIT / f"audit.{language}.md"] = as_markdown(found, language)
        texts[PAGES / language / "other.md"] = other_page(ledger, reports, language)
        for one in reports.reports:
            texts[PAGES / language / f"{one}.md"] = page(ledger, reports, one, language)
    table = parquet_bytes(figures_table(ledger, reports))
    return {PARQUET: table, **{path: text.encode() for path, text in texts.items()}}


def parquet_bytes(table: pa.Table) -> bytes:
    """The table as one Parquet file: one row group, no page statistics that depend on chance."""
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd", version="2.6")
    return sink.getvalue()


def main(argv: Sequence[str] | None = None) -> int:
    """Check or write; returns 0, or 1 when files differ."""
    return check_or_write(argv, "files made from the published figures", lambda _: made_files())


if __name__ == "__main__":
    sys.exit(guarded(main, "r8.cli.published"))
