"""Device, process and engine byte metrics, each against a case computed by hand."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

import pytest

from r8.evidence.database import connect
from r8.evidence.finalise import finalise
from r8.evidence.reader import read_run, read_runs
from r8.forensics.certificate import connect_settled
from r8.metrics.measure import measure, pick
from r8.tests.support.metric_case import S, metric, only, sample
from r8.tests.support.run_factory import MIB, Row, SyntheticRun, build_partial, build_run
from r8.tests.support.run_factory_rows import MEASURE_BEGIN, measure_end

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from r8.model import Measurement

HIT_BYTES = 4 * 4 * 2 * MIB  # 4 sessions of 1025 tokens: 4 chunks of 2 MiB each
# The measure phase of the default synthetic run: 4 s of reading, 4.25 s answers, 0.5 s to spare.
END = measure_end(SyntheticRun())


def test_device_bytes_lie_between_the_samples_that_enclose_the_phase(tmp_path: Path) -> None:
    probes = only(
        sample(MEASURE_BEGIN - 2 * S, 0),
        sample(MEASURE_BEGIN - S, 100),  # the last at or before the begin
        sample(MEASURE_BEGIN + S, 300),
        sample(END, 1100),  # the first at or after the end
        sample(END + S, 9999),
    )
    found = metric(tmp_path, SyntheticRun(), "device_read_bytes", probes=probes)
    assert (found.value, found.unit, found.n) == (1000 * 512, "bytes", 3)


def test_a_counter_that_began_anew_long_before_a_phase_is_whole_in_it(tmp_path: Path) -> None:
    probes = only(
        sample(MEASURE_BEGIN - 200 * S, 900),
        sample(MEASURE_BEGIN - 100 * S, 5, epoch=1),
        sample(MEASURE_BEGIN - S, 100, epoch=1),
        sample(END, 1100, epoch=1),
        sample(END + 100 * S, 3, epoch=2),
    )
    found = metric(tmp_path, SyntheticRun(), "device_read_bytes", probes=probes)
    assert (found.value, found.reason) == (1000 * 512, None)


@pytest.mark.parametrize(
    ("samples", "reason"),
    [
        ([], "no_samples_around"),
        ([sample(END, 1)], "no_sample_before"),
        ([sample(MEASURE_BEGIN, 1)], "no_sample_after"),
        (
            [sample(MEASURE_BEGIN, 5), sample(END, 3)],
            "counter_regressed",
        ),
        (
            [sample(MEASURE_BEGIN, 5), sample(END, 9, epoch=1)],
            "counter_regressed",
        ),
        (
            [sample(at, 1, host="another") for at in (MEASURE_BEGIN, END)],
            "no_samples_around",
        ),
        (
            [sample(MEASURE_BEGIN, 5), sample(END, None, reason="denied")],
            "no_sample_after",
        ),
    ],
)
def test_device_bytes_that_cannot_be_known_have_a_reason(
    tmp_path: Path, samples: list[Row], reason: str
) -> None:
    probes = only(*samples)
    for name, statistic in (("device_read_bytes", ""), ("device_read_bandwidth", "mean")):
        root = tmp_path / name
        found = metric(root, SyntheticRun(), name, statistic, probes=probes)
        assert (found.value, found.reason) == (None, reason)


def test_devices_of_one_name_on_two_hosts_are_told_apart(tmp_path: Path) -> None:
    def also_there(rows: list[Row]) -> list[Row]:
        return rows + [{**row, "host": "another"} for row in rows if row["probe"] == "disk"]

    spec = SyntheticRun(other_device_read_bytes=MIB)
    names = ("device_read_bytes", "other_kv_device_read_bytes", "non_kv_read_bytes")
    alone = [metric(tmp_path / f"{name}-1", spec, name).value for name in names]
    beside = [metric(tmp_path / f"{name}-2", spec, name, probes=also_there).value for name in names]
    assert alone == [HIT_BYTES, MIB, 0]
    # No KV of this run lies on the other host, whatever its devices are called.
    assert beside == [HIT_BYTES, MIB, HIT_BYTES + MIB]


def test_a_phase_that_happened_twice_is_refused(tmp_path: Path) -> None:
    def twice(rows: list[Row]) -> list[Row]:
        marks = [row for row in rows if row["name"].startswith("measure_")]
        return rows + [{**row, "mono_ns": row["mono_ns"] + 10 * S} for row in marks]

    found = metric(tmp_path, SyntheticRun(), "device_read_bytes", events=twice)
    assert (found.value, found.reason) == (None, "phase_not_unique n=2")


def process(device: str, at: int, value: int) -> Row:
    row = sample(at, value, probe="process", device=device, counter="read_bytes")
    return {**row, "device": device}


def processes(*rows: Row) -> Callable[[list[Row]], list[Row]]:
    return lambda old: [row for row in old if row["probe"] != "process"] + list(rows)


def test_process_bytes_sum_over_the_engines_tree(tmp_path: Path) -> None:
    inside = MEASURE_BEGIN + S
    probes = processes(
        process("a:1:10", MEASURE_BEGIN - S, 500),
        process("a:1:10", END + S, 1500),
        process("a:2:11", inside, 30),  # born inside the phase: counts from 0
        process("a:2:11", END + S, 70),
        process("a:3:12", MEASURE_BEGIN - 3 * S, 10**9),  # ended long before
        process("a:4:13", END + 2 * S, 10**9),  # born after
    )
    found = metric(tmp_path, SyntheticRun(), "process_read_bytes", probes=probes)
    assert (found.value, found.n) == (1070, 2)


@pytest.mark.parametrize(
    ("born_ns", "ended_ns", "value", "reason"),
    [
        (END, MEASURE_BEGIN - 1, 1030, None),
        (END + 1, MEASURE_BEGIN - 1, 1000, None),  # neither had a part in the phase
        (END + 1, MEASURE_BEGIN, None, "process_ended_inside on=a:3:12"),
    ],
)
def test_a_process_has_a_part_in_a_phase_from_its_first_to_its_last_instant(
    tmp_path: Path, born_ns: int, ended_ns: int, value: int | None, reason: str | None
) -> None:
    probes = processes(
        process("a:1:10", MEASURE_BEGIN - S, 500),
        process("a:1:10", END + S, 1500),
        process("a:2:11", born_ns, 30),
        process("a:3:12", ended_ns, 7),
    )
    found = metric(tmp_path, SyntheticRun(), "process_read_bytes", probes=probes)
    assert (found.value, found.reason) == (value, reason)


def test_a_process_that_ended_inside_the_phase_is_not_guessed(tmp_path: Path) -> None:
    probes = processes(
        process("a:1:10", MEASURE_BEGIN - S, 500),
        process("a:1:10", MEASURE_BEGIN + S, 900),
    )
    found = metric(tmp_path, SyntheticRun(), "process_read_bytes", probes=probes)
    assert (found.value, found.reason) == (None, "process_ended_inside on=a:1:10")


LOST = "lost:its parent is not in the tree"


@pytest.mark.parametrize(
    ("account", "root", "read_bytes"),
    [
        ("folded:a:1:10", {}, 1000 + 400 + 30),
        (LOST, {"reaps_orphans": True}, 1000 + 400 + 30),
        (LOST, {"reaps_orphans": False}, None),
        (LOST, {}, None),
        ("lost:a:1:10 ignores SIGCHLD", {"reaps_orphans": True}, None),
    ],
)
def test_a_process_that_was_waited_for_is_in_its_parents_bytes(
    tmp_path: Path, account: str, root: dict[str, bool], read_bytes: int | None
) -> None:
    """The parent read 1000 B itself; a child 900 B, 500 of them before the phase; another 30 B."""

    def ended(device: str, word: str) -> Row:
        row = sample(MEASURE_BEGIN + 2 * S, 1, probe="process", counter="exited")
        return {**row, "device": device, "text": word}

    probes = processes(
        process("a:1:10", MEASURE_BEGIN - S, 500),
        process("a:1:10", END + S, 500 + 1000 + 900 + 30),
        process("a:2:11", MEASURE_BEGIN - S, 500),
        process("a:2:11", MEASURE_BEGIN + S, 900),
        process("a:3:12", MEASURE_BEGIN + S, 30),
        ended("a:2:11", account),
        ended("a:3:12", "folded:a:1:10"),
    )
    detail = json.dumps({"worker": "a", **root})
    started = {"name": "worker_started", "mono_ns": 1, "wall_ns": 1, "detail": detail}
    found = metric(
        tmp_path,
        SyntheticRun(),
        "process_read_bytes",
        probes=probes,
        events=lambda rows: [started, *rows],
    )
    reason = None if read_bytes else "process_ended_inside on=a:2:11"
    assert (found.value, found.reason) == (read_bytes, reason)


CASES: list[tuple[SyntheticRun, str, int | None, str | None]] = [
    (SyntheticRun(), "device_read_bytes", HIT_BYTES, None),
    (SyntheticRun(), "process_read_bytes", HIT_BYTES, None),
    (SyntheticRun(system_read_bytes=7 * MIB), "process_read_bytes", HIT_BYTES + 7 * MIB, None),
    (SyntheticRun(system_read_bytes=7 * MIB), "non_kv_read_bytes", 7 * MIB, None),
    (SyntheticRun(), "non_kv_read_bytes", 0, None),
    (SyntheticRun(other_device_read_bytes=MIB), "other_kv_device_read_bytes", MIB, None),
    (
        SyntheticRun(other_kv_devices=("loop1", "loop2"), other_device_read_bytes=MIB),
        "other_kv_device_read_bytes",
        2 * MIB,
        None,
    ),
    (
        SyntheticRun(other_kv_devices=()),
        "other_kv_device_read_bytes",
        None,
        "no_other_kv_device",
    ),
    (SyntheticRun(), "member_read_bytes", None, "no_members"),
    (
        SyntheticRun(kv_device="md0", kv_members=("nvme0n1", "nvme1n1")),
        "member_read_bytes",
        HIT_BYTES,
        None,
    ),
    (
        SyntheticRun(kv_device="md0", kv_members=("nvme0n1", "nvme1n1")),
        "non_kv_read_bytes",
        0,
        None,
    ),
    (SyntheticRun(), "engine_hit_bytes", HIT_BYTES, None),
    (SyntheticRun(hit_tokens=512), "engine_hit_bytes", 4 * 2 * 2 * MIB, None),
    (
        SyntheticRun(hit_tokens=None),
        "engine_hit_bytes",
        None,
        "requests_without_lookup n=4 of=4",
    ),
    (
        SyntheticRun(failures=1),
        "engine_hit_bytes",
        None,
        "requests_without_lookup n=1 of=4",
    ),
    (SyntheticRun(), "patch_read_bytes", HIT_BYTES, None),
    (SyntheticRun(patch_reads=False), "patch_read_bytes", 0, None),
    (
        SyntheticRun(arm="unpatched"),
        "patch_read_bytes",
        None,
        "patch_not_loaded",
    ),
]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Measurement]:
    """The metric of every case, all computed at once over runs of campaigns of their own."""
    root = tmp_path_factory.mktemp("cases")
    specs = [dataclasses.replace(case[0], campaign_id=str(i)) for i, case in enumerate(CASES)]
    found = measure(read_runs([build_run(root, spec) for spec in specs]))
    names = [case[1] for case in CASES]
    return {
        spec.campaign_id: pick(found, run_id=spec.name, metric=name)
        for spec, name in zip(specs, names, strict=True)
    }


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda i: f"{CASES[i][1]}-{i}")
def test_bytes_of_a_run(measured: dict[str, Measurement], number: int) -> None:
    _, _, value, reason = CASES[number]
    found = measured[str(number)]
    assert (found.value, found.reason, found.unit) == (value, reason, "bytes")


def test_another_kv_device_without_samples_is_not_taken_for_idle(tmp_path: Path) -> None:
    def blind(rows: list[Row]) -> list[Row]:
        return [row for row in rows if row["device"] != "loop1"]

    found = metric(tmp_path, SyntheticRun(), "other_kv_device_read_bytes", probes=blind)
    assert (found.value, found.reason) == (None, "no_samples_around on=loop1")


def test_warm_reads_of_the_device_are_a_metric_of_their_own(tmp_path: Path) -> None:
    assert metric(tmp_path, SyntheticRun(), "device_read_bytes", phase="warm").value == 0


def test_log_lines_join_their_own_request_and_no_longer_id(tmp_path: Path) -> None:
    # cmpl-measure-1 is a prefix of cmpl-measure-10 and -11, whose requests hit more.
    partial = build_partial(tmp_path, SyntheticRun(ttft_s=(1.0,) * 12))
    log = partial / "raw" / "server-a.log"
    text = log.read_text()
    for session in ("1", "11"):
        text = text.replace(
            f"Reqid: cmpl-measure-{session}-0-a1b2c3d4, Total tokens 1025, Inference Engine "
            "computed tokens: 0, LMCache hit tokens: 1024",
            f"Reqid: cmpl-measure-{session}-0-a1b2c3d4, Total tokens 1025, Inference Engine "
            f"computed tokens: 0, LMCache hit tokens: {256 * int(session)}",
        )
    log.write_text(text)
    with connect([read_run(finalise(partial, complete=True))]) as connection:
        rows = connection.execute(
            "SELECT session, n_lookups, hit_tokens FROM engine_requests "
            "WHERE phase = 'measure' AND session IN (1, 10, 11) ORDER BY session"
        ).fetchall()
    assert rows == [(1, 1, 256), (10, 1, 1024), (11, 1, 2816)]


def test_patch_reads_of_the_async_path_belong_to_the_lookup_that_follows(tmp_path: Path) -> None:
    partial = build_partial(tmp_path, SyntheticRun(ttft_s=(1.0,), warm_ttft_s=(0.5,)))
    log = partial / "raw" / "server-a.log"
    lines = log.read_text().splitlines(keepends=True)
    moved: list[str] = []
    for line in lines:
        if "R8-PATCH read" in line:  # the read is logged before the lookup's answer
            moved.insert(-1, line.replace("path=sync", "path=async"))
        else:
            moved.append(line)
    log.write_text("".join(moved))
    with connect([read_run(finalise(partial, complete=True))]) as connection:
        rows = connection.execute("SELECT phase FROM patch_reads ORDER BY line").fetchall()
    assert rows == [("measure",), ("warm",), ("control",)]


def test_the_balance_puts_a_runs_bytes_side_by_side(tmp_path: Path) -> None:
    evidence = read_run(build_run(tmp_path, SyntheticRun(system_read_bytes=MIB)))
    with connect_settled([evidence]) as connection:
        cursor = connection.execute(
            "SELECT * EXCLUDE (campaign_id, arm, level, block) FROM balance"
        )
        names = [column[0] for column in cursor.description]
        (row,) = cursor.fetchall()
    assert dict(zip(names, row, strict=True)) == {
        "run_id": evidence.run.run_id,
        "expected_bytes": evidence.run.expected_bytes,
        "engine_hit_bytes": HIT_BYTES,
        "device_read_bytes": HIT_BYTES,
        "member_read_bytes": None,
        "process_read_bytes": HIT_BYTES + MIB,
        "patch_read_bytes": HIT_BYTES,
        "other_kv_device_read_bytes": 0,
        "non_kv_read_bytes": MIB,
        "process_excess_bytes": MIB,
        "uncovered_hit_bytes": 0,
        "elsewhere_read_bytes": 0,
    }
