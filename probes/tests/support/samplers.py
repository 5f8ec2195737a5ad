"""What a sampler gives, in the forms tests look at it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from probes.probe import Sampler
    from probes.samples import Sample


def taken(sampler: Sampler) -> list[Sample]:
    """The samples of every batch of one look."""
    return [sample for batch in sampler.sample() for sample in batch.samples]


def rows(sampler: Sampler) -> dict[tuple[str, str], Sample]:
    """The same by device and counter."""
    return {(sample.device, sample.counter): sample for sample in taken(sampler)}


def rows_by_device(sampler: Sampler) -> dict[str, dict[str, Sample]]:
    """The same by device, then counter."""
    found: dict[str, dict[str, Sample]] = {}
    for sample in taken(sampler):
        found.setdefault(sample.device, {})[sample.counter] = sample
    return found
