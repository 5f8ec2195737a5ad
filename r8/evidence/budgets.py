"""How much of anything a stranger's evidence may be, checked before it is read or decoded.

The biggest honest session that was measured (`nox -s bench -- data`): 72 hours on two cores, in 24
runs: 51.5 million rows of probes, 200,040 requests, 550,000 lines of engine logs, 229 MB of Parquet
that hold 870 MB before compression. Each budget fits all of it in one run, about four times.
"""

from __future__ import annotations

from dataclasses import dataclass

from r8.errors import EvidenceError

MIB, GIB = 1 << 20, 1 << 30
# Tables that stay on the disk while they are asked; the others are copied into DuckDB's memory.
WIDE_TABLES = frozenset({"probes", "chunks"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgets:
    """The most of each kind; an error names the field that was exceeded."""

    # A folder of runs: a run has ten files, a campaign some hundred runs.
    entries: int = 1_000_000
    depth: int = 16  # a run has two levels; a folder of campaigns some more
    # A run directory. Logs of engines lie in raw/, and nothing there is ever decompressed.
    files: int = 10_000
    file_bytes: int = 4 * GIB
    run_bytes: int = 16 * GIB
    manifest_bytes: int = 4 * MIB  # 10,000 lines of 400 bytes
    # run.json has 2 KB; an event's detail up to 1.3 KB, and a declared plan of 5,000 cells 100 KB.
    json_bytes: int = MIB
    json_depth: int = 32
    # stated.json of a bundle: 70 KB a run, 19 MB of 270 runs in ten blocks.
    stated_bytes: int = 32 * MIB
    # Parquet: what the footer declares. R8 writes row groups of 500,000 rows: 103 of 72 hours.
    footer_bytes: int = 16 * MIB
    row_groups: int = 4096
    rows_wide: int = 200_000_000
    rows_kept: int = 4_000_000
    # A column of a row group; the largest were readings, 4.0 MB, and lines of logs, 4.1 MB.
    chunk_bytes: int = 48 * MIB
    list_values: int = 64_000_000  # token ids: 200,040 requests of 256 tokens are 51 million
    table_bytes: int = 4 * GIB
    # What they come to: each text counted as often as it stands in a row.
    text_bytes: int = MIB  # one text; 131,072 tokens of output are half of it
    texts_wide_bytes: int = 16 * GIB  # 2.7 GB in 72 hours of probes
    texts_kept_bytes: int = GIB  # 100 MB of engine logs in 72 hours

    def require(self, budget: str, found: int, *, where: str) -> None:
        """Raise EvidenceError when `found` is more than the field named `budget` allows."""
        limit: int = getattr(self, budget)
        if found > limit:
            raise EvidenceError(
                f"more than the budget {budget} = {limit} allows: {found}",
                where=where,
                next_step="an honest run needs a quarter of it; ask its sender what this is",
            )


BUDGETS = Budgets()


def rows_budget(table: str) -> str:
    """The budget of a table's rows."""
    return "rows_wide" if table in WIDE_TABLES else "rows_kept"


def texts_budget(table: str) -> str:
    """The budget of all texts of a table together."""
    return "texts_wide_bytes" if table in WIDE_TABLES else "texts_kept_bytes"
