"""Writing one run: its journals, its events, and the instruments that write beside them."""

from __future__ import annotations

import json
import os
import platform
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from r8.evidence.journal import Journal, run_to_json, write_json_atomic
from r8.sensitive import masked, masked_json

if TYPE_CHECKING:
    from r8.model import Run

RAW = "raw"
# Events in which a run speaks of itself alone; later runs of its lifetime do not copy them.
OF_ONE_RUN = frozenset({"cell_begin", "testbed", "clock_offset"})


@dataclass(slots=True, kw_only=True)
class Recording:
    """A run while it runs: `<run_id>.partial` and its open journals."""

    run: Run
    directory: Path
    _journals: dict[str, Journal] = field(default_factory=dict)

    @classmethod
    def begin(
        cls,
        root: Path,
        run: Run,
        site_text: str,
        *,
        prelude: Path | None = None,
        **campaign: object,
    ) -> Recording:
        """Make the directory, write the plan into it, and keep the site file less its secrets.

        `campaign` is what the whole campaign set out to run: whoever verifies a bundle later can
        name a cell that was left out. `prelude` holds journals and raw files of the phases this
        run shares with earlier ones; its `run_begin` is then this run's.
        """
        directory = root / run.scenario / f"{run.run_id}.partial"
        (directory / RAW).mkdir(parents=True)
        (directory / RAW / "site.toml").write_text(masked(site_text))
        recording = cls(run=run, directory=directory)
        recording.update(run)
        if prelude is None:
            recording.event("run_begin", **campaign)
        else:
            _copy_prelude(prelude, directory)
        return recording

    def update(self, run: Run) -> None:
        """Write `run.json` anew, whole or not at all."""
        self.run = run
        write_json_atomic(self.directory / "run.json", run_to_json(run))

    def raw(self, name: str) -> Path:
        """Where a raw file of that name belongs."""
        return self.directory / RAW / name

    def append(self, table: str, row: dict[str, Any]) -> None:
        """Add one row to a journal."""
        if table not in self._journals:
            self._journals[table] = Journal(self.directory, table)
        self._journals[table].append(row)

    def event(self, name: str, **detail: Any) -> int:
        """Mark an instant; returns it (ns, monotonic). What came before is on disk afterwards."""
        mono_ns = time.monotonic_ns()
        self.append(
            "events",
            {
                "name": name,
                "mono_ns": mono_ns,
                "wall_ns": time.time_ns(),
                "detail": json.dumps(masked_json(detail), sort_keys=True, default=str)
                if detail
                else None,
            },
        )
        self.sync()
        return mono_ns

    def sync(self) -> None:
        """Bring every row appended so far to the disk."""
        for journal in self._journals.values():
            journal.sync()

    def close(self) -> None:
        """Close the journals."""
        for journal in self._journals.values():
            journal.close()
        self._journals.clear()


def _copy_prelude(prelude: Path, directory: Path) -> None:
    """Journals and raw files of the shared phases, less what the first run said of itself."""
    for path in sorted(prelude.glob("*.jsonl")):
        with path.open() as source, (directory / path.name).open("w") as sink:
            sink.writelines(line for line in source if not _is_of_first_run(line))
            sink.flush()
            os.fsync(sink.fileno())
    shutil.copytree(prelude / RAW, directory / RAW, dirs_exist_ok=True)


def _is_of_first_run(line: str) -> bool:
    return json.loads(line).get("name") in OF_ONE_RUN


def host_facts() -> dict[str, str]:
    """What names this machine without identifying it: serials and names stay out."""
    cpu = ""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            cpu = line.partition(":")[2].strip()
            break
    return {
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpu": cpu,
        "cores": str(os.cpu_count()),
        "memory_bytes": str(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")),
        "boot_id": Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
    }


def remove_tree(path: Path) -> None:
    """Remove a directory this run made; silent when it is gone already."""
    shutil.rmtree(path, ignore_errors=True)
