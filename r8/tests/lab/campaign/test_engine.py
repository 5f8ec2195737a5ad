from __future__ import annotations

import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from r8.errors import EngineError
from r8.lab.campaign.engine import engine_env, launch, read_config, stop, wait_ready, with_root_pid
from r8.lab.machine.supervisor import Supervisor
from r8.lab.site.load import load_site
from r8.tests.support.standins import free_port

if TYPE_CHECKING:
    from r8.lab.site.file import Site

REHEARSAL = Path(__file__).resolve().parents[4] / "data" / "sites" / "rehearsal.toml"

# Lines as vLLM 0.27.1 and LMCache 0.5.0 print them, shortened.
LOG = (
    "\x1b[0;36m(EngineCore pid=7)\x1b[0;0m INFO core.py:122] Initializing a V1 LLM engine "
    "(v0.27.1) with config: model='/m', enable_prefix_caching=False, enable_chunked_prefill=True\n"
    "LMCache INFO: Creating LMCacheEngine with config: {'chunk_size': 256, 'local_cpu': True, "
    "'max_local_cpu_size': 1.5, 'local_disk': 'file:///kv', "
    "'extra_config': {'r8_read_threads': 32}}\n"
)


def _site(command: tuple[str, ...]) -> Site:
    site = load_site(REHEARSAL).site
    return msgspec.structs.replace(
        site, engine=msgspec.structs.replace(site.engine, command=command)
    )


def test_the_running_servers_own_settings_are_read_from_its_log(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text(LOG)
    config = read_config(log)
    assert config.enable_prefix_caching is False
    assert config.chunk_tokens == 256
    assert config.cpu_tier_bytes == 3 << 29
    assert config.disk_path == "file:///kv"
    assert config.extra_config == "{'r8_read_threads': 32}"


def test_what_the_server_does_not_say_is_none_and_not_a_default(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("nothing of use\n")
    config = read_config(log)
    assert config.enable_prefix_caching is None
    assert config.chunk_tokens is None
    assert read_config(tmp_path / "absent.log").disk_path is None


def test_extra_config_reaches_lmcache_as_json() -> None:
    env = engine_env({"A": "1"}, {"r8_read_threads": 32, "use_odirect": True})
    assert env == {
        "A": "1",
        "LMCACHE_EXTRA_CONFIG": '{"r8_read_threads": 32, "use_odirect": true}',
    }
    assert engine_env({"A": "1"}, {}) == {"A": "1"}


def test_a_server_that_is_there_already_is_not_taken_for_ours(tmp_path: Path) -> None:
    """Its health check is green: the engine of this run would end, and the other be measured."""
    site = _site(("true",))
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        other = msgspec.structs.replace(site.instances[0], port=server.server_port)
        with (
            Supervisor(tmp_path / "supervisor") as supervisor,
            pytest.raises(EngineError, match="not ours"),
        ):
            launch(supervisor, site, other, {}, ["true"], tmp_path / "server.log")
        server.shutdown()


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import sys; print('bad flag'); sys.exit(3)", "ended with code 3"),
        ("import time; time.sleep(60)", "no 200 from"),
    ],
)
def test_a_server_that_never_gets_ready_is_named_with_its_last_words(
    tmp_path: Path, code: str, said: str
) -> None:
    site = _site((sys.executable, "-c", code))
    log = tmp_path / "server.log"
    instance = msgspec.structs.replace(site.instances[0], port=free_port())
    with Supervisor(tmp_path / "supervisor") as supervisor:
        engine = launch(supervisor, site, instance, {}, list(site.engine.command), log)
        with pytest.raises(EngineError, match=said) as raised:
            wait_ready(engine, "/health", timeout_s=1.0)
    assert raised.value.exit_code == 4
    if code.endswith("sys.exit(3)"):
        assert "bad flag" in str(raised.value)


def test_behind_a_hosts_prefix_the_engine_is_not_the_prefix(tmp_path: Path) -> None:
    """What is started here is `ssh`: its pid, looked up on the other host, is anything there."""
    site = _site(("sleep", "60"))
    # Not `env`: that one becomes its command, and has its pid.
    host = msgspec.structs.replace(site.hosts[0], exec_prefix=("sh", "-c", '"$@" & wait', "prefix"))
    site = msgspec.structs.replace(site, hosts=(host,))
    name = f"test-{tmp_path.name}"
    instance = msgspec.structs.replace(site.instances[0], name=name, port=free_port())
    site = msgspec.structs.replace(site, instances=(instance,))
    with Supervisor(tmp_path / "supervisor") as supervisor:
        engine = launch(supervisor, site, instance, {}, ["sleep", "60"], tmp_path / "server.log")
        deadline = time.monotonic() + 10.0
        while not Path(f"/tmp/r8-engine-{name}.pid").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        known = with_root_pid(site, engine, {})
        assert known.root_pid != engine.process.pid
        words = Path(f"/proc/{known.root_pid}/cmdline").read_bytes().split(b"\0")
        assert words[:2] == [b"sleep", b"60"]
        stop(supervisor, site, known)
    assert not Path(f"/proc/{known.root_pid}").exists()


DEGRADED_SERVER = """
import http.server, sys
print(sys.argv[2], flush=True)
class Healthy(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Healthy).serve_forever()
"""


@pytest.mark.parametrize("whole", [True, False])
def test_a_healthy_server_that_lost_its_kv_tier_at_start_is_stopped_with_its_own_line(
    tmp_path: Path, *, whole: bool
) -> None:
    port = free_port()
    said = (
        "all well" if whole else "LMCache ERROR: System will operate in degraded mode (recompute)"
    )
    site = _site((sys.executable, "-c", DEGRADED_SERVER, str(port), said))
    instance = msgspec.structs.replace(site.instances[0], port=port)
    with Supervisor(tmp_path / "supervisor") as supervisor:
        log = tmp_path / "server.log"
        engine = launch(supervisor, site, instance, {}, list(site.engine.command), log)
        if whole:
            wait_ready(engine, "/health", timeout_s=20.0)
        else:
            with pytest.raises(EngineError, match=r"its KV tier failed at start: .*degraded mode"):
                wait_ready(engine, "/health", timeout_s=20.0)
