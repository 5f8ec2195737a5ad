"""How long the hostile runs and bundles of `r8/tests/cli/recipes.py` keep the command busy.

Wall time of an idle machine is what somebody waits; CPU time is the same without the others' work,
so the smaller of the two is judged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from r8.tests.cli import recipes
from r8.tests.cli.test_recipes import Scene, require_refused
from r8.tests.seal.hostile_archives import HOSTILE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.qualify
# Of which starting Python and its libraries takes more than half.
REFUSED_S_MAX = 1.0
# A bundle whose sealer wrote nonsense beside honest runs is verified to its end, as an honest one.
WHOLE_SHARE_MAX = 1.5


def _cases(scene: Scene) -> Iterator[tuple[str, list[str], bool]]:
    """Name and command of every case, and whether it is verified to its end."""
    for name in (*recipes.RUNS, *recipes.PLACES):
        run = str(scene.spoilt_run(name))
        for argv in (["judge", run], ["report", run], ["sql", "FROM runs", "--runs", run]):
            yield name, argv, False
    for name in recipes.STATEMENTS:
        yield name, ["verify", str(scene.spoilt_bundle(name))], False
    for name in HOSTILE:
        yield name, ["verify", str(scene.archive(name))], False
    for name in recipes.BUNDLES:
        yield name, ["verify", str(scene.spoilt_bundle(name))], True


def test_each_is_refused_in_time(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    honest = recipes.r8("verify", str(scene.bundle))
    whole_s = WHOLE_SHARE_MAX * min(honest.wall_s, honest.cpu_s)
    late = []
    print(f"\n{'case':42} {'verb':7} {'code':>4} {'wall s':>7} {'CPU s':>7} {'MB':>5}")
    for name, argv, whole in _cases(scene):
        ended = recipes.r8(*argv)
        print(
            f"{name:42} {argv[0]:7} {ended.code:4} {ended.wall_s:7.2f} {ended.cpu_s:7.2f} "
            f"{ended.peak_bytes / 1e6:5.0f}"
        )
        require_refused(ended)
        if min(ended.wall_s, ended.cpu_s) > (whole_s if whole else REFUSED_S_MAX):
            late.append(f"{name}: {argv[0]} {ended.wall_s:.2f} s")
    assert late == []
