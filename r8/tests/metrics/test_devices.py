"""Counters of block devices: an NVMe multipath head that counts nothing has its paths' counters.

Kernels before 6.2 leave a head's own counters at 0. Whatever asks for its bytes, metric, rule or
timeline, must get what it gets from a head that counts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from r8.evidence.database import add_views
from r8.forensics.certificate import certify, connect_settled
from r8.tests.metrics.test_thresholds import by_the_second
from r8.tests.support.judged_run import Tables, judged_run
from r8.tests.support.metric_case import CEILING, MB_SECTORS, metric, only
from r8.tests.support.run_factory import MIB, SyntheticRun
from r8.tests.support.run_factory_rows import MEASURE_BEGIN

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import duckdb

HEAD, PATHS = "nvme2n1", ("nvme2c2n1", "nvme2c3n1")
SPEC = SyntheticRun(kv_device=HEAD, kv_members=PATHS)
STEADY = SyntheticRun(ttft_s=(2.0,), read_s=2.0, ceiling_bytes_per_s=CEILING)
HIT_BYTES = 4 * 4 * 2 * MIB  # 4 sessions of 1025 tokens: 4 chunks of 2 MiB each
Edit = Callable[[Tables], None]


def multipath(*edits: Edit) -> Edit:
    """The factory's stacked device as a head and its paths; then the edits."""

    def change(tables: Tables) -> None:
        kinds = {HEAD: "nvme-head", **dict.fromkeys(PATHS, "nvme-path")}
        for row in tables["probes"]:
            if row["probe"] == "topology" and row["counter"] == "kind":
                row["text"] = kinds.get(row["device"], row["text"])
        for edit in edits:
            edit(tables)

    return change


def silence(tables: Tables) -> None:
    for row in tables["probes"]:
        if row["probe"] == "disk" and row["device"] == HEAD and row.get("value") is not None:
            row["value"] = 0


def told(root: Path, *edits: Edit) -> dict[str, Any]:
    """Everything a run says of its device."""
    one_path = dataclasses.replace(SPEC, kv_members=PATHS[:1])
    evidence = judged_run(root, one_path, multipath(*edits))
    with connect_settled([evidence]) as connection:
        add_views(connection)
        answers = [(one.rule_id, one.answer) for one in certify(evidence.run, connection)]
        asked = {
            "metrics": "SELECT phase, metric, statistic, value, n, reason FROM metrics",
            "timeline": "SELECT series, device, begin_ns, end_ns, value FROM timeline",
            "phases": "SELECT * EXCLUDE (run_id) FROM phase_reads WHERE probe = 'disk'",
            "balance": "SELECT * EXCLUDE (run_id, campaign_id) FROM balance",
        }
        found: dict[str, Any] = {
            name: connection.execute(f"{sql} ORDER BY ALL").fetchall()
            for name, sql in asked.items()
        }
    return found | {"findings": answers}


def test_a_head_that_counts_nothing_tells_what_one_tells_that_counts(tmp_path: Path) -> None:
    counting, silent = told(tmp_path / "a"), told(tmp_path / "b", silence)
    for name, one in counting.items():
        assert silent[name] == one, name
    values = {row[:3]: row[3] for row in silent["metrics"]}
    assert values["measure", "device_read_bytes", ""] == HIT_BYTES


@pytest.fixture(scope="module")
def opened(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[..., duckdb.DuckDBPyConnection]]:
    connections = []

    def opening(*edits: Edit) -> duckdb.DuckDBPyConnection:
        root = tmp_path_factory.mktemp("run")
        connections.append(connect_settled([judged_run(root, SPEC, multipath(*edits))]))
        return connections[-1]

    yield opening
    for connection in connections:
        connection.close()


def reads(connection: duckdb.DuckDBPyConnection) -> tuple[int | None, str | None]:
    ((read_bytes, reason),) = connection.execute(
        "SELECT read_bytes, reason FROM phase_reads WHERE device = ? AND phase = 'measure'", [HEAD]
    ).fetchall()
    return read_bytes, reason


def of_path(tables: Tables, number: int = 0) -> list[dict[str, Any]]:
    """Samples of one path's read counter."""
    return [
        row
        for row in tables["probes"]
        if (row["probe"], row["device"], row["counter"]) == ("disk", PATHS[number], "read_sectors")
    ]


def test_one_read_or_write_is_enough_to_believe_a_head(opened: Any) -> None:
    """A head that counts and read nothing in the phase read nothing, whatever its paths say."""

    def once(tables: Tables) -> None:
        for row in tables["probes"]:
            if (row["probe"], row["device"]) == ("disk", HEAD) and row[
                "counter"
            ] == "write_sectors":
                row["value"] = 1

    assert reads(opened(silence)) == (HIT_BYTES, None)
    assert reads(opened(silence, once)) == (0, None)
    connection = opened(silence)
    assert connection.execute("SELECT n_members FROM silent_heads").fetchall() == [(2,), (2,)]
    assert opened().execute("SELECT * FROM silent_heads").fetchall() == []


def test_an_instant_at_which_one_path_was_not_sampled_is_no_sample_of_the_head(opened: Any) -> None:
    def blind(tables: Tables) -> None:
        for row in of_path(tables):
            if row["mono_ns"] > MEASURE_BEGIN:
                row["value"], row["reason"] = None, "denied"

    assert reads(opened(silence, blind)) == (None, "no_sample_after")


def test_a_path_that_was_replaced_ends_the_epoch_of_the_head(opened: Any) -> None:
    def replace(tables: Tables) -> None:
        for row in of_path(tables, 1):
            row["epoch"] = int(row["mono_ns"] > MEASURE_BEGIN + 1_000_000_000)

    assert reads(opened(silence, replace)) == (None, "counter_regressed")


def test_a_head_without_any_row_has_its_paths(opened: Any) -> None:
    def gone(tables: Tables) -> None:
        tables["probes"] = [
            row for row in tables["probes"] if (row["probe"], row["device"]) != ("disk", HEAD)
        ]

    assert reads(opened(gone)) == (HIT_BYTES, None)


@pytest.mark.parametrize(
    ("kind", "members"), [("md", 2), ("dm", 2), ("nvme-head", 2), ("loop", 0), ("partition", 0)]
)
def test_members_are_those_of_devices_whose_bytes_are_theirs(
    opened: Any, kind: str, members: int
) -> None:
    def stacked(tables: Tables) -> None:
        for row in tables["probes"]:
            if row["probe"] == "topology" and row["device"] == HEAD and row["counter"] == "kind":
                row["text"] = kind

    rows = opened(stacked).execute("SELECT member FROM device_members ORDER BY position").fetchall()
    assert [member for (member,) in rows] == list(PATHS)[:members]


def test_a_sample_that_did_not_go_through_loses_no_bytes(tmp_path: Path) -> None:
    """The interval reaches to the next one that did."""
    rows = by_the_second(50 * MB_SECTORS, 50 * MB_SECTORS, 0, 0)
    whole = metric(tmp_path / "a", STEADY, "device_read_bandwidth", "mean", probes=only(*rows))
    rows[1] |= {"value": None, "reason": "denied"}
    found = metric(tmp_path / "b", STEADY, "device_read_bandwidth", "mean", probes=only(*rows))
    assert found.value == whole.value


@pytest.mark.parametrize(
    ("device", "kind", "explains"),
    [
        ("sdb", "disk", True),
        ("nvme9n1", "nvme-head", True),
        ("sdb1", "partition", False),
        ("nvme9c9n1", "nvme-path", False),
        ("dm-0", "dm", False),
        (PATHS[0], "disk", False),  # a member of the KV device
        ("loop1", "disk", False),  # the other tier's
    ],
)
def test_only_whole_devices_outside_the_tier_explain_a_surplus(
    opened: Any, device: str, kind: str, *, explains: bool
) -> None:
    def reader(tables: Tables) -> None:
        """What `vda` does, this device does as well; nobody else reads."""
        rows = [row for row in tables["probes"] if row["device"] == "vda"]
        tables["probes"] = [
            row
            for row in tables["probes"]
            if row["device"] != device or row["probe"] not in {"disk", "topology"}
        ]
        for row in rows:
            text = kind if row["counter"] == "kind" else row.get("text")
            value: Any = row.get("value")
            if row["counter"] == "read_sectors" and row["mono_ns"] > MEASURE_BEGIN + 1_000_000_000:
                value += 8 * 1024
            tables["probes"].append(row | {"device": device, "text": text, "value": value})

    rows = opened(reader).execute("SELECT elsewhere_read_bytes FROM balance").fetchall()
    assert rows == [(4 * MIB if explains else 0,)]
