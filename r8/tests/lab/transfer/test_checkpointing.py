"""What a rank writes and when it commits, in a plain directory; and what the plan expects of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from r8.errors import SiteError
from r8.lab.campaign.campaign import plan_campaign
from r8.lab.instruments import fio
from r8.lab.machine import commands
from r8.lab.site.load import load_site
from r8.lab.site.plan import places
from r8.lab.testbed import imagined
from r8.lab.transfer import checkpointing
from r8.lab.transfer.stage import transfer_of
from r8.lab.transfer.tools import write_checkpoint

if TYPE_CHECKING:
    from r8.lab.transfer.stage import Files

SITES = Path(__file__).resolve().parents[4] / "data" / "sites"
MIB = 1 << 20


def saved(tool: str) -> Files:
    """What four ranks of the rehearsal write with a tool."""
    loaded = load_site(SITES / "rehearsal.toml")
    _, cells = plan_campaign(loaded, "r1-checkpoint", (f"array-{tool}",), blocks=1, seed=8)
    (place,) = (one for one in cells if one.concurrency == 4)
    found = transfer_of(imagined(loaded.site), "r1-checkpoint", place, run_id="r", seed=8)
    return checkpointing.planned(found)


def test_both_interpretations_of_the_published_text_are_planned() -> None:
    full, sharded = (saved(tool) for tool in ("full-each", "sharded"))
    assert full.total_bytes == 4 * sharded.total_bytes
    assert sharded.total_bytes == 192 * MIB
    assert (full.files, sharded.files) == (12, 4)


@pytest.mark.parametrize("tensor", [2, 4, 10])
@pytest.mark.parametrize("shard", [2, 10, 25, 40])
def test_as_many_files_are_expected_as_a_rank_cuts(tensor: int, shard: int) -> None:
    """Also where what remains of the weights finds room in a file of whole tensors."""
    for part in range(2, 130, 2):
        made = write_checkpoint.make_tensors(
            {"bytes": part, "tensor_bytes": tensor, "seed": 8, "rank": 0}
        )
        cut = write_checkpoint.pieces(made, shard)
        assert checkpointing.files_of(part, tensor, shard) == len(cut), (part, tensor, shard)


def order(tmp_path: Path, rank: int, **more: Any) -> dict[str, Any]:
    (tmp_path / "rendezvous").mkdir(exist_ok=True)
    return {
        "order": 7,
        "rank": rank,
        "directory": str(tmp_path / "step-1"),
        "layout": "full-each",
        "shard_bytes": 2 * MIB,
        "tensors": None,
        "fsync": True,
        "rendezvous": str(tmp_path / "rendezvous"),
        "peers": {},
        **more,
    }


def tensors(rank: int, size: int = 5 * MIB) -> dict[str, Any]:
    return write_checkpoint.make_tensors(
        {"seed": 1, "rank": rank, "bytes": size, "tensor_bytes": MIB}
    )


@pytest.mark.parametrize("layout", ["full-each", "sharded"])
def test_only_rank_0_commits_and_every_part_reads_back(tmp_path: Path, layout: str) -> None:
    peers = {"1": os.getpid()}
    second = write_checkpoint.save(tensors(1), order(tmp_path, 1, layout=layout))
    assert not second["committed"]
    assert [path.name for path in tmp_path.glob("step*")] == ["step-1.partial"]
    first = write_checkpoint.save(tensors(0), order(tmp_path, 0, layout=layout, peers=peers))
    assert first["committed"]
    assert (first["files"], first["synced_files"], first["synced_directories"]) == (3, 3, 3)
    assert [path.name for path in tmp_path.glob("step*")] == ["step-1"]
    for rank in (0, 1):
        found = write_checkpoint.read(order(tmp_path, rank, layout=layout))
        assert found["sha256"] == write_checkpoint.digest_of(tensors(rank))
        assert found["bytes"] == 5 * MIB


def test_a_rank_that_is_gone_or_failed_keeps_the_checkpoint_from_its_name(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    with pytest.raises(write_checkpoint.RankError, match="is gone"):
        write_checkpoint.save(tensors(0), order(tmp_path, 0, peers={"1": gone.pid}))
    (tmp_path / "rendezvous" / "7-1-failed").touch()
    with pytest.raises(write_checkpoint.RankError, match="failed"):
        write_checkpoint.save(tensors(0), order(tmp_path, 0, peers={"1": os.getpid()}))
    assert not (tmp_path / "step-1").exists()


def test_a_flipped_bit_is_another_hash(tmp_path: Path) -> None:
    write_checkpoint.save(tensors(0), order(tmp_path, 0))
    path = next((tmp_path / "step-1").rglob("*.safetensors"))
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    found = write_checkpoint.read(order(tmp_path, 0))
    assert found["sha256"] != write_checkpoint.digest_of(tensors(0))


def test_ranks_have_weights_of_their_own() -> None:
    assert write_checkpoint.digest_of(tensors(0)) != write_checkpoint.digest_of(tensors(1))


def answer(written: int, runtime_ms: int) -> str:
    write = {"io_bytes": written, "runtime": runtime_ms}
    return "fio: a warning\n" + json.dumps({"jobs": [{"write": write}]})


def test_the_write_ceiling_is_a_flushed_direct_write_whose_file_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []

    def run(argv: list[str], *, timeout_s: float = 0) -> commands.CommandResult:
        asked.append(argv)
        if argv[0] == "fio":
            (tmp_path / "write-ceiling.bin").write_bytes(b"x")
        return commands.CommandResult(
            argv=tuple(argv), returncode=0, output=answer(80 * MIB, 1000), error=None
        )

    monkeypatch.setattr(commands, "run", run)
    row = fio.write_ceiling(tmp_path, "array", 80 * MIB)
    assert fio.write_bytes_per_s(row) == 80 * MIB
    assert {"--direct=1", "--end_fsync=1", f"--size={80 * MIB}"} <= set(asked[0])
    assert asked[1][:2] == ["sync", "-f"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("said", ["", "no JSON", answer(0, 10)])
def test_a_fio_that_wrote_nothing_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    result = commands.CommandResult(argv=("fio",), returncode=0, output=said, error=None)
    monkeypatch.setattr(commands, "run", lambda _argv, **_: result)
    with pytest.raises(SiteError, match="writing the ceiling of array failed"):
        fio.write_ceiling(tmp_path, "array", MIB)


def test_an_arm_runs_on_the_engines_it_names_each_under_the_same_load() -> None:
    site = load_site(SITES / "mi308x-r1.toml").site
    plan = site.scenarios["r1-scaling"]
    for name, engines in (("gpu-1", 1), ("gpu-2", 2), ("gpu-4", 4), ("gpu-8", 8)):
        mine = plan.on(site.arms[name])
        assert len(mine.instances) == engines
        (place,) = places(site, "r1-scaling", (name,), 1, seed=8)
        assert place.sessions == place.concurrency == 16 * engines
    plan = site.scenarios["r1-parallel-read"]
    assert plan.on(site.arms["patched"]).instances == ("a",)


def test_an_arm_on_an_engine_nobody_defined_is_refused(tmp_path: Path) -> None:
    text = (SITES / "mi308x-r1.toml").read_text()
    path = tmp_path / "site.toml"
    path.write_text(text.replace('instances = ["a", "b"]', 'instances = ["a", "z"]', 1))
    with pytest.raises(SiteError, match=r"gpu-2\.instances names 'z'"):
        load_site(path)
