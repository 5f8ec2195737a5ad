"""200 random changes of a sealed bundle, each refused by name; in batches, so that it resumes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from r8.tests.seal.test_verify import SEED, Sealed, refuse_random_changes

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.qualify
BATCHES, CHANGES_OF_A_BATCH = 10, 20


@pytest.fixture(scope="module", name="bundle")
def _bundle(tmp_path_factory: pytest.TempPathFactory) -> Sealed:
    return Sealed(tmp_path_factory.mktemp("sealed"))


@pytest.mark.parametrize("batch", range(BATCHES))
def test_twenty_random_changes_are_each_refused_by_name(
    bundle: Sealed, tmp_path: Path, batch: int
) -> None:
    seen = refuse_random_changes(bundle, tmp_path, SEED + batch, CHANGES_OF_A_BATCH)
    print(dict(seen))
    assert sum(seen.values()) == CHANGES_OF_A_BATCH
    # Some forge the seal, some only the content: more than one check has to be awake.
    assert len(seen) > 1
