"""What counters did in a window: samples made up by hand, just inside and just outside of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from r8.resources import query_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

S = 1_000_000_000
# The tables that the queries here read, with those of their columns that they use.
_TABLES = """
CREATE TABLE probes (run_id VARCHAR, probe VARCHAR, host VARCHAR, device VARCHAR, counter VARCHAR,
                     text VARCHAR, mono_ns BIGINT, epoch BIGINT, value DOUBLE);
CREATE TABLE events (run_id VARCHAR, name VARCHAR, mono_ns BIGINT);
CREATE TABLE runs (run_id VARCHAR, chunk_tokens BIGINT, chunk_bytes BIGINT);
CREATE TABLE requests (run_id VARCHAR, request_id VARCHAR, phase VARCHAR, sent_ns BIGINT);
CREATE TABLE engine_requests (run_id VARCHAR, request_id VARCHAR, retrieved_tokens BIGINT);
CREATE TABLE files (run_id VARCHAR, moment VARCHAR, path VARCHAR, size_bytes BIGINT,
                    resident_bytes BIGINT, self_test BOOLEAN, reason VARCHAR, mono_ns BIGINT);
CREATE MACRO run_table(name) AS TABLE FROM files;
"""
MS = 1_000_000
Sample = tuple[int, float | None] | tuple[int, float | None, int]


@pytest.fixture(name="made")
def _made() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute(_TABLES)
        for name in ("macros", "devices", "growth", "network", "residency"):
            connection.execute(query_text(name))
        yield connection


def put(
    made: duckdb.DuckDBPyConnection,
    samples: Iterable[Sample],
    counter: str = "write_sectors",
    probe: str = "disk",
    device: str = "d",
) -> None:
    """Samples of a counter as (instant, value) or (instant, value, epoch)."""
    for at, value, *epoch in samples:
        row = ["r", probe, "h", device, counter, None, at, epoch[0] if epoch else None, value]
        made.execute("INSERT INTO probes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
    # Of another run, and a counter of another name: neither has a part in any answer.
    made.execute(
        "INSERT INTO probes SELECT 'other', probe, host, device, counter, text, mono_ns, epoch, "
        "value + 7 FROM probes WHERE run_id = 'r'"
    )


def one(made: duckdb.DuckDBPyConnection, sql: str, *values: Any) -> tuple[Any, ...]:
    (row,) = made.execute(sql, values).fetchall()
    return tuple(row)


@pytest.mark.parametrize(
    ("samples", "before_ns", "after_ns", "grown"),
    [
        ([(9, 1), (10, 2), (15, 5), (20, 9), (21, 30)], 10, 20, 7),
        ([(9, 1), (11, 2), (19, 9), (21, 30)], 9, 21, 29),
        ([(10, 5), (20, 5)], 10, 20, 0),
        ([(10, 5), (20, 4)], 10, 20, None),  # it fell
        ([(10, 5, 1), (20, 9, 2)], 10, 20, None),  # an epoch ended
        ([(10, 5), (20, 9, 0)], 10, 20, 4),  # no epoch is the first one
        ([(11, 5), (20, 9)], None, 20, None),
        ([(10, 5), (19, 9)], 10, None, None),
        ([(9, 5), (10, None), (20, 9)], 9, 20, 4),  # a reading that did not go through is none
    ],
)
def test_growth_is_between_the_readings_around_a_window(
    made: duckdb.DuckDBPyConnection,
    samples: list[Sample],
    before_ns: int | None,
    after_ns: int | None,
    grown: int | None,
) -> None:
    for probe in ("disk", "nic"):
        put(made, samples, probe=probe)
        sql = "SELECT before_ns, after_ns, grown FROM growths(10, 20) WHERE run_id = 'r'"
        assert one(made, f"{sql} AND probe = ?", probe) == (before_ns, after_ns, grown)


def test_what_was_written_while_it_was_quiet_lies_between_the_samples_inside(
    made: duckdb.DuckDBPyConnection,
) -> None:
    put(made, [(9, 1), (10, 3), (20, 4), (30, 8), (31, 50)])
    sql = "SELECT span_ns, write_bytes FROM quiet_writes(10, 20, 30) WHERE run_id = 'r'"
    assert one(made, sql) == (20, 5 * 512)
    put(made, [(9, 0), (11, 0), (29, 9)], counter="read_sectors", device="e")
    assert len(made.execute(sql).fetchall()) == 1


@pytest.mark.parametrize(
    ("samples", "sectors"),
    [
        ([(19, 1), (20, 3), (25, 4), (30, 8), (31, 50)], 5),
        ([(19, 1), (21, 3), (29, 4), (31, 8)], 5),
        ([(20, 3), (29, 8)], None),
        ([(20, 3, 1), (30, 8, 2)], None),
        ([(20, 3, 1), (30, 8, 1), (31, 9, 2)], 5),
    ],
)
def test_what_was_written_late_is_counted_from_the_end_of_the_window_on(
    made: duckdb.DuckDBPyConnection, samples: list[Sample], sectors: int | None
) -> None:
    put(made, samples)
    sql = "SELECT write_bytes FROM late_writes(20, 30) WHERE run_id = 'r'"
    assert one(made, sql) == (None if sectors is None else 512 * sectors,)


def steps(made: duckdb.DuckDBPyConnection, *devices: str) -> tuple[Any, ...]:
    sql = "SELECT n, n_devices, n_back, n_epochs, gap_ns FROM sample_steps('r', ?, 10, 20)"
    return one(made, sql, [f"h {one}" for one in devices])


def test_steps_are_those_that_touch_the_window(made: duckdb.DuckDBPyConnection) -> None:
    put(made, [(1, 0), (10, 1), (14, 2), (20, 3), (40, 4)])
    assert steps(made, "d") == (2, 1, 0, 0, 6)
    put(made, [(9, 0), (21, 1)], device="e")
    assert steps(made, "d", "e") == (3, 2, 0, 0, 12)
    assert steps(made, "e", "f") == (1, 1, 0, 0, 12)


def test_steps_tell_what_went_back_and_what_began_anew(made: duckdb.DuckDBPyConnection) -> None:
    put(made, [(10, 5), (12, 4), (14, 4), (16, 9, 1), (18, 9, 1)])
    put(made, [(10, 5), (18, 1)], counter="in_flight")  # a gauge
    assert steps(made, "d") == (4, 1, 1, 1, 2)


def test_states_are_looked_at_with_some_slack_around_the_window(
    made: duckdb.DuckDBPyConnection,
) -> None:
    rows = [(4, "before"), (5, "live"), (15, None), (25, "dead"), (26, "after")]
    for at, text in rows:
        # A reading without an epoch is one of the first.
        epoch = {5: None, 15: 0}.get(at, 1)
        row = ["r", "nvme", "h", "nvme0", "state", text, at, epoch, None]
        made.execute("INSERT INTO probes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        made.execute(
            "INSERT INTO probes VALUES ('r', 'nvme', 'h', 'nvme0', 'model', ?, ?, 0, NULL)",
            [text, at],
        )
    found = one(made, "FROM states('r', 5, 10, 20)")
    assert found == ("nvme", "h", "nvme0", "state", 3, 1, 2, ["dead", "live"])


def stretch(
    made: duckdb.DuckDBPyConnection, probe: str, counter: str, width_ns: int
) -> tuple[Any, ...]:
    sql = "FROM fastest_stretch('r', ?, 'h', 'd', ?, 10, 50, ?)"
    return one(made, sql, probe, counter, width_ns)


def test_the_fastest_stretch_is_at_least_as_long_as_it_was_asked(
    made: duckdb.DuckDBPyConnection,
) -> None:
    samples = [(0, 0), (10, 100), (20, 110), (30, 170), (40, 180), (50, 200), (60, 9999)]
    put(made, samples, counter="rx", probe="nic")
    put(made, samples, counter="read_sectors")
    assert stretch(made, "nic", "rx", 10) == (60, 10)
    assert stretch(made, "nic", "rx", 11) == (70, 20)
    assert stretch(made, "disk", "read_sectors", 20) == (512 * 70, 20)
    # A window that is shorter than the width is one stretch itself.
    assert stretch(made, "nic", "rx", 41) == (100, 40)


@pytest.mark.parametrize(
    ("in_flight", "read_ms", "reads", "sectors"),
    [
        (4, 80, 10, 60),  # 80 ms of reads in 40 ms: two on average, and twice as many are granted
        (4, 60, 10, 70),  # twice one and a half
        (6, 1000, 10, 50),  # half of those that ended, whatever else is said
        (5, 1000, 10, 50),
        (4294967295, 80, 10, 60),  # a gauge that wrapped
        (2**53, 10**12, 10, 50),
        (-1, 80, 10, 100),
        (4, -80, 10, 100),
        (4, None, 10, 100),
        (None, 80, 10, 100),
        (4, 80, 0, 100),  # nothing ended
        (4, 80, -3, 100),
    ],
)
def test_what_was_in_flight_at_the_begin_is_taken_off_as_far_as_others_bear_it_out(
    made: duckdb.DuckDBPyConnection,
    in_flight: int | None,
    read_ms: int | None,
    reads: int,
    sectors: int,
) -> None:
    """A hundred sectors in ten requests within 40 ms."""
    begin, end = 10 * MS, 50 * MS
    put(made, [(begin, 0), (end, 100)], counter="read_sectors")
    put(made, [(begin, 5), (end, 5 + reads)], counter="reads")
    put(made, [(begin, in_flight), (end, in_flight)], counter="in_flight")
    put(made, [(begin, 0), (end, read_ms)], counter="read_ms")
    sql = "FROM fastest_stretch('r', 'disk', 'h', 'd', 'read_sectors', ?, ?, ?)"
    assert one(made, sql, begin, end, end - begin) == (512 * sectors, end - begin)


def test_the_fastest_stretch_is_the_one_of_most_bytes_less_those_under_way(
    made: duckdb.DuckDBPyConnection,
) -> None:
    """Each moved 100 sectors in ten requests; nine of the first stretch's were under way before."""
    put(made, [(10, 0), (30, 1), (50, 2)], counter="read_ms")
    put(made, [(10, 0), (30, 100), (50, 200)], counter="read_sectors")
    put(made, [(10, 0), (30, 10), (50, 20)], counter="reads")
    put(made, [(10, 9), (30, 1), (50, 0)], counter="in_flight")
    assert stretch(made, "disk", "read_sectors", 20) == (512 * 90, 20)


@pytest.mark.parametrize(
    ("samples", "grown"),
    [
        ([(6, 1), (10, 2), (20, 9), (24, 30)], 14),
        ([(4, 1), (20, 9)], None),  # a page of the phase before
        ([(5, 1), (25, 9)], 16),  # the marks themselves
        ([(10, 2), (26, 9)], None),
        ([(10, 2, 1), (20, 9, 2)], None),
    ],
)
def test_pages_of_an_engine_count_while_no_other_phase_runs(
    made: duckdb.DuckDBPyConnection, samples: list[Sample], grown: int | None
) -> None:
    marks = [("populate_end", 3), ("rewarm_end", 5), ("measure_begin", 10), ("measure_end", 20)]
    # A phase that ends, or begins, at the very instant of the window's end is not beside it.
    marks += [("settle_end", 10), ("settle_begin", 20)]
    for name, at in [*marks, ("warm_begin", 25), ("control_begin", 40), ("note", 22), ("note", 8)]:
        made.execute("INSERT INTO events VALUES ('r', ?, ?)", [name, at])
    for series in ('hits_total{engine="0"}', "hits"):
        put(made, samples, counter=series, probe="engine", device="a")
    put(made, [(10, 0), (20, 500)], counter="hits_of_another", probe="engine", device="a")
    assert one(made, "FROM engine_growth('r', 'a', 'hits', 10, 20)") == (grown,)


def test_a_phase_with_nothing_around_it_takes_any_page(made: duckdb.DuckDBPyConnection) -> None:
    put(made, [(1, 2), (99, 9)], counter="hits", probe="engine", device="a")
    assert one(made, "FROM engine_growth('r', 'a', 'hits', 10, 20)") == (7,)


ETHTOOL, PORT, TCP = (
    "ethtool.rx_vport_rdma_unicast_bytes",
    "ib.port_rcv_data_bytes",
    "netdev.rx_bytes",
)


def wires(made: duckdb.DuckDBPyConnection, *fabrics: str) -> list[tuple[str, str]]:
    sql = "SELECT device, counter FROM wire_counters('r', ?) ORDER BY device"
    rows: list[tuple[str, str]] = made.execute(sql, [list(fabrics)]).fetchall()
    return rows


def test_the_wire_is_one_counter_an_adapter_its_best_of_the_fabric(
    made: duckdb.DuckDBPyConnection,
) -> None:
    grew = [(10, 0), (20, 5)]
    for device, counter in (("ens1", TCP), ("ens2", TCP), ("mlx5_0/1", PORT)):
        put(made, grew, counter=counter, probe="nic", device=device)
    assert wires(made, "tcp") == [("ens1", TCP), ("ens2", TCP)]
    assert wires(made, "rdma") == [("mlx5_0/1", PORT)]
    assert wires(made, "fc") == []
    assert wires(made, "rdma", "tcp") == [("ens1", TCP), ("ens2", TCP), ("mlx5_0/1", PORT)]
    sql = "SELECT received_bytes FROM wire_bytes('r', ?, 10, 20)"
    assert one(made, sql, ["rdma", "tcp"]) == (15,)
    assert one(made, sql, ["fc"]) == (None,)
    # The driver of the interface counts what its port counts, and RDMA's counter beats TCP's.
    put(made, grew, counter=ETHTOOL, probe="nic", device="ens1")
    assert wires(made, "rdma", "tcp") == [("ens1", ETHTOOL)]
    # One adapter that is not known leaves the sum unknown.
    put(made, [(10, 0)], counter=ETHTOOL, probe="nic", device="ens3")
    assert one(made, sql, ["rdma"]) == (None,)


def test_only_values_of_an_adapter_are_a_wire(made: duckdb.DuckDBPyConnection) -> None:
    put(made, [(10, 0)], counter=TCP, probe="nic", device="ens1")
    put(made, [(10, None)], counter=TCP, probe="nic", device="ens2")
    put(made, [(10, 0)], counter=TCP, probe="process", device="ens3")
    assert wires(made, "tcp") == [("ens1", TCP)]


def test_the_counters_of_rdma_come_in_the_order_in_which_they_miss_least(
    made: duckdb.DuckDBPyConnection,
) -> None:
    names = ["ethtool.rx_vport_rdma_unicast_bytes", "ethtool.rx_roce_good_bytes"]
    names += ["hw.rx_roce_good_bytes", "ethtool.rdma_rx_bytes", "hw.rdma_rx_bytes", PORT, TCP]
    for name in reversed(names):
        put(made, [(10, 0)], counter=name, probe="nic", device="ens1")
        sql = "SELECT arg_min(counter, preference) FROM receive_counters WHERE run_id = 'r'"
        assert one(made, sql) == (name,)


def test_processes_read_of_files_what_is_known(made: duckdb.DuckDBPyConnection) -> None:
    put(made, [(10, 5), (20, 9)], counter="rchar", probe="process", device="a:1:1")
    put(made, [(10, 5), (20, 6)], counter="rchar", probe="process", device="a:2:2")
    put(made, [(11, 5), (20, 99)], counter="rchar", probe="process", device="a:3:3")
    put(made, [(10, 5), (20, 99)], counter="wchar", probe="process", device="a:1:1")
    assert one(made, "FROM file_reads('r', 10, 20)") == (5,)
    assert one(made, "FROM file_reads('r', 1, 2)") == (None,)


def test_a_control_hit_what_its_requests_retrieved_between_its_marks(
    made: duckdb.DuckDBPyConnection,
) -> None:
    made.execute("INSERT INTO runs VALUES ('r', 256, 1000), ('other', 256, 1000)")
    requests = [("a", "control", 9), ("b", "control", 10), ("c", "control", 20)]
    for name, phase, at in [*requests, ("d", "control", 21), ("e", "measure", 15)]:
        made.execute("INSERT INTO requests VALUES ('r', ?, ?, ?)", [name, phase, at])
        tokens = None if name == "c" else 512
        made.execute("INSERT INTO engine_requests VALUES ('r', ?, ?)", [name, tokens])
    assert one(made, "FROM control_hits('r', 10, 20)") == (2000,)
    made.execute("UPDATE engine_requests SET retrieved_tokens = 256 WHERE request_id = 'c'")
    assert one(made, "FROM control_hits('r', 10, 20)") == (3000,)


def test_the_page_cache_is_that_of_a_moment_inside_an_interval(
    made: duckdb.DuckDBPyConnection,
) -> None:
    seen: list[tuple[Any, ...]] = [
        ("early", 100, 50, True, None, 9),
        ("a", 100, 50, True, None, 10),
        ("b", 200, None, False, "denied", 20),
        ("empty", 0, 0, None, None, 15),
        ("late", 100, 50, True, None, 21),
        ("byte", 1, 1, True, None, 12),
    ]
    for row in seen:
        for run, moment in (("r", "after_drop"), ("r", "after_measure"), ("other", "after_drop")):
            made.execute(
                "INSERT INTO residency VALUES (?, ?, ?, ?, ?, ?, ?, ?)", [run, moment, *row]
            )
    found = made.execute("FROM residency_at('r', 'after_drop', 10, 20) ORDER BY path").fetchall()
    assert found == [
        ("a", 100, 50, True, None),
        ("b", 200, None, False, "denied"),
        ("byte", 1, 1, True, None),
        ("empty", 0, 0, False, None),
    ]
    sums = one(made, "FROM residency_sums('r', 'after_drop', 10, 20)")
    assert sums == (4, 2, 2, 101, 51)
