"""Hostile runs and bundles, read by the real command: refused with code 3, in words, in 300 MB.

How long each takes stands in `nox -s qualify` (`r8/tests/qualify/test_recipes.py`).
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from r8.claims.reader import load_claims
from r8.errors import EXIT_INVALID
from r8.seal import keys
from r8.seal.bundle import seal
from r8.tests.cli import recipes
from r8.tests.seal.hostile_archives import HOSTILE
from r8.tests.support import bundle_tools as tools
from r8.tests.support.judged_run import judged_run
from r8.tests.support.run_factory import SyntheticRun
from r8.tests.test_text import is_clean

if TYPE_CHECKING:
    from collections.abc import Iterator

    from r8.tests.cli.recipes import Ended

PEAK_BYTES_MAX = 300 << 20
# As they lay in the folder the recipes came with; the others are read in `r8/tests/seal`.
ARCHIVES = [*sorted(name for name in HOSTILE if name.startswith("t")), "claims.tar.gz"]


class Scene:
    """An honest run and an honest bundle; a recipe has copies of them to spoil."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._count = 0
        self.run = judged_run(root / "honest", SyntheticRun()).path
        keys.make_ed25519(root / "key")
        self._key = keys.Ed25519Key(root / "key")
        runs = tools.sealed_campaign(root / "runs")
        self.bundle = seal(runs, load_claims(), root / "bundle.tar.zst", self._key)
        self._tree = tools.opened(self.bundle, root / "tree")

    def _place(self) -> Path:
        self._count += 1
        place = self._root / f"case-{self._count}"
        place.mkdir()
        return place

    def spoilt_run(self, name: str) -> Path:
        copy = Path(shutil.copytree(self.run, self._place() / self.run.name))
        return recipes.spoilt_run(copy, name)

    def spoken_run(self, name: str) -> Path:
        return judged_run(self._place(), SyntheticRun(), recipes.READ[name]).path

    def spoilt_bundle(self, name: str) -> Path:
        place = self._place()
        tree = Path(shutil.copytree(self._tree, place / "tree"))
        return recipes.spoilt_bundle(tree, name, self._key, place / "bundle")

    def archive(self, name: str) -> Path:
        path = self._place() / name
        path.write_bytes(HOSTILE[name][0])
        return path


@pytest.fixture(scope="module", name="scene")
def _scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    root = tmp_path_factory.mktemp("recipes")
    yield Scene(root)
    shutil.rmtree(root)


def require_harmless(ended: Ended) -> None:
    """In words alone, and in bounded memory."""
    assert all(map(is_clean, ended.said.split("\n"))), ended.said
    assert ended.peak_bytes < PEAK_BYTES_MAX


def require_refused(ended: Ended) -> None:
    """With its own code, and without an answer that looks like another."""
    assert ended.code == EXIT_INVALID, ended.said
    assert not any(line.startswith("PASS everything") for line in ended.said.splitlines())
    require_harmless(ended)


@pytest.mark.parametrize("name", [*recipes.RUNS, *recipes.PLACES])
def test_a_hostile_run_is_refused(scene: Scene, name: str) -> None:
    require_refused(recipes.r8("judge", str(scene.spoilt_run(name))))


@pytest.mark.parametrize("name", recipes.READ)
def test_a_run_of_hostile_words_is_judged_like_another(scene: Scene, name: str) -> None:
    ended = recipes.r8("judge", str(scene.spoken_run(name)))
    assert ended.code == recipes.r8("judge", str(scene.run)).code
    assert "internal error" not in ended.said
    require_harmless(ended)


@pytest.mark.parametrize("name", [*recipes.BUNDLES, *recipes.STATEMENTS])
def test_a_hostile_bundle_is_refused(scene: Scene, name: str) -> None:
    require_refused(recipes.r8("verify", str(scene.spoilt_bundle(name))))


@pytest.mark.parametrize("name", ARCHIVES)
def test_a_hostile_archive_is_refused(scene: Scene, name: str) -> None:
    require_refused(recipes.r8("verify", str(scene.archive(name))))


def test_the_honest_bundle_is_not(scene: Scene) -> None:
    """Or the others would be refused for nothing that a recipe did."""
    ended = recipes.r8("verify", str(scene.bundle))
    assert ended.code == 0, ended.said
    require_harmless(ended)
