"""Starting an inference engine by the site's command, and reading back what it really runs."""

from __future__ import annotations

import dataclasses
import http.client
import json
import os
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from r8.errors import EngineError
from r8.evidence.engine_words import kind_of
from r8.lab.machine.commands import run
from r8.lab.machine.hosts import engine_is_remote, engine_words, through
from r8.lab.site.file import fill

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from r8.lab.machine.supervisor import Process, Supervisor
    from r8.lab.site.file import Site
    from r8.lab.site.machines import Instance

POLL_INTERVAL_S = 0.25
PROBE_TIMEOUT_S = 5.0
LOG_TAIL_LINES = 12

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_PREFIX_CACHING = re.compile(r"enable_prefix_caching=(True|False)")
# vLLM lists what it was given once, when it starts; a connector stands there or there is none.
_ARGUMENTS = "non-default args:"
_KV_CONNECTOR = re.compile(r"kv_connector['\"]?\s*[=:]\s*['\"](\w+)")
_LMCACHE_CONFIG = re.compile(r"Creating LMCacheEngine with config: (.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningEngine:
    """An engine this lab started."""

    instance: str
    base_url: str
    root_pid: int  # on the host: the process tree below it is the engine
    log_path: Path
    process: Process
    stop_token: int | None = None  # ends it behind a prefix; None: it is our own child


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """What the running engine says of itself; None where it does not say."""

    enable_prefix_caching: bool | None
    chunk_tokens: int | None
    cpu_tier_bytes: int | None
    disk_path: str | None
    extra_config: str | None
    remote_url: str | None = None
    kv_connector: str | None = None  # "none" where the engine lists its settings without one


def engine_argv(
    site: Site, instance: Instance, env: dict[str, str], command: list[str]
) -> list[str]:
    """The words that start one instance; behind a prefix its environment goes along as `env K=V`.

    There the process also leaves its pid in a file, so that stopping reaches it and only it.
    """
    if not engine_is_remote(site, instance.host):
        return command
    words = [f"{key}={value}" for key, value in sorted(env.items())]
    script = f'echo $$ > {_pid_file(instance)}; exec env "$@"'
    return engine_words(site, ["sh", "-c", script, "r8", *words, *command], instance.host)


def stop_argv(site: Site, instance: Instance) -> list[str]:
    """The words that end an instance behind a prefix: TERM, time to obey, then its whole group."""
    script = (
        f"f={_pid_file(instance)}; p=$(cat $f 2>/dev/null) || exit 0; rm -f $f; "
        "kill -TERM $p 2>/dev/null || exit 0; n=0; "
        f"while kill -0 $p 2>/dev/null && [ $n -lt {round(site.engine.stop_grace_s)} ]; "
        "do sleep 1; n=$((n+1)); done; "
        "kill -KILL -- -$p 2>/dev/null || kill -KILL $p 2>/dev/null; true"
    )
    return engine_words(site, ["sh", "-c", script], instance.host)


def _pid_file(instance: Instance) -> str:
    return f"/tmp/r8-engine-{instance.name}.pid"  # noqa: S108 - inside the container


def launch(
    supervisor: Supervisor,
    site: Site,
    instance: Instance,
    env: dict[str, str],
    command: list[str],
    log_path: Path,
) -> RunningEngine:
    """Start one engine instance; does not wait until it is ready.

    Raises:
        EngineError: another server answers there already: its health would be taken for ours.

    """
    engine = site.engine
    if _status(base_url_of(instance), engine.ready_path) is not None:
        raise EngineError(
            f"a server that is not ours answers at {base_url_of(instance)}",
            where=f"instance {instance.name}",
            next_step=f"end it (ss -ltnp 'sport = :{instance.port}') or give another port",
        )
    argv = engine_argv(site, instance, env, command)
    stop_token: int | None = None
    whole: dict[str, str] | None = None
    if engine_is_remote(site, instance.host):
        words = stop_argv(site, instance)
        stop_token = supervisor.on_exit(words, f"engine {instance.name}", engine.stop_grace_s)
    else:
        whole = {key: value for key, value in os.environ.items() if key not in engine.unset_env}
        whole |= env
    process = supervisor.spawn(f"engine-{instance.name}", argv, env=whole, log_path=log_path)
    return RunningEngine(
        instance=instance.name,
        base_url=base_url_of(instance),
        root_pid=process.pid,
        log_path=log_path,
        process=process,
        stop_token=stop_token,
    )


def with_root_pid(site: Site, engine: RunningEngine, names: dict[str, str]) -> RunningEngine:
    """The engine with its pid on its own host; ask when it is ready."""
    argv = root_pid_argv(site, engine.instance, names)
    return dataclasses.replace(engine, root_pid=_ask_root_pid(argv)) if argv else engine


def root_pid_argv(site: Site, instance: str, names: dict[str, str]) -> list[str]:
    """The command that prints the host pid whose tree holds an instance; empty: our own child.

    Behind a host's prefix our child is that prefix; the engine's pid lies in the file it left.
    """
    prefix = site.host(site.host_of(instance)).exec_prefix
    if site.engine.root_pid is not None:
        return through(prefix, fill(site.engine.root_pid, names, where="engine.root_pid"))
    return through(prefix, ["cat", _pid_file(site.instance(instance))]) if prefix else []


def base_url_of(instance: Instance) -> str:
    """Where an instance is reached from the host R8 runs on."""
    return instance.base_url.format(port=instance.port)


def stop(supervisor: Supervisor, site: Site, engine: RunningEngine) -> None:
    """End an engine with everything it started, here or behind its prefix.

    Raises:
        SiteError: it does not end.

    """
    if engine.stop_token is not None:
        supervisor.undo(engine.stop_token)
    supervisor.stop(engine.process, grace_s=site.engine.stop_grace_s)


def require_alive(engine: RunningEngine) -> None:
    """Stop a cell whose engine has ended, while its log still says why.

    Raises:
        EngineError: the process ended.

    """
    code = engine.process.poll()
    if code is not None:
        raise _died(engine, f"the engine ended with code {code} while it was used")


def _ask_root_pid(command: list[str]) -> int:
    answer = run(command)
    if not answer.ok or not answer.output.strip().isdigit():
        raise EngineError(
            f"the engine's root pid is not known: {answer.error or answer.output.strip()!r}",
            where=answer.line,
            next_step="correct engine.root_pid in the site file: it must print one pid of the host",
        )
    return int(answer.output)


def wait_ready(engine: RunningEngine, path: str, timeout_s: float) -> None:
    """Wait until the health check answers 200.

    Raises:
        EngineError: the process ended, the time ran out, or the engine is up without its KV tier;
            the log's last lines are quoted.

    """
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        code = engine.process.poll()
        if code is not None:
            raise _died(engine, f"the engine ended with code {code} before it was ready")
        if _status(engine.base_url, path) == http.client.OK:
            _require_kv_tier(engine)
            return
        time.sleep(POLL_INTERVAL_S)
    raise _died(engine, f"no 200 from {engine.base_url}{path} within {timeout_s:g} s")


def _require_kv_tier(engine: RunningEngine) -> None:
    """A healthy server may have lost its KV tier at start: only its log says so."""
    for line in _log_lines(engine.log_path):
        if kind_of(line) == "fatal":
            raise EngineError(
                f"the engine answers, but its KV tier failed at start: {line.strip()[:200]}",
                where=f"instance {engine.instance}, {engine.log_path}",
                next_step="correct what the traceback after that line names, then start again",
            )


def _died(engine: RunningEngine, what: str) -> EngineError:
    tail = " | ".join(_log_lines(engine.log_path)[-LOG_TAIL_LINES:])
    return EngineError(
        f"{what}; its log ends: {tail or '(empty)'}",
        where=f"instance {engine.instance}, {engine.log_path}",
        next_step="read that log, correct [engine] in the site file, then r8 preflight --site FILE",
    )


def _status(base_url: str, path: str) -> int | None:
    parts = urlsplit(base_url)
    connection = http.client.HTTPConnection(
        parts.hostname or "127.0.0.1", parts.port, timeout=PROBE_TIMEOUT_S
    )
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def _log_lines(path: Path) -> list[str]:
    try:
        return _ANSI.sub("", path.read_text(errors="replace")).splitlines()
    except OSError:
        return []


def read_config(log_path: Path) -> ServerConfig:
    """What the engine logged of its own configuration at start; later lines win over earlier."""
    prefix_caching: bool | None = None
    lmcache: str = ""
    connector: str | None = None
    for line in _log_lines(log_path):
        if found := _PREFIX_CACHING.search(line):
            prefix_caching = found.group(1) == "True"
        if _ARGUMENTS in line:
            named = _KV_CONNECTOR.search(line)
            connector = named.group(1) if named else "none"
        if found := _LMCACHE_CONFIG.search(line):
            lmcache = found.group(1)
    tier_gib = _value(lmcache, "max_local_cpu_size")
    chunk = _value(lmcache, "chunk_size")
    return ServerConfig(
        enable_prefix_caching=prefix_caching,
        chunk_tokens=int(float(chunk)) if chunk else None,
        # LMCache counts its tier in GiB whatever it calls them.
        cpu_tier_bytes=round(float(tier_gib) * (1 << 30)) if tier_gib else None,
        disk_path=_value(lmcache, "local_disk"),
        extra_config=_braces(lmcache, "extra_config"),
        remote_url=_value(lmcache, "remote_url"),
        kv_connector=connector,
    )


def _value(text: str, key: str) -> str | None:
    """The value of a key in a printed dict or a JSON object."""
    found = re.search(rf"""['"]?\b{key}['"]?\s*[:=]\s*['"]?([^'",}}\s]+)""", text)
    return found.group(1) if found and found.group(1) != "None" else None


def _braces(text: str, key: str) -> str | None:
    found = re.search(rf"""['"]?\b{key}['"]?\s*[:=]\s*(\{{[^}}]*\}})""", text)
    return found.group(1) if found else None


def engine_env(base: dict[str, str], extra: Mapping[str, object]) -> dict[str, str]:
    """The environment of one arm: LMCache's own `extra_config` goes in as the JSON it expects."""
    if not extra:
        return dict(base)
    return base | {"LMCACHE_EXTRA_CONFIG": json.dumps(extra, sort_keys=True)}
