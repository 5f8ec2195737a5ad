"""C2 and C3: what was populated is on the device, and none of it is left in the page cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

from r8.forensics.rule import Check, missing
from r8.units import BYTES_PER_MIB, BYTES_PER_SECTOR, s_from_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from r8.forensics.case import Case

    # Path, size, resident bytes, whether the method passed its self-test, why a number is missing.
    FileRow = tuple[str, int | None, int | None, bool, str | None]

# A file system still writes its own log for a while; a chunk file under way is larger than this.
QUIET_WRITE_BYTES_MAX = BYTES_PER_MIB
# Pages that kernel readahead or a directory scan brings back; a cached chunk shows 100 %.
RESIDENT_SHARE_MAX = 0.01
# Samples must span at least so much of the interval the lab calls quiet: the first and the last
# one fall up to a tick inside it, and it may be short.
QUIET_SHARE_MIN = 0.5
# Inside the interval only: a sample before it may fall into the sync that made it quiet.
_WRITTEN = """
SELECT min(mono_ns), max(mono_ns), arg_min(value, mono_ns), arg_max(value, mono_ns)
FROM probes
WHERE run_id = $run AND probe = 'disk' AND device = $device AND counter = 'write_sectors'
  AND value IS NOT NULL AND mono_ns BETWEEN $begin_ns AND $end_ns
"""


def populate_durable(case: Case) -> list[Check]:
    """C2: expected files and bytes are there, and the device stopped writing before the drop."""
    durable = case.event("durable")
    if durable is None:
        return [missing("no `durable` event", "Nobody checked that the populate was written out.")]
    return [
        _as_expected(durable.detail, "files", "files"),
        _as_expected(durable.detail, "bytes", "B"),
        _covers_the_cell(case, durable.detail.get("bytes")),
        _writes_quiet(case, durable.mono_ns, durable.detail.get("quiet_ns")),
    ]


def _as_expected(detail: dict[str, object], key: str, unit: str) -> Check:
    found, expected = detail.get(key), detail.get(f"expected_{key}")
    if not isinstance(found, int) or not isinstance(expected, int):
        return missing(f"{key} {found} of {expected}", f"The durable event lacks {key}.")
    return Check(
        arithmetic=f"{found} {unit} written = {expected} {unit} expected",
        held=found == expected and found > 0,
        otherwise="The pool on disk is not what the sessions should have left; "
        "see the Stored lines of the engine log.",
    )


def _covers_the_cell(case: Case, found: object) -> Check:
    need = case.run.expectation.hit_bytes
    if not isinstance(found, int):
        return missing("size of the pool not known", "The durable event lacks bytes.")
    return Check(
        arithmetic=f"pool {found} B >= {need} B of the measured sessions",
        held=found >= need,
        otherwise="The measured sessions cannot all be on disk.",
    )


def _writes_quiet(case: Case, durable_ns: int, quiet_ns: object) -> Check:
    drop = case.event("drop_begin")
    if drop is None or not isinstance(quiet_ns, int) or quiet_ns <= 0:
        return missing("no quiet interval before a drop", "Events drop_begin or quiet_ns missing.")
    device, begin_ns = case.run.kv_device, durable_ns - quiet_ns
    rows = case.rows(_WRITTEN, device=device, begin_ns=begin_ns, end_ns=drop.mono_ns)
    first_ns, last_ns, first, last = rows[0]
    if first_ns is None or last_ns - first_ns < QUIET_SHARE_MIN * quiet_ns:
        line = f"{device}: write counter not sampled for {s_from_ns(quiet_ns):.1f} s before drop"
        return missing(line, "The disk probe is silent there.")
    written = (last - first) * BYTES_PER_SECTOR
    return Check(
        arithmetic=f"{device} wrote {written} B <= {QUIET_WRITE_BYTES_MAX} B in the last "
        f"{s_from_ns(last_ns - first_ns):.1f} s before the drop",
        held=0 <= written <= QUIET_WRITE_BYTES_MAX,
        otherwise="The populate was still being written when the cache was dropped: "
        "dirty pages survive a drop.",
    )


def dropped_and_cold(case: Case) -> list[Check]:
    """C3: the drop ran and returned 0, and afterwards no KV file is in the page cache."""
    drop = case.event("drop_end")
    if drop is None:
        checks = [missing("no drop", "The page cache was never dropped: the reads may be warm.")]
        return [*checks, *_residency(case, "after_drop", 0)]
    code = drop.detail.get("rc")
    ran = Check(
        arithmetic=f"drop returned {code}",
        held=code == 0 if isinstance(code, int) else None,
        otherwise=f"The drop failed: {drop.detail.get('error') or drop.detail.get('command')}.",
    )
    return [ran, *_residency(case, "after_drop", drop.mono_ns)]


def _cold_phase(case: Case) -> str:
    """The phase that reads cold: what was written is read back after it was measured."""
    work = case.run.work
    return "readback" if work is not None and work.moves == "write" else "measure"


def _residency(case: Case, moment: str, since_ns: int) -> list[Check]:
    measure = case.event(f"{_cold_phase(case)}_begin")
    rows = files_at(case, moment, since_ns, measure.mono_ns if measure else since_ns)
    if not rows:
        return [
            missing("residency between drop and measurement not known", "No residency rows there.")
        ]
    return [_file_count(case, len(rows)), _self_test(rows), resident(rows)]


def files_at(case: Case, moment: str, since_ns: int, until_ns: int) -> list[FileRow]:
    """What was seen of every KV file at a moment inside an interval."""
    return case.rows(
        "SELECT path, size_bytes, resident_bytes, coalesce(self_test, false), reason "
        "FROM residency WHERE run_id = $run AND moment = $moment "
        "AND mono_ns BETWEEN $since_ns AND $until_ns ORDER BY path",
        moment=moment,
        since_ns=since_ns,
        until_ns=until_ns,
    )


def _file_count(case: Case, count: int) -> Check:
    durable = case.event("durable")
    expected = durable.detail.get("expected_files") if durable else None
    return Check(
        arithmetic=f"{count} files looked at = {expected} expected",
        held=count == expected if isinstance(expected, int) else None,
        otherwise="Not every KV file was looked at.",
    )


def _self_test(rows: Sequence[FileRow]) -> Check:
    passed = sum(row[3] for row in rows)
    return Check(
        arithmetic=f"self-test of the method true for {passed} of {len(rows)}",
        held=True if passed == len(rows) else None,
        otherwise="The method did not see an evicted file as evicted: "
        "residency must be read by the files' owner or root.",
    )


def _without_model(path: str) -> str:
    """A KV file's name from its key on: LMCache puts the model's path before it."""
    model, at, key = path.partition("@")
    return f"*{at}{key}" if at else model


def resident(rows: Sequence[FileRow]) -> Check:
    """C3's number: no file more than a little resident. The warm control must fail it."""
    known = [(path, size, res) for path, size, res, _, _ in rows if size and res is not None]
    warm = [(path, res / size) for path, size, res in known if res > RESIDENT_SHARE_MAX * size]
    cached = sum(res for _, _, res in known)
    total = sum(size for _, size, _ in known)
    worst = max(warm, key=lambda item: item[1], default=None)
    reason = next((row[4] for row in rows if row[4]), "size or residency is absent")
    line = (
        f"{len(warm)} of {len(known)} files above {RESIDENT_SHARE_MAX:.0%} resident, "
        f"{cached} of {total} B in the page cache"
    )
    if worst:
        line += f", most {_without_model(worst[0])} at {worst[1]:.0%}"
    if len(known) < len(rows):
        line += f", {len(rows) - len(known)} files not known ({reason})"
    held = False if warm else (True if len(known) == len(rows) else None)
    return Check(
        arithmetic=line,
        held=held,
        otherwise="KV files are still in the page cache: the drop did not reach this file system.",
    )
