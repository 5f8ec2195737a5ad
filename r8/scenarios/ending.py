"""What every scenario leaves behind for a reader."""

from __future__ import annotations

from typing import TYPE_CHECKING

from r8.claims.reader import load_claims
from r8.report.document import report

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from r8.evidence.reader import Evidence
    from r8.scenarios.conftest import Session


def write_report(session: Session, runs: Sequence[Evidence], scenario: str) -> Path:
    """Write the Markdown report beside the run directories; returns where."""
    campaign = runs[0].run.campaign_id
    path = session.run_paths[0].parent / f"{campaign}.md"
    path.write_text(report(runs, load_claims(scenario)))
    return path
