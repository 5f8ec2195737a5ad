"""Our load client beside `vllm bench serve`: same server, same level, TTFT p50 within 3 %.

Both send bursts of prompts of the same length, in turn; every burst has prompts of its own. The
estimator is ours for both (inverted CDF over all requests of a client), so that only stamps differ.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from math import ceil
from typing import TYPE_CHECKING

from tabulate import tabulate

from r8.lab.campaign.cross_check import OURS, THEIRS, bursts, serving
from r8.lab.machine.supervisor import Supervisor
from r8.lab.site.load import load_site

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pytest

    from r8.lab.campaign.cross_check import Burst

# Stamps of two sound clients differ by milliseconds of a TTFT of seconds; the rest is the server's.
TOLERANCE = 0.03
LEVEL = 16
OPTIONS = ("--site", "--runs-root", "--level", "--rounds", "--arms")


def p50(values: Sequence[float]) -> float:
    """Inverted CDF: the smallest value that half of them do not exceed."""
    return sorted(values)[ceil(len(values) / 2) - 1]


def compared(found: Sequence[Burst]) -> tuple[float, str]:
    """Theirs over ours, and both side by side, round by round and pooled."""
    rows = [
        [one.round, one.tool, len(one.ttft_s), one.failed, p50(one.ttft_s), max(one.ttft_s)]
        for one in found
    ]
    pooled = {}
    for tool in (OURS, THEIRS):
        all_of = [value for one in found if one.tool == tool for value in one.ttft_s]
        failed = sum(one.failed for one in found if one.tool == tool)
        pooled[tool] = p50(all_of)
        rows.append(["all", tool, len(all_of), failed, pooled[tool], max(all_of)])
    headers = ["round", "client", "n", "failed", "TTFT p50 s", "TTFT max s"]
    return pooled[THEIRS] / pooled[OURS], str(tabulate(rows, headers=headers, floatfmt=".4g"))


def test_both_clients_time_the_same_server_alike(request: pytest.FixtureRequest) -> None:
    """Measure with both, print both, and hold them to the tolerance."""
    option = request.config.getoption
    loaded = load_site(option("--site"))
    root: Path = option("--runs-root")
    level = option("--level") or LEVEL
    rounds = option("--rounds") if option("--rounds") > 1 else 5
    out = root / "cross-check" / time.strftime("cc-%Y%m%dT%H%M%SZ", time.gmtime())
    with (
        Supervisor(root / ".supervisor") as supervisor,
        serving(loaded, option("--arms"), level, supervisor, out, print) as bench,
    ):
        found = list(bursts(bench, rounds))
    ratio, table = compared(found)
    (out / "bursts.json").write_text(json.dumps([asdict(one) for one in found], indent=1))
    print(f"\n{table}\n\n{THEIRS} / {OURS} = {ratio:.4f}, limit {TOLERANCE:.0%} both ways; {out}")
    assert not any(one.failed for one in found), "a client with failed requests is not compared"
    lengths = {tokens for one in found for tokens in one.prompt_tokens}
    assert lengths == {bench.plan.prompt_tokens}, f"prompts of {lengths} tokens"
    assert abs(ratio - 1) <= TOLERANCE
