"""The tables of a site file about machines: hosts, devices, engines, and what is rehearsed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from r8.lab.site.values import (
    ONCE,
    Count,
    DeviceName,
    Estimate,
    Fault,
    Folder,
    HostName,
    Names,
    Natural,
    Port,
    Positive,
    ScenarioName,
    Seconds,
    Table,
)
from r8.roles import KvTier
from r8.units import BYTES_PER_MIB

if TYPE_CHECKING:
    from collections.abc import Iterator

DROP_CACHES = ("sh", "-c", "sync && echo 3 > /proc/sys/vm/drop_caches")
# O_DIRECT wants sizes in blocks of the device.
ALIGNMENT_BYTES = 4096
BlockBytes = Annotated[
    int,
    Meta(ge=ALIGNMENT_BYTES, multiple_of=ALIGNMENT_BYTES, description="a multiple of 4096 bytes"),
]
# Where no link is declared: 2.5 s of a fast drive of today, little enough for a pool's file system.
DEFAULT_BYTES = 16 << 30
# Where one is: so much time at its full rate, beside which the start and the tail are small.
DEFAULT_LINK_S = 5.0
# A serial reader is slower by half an order of magnitude: it needs a share of the bytes.
SERIAL_SHARE = 8


class Host(Table, frozen=True, kw_only=True):
    """A machine, and how commands get to it: no prefix here, `ssh node0` elsewhere."""

    name: str
    exec_prefix: tuple[str, ...] = ()
    # Empties the page cache; None: through /proc/sys/vm/drop_caches, or as the rehearsal can.
    drop_caches: tuple[str, ...] | None = None
    # Behind a prefix the probes are copied here and run by this Python (3.11 or newer).
    python: tuple[str, ...] = ("python3",)
    instruments_dir: str = "/tmp/r8-instruments"  # noqa: S108 - on the other host; a site may move it


class Stress(Table, frozen=True, kw_only=True):
    """How fio measures a device that is not shaped, before every block.

    `read_bytes` None: 5 s at link_bytes_per_s, else 16 GiB; 0: the device is not measured.
    `seconds` bounds each of the two readings and `layout_seconds` the writing of each of the two
    sets of files; what was written until then is what is read.
    """

    read_bytes: Natural | None = None
    block_bytes: BlockBytes = BYTES_PER_MIB  # so large that bandwidth, not requests, is the limit
    # Of all threads: 10 times what a 100 Gb/s line holds in a millisecond.
    queue_depth: Count = 128
    threads: Count = 4  # one thread's completions can be the limit above some GB/s
    seconds: Count = 10
    layout_seconds: Count = 60

    def ceiling_bytes(self, link_bytes_per_s: int | None) -> int:
        """Bytes laid out for the ceiling reading, whole blocks of every thread; 0: none."""
        wanted = self.read_bytes
        if wanted is None:
            wanted = DEFAULT_BYTES
            if link_bytes_per_s is not None:
                wanted = round(link_bytes_per_s * DEFAULT_LINK_S)
        each = self.block_bytes * self.threads
        return -(-wanted // each) * each

    def serial_files(self, ceiling_bytes: int, file_bytes: int) -> int:
        """Chunk files of the serial reading: at least two, one after another."""
        return max(2, ceiling_bytes // SERIAL_SHARE // file_bytes)

    @property
    def longest_s(self) -> int:
        """Both layouts and both readings, each to its limit."""
        return 2 * (self.seconds + self.layout_seconds)


class Device(Table, frozen=True, kw_only=True):
    """A medium that may hold KV: `kv_dir` must be an existing directory R8 may write into."""

    name: str
    host: HostName
    kv_dir: Folder
    block_device: str | None = None  # kernel name; None: resolved from kv_dir
    link_bytes_per_s: Count | None = None  # declared ceiling of the slowest link to it
    nics: Annotated[tuple[str, ...], ONCE] = ()  # of the engine's host, that carry its bytes
    fio: Stress = Stress()


class Engine(Table, frozen=True, kw_only=True):
    """How an inference engine is started, where, and how it is looked into."""

    host: HostName
    python: tuple[str, ...]  # the interpreter that runs LMCache, without the exec prefix
    command: tuple[str, ...] = ()  # empty: a site of transfers that start no engine
    exec_prefix: tuple[str, ...] = ()  # for example: docker exec -i vllm
    kv_args: tuple[str, ...] = ()  # added to the command of every arm that has a KV tier
    env: dict[str, str] = {}
    kv_env: dict[KvTier, dict[str, str]] = {}  # added by the arm's KV tier
    unset_env: tuple[str, ...] = ()
    ready_path: str = "/health"
    ready_timeout_s: Seconds = 600.0
    stop_grace_s: Estimate = 30.0
    # Prints the host pid whose tree holds the engine; None: the process that was started. A
    # container's runtime starts it elsewhere, so behind `exec_prefix` it must be given.
    root_pid: tuple[str, ...] | None = None

    def faults(self) -> Iterator[Fault]:
        """A container without the command that finds its engine."""
        if self.exec_prefix and self.root_pid is None:
            yield Fault(
                "root_pid",
                "is missing beside exec_prefix: another process would pass for the engine",
                "give the command that prints the engine's pid on its host, as nvidia.toml does",
            )


class Instance(Table, frozen=True, kw_only=True):
    """One engine process group: a port, and what only this instance is told."""

    name: str
    port: Port
    base_url: str = "http://127.0.0.1:{port}"
    host: HostName | None = None  # None: the engine's
    env: dict[str, str] = {}
    vars: dict[str, str] = {}  # fill the engine's command for this instance only


class Shape(Table, frozen=True, kw_only=True):
    """What a shaped device models; every number of its runs is `modelled`."""

    device: DeviceName
    bandwidth_bytes_per_s: Count
    latency_ns: Natural  # start value; calibration moves it until the ratio below is met
    ceiling_reference: Positive  # published parallel bandwidth, GB/s: only ratios are modelled
    time_scale: Positive  # modelled seconds per rehearsal second, for reading results
    image_bytes: Count
    read_ahead_kib: Natural
    max_sectors_kib: Count
    write_bandwidth_bytes_per_s: Count | None = None  # None: writes are not slowed
    serial_reference: Positive | None = None  # published serial bandwidth; None: nothing is turned
    # Those that use this shape; empty: all.
    scenarios: Annotated[tuple[ScenarioName, ...], ONCE] = ()


class Rehearsal(Table, frozen=True, kw_only=True):
    """The tiny model and the shaped devices of a rehearsal site."""

    model: dict[str, int]
    shapes: tuple[Shape, ...]
    lmcache: Names
    memory_bytes: Natural  # needed free before start
    models: dict[ScenarioName, dict[str, int]] = {}  # by scenario, where it is not `model`

    def shapes_of(self, scenario: str) -> list[Shape]:
        """The shapes one scenario uses."""
        return [one for one in self.shapes if not one.scenarios or scenario in one.scenarios]

    def model_of(self, scenario: str) -> dict[str, int]:
        """The numbers of the tiny model one scenario runs."""
        return self.models.get(scenario, self.model)
