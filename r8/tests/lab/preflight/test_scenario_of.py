"""Which scenario `r8 preflight` looks at."""

from __future__ import annotations

from pathlib import Path

import pytest

from r8.lab.preflight.preflight import scenario_of
from r8.lab.site.load import load_site

SITES = sorted((Path(__file__).resolve().parents[4] / "data" / "sites").glob("*.toml"))


@pytest.mark.parametrize("path", SITES, ids=lambda one: one.stem)
def test_without_a_word_it_is_the_first_that_the_site_has(path: Path) -> None:
    site = load_site(path).site
    assert site.plan_of(scenario_of(site, None)) is not None


def test_a_scenario_goes_by_its_id_or_by_its_report() -> None:
    site = load_site(next(path for path in SITES if path.stem == "rehearsal")).site
    assert scenario_of(site, None) == "r1-parallel-read"
    assert scenario_of(site, "R2") == scenario_of(site, "r2-cold-recovery") == "r2-cold-recovery"
    assert scenario_of(site, "r9-unknown") == "r9-unknown"
