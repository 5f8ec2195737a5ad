"""The commands of the published platform, as a dry run prints them: nothing is run."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from r8.lab.campaign.campaign import plan_campaign
from r8.lab.preflight.dry_run import dry_run
from r8.lab.site.load import load_site

if TYPE_CHECKING:
    from r8.lab.site.file import LoadedSite

SITES = Path(__file__).resolve().parents[4] / "data" / "sites"


def starts_of(loaded: LoadedSite, scenario: str, tmp_path: Path) -> list[str]:
    """The lines that start an engine."""
    arms = loaded.site.scenarios[scenario].arms
    matrix, cells = plan_campaign(loaded, scenario, arms, blocks=1, seed=8)
    lines = dry_run(loaded, matrix, cells, tmp_path)
    return [line for line in lines if "vllm.entrypoints.openai.api_server" in line]


def test_r2_starts_one_engine_a_life_with_the_published_flags(tmp_path: Path) -> None:
    starts = starts_of(load_site(SITES / "mi308x-480b.toml"), "r2-cold-recovery", tmp_path)
    assert len(starts) == 3
    for line in starts:
        for words in (
            "docker exec -i vllm",
            "--tensor-parallel-size 8 --enable-expert-parallel --trust-remote-code",
            "--max-model-len 32768 --gpu-memory-utilization 0.9 --no-enable-prefix-caching",
            "VLLM_ROCM_USE_AITER=1",
            "HIP_VISIBLE_DEVICES=0,1,2,3,4,5,6,7",
        ):
            assert words in line
    with_kv = [line for line in starts if "LMCacheConnectorV1" in line]
    assert len(with_kv) == 2
    for line in with_kv:
        for words in (
            '"kv_role":"kv_both"',
            "LMCACHE_CHUNK_SIZE=256",
            "LMCACHE_MAX_LOCAL_CPU_SIZE=4",
            "LMCACHE_MAX_LOCAL_DISK_SIZE=1000",
            "LMCACHE_LOCAL_DISK=file:///mnt/",
        ):
            assert words in line
    (without,) = set(starts) - set(with_kv)
    assert "LMCACHE_" not in without


def test_r3_starts_two_engines_a_life_and_shares_only_the_fs_pool(tmp_path: Path) -> None:
    starts = starts_of(load_site(SITES / "mi308x-480b.toml"), "r3-tp4x2", tmp_path)
    assert len(starts) == 8
    assert all("--tensor-parallel-size 4" in line for line in starts)
    assert sum("HIP_VISIBLE_DEVICES=0,1,2,3 " in line for line in starts) == 4
    assert sum("HIP_VISIBLE_DEVICES=4,5,6,7 " in line for line in starts) == 4
    shared = [line for line in starts if "LMCACHE_REMOTE_URL=fs://local:0/mnt/array" in line]
    assert len(shared) == 2
    assert not any("LMCACHE_LOCAL_DISK" in line for line in shared)


def test_behind_ssh_every_command_arrives_as_one_quoted_word(tmp_path: Path) -> None:
    loaded = load_site(SITES / "nvidia.toml")
    matrix, cells = plan_campaign(loaded, "r2-cold-recovery", ("array",), blocks=1, seed=8)
    lines = list(dry_run(loaded, matrix, cells, tmp_path))
    remote = [line for line in lines if "$ ssh " in line]
    assert any("api_server" in line for line in remote)
    assert any("probes record" in line for line in remote)
    assert any("probes residency" in line for line in remote)
    assert any("r8-drop-caches" in line for line in remote)
    for line in remote:
        # An ssh is typed on this machine, not on the one it leads to.
        assert line.startswith("here$ ")
        words = shlex.split(line.partition("$ ")[2].removesuffix(" &"))
        assert words[:4] == ["ssh", "-o", "BatchMode=yes", "node0"]
        assert words[5:] == [] or words[5] in {"<", "until", "-"}, words[5:]


def test_each_engine_of_a_container_is_asked_for_its_own_pid(tmp_path: Path) -> None:
    """What `docker exec` starts is no child of the container's first process, nor of the other."""
    loaded = load_site(SITES / "mi308x-480b.toml")
    matrix, cells = plan_campaign(loaded, "r3-tp4x2", ("recompute",), blocks=1, seed=8)
    asked = [line for line in dry_run(loaded, matrix, cells, tmp_path) if "docker top" in line]
    assert len(asked) == 2
    for port, line in zip((8000, 8001), asked, strict=True):
        script = shlex.split(line.partition("$ ")[2])[2]
        assert script.startswith("docker top vllm -eo pid,args | awk ")
        assert f"--port {port}( |$)/{{print $1; exit}}" in script


def transfer_lines(site: str, scenario: str, arm: str, tmp_path: Path) -> list[str]:
    """What one arm of a scenario without a KV engine prints, one block."""
    loaded = load_site(SITES / f"{site}.toml")
    matrix, cells = plan_campaign(loaded, scenario, (arm,), blocks=1, seed=8)
    return list(dry_run(loaded, matrix, cells, tmp_path))


def place_of(lines: list[str], words: str) -> int:
    """Where the first line with these words stands."""
    return next(number for number, line in enumerate(lines) if words in line)


def test_workers_are_printed_as_they_are_started_between_fio_and_the_drop(tmp_path: Path) -> None:
    lines = transfer_lines("mi308x-r1-models", "r1-model-load", "array", tmp_path)
    workers = [shlex.split(line.partition("$ ")[2]) for line in lines if " --device cuda:" in line]
    assert [words[3] for words in workers] == [f"cuda:{number}" for number in range(8)]
    assert all(Path(words[1]).is_file() and words[4] == "--answers" for words in workers)
    order = ["fio --name=ceiling", "--device cuda:0", "probes record", "sync -f", "drop_caches"]
    order += ["--moment after_drop", "--moment after_measure"]
    found = [
        place_of(lines[place_of(lines, "# cell") if number else 0 :], words)
        for number, words in enumerate(order)
    ]
    assert found[0] < place_of(lines, "# cell")
    assert found[1:] == sorted(found[1:])
    assert not any("mkdir" in line and "/mnt/array/models" in line for line in lines)


def test_engines_that_load_at_once_have_a_gpu_a_port_and_a_model_each(tmp_path: Path) -> None:
    lines = transfer_lines("mi308x-r1-models", "r1-model-load", "array-engine", tmp_path)
    starts = [line for line in lines if "api_server" in line]
    assert len(starts) == 8
    for number, line in enumerate(starts):
        assert f"HIP_VISIBLE_DEVICES={number} " in line
        assert f"--port {8000 + number} " in line
        assert f"--model /mnt/array/models/MODEL_{number} " in line


def test_a_checkpoint_is_not_brought_to_the_device_by_us_before_the_drop(tmp_path: Path) -> None:
    lines = transfer_lines("mi308x-r1-checkpoint", "r1-checkpoint", "array-sharded", tmp_path)
    assert not any("$ sync" in line or "sync -f" in line for line in lines)
    assert any("a snapshot of 65600000000 bytes of all ranks together" in line for line in lines)
    order = [
        "mkdir",
        "--device cuda:0",
        "--name=write_ceiling",
        "drop_caches",
        "after_drop",
        "rm -rf",
    ]
    assert [place_of(lines, words) for words in order] == sorted(
        place_of(lines, words) for words in order
    )
    assert "--size=17179869184" in lines[place_of(lines, "--name=write_ceiling")]
