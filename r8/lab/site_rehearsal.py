"""The part of a site file about the rehearsal: the tiny model and the shaped devices."""

from __future__ import annotations

import msgspec


class Shape(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a shaped device models; every number of its runs is `modelled`."""

    device: str
    bandwidth_bytes_per_s: int
    latency_ns: int  # start value; calibration moves it until the ratio below is met
    ceiling_reference: float  # published parallel bandwidth, GB/s: only ratios are modelled
    time_scale: float  # modelled seconds per rehearsal second, for reading results
    image_bytes: int
    read_ahead_kib: int
    max_sectors_kib: int
    write_bandwidth_bytes_per_s: int | None = None  # None: writes are not slowed
    serial_reference: float | None = None  # published serial bandwidth; None: nothing is turned
    scenarios: tuple[str, ...] = ()  # that use this shape; empty: all


class Rehearsal(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The tiny model and the shaped devices of a rehearsal site."""

    model: dict[str, int]
    shapes: tuple[Shape, ...]
    lmcache: tuple[str, ...]
    memory_bytes: int  # needed free before start
    models: dict[str, dict[str, int]] = {}  # by scenario, where it is not `model`

    def shapes_of(self, scenario: str) -> list[Shape]:
        """The shapes one scenario uses."""
        return [one for one in self.shapes if not one.scenarios or scenario in one.scenarios]

    def model_of(self, scenario: str) -> dict[str, int]:
        """The numbers of the tiny model one scenario runs."""
        return self.models.get(scenario, self.model)
