"""C2 and C3: what was populated is on the device, and none of it is left in the page cache."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from r8.forensics import transfer
from r8.forensics.rule import Rule
from r8.message import Check, Fact, compared, missing
from r8.units import BYTES_PER_MIB

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


def populate_durable(case: Case) -> list[Check]:
    """C2: expected files and bytes are there, and the device stopped writing before the drop."""
    durable = case.event("durable")
    if durable is None:
        return [missing("durable", "c2-not-durable")]
    return [
        _as_expected(durable.detail, "files", "c2-files-written"),
        _as_expected(durable.detail, "bytes", "c2-bytes-written"),
        _covers_the_cell(case, durable.detail.get("bytes")),
        _writes_quiet(case, durable.mono_ns, durable.detail.get("quiet_ns")),
    ]


def _as_expected(detail: dict[str, object], key: str, message: str) -> Check:
    found, expected = detail.get(key), detail.get(f"expected_{key}")
    quantity = f"pool_{key}"
    if not isinstance(found, int) or not isinstance(expected, int):
        return missing(quantity, "c2-pool-unknown", key=key)
    if not found:
        return compared(quantity, (found, ">", 0), "c2-pool-empty", unit=key)
    return compared(quantity, (found, "==", expected), message, unit=key)


def _covers_the_cell(case: Case, found: object) -> Check:
    if not isinstance(found, int):
        return missing("pool_bytes", "c2-pool-unknown", key="bytes")
    return compared(
        "pool_bytes", (found, ">=", case.run.expected_bytes), "c2-covers-the-cell", unit="bytes"
    )


def _writes_quiet(case: Case, durable_ns: int, quiet_ns: object) -> Check:
    quantity, device = "written_before_drop_bytes", case.run.kv_device
    drop = case.event("drop_begin")
    if drop is None or not isinstance(quiet_ns, int) or quiet_ns <= 0:
        return missing(quantity, "c2-no-quiet-interval")
    rows = case.rows(
        "SELECT span_ns, write_bytes FROM quiet_writes($quiet_ns, $durable_ns, $drop_ns) "
        "WHERE run_id = $run AND host = $host AND device = $device",
        host=case.run.kv_host,
        device=device,
        quiet_ns=quiet_ns,
        durable_ns=durable_ns,
        drop_ns=drop.mono_ns,
    )
    span_ns, written = rows[0] if len(rows) == 1 else (0, None)
    if span_ns < QUIET_SHARE_MIN * quiet_ns:
        return missing(quantity, "c2-writes-not-sampled", device=device, quiet_ns=quiet_ns)
    return compared(
        quantity,
        (written, "within", (0, QUIET_WRITE_BYTES_MAX)),
        "c2-writes-quiet",
        unit="bytes",
        facts={"device": device, "span_ns": span_ns},
    )


def dropped_and_cold(case: Case) -> list[Check]:
    """C3: the drop ran and returned 0, and afterwards no KV file is in the page cache."""
    drop = case.event("drop_end")
    if drop is None:
        return [missing("drop_rc", "c3-no-drop"), *_residency(case, 0)]
    code = drop.detail.get("rc")
    ran = compared(
        "drop_rc",
        (code if isinstance(code, int) else None, "==", 0),
        "c3-drop",
        facts={"error": str(drop.detail.get("error") or drop.detail.get("command"))},
    )
    return [ran, *_residency(case, drop.mono_ns)]


def _residency(case: Case, since_ns: int) -> list[Check]:
    # What was written is read back after it was measured: that is the phase that reads cold.
    measure = case.event("readback_begin" if transfer.writes(case) else "measure_begin")
    until_ns = measure.mono_ns if measure else since_ns
    seen = files_at(case, "after_drop", since_ns, until_ns)
    if not seen.rows:
        return [missing("resident_files", "c3-residency-not-read")]
    return [_file_count(case, len(seen.rows)), _self_test(seen), resident(seen)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """What was seen of every KV file at a moment; sums are over files that are known."""

    rows: Sequence[FileRow]
    tested: int  # whose method passed its self-test
    size_bytes: int
    cached_bytes: int


def files_at(case: Case, moment: str, since_ns: int, until_ns: int) -> Files:
    """What was seen of every KV file at a moment inside an interval."""
    named = {"moment": moment, "since_ns": since_ns, "until_ns": until_ns}
    rows = case.rows(
        "FROM residency_at($run, $moment, $since_ns, $until_ns) ORDER BY path", **named
    )
    ((tested, size_bytes, cached_bytes),) = case.rows(
        "SELECT n_tested, coalesce(size_bytes, 0), coalesce(resident_bytes, 0) "
        "FROM residency_sums($run, $moment, $since_ns, $until_ns)",
        **named,
    )
    return Files(rows=rows, tested=tested, size_bytes=size_bytes, cached_bytes=cached_bytes)


def _file_count(case: Case, count: int) -> Check:
    durable = case.event("durable")
    expected = durable.detail.get("expected_files") if durable else None
    return compared(
        "files_looked_at",
        (count, "==", expected if isinstance(expected, int) else None),
        "c3-files-looked-at",
        unit="files",
    )


def _self_test(seen: Files) -> Check:
    """A method that fails its own test has measured nothing."""
    return compared(
        "files_self_tested",
        (seen.tested if seen.tested == len(seen.rows) else None, "==", len(seen.rows)),
        "c3-self-test",
        unit="files",
        facts={"passed": seen.tested},
    )


def _without_model(path: str) -> str:
    """A KV file's name from its key on: LMCache puts the model's path before it."""
    model, at, key = path.partition("@")
    return f"*{at}{key}" if at else model


def resident(seen: Files) -> Check:
    """C3's number: no file more than a little resident. The warm control must fail it."""
    rows = seen.rows
    known = [(path, size, res) for path, size, res, _, _ in rows if size and res is not None]
    warm = sum(res > RESIDENT_SHARE_MAX * size for _, size, res in known)
    lost = len(rows) - len(known)
    worst = max(known, key=lambda one: one[2] / one[1], default=None)
    facts: dict[str, Fact] = {
        "known": len(known),
        "most_share": RESIDENT_SHARE_MAX,
        "cached_bytes": seen.cached_bytes,
        "size_bytes": seen.size_bytes,
        "worst": _without_model(worst[0]) if worst else "",
        "worst_share": worst[2] / worst[1] if worst else None,
        "lost": lost,
        "reason": next((row[4] for row in rows if row[4]), ""),
    }
    return compared(
        "resident_files",
        (warm if warm or not lost else None, "==", 0),
        "c3-resident" if warm or not lost else "c3-residency-unknown",
        unit="files",
        facts=facts,
    )


C2 = Rule(
    rule_id="C2",
    checks=populate_durable,
    thresholds={"written_bytes": QUIET_WRITE_BYTES_MAX, "sampled_share": QUIET_SHARE_MIN},
    of_device=True,
    of_kv=True,
)
C3 = Rule(
    rule_id="C3",
    checks=dropped_and_cold,
    thresholds={"most_share": RESIDENT_SHARE_MAX},
    of_kv=True,
)
