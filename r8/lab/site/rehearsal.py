"""The part of a site file about the rehearsal: the tiny model and the shaped devices."""

from __future__ import annotations

import msgspec

from r8.lab.site.numbers import Count, Names, Natural, Positive


class Shape(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a shaped device models; every number of its runs is `modelled`."""

    device: str
    bandwidth_bytes_per_s: Count
    latency_ns: Natural  # start value; calibration moves it until the ratio below is met
    ceiling_reference: Positive  # published parallel bandwidth, GB/s: only ratios are modelled
    time_scale: Positive  # modelled seconds per rehearsal second, for reading results
    image_bytes: Count
    read_ahead_kib: Natural
    max_sectors_kib: Count
    write_bandwidth_bytes_per_s: Count | None = None  # None: writes are not slowed
    serial_reference: Positive | None = None  # published serial bandwidth; None: nothing is turned
    scenarios: tuple[str, ...] = ()  # that use this shape; empty: all


class Rehearsal(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The tiny model and the shaped devices of a rehearsal site."""

    model: dict[str, int]
    shapes: tuple[Shape, ...]
    lmcache: Names
    memory_bytes: Natural  # needed free before start
    models: dict[str, dict[str, int]] = {}  # by scenario, where it is not `model`

    def shapes_of(self, scenario: str) -> list[Shape]:
        """The shapes one scenario uses."""
        return [one for one in self.shapes if not one.scenarios or scenario in one.scenarios]

    def model_of(self, scenario: str) -> dict[str, int]:
        """The numbers of the tiny model one scenario runs."""
        return self.models.get(scenario, self.model)
