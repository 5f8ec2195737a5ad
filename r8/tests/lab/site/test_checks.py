"""A site file with a number that is none, or with something said twice, is refused when read."""

from __future__ import annotations

from pathlib import Path

import pytest

from r8.errors import EXIT_USAGE, SiteError
from r8.lab.site.file import load_site

SITES = Path(__file__).resolve().parents[4] / "data" / "sites"
CLUSTER, CHECKPOINT, MODELS = "mi308x-480b", "mi308x-r1-checkpoint", "mi308x-r1-models"

NUMBERS = [
    (CLUSTER, "bytes_per_token = 253952", "bytes_per_token = -5", "bytes_per_token"),
    (CLUSTER, "prompt_tokens = 30300", "prompt_tokens = -30300", "prompt_tokens"),
    (CLUSTER, "chunk_tokens = 256", "chunk_tokens = 0", "chunk_tokens"),
    (CLUSTER, "ranks = 8", "ranks = 0", "ranks"),
    (CLUSTER, "flush_sessions = 6", "flush_sessions = -6", "flush_sessions"),
    (CLUSTER, "blocks = 5", "blocks = 0", "blocks"),
    (CLUSTER, "concurrency = [8, 16, 32]", "concurrency = [0, 16]", "concurrency"),
    (CLUSTER, "concurrency = [8, 16, 32]", "concurrency = []", "concurrency"),
    (CLUSTER, "{ recompute = [16] }", "{ recompute = [-16] }", "levels"),
    (CLUSTER, 'instances = ["tp8"]', "instances = []", "instances"),
    (CLUSTER, "port = 8001", "port = 80010", "port"),
    (CLUSTER, "vocab = [1000, 100000]", "vocab = [100000, 1000]", "vocab"),
    (CHECKPOINT, "concurrency = [8]", "concurrency = [0]", "concurrency"),
    (CHECKPOINT, "worker_bytes = 65_600_000_000", "worker_bytes = 0", "worker_bytes"),
    (CHECKPOINT, "shard_bytes = 5_000_000_000", "shard_bytes = -5", "shard_bytes"),
    (CHECKPOINT, "tensor_bytes = 536_870_912", "tensor_bytes = 0", "tensor_bytes"),
    (CHECKPOINT, "tensor_bytes = 536_870_912", "tensor_bytes = 3", "half-precision"),
    (CHECKPOINT, "ceiling_bytes = 34_359_738_368", "ceiling_bytes = 0", "ceiling_bytes"),
    (MODELS, "time_scale = 1.0", "time_scale = 0.0", "time_scale"),
    (MODELS, "period_s = 180.0", "period_s = -180.0", "period_s"),
    ("rehearsal", "image_bytes = 4_831_838_208", "image_bytes = -1", "image_bytes"),
]

TWICE = [
    (CLUSTER, 'name = "node0"', 'name = "node0"\n\n[[hosts]]\nname = "node0"', "hosts names"),
    (CLUSTER, "port = 8001", "port = 8000", "both use port 8000 on node0"),
    (MODELS, "port = 8007", "port = 8000", "instances a and h both use port 8000"),
    (CLUSTER, "concurrency = [8, 16, 32]", "concurrency = [8, 8]", "concurrency names '8' twice"),
    (CLUSTER, '["array", "local-nvme", "recompute"]', '["array", "array", "recompute"]', "twice"),
    (CLUSTER, 'instances = ["a", "b"]', 'instances = ["a", "a"]', "names 'a' twice"),
    (CLUSTER, 'kv_dir = "/mnt/nvme/r8"', 'kv_dir = "/mnt/array/r8"', "2 devices have the kv_dir"),
    (CLUSTER, 'kv_dir = "/mnt/nvme/r8"', 'kv_dir = "/mnt/array/r8/"', "2 devices have the kv_dir"),
]

WORDS = [
    (CLUSTER, 'kv_dir = "/mnt/array/r8"', 'kv_dir = "r8"', "not absolute"),
    (MODELS, 'files_dir = "/mnt/array/models"', 'files_dir = "models"', "not absolute"),
    (MODELS, "period_s = 180.0, ", "", "no settings.period_s"),
    (CHECKPOINT, "tensor_bytes =", "tensr_bytes =", "'tensr_bytes', which job checkpoint"),
    (CHECKPOINT, "cuda:{worker}", "cuda:{rank}", "not defined: 'rank'"),
]


def _refusal(tmp_path: Path, site: str, old: str, new: str) -> SiteError:
    text = (SITES / f"{site}.toml").read_text()
    assert old in text
    path = tmp_path / "site.toml"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(SiteError) as raised:
        load_site(path)
    return raised.value


@pytest.mark.parametrize(("site", "old", "new", "said"), [*NUMBERS, *TWICE, *WORDS])
def test_it_is_refused_with_its_name_and_a_next_step(
    tmp_path: Path, site: str, old: str, new: str, said: str
) -> None:
    refusal = _refusal(tmp_path, site, old, new)
    assert said in refusal.what
    assert refusal.next_step
    assert refusal.exit_code == EXIT_USAGE


def test_two_instances_of_one_name_are_refused_though_every_name_is_defined(tmp_path: Path) -> None:
    old = '[[instances]]\nname = "b"'
    refusal = _refusal(tmp_path, CLUSTER, old, f'[[instances]]\nname = "a"\nport = 9\n\n{old}')
    assert "instances names 'a' twice" in refusal.what


def test_engines_that_never_run_together_may_share_a_port() -> None:
    site = load_site(SITES / f"{CLUSTER}.toml").site
    assert site.instance("tp8").port == site.instance("a").port


@pytest.mark.parametrize(
    ("site", "old", "new", "said"),
    [
        (CLUSTER, "ranks = 4", "ranks = 0", "scenarios.r3-tp4x2: Expected `int` >= 1"),
        (CLUSTER, "levels = { pool-cross", "levls = { pool-cross", "scenarios.r3-tp4x2: Object"),
        (MODELS, "time_scale = 1.0", "time_scale = 'x'", "works.r1-model-switch: Expected"),
        (
            CLUSTER,
            '[arms.fs-own]\ndevice = "array"',
            "[arms.fs-own]",
            "arms.fs-own: Object missing",
        ),
    ],
)
def test_what_does_not_fit_is_told_with_its_table(
    tmp_path: Path, site: str, old: str, new: str, said: str
) -> None:
    assert said in _refusal(tmp_path, site, old, new).what
