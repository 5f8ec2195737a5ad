"""Every cell of a campaign in the order it is run, for scenarios with and without a KV engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from r8.lab.site.plan import Place, levels_of, places, steps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from r8.lab.site.file import Site
    from r8.lab.site.transfer import WorkPlan


def cells_of(
    site: Site, scenario: str, arms: Sequence[str], blocks: int, seed: int
) -> tuple[Place, ...]:
    """The places of a scenario of either kind.

    Raises:
        SiteError: a level that the instances cannot share evenly.

    """
    plan = site.scenarios.get(scenario)
    if plan is None:
        return tuple(work_places(site.works[scenario], arms, blocks, seed))
    return tuple(places(plan, site.arms, arms, blocks, seed))


def arms_known(site: Site, scenario: str) -> set[str]:
    """Arms that may be asked for by name."""
    work = site.works.get(scenario)
    return set(site.arms) if work is None else set(work.arm)


def work_places(plan: WorkPlan, arms: Sequence[str], blocks: int, seed: int) -> list[Place]:
    """Every cell of every block; arms stand in Williams order, each with its levels upwards."""
    return [
        Place(
            block=step.block,
            order=step.order,
            life=step.arm,
            arm=step.arm,
            concurrency=level,
            index=index,
            first_session=0,
            sessions=level,
            balanced=step.balanced,
        )
        for step in steps(tuple(arms), blocks, seed)
        for index, level in enumerate(levels_of(plan, step.arm))
    ]
