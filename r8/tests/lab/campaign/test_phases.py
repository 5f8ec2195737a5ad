"""What a phase asks of the load client: a plan that it takes, for the server of the site."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from load_client.workload.plan import make_plan
from load_client.workload.render import render_body
from r8.lab.campaign import phases
from r8.lab.site.load import load_site
from r8.model import Phase


def asked(profile: str) -> dict[str, Any]:
    plan = load_site(Path("data/sites/nvidia.toml")).site.scenarios["r2-cold-recovery"]
    engine = SimpleNamespace(instance="tp8", base_url="http://127.0.0.1:9")
    stage = SimpleNamespace(
        plan=msgspec.structs.replace(plan, profile=profile),
        lifetime=SimpleNamespace(engines=[engine]),
        recording=SimpleNamespace(run=SimpleNamespace(seed=7)),
    )
    return phases._load_plan(cast("phases.Stage", stage), Phase.MEASURE, [[0, 1]], 2)


@pytest.mark.parametrize(
    ("profile", "keys"),
    [
        ("vllm", {"ignore_eos", "min_tokens", "return_token_ids"}),
        ("trtllm", {"ignore_eos", "min_tokens"}),
        ("openai", set[str]()),
    ],
)
def test_the_profile_of_a_scenario_decides_which_keys_its_engines_are_sent(
    profile: str, keys: set[str]
) -> None:
    body = json.loads(render_body(make_plan(asked(profile), "test"), b"1,2"))
    beyond = {"ignore_eos", "min_tokens", "return_token_ids", "nvext"}
    assert beyond & body.keys() == keys
