"""A site file is read whole: everything that is wrong with it is told at once, a line a fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from r8.cli.main import main
from r8.errors import EXIT_USAGE, SiteError, SiteFileError
from r8.lab.site.file import fill
from r8.lab.site.load import load_site
from r8.lab.site.plan import places

SITES = Path(__file__).resolve().parents[4] / "data" / "sites"
CLUSTER, CHECKPOINT, MODELS = "mi308x-480b", "mi308x-r1-checkpoint", "mi308x-r1-models"
REHEARSAL = "rehearsal"

NUMBERS = [
    (CLUSTER, "bytes_per_token = 253952", "bytes_per_token = 0", "bytes_per_token 0 is not"),
    (CLUSTER, "prompt_tokens = 30300", "prompt_tokens = -30300", "prompt_tokens"),
    (CLUSTER, "chunk_tokens = 256", "chunk_tokens = 0", "chunk_tokens"),
    (CLUSTER, "ranks = 8", "ranks = 0", "ranks"),
    (CLUSTER, "flush_sessions = 6", "flush_sessions = -1", "flush_sessions"),
    (CLUSTER, "blocks = 5", "blocks = 0", "blocks"),
    (CLUSTER, "concurrency = [8, 16, 32]", "concurrency = [0, 16]", "concurrency 0 is not"),
    (CLUSTER, "concurrency = [8, 16, 32]", "concurrency = []", "concurrency is empty"),
    (CLUSTER, "{ recompute = [16] }", "{ recompute = [-16] }", "levels.recompute"),
    (CLUSTER, 'instances = ["tp8"]', "instances = []", "instances is empty"),
    (CLUSTER, "port = 8001", "port = 65536", "b.port 65536 is not a port"),
    (CLUSTER, "port = 8001", "port = 0", "b.port 0 is not a port"),
    (CLUSTER, "vocab = [1000, 100000]", "vocab = [100000, 100000]", "vocab runs from"),
    (CLUSTER, "ready_timeout_s = 3600.0", "ready_timeout_s = 0.0", "ready_timeout_s"),
    (CLUSTER, "concurrency = [16, 32]", "concurrency = [15]", "cannot share level 15 of arm pool"),
    (CHECKPOINT, "concurrency = [8]", "concurrency = [0]", "concurrency"),
    (CHECKPOINT, "worker_bytes = 65_600_000_000", "worker_bytes = 1", "worker_bytes"),
    (CHECKPOINT, "shard_bytes = 5_000_000_000", "shard_bytes = -5", "shard_bytes"),
    (CHECKPOINT, "tensor_bytes = 536_870_912", "tensor_bytes = 0", "tensor_bytes"),
    (CHECKPOINT, "tensor_bytes = 536_870_912", "tensor_bytes = 3", "half-precision"),
    (CHECKPOINT, "ceiling_bytes = 34_359_738_368", "ceiling_bytes = 0", "ceiling_bytes"),
    (MODELS, "time_scale = 1.0", "time_scale = 0.0", "time_scale"),
    (MODELS, "period_s = 180.0", "period_s = -180.0", "period_s"),
    (REHEARSAL, "image_bytes = 4_831_838_208", "image_bytes = 0", "image_bytes"),
]
# At the limit, and accepted.
LIMITS = [
    (CLUSTER, "port = 8001", "port = 65535"),
    (CLUSTER, "flush_sessions = 6", "flush_sessions = 0"),
    (CLUSTER, "vocab = [1000, 100000]", "vocab = [0, 1]"),
    (CLUSTER, "blocks = 5", "blocks = 1"),
    (CHECKPOINT, "tensor_bytes = 536_870_912", "tensor_bytes = 2"),
    (CHECKPOINT, "worker_bytes = 65_600_000_000", "worker_bytes = 2"),
]
TWICE = [
    (CLUSTER, 'name = "node0"', 'name = "node0"\n\n[[hosts]]\nname = "node0"', "hosts names"),
    (CLUSTER, '[[instances]]\nname = "b"', '[[instances]]\nname = "a"', "instances names 'a' twi"),
    (CLUSTER, "port = 8001", "port = 8000", "a and b both use port 8000 on node0"),
    (MODELS, "port = 8007", "port = 8000", "instances a and h both use port 8000"),
    (CLUSTER, "concurrency = [8, 16, 32]", "concurrency = [8, 8]", "concurrency names '8' twice"),
    (CLUSTER, '["array", "local-nvme", "recompute"]', '["array", "array", "recompute"]', "twice"),
    (CLUSTER, '"recompute"]\ninst', '"recompute"]\nother_arms = ["array"]\ninst', "'array' twice"),
    (CLUSTER, 'instances = ["a", "b"]', 'instances = ["a", "a"]', "names 'a' twice"),
    (CLUSTER, 'kv_dir = "/mnt/nvme/r8"', 'kv_dir = "/mnt/array/r8"', "2 devices have the kv_dir"),
    (CLUSTER, 'kv_dir = "/mnt/nvme/r8"', 'kv_dir = "/mnt/array/r8/"', "2 devices have the kv_dir"),
]
WORDS = [
    (CLUSTER, 'kv_dir = "/mnt/array/r8"', 'kv_dir = "r8"', '"r8" is not an absolute path'),
    (MODELS, 'files_dir = "/mnt/array/models"', 'files_dir = "models"', "is not an absolute path"),
    (MODELS, "period_s = 180.0, ", "", "has no period_s"),
    (MODELS, 'tool = "engine"', 'tool = "own-loader"', "'own-loader' is no tool of job load"),
    (CHECKPOINT, "tensor_bytes =", "tensr_bytes =", "'tensr_bytes', which job checkpoint"),
    (CHECKPOINT, "cuda:{worker}", "cuda:{rank}", "not defined: 'rank'"),
    (CHECKPOINT, '"local-sharded"]', '"local-shard"]', "no table .arm.local-shard"),
    (MODELS, '"local-engine"]', '"nfs"]', "no table .arm.nfs"),
    (REHEARSAL, 'name = "rehearsal"', 'name = "rehearsal"\nsudo_password = "x"', "sudo_password"),
    (REHEARSAL, "ready_timeout_s =", "ready_timout_s =", "-> write ready_timeout_s"),
    (REHEARSAL, "\nsessions = 16", "\nsessions = 'many'", 'sessions "many" is not a whole number'),
    (REHEARSAL, "schema = 2", "schema = 99", "schema 99 is not 2"),
    (REHEARSAL, 'name = "local"\n', 'name = "elsewhere"\n', "host names 'local'"),
    (REHEARSAL, 'arms = ["unpatched"', 'arms = ["unpached"', "'unpached', which is not defined"),
    (REHEARSAL, 'patch = "patched"', 'patch = "pached"', '-> write patch = "patched"'),
    (REHEARSAL, 'basis = "modelled"', 'basis = "modeled"', '-> write basis = "modelled"'),
    (REHEARSAL, 'basis = "modelled"', 'basis = "true"', 'write one of "measured", "modelled"'),
    (REHEARSAL, 'lmcache = "0.5.6"', 'lmcache = "0.5.9"', "which [rehearsal] does not install"),
    (REHEARSAL, "[rehearsal.models.r3-tp4x2]", "[rehearsal.models.r3-tp4]", "write r3-tp4x2"),
    (REHEARSAL, "levels = { pool-cross", "levels = { pool-x", "'pool-x', which is no arm here"),
]
CONTRACTS = [
    ('role = "pool"', 'role = "pol"', '-> write role = "pool"'),
    ('role = "pool"', 'role = "what"', 'write one of "array", "local"'),
    ('role = "pool"\n', "", "arms.pool.role is missing"),
    ('kv = "none"', 'kv = "disk"', "gives kv, patch or reads to the role recompute"),
    ('{ patch = "unpatched" }\nengine', '{ lmcache = "0.5.0" }\nengine', "patch is missing"),
    (
        '{ patch = "unpatched" }',
        '{ patch = "unpatched", kv = "disk" }',
        "no KV tier of the role sh",
    ),
    ('sessions_of = "neighbour"', 'sessions_of = "itself"', "not what the role negative measures"),
]


def _path(tmp_path: Path, site: str, *pairs: tuple[str, str]) -> Path:
    text = (SITES / f"{site}.toml").read_text()
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new, 1)
    path = tmp_path / "site.toml"
    path.write_text(text)
    return path


def _lines(path: Path) -> tuple[str, ...]:
    with pytest.raises(SiteFileError) as raised:
        load_site(path)
    assert raised.value.exit_code == EXIT_USAGE
    assert all(" -> " in line for line in raised.value.lines)
    return raised.value.lines


@pytest.mark.parametrize("path", sorted(SITES.glob("*.toml")), ids=lambda path: path.stem)
def test_every_shipped_site_file_loads_and_its_commands_fill(path: Path) -> None:
    site = load_site(path).site
    names = {"port": "1", "kv_dir": "/kv", "stack_python": "python3", "model_dir": "/m"}
    for instance in site.instances:
        words = (*site.engine.command, *site.engine.kv_args)
        command = fill(words, names | site.vars | instance.vars, where="test")
        # A site of nothing but transfers starts no engine with a KV tier.
        has_kv = any("kv_connector" in word and "{{" not in word for word in command)
        assert has_kv == bool(site.scenarios)
        assert not any("kv_connector" in word for word in site.engine.command)
    for name in (*site.scenarios, *site.transfers):
        plan = site.plan_of(name)
        assert plan is not None
        assert set(plan.arms) <= set(site.arms_of(name)), name
        assert places(site, name, plan.arms, 1, 0)


def test_a_rehearsal_is_modelled() -> None:
    assert load_site(SITES / f"{REHEARSAL}.toml").site.basis == "modelled"


@pytest.mark.parametrize(("site", "old", "new", "said"), [*NUMBERS, *TWICE, *WORDS])
def test_a_mistake_is_one_line_with_what_to_write(
    tmp_path: Path, site: str, old: str, new: str, said: str
) -> None:
    lines = _lines(_path(tmp_path, site, (old, new)))
    assert any(said in line for line in lines), lines


@pytest.mark.parametrize(("site", "old", "new"), LIMITS)
def test_a_number_at_its_limit_is_accepted(tmp_path: Path, site: str, old: str, new: str) -> None:
    load_site(_path(tmp_path, site, (old, new)))


@pytest.mark.parametrize(("old", "new", "said"), CONTRACTS)
def test_an_arm_keeps_the_contract_of_its_role(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    recompute = ("[arms.recompute]\n", '[arms.recompute]\ntreatment = { kv = "none" }\n')
    pairs = [recompute, (old, new)] if "none" in old else [(old, new)]
    lines = _lines(_path(tmp_path, CLUSTER, *pairs))
    assert any(said in line for line in lines), lines


FIVE = (
    ('kv_dir = "/mnt/array/r8"', 'kv_dir = "mnt/array"'),
    ("ready_timeout_s = 3600.0", "ready_timeout = 3600.0"),
    ("output_tokens = 64", 'output_tokens = "64"'),
    ("[scenarios.r2-cold-recovery]", "[scenarios.r2-cold-recovery]\nblock = 5"),
    ('host = "node0"\nkv_dir = "/mnt/nvme', 'host = "nod0"\nkv_dir = "/mnt/nvme'),
)


def test_five_faults_are_told_in_one_invocation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _path(tmp_path, "nvidia", *FIVE)
    assert main(["preflight", "--site", str(path)]) == EXIT_USAGE
    told = capsys.readouterr().err.splitlines()
    assert told[0].startswith(f"r8: 5 faults in the site file [{path}]")
    text = path.read_text().splitlines()
    wanted = {
        'kv_dir = "mnt/array"': 'devices.array.kv_dir "mnt/array" is not an absolute path',
        'host = "nod0"': "devices.local.host names 'nod0', which is not defined in this file",
        "ready_timeout = ": "engine.ready_timeout is no key of this table",
        "block = 5": "scenarios.r2-cold-recovery.block is no key of this table",
        'output_tokens = "64"': 'scenarios.r2-cold-recovery.output_tokens "64" is not a whole numb',
    }
    next_steps = (
        'kv_dir = "/mnt/array/r8"',
        "write node0",
        "write ready_timeout_s",
        "write blocks",
        "write output_tokens = 64",
    )
    assert len(told) == 6
    for line, (key, said), step in zip(told[1:], wanted.items(), next_steps, strict=True):
        number = next(n for n, row in enumerate(text, start=1) if row.startswith(key))
        assert line.strip().startswith(f"line {number}: {said}"), line
        assert line.endswith(step), line


def test_one_fault_in_several_entries_takes_one_line(tmp_path: Path) -> None:
    twice = [("output_tokens = 64", 'output_tokens = "64"')] * 2
    (line,) = _lines(_path(tmp_path, CLUSTER, *twice))
    assert 'scenarios.*.output_tokens "64" is not' in line


def test_tables_that_do_not_fit_hide_no_fault_of_the_others(tmp_path: Path) -> None:
    """A key that is none, an engine without Python, and two engines on one port."""
    lines = _lines(
        _path(
            tmp_path,
            CLUSTER,
            ('python = ["python3"]\ncommand', "python = 3\ncommand"),
            ("port = 8001", "port = 8000"),
            ("block_device =", "block_devise ="),
        )
    )
    assert len(lines) == 3
    assert "devices.array.block_devise" in lines[0]
    assert "engine.python 3 is not a list" in lines[1]
    assert "both use port 8000" in lines[2]


def test_a_file_of_schema_1_is_told_which_keys_have_new_names(tmp_path: Path) -> None:
    old = (
        ("schema = 2", "schema = 1"),
        ("[transfers.r1-checkpoint]", "[works.r1-checkpoint]"),
        ('role = "negative"\n', ""),
        ('engine_lifetime = "pool"', 'life = "pool"'),
        ('sessions_of = "neighbour"', 'reads = "other"'),
        ('treatment = { patch = "unpatched", lmcache = "0.5.0" }', 'patch = "unpatched"'),
    )
    lines = "\n".join(_lines(_path(tmp_path, REHEARSAL, *old)))
    assert "write schema = 2" in lines
    assert "rename [works.NAME] to [transfers.NAME]" in lines
    assert "arms.pool-cross.role is missing" in lines
    assert "rename it to engine_lifetime" in lines
    assert 'for "other" write sessions_of = "neighbour"' in lines
    assert "move it: treatment = { patch = ... }" in lines


def test_a_file_that_is_not_toml_or_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SiteError, match="cannot be read"):
        load_site(tmp_path / "no.toml")
    with pytest.raises(SiteError, match="not TOML"):
        load_site(_path(tmp_path, REHEARSAL, ("[engine.env]", "[engine.env")))


def test_a_scenario_of_both_kinds_is_refused(tmp_path: Path) -> None:
    path = _path(tmp_path, REHEARSAL)
    text = path.read_text()
    path.write_text(text.replace("transfers.r1-checkpoint", "transfers.r2-cold-recovery"))
    assert any("is a scenario of both kinds" in line for line in _lines(path))


def test_engines_that_never_run_together_may_share_a_port() -> None:
    site = load_site(SITES / f"{CLUSTER}.toml").site
    assert site.instance("tp8").port == site.instance("a").port


def test_arms_of_one_engine_lifetime_that_need_different_engines_are_refused(
    tmp_path: Path,
) -> None:
    for key, new in (("treatment", ', kv = "disk" }'), ("instances", ' }\ninstances = ["a"]')):
        old = '[arms.pool]\nrole = "pool"\ndevice = "array"\n'
        old += 'treatment = { patch = "patched", lmcache = "0.5.0"'
        lines = _lines(_path(tmp_path, REHEARSAL, (old + " }", old + new)))
        assert f"pool, pool-cross share the engine lifetime pool and differ in {key}" in lines[0]


def test_a_scenario_with_a_kv_engine_needs_a_command_to_start_it(tmp_path: Path) -> None:
    text = (SITES / f"{CLUSTER}.toml").read_text()
    begin, end = text.index("command = ["), text.index("# Added to the command")
    path = tmp_path / "site.toml"
    path.write_text(text[:begin] + text[end:])
    (line,) = _lines(path)
    assert "engine.command is missing" in line


def test_a_container_needs_the_command_that_prints_the_engines_pid(tmp_path: Path) -> None:
    """Its runtime starts the engine: the process R8 started is not it, and would be watched."""
    prefix = 'exec_prefix = ["docker", "exec", "-i", "vllm"]\n'
    (line,) = _lines(_path(tmp_path, REHEARSAL, ("kv_args = [", f"{prefix}kv_args = [")))
    assert "another process would pass for the engine" in line
    named = f'{prefix}root_pid = ["echo", "1"]\nkv_args = ['
    path = _path(tmp_path, REHEARSAL, ("kv_args = [", named))
    assert load_site(path).site.engine.root_pid is not None


def test_an_undefined_name_in_a_command_is_an_error() -> None:
    with pytest.raises(SiteError, match="model_dir"):
        fill(("serve", "{model_dir}"), {"port": "1"}, where="engine.command")


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("[engine.env]", '[engine.env]\nHF_TOKEN = "hf_AbCdEfGhIjKlMnOpQrStUv12"', "HF_TOKEN"),
        ('"--port", "{port}",', '"--port", "{port}", "--api-key", "k1e2y3",', "engine.command"),
        ("port = 8197", 'port = 8197\nbase_url = "http://u:k1e2y3@h:1"', "a.base_url"),
    ],
)
def test_a_secret_in_a_site_file_is_refused_without_being_shown(
    tmp_path: Path, old: str, new: str, place: str
) -> None:
    lines = _lines(_path(tmp_path, REHEARSAL, (old, new)))
    told = [one for one in lines if "holds a secret" in one]
    assert [place in one for one in told] == [True]
    assert "export it where R8 is started" in told[0]
    assert "k1e2y3" not in told[0]
    assert "AbCd" not in told[0]
