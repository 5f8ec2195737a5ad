from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from probes.cache.known_read import known_read
from probes.errors import ProbeError

if TYPE_CHECKING:
    from pathlib import Path


def test_a_known_read_reads_exactly_so_much_or_refuses(tmp_path: Path) -> None:
    file = tmp_path / "data"
    file.write_bytes(b"r8" * (2 << 20))
    try:
        found = known_read(file, 3 << 20)
    except ProbeError as error:
        if "Invalid argument" in error.what:
            pytest.skip("this file system has no O_DIRECT")
        raise
    assert found.read_bytes == 3 << 20
    assert found.end_ns > found.begin_ns
    for size in (5 << 20, 100):
        with pytest.raises(ProbeError, match="bytes wanted"):
            known_read(file, size)
    with pytest.raises(ProbeError, match="absent"):
        known_read(tmp_path / "nothing", 1 << 20)
