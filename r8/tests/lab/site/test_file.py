from __future__ import annotations

from pathlib import Path

import pytest

from r8.errors import SiteError
from r8.lab.site.file import fill, load_site
from r8.lab.site.plan import places

SITES = Path(__file__).resolve().parents[4] / "data" / "sites"
REHEARSAL = SITES / "rehearsal.toml"


def _changed(tmp_path: Path, old: str, new: str) -> Path:
    text = REHEARSAL.read_text()
    assert old in text
    path = tmp_path / "site.toml"
    path.write_text(text.replace(old, new, 1))
    return path


@pytest.mark.parametrize("path", sorted(SITES.glob("*.toml")), ids=lambda path: path.stem)
def test_every_shipped_site_file_loads_and_its_commands_fill(path: Path) -> None:
    site = load_site(path).site
    names = {"port": "1", "kv_dir": "/kv", "stack_python": "python3", "model_dir": "/m"}
    for instance in site.instances:
        words = (*site.engine.command, *site.engine.kv_args)
        command = fill(words, names | site.vars | instance.vars, where="test")
        # A site of nothing but works starts no engine with a KV tier.
        has_kv = any("kv_connector" in word and "{{" not in word for word in command)
        assert has_kv == bool(site.scenarios)
        assert not any("kv_connector" in word for word in site.engine.command)
    for name, plan in site.scenarios.items():
        assert set(plan.arms) <= set(site.arms), name
        assert places(plan, site.arms, plan.arms, 1, 0)


def test_a_rehearsal_is_modelled() -> None:
    assert load_site(REHEARSAL).site.basis == "modelled"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('name = "rehearsal"', 'name = "rehearsal"\nsudo_password = "x"', "sudo_password"),
        ("ready_timeout_s = 240.0", "ready_timout_s = 240.0", "ready_timout_s"),
        ("sessions = 16", "sessions = 'many'", "sessions"),
        ("schema = 1", "schema = 99", "schema 99"),
        ('tool = "safetensors"', 'tool = "own-loader"', "tool names 'own-loader'"),
        ('name = "local"', 'name = "elsewhere"', "local"),
        ('arms = ["unpatched", "patched"]', 'arms = ["unpached"]', "unpached"),
        ('basis = "modelled"', 'basis = "true"', "basis"),
        ("[engine.env]", "[engine.env", "not TOML"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(SiteError) as raised:
        load_site(_changed(tmp_path, old, new))
    assert said in str(raised.value)
    assert raised.value.exit_code == 4
    assert "\n" not in raised.value.next_step


def test_a_missing_site_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SiteError, match="cannot be read"):
        load_site(tmp_path / "no.toml")


def test_an_undefined_name_in_a_command_is_an_error() -> None:
    with pytest.raises(SiteError, match="model_dir"):
        fill(("serve", "{model_dir}"), {"port": "1"}, where="engine.command")


def test_a_container_needs_the_command_that_prints_the_engines_pid(tmp_path: Path) -> None:
    """Its runtime starts the engine: the process R8 started is not it, and would be watched."""
    prefix = 'exec_prefix = ["docker", "exec", "-i", "vllm"]\n'
    with pytest.raises(SiteError, match="another process would pass for it"):
        load_site(_changed(tmp_path, "kv_args = [", f"{prefix}kv_args = ["))
    named = f'{prefix}root_pid = ["echo", "1"]\nkv_args = ['
    assert load_site(_changed(tmp_path, "kv_args = [", named)).site.engine.root_pid is not None
