"""The long soak. `LOAD_CLIENT_SOAK_S` shortens it for a look; only 1800 s or more qualifies."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ..support.null_servers import null_server
from ..support.runs import rows

ROOT = Path(__file__).resolve().parents[3]
SOAK_S = float(os.environ.get("LOAD_CLIENT_SOAK_S", "1800"))
STREAMS = 256
SLICE_S = SOAK_S / 30
# Between the third slice (everything warm) and the last: allocator noise, no growth. Rows of a
# half hour are 250 MB and more; keeping even a twentieth of them would show.
GROWTH_MAX_BYTES = 8 << 20


def _journal_counts(path: Path) -> dict[str, int]:
    counts: dict[str, int] = {}
    with path.open(encoding="ascii") as lines:
        for line in lines:
            outcome = json.loads(line)["outcome"]
            counts[outcome] = counts.get(outcome, 0) + 1
    return counts


def _soak(url: str, out: Path) -> subprocess.CompletedProcess[str]:
    plan = {
        "phase": "measure", "instance": "e0", "base_url": url, "model": "null", "shape": "soak",
        "sessions": [0], "prompt_tokens": 1000, "output_tokens": 32, "concurrency": STREAMS,
        "duration_s": SOAK_S, "slice_s": SLICE_S, "timeout_s": 60, "seed": 8,
    }  # fmt: skip
    (out / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    words = [sys.executable, "-m", "load_client", "run", "--quiet", "--plan"]
    words += [str(out / "plan.json"), "--out", str(out)]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.qualify
def test_a_half_hour_at_256_streams_grows_no_memory_and_loses_no_request(tmp_path: Path) -> None:
    with null_server(ttft_ms=2000, chunks=32, interval_ms=200, keep_truth=False) as server:
        done = _soak(server.url, tmp_path)
        server.stop()
        (told,) = server.answer()
    assert done.returncode == 0, done.stderr
    counts = _journal_counts(tmp_path / "requests.jsonl")
    (load_path,) = (tmp_path / "raw").glob("load-*")
    load: list[dict[str, Any]] = rows(load_path)
    slices = [row for row in load if row["kind"] == "slice"]
    resident = [one["resident_bytes"] for one in slices]
    print(f"{SOAK_S:g} s, {counts}, server {told}, resident {resident}")
    assert told["begun"] == told["served"] == sum(counts.values()) == counts["ok"]
    assert sum(one["ended"].get("ok", 0) for one in slices) == counts["ok"]
    # A slice is cut at the first flush behind its end.
    assert len(slices) >= SOAK_S // (SLICE_S + 1)
    assert not [row for row in load if row["kind"] == "finding"]
    assert resident[-2] - resident[2] <= GROWTH_MAX_BYTES
    levels = [row["in_flight"] for row in load if row["kind"] == "in_flight"]
    assert sorted(levels)[len(levels) // 2] == STREAMS
