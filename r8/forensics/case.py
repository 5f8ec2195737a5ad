"""One run before the rules: its provenance and the questions rules ask of its tables.

Everything is SQL over the tables of `r8.schema` and the shared views of `data/queries`, so that a
rule's numbers are the report's numbers.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from r8.model import Device, KvRun, TransferRun

if TYPE_CHECKING:
    import duckdb

    from r8.model import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A phase mark and its facts."""

    mono_ns: int
    detail: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """From one instant to another on the host's monotonic clock, ns."""

    begin_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One run's evidence, open for questions."""

    run: Run
    connection: duckdb.DuckDBPyConnection
    # Answers by question: rules ask the same ones again and again, and evidence does not change.
    _answers: dict[tuple[str, str], list[tuple[Any, ...]]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    def kv_run(self) -> KvRun:
        """The run of a KV engine; a rule that needs one is put to no other run.

        Raises:
            TypeError: the run is a transfer.

        """
        if not isinstance(self.run, KvRun):
            raise TypeError(f"{self.run.run_id} has no KV engine")
        return self.run

    @property
    def transfer(self) -> TransferRun | None:
        """The run as a transfer; `None` where a KV engine answers requests."""
        return self.run if isinstance(self.run, TransferRun) else None

    @property
    def device(self) -> Device:
        """The device the arm names, on the host that has it."""
        return Device(host=self.run.kv_host, name=self.run.kv_device)

    def rows(self, sql: str, **parameters: Any) -> list[tuple[Any, ...]]:
        """Rows of a query that names this run as `$run`."""
        question = (sql, repr(parameters))
        if question not in self._answers:
            result = self.connection.execute(sql, {"run": self.run.run_id, **parameters})
            self._answers[question] = result.fetchall()
        return self._answers[question]

    def events(self, name: str) -> list[Event]:
        """Events of one name, in order; a detail that is no JSON object counts as empty."""
        rows = self.rows(
            "SELECT name, mono_ns, detail FROM events WHERE run_id = $run ORDER BY mono_ns"
        )
        return [
            Event(mono_ns=mono_ns, detail=_facts(detail))
            for found, mono_ns, detail in rows
            if found == name
        ]

    def event(self, name: str) -> Event | None:
        """The last event of one name."""
        found = self.events(name)
        return found[-1] if found else None

    def server_config(self, instance: str) -> dict[str, Any] | None:
        """What was last read back from an instance's running server."""
        events = [one.detail for one in self.events("server_config")]
        found = [detail for detail in events if detail.get("instance") == instance]
        return found[-1] if found else None

    def window(self, phase: str) -> Window | None:
        """From `<phase>_begin` to `<phase>_end`; `None` unless both are there in this order."""
        begin, end = self.event(f"{phase}_begin"), self.event(f"{phase}_end")
        if begin is None or end is None or end.mono_ns < begin.mono_ns:
            return None
        return Window(begin_ns=begin.mono_ns, end_ns=end.mono_ns)

    def metric(self, name: str, statistic: str = "") -> int | None:
        """A metric of the measured phase that counts ns or bytes; `None` without a finite value."""
        rows = self.rows(
            "SELECT value FROM metrics WHERE run_id = $run AND metric = $name "
            "AND statistic = $statistic AND phase = 'measure' AND isfinite(value)",
            name=name,
            statistic=statistic,
        )
        return round(rows[0][0]) if len(rows) == 1 else None

    def read_bytes(self, device: Device, phase: str, occurrence: int = 1) -> int | None:
        """Bytes a block device read in a phase, by the shared view `phase_reads`."""
        rows = self.rows(
            "SELECT read_bytes FROM phase_reads WHERE run_id = $run AND probe = 'disk' "
            "AND host = $host AND device = $device AND phase = $phase "
            "AND occurrence = $occurrence",
            host=device.host,
            device=device.name,
            phase=phase,
            occurrence=occurrence,
        )
        size = rows[0][0] if len(rows) == 1 else None
        return None if size is None else int(size)

    def balance(self, column: str) -> int | None:
        """A column of the run's row in the view `balance`, bytes; `None` when it is not known."""
        rows = self.rows(f"SELECT {column} FROM balance WHERE run_id = $run")  # noqa: S608 - a name
        return None if not rows or rows[0][0] is None else round(rows[0][0])

    def members(self, device: Device) -> tuple[Device, ...]:
        """Members of a stacked device, as the topology named them; empty for other devices."""
        rows = self.rows(
            "SELECT member FROM device_members WHERE run_id = $run AND host = $host "
            "AND device = $device ORDER BY position",
            host=device.host,
            device=device.name,
        )
        return tuple(Device(host=device.host, name=member) for (member,) in rows)

    def layers(self, device: Device) -> tuple[Device, ...]:
        """The device and everything the topology names below it, upper layers first."""
        found: list[Device] = []
        queue = [device]
        while queue:
            layer = queue.pop(0)
            if layer in found:
                continue
            found.append(layer)
            names = (self.text(layer, "members") or "").split(",")
            queue += [replace(layer, name=name.strip()) for name in names if name.strip()]
        return tuple(found)

    def transports(self, device: Device) -> frozenset[str]:
        """How the device is reached: `rdma`, `tcp`, `fc`, `pcie`; empty where nobody says."""
        words = (self.text(layer, "transport") for layer in self.layers(device))
        return frozenset(word for word in words if word)

    def grown(self, probe: str, device: Device, counter: str, window: Window) -> int | None:
        """By how much a counter grew, from its last reading before to its first after the window.

        `None` when a reading is missing on either side, or an epoch ended in between.
        """
        rows = self.rows(
            "SELECT grown FROM growths($begin, $end) WHERE run_id = $run AND probe = $probe "
            "AND host = $host AND device = $device AND counter = $counter",
            probe=probe,
            host=device.host,
            device=device.name,
            counter=counter,
            begin=window.begin_ns,
            end=window.end_ns,
        )
        return rows[0][0] if len(rows) == 1 else None

    def text(self, device: Device, counter: str) -> str | None:
        """First reading of a device's topology; `None` when absent."""
        rows = self.rows(
            "SELECT host, device, counter, "
            "arg_min(coalesce(text, value::BIGINT::VARCHAR), mono_ns) AS word FROM probes "
            "WHERE run_id = $run AND probe = 'topology' GROUP BY ALL HAVING word IS NOT NULL"
        )
        wanted = [device.host, device.name, counter]
        return next((str(word) for *named, word in rows if named == wanted), None)


def _facts(detail: str | None) -> dict[str, Any]:
    try:
        facts = json.loads(detail or "{}")
    except json.JSONDecodeError:
        return {}
    return facts if isinstance(facts, dict) else {}
