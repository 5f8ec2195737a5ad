"""Starting an inference engine by the site's command, and reading back what it really runs."""

from __future__ import annotations

import http.client
import json
import os
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from r8.errors import EngineError
from r8.lab.commands import run
from r8.lab.site import fill

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from r8.lab.keeper import Keeper, Process
    from r8.lab.site import Instance, Site

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """What the running engine says of itself; None where it does not say."""

    enable_prefix_caching: bool | None
    chunk_tokens: int | None
    cpu_tier_bytes: int | None
    disk_path: str | None
    extra_config: str | None
    kv_connector: str | None = None  # "none" where the engine lists its settings without one


def launch(
    keeper: Keeper,
    site: Site,
    instance: Instance,
    env: dict[str, str],
    names: dict[str, str],
    log_path: Path,
) -> RunningEngine:
    """Start one engine instance; does not wait until it is ready.

    Locally the environment goes to the process; through an exec prefix it goes along as `env K=V`,
    and the process inside leaves its pid in a file, so that stopping reaches it and only it.
    """
    engine = site.engine
    command = fill(engine.command, names, where="engine.command")
    prefix = [*site.host(engine.host).exec_prefix, *engine.exec_prefix]
    if prefix:
        pid_file = f"/tmp/r8-{names['run_id']}-{instance.name}.pid"  # noqa: S108 - inside the container
        words = [f"{key}={value}" for key, value in env.items()]
        argv = [*prefix, "sh", "-c", f'echo $$ > {pid_file}; exec env "$@"', "r8", *words, *command]
        keeper.on_exit(
            [*prefix, "sh", "-c", f"kill -TERM $(cat {pid_file}); rm -f {pid_file}; true"]
        )
        process = keeper.spawn(f"engine-{instance.name}", argv, log_path=log_path)
    else:
        whole = {key: value for key, value in os.environ.items() if key not in engine.unset_env}
        process = keeper.spawn(
            f"engine-{instance.name}", command, env=whole | env, log_path=log_path
        )
    root_pid = process.pid
    if engine.root_pid is not None:
        root_pid = _ask_root_pid(site, fill(engine.root_pid, names, where="engine.root_pid"))
    return RunningEngine(
        instance=instance.name,
        base_url=instance.base_url.format(port=instance.port),
        root_pid=root_pid,
        log_path=log_path,
        process=process,
    )


def _ask_root_pid(site: Site, command: list[str]) -> int:
    answer = run([*site.host(site.engine.host).exec_prefix, *command])
    if not answer.ok or not answer.output.strip().isdigit():
        raise EngineError(
            f"the engine's root pid is not known: {answer.error or answer.output.strip()!r}",
            where=answer.line,
            next_step="mend engine.root_pid in the site file so that it prints one host pid",
        )
    return int(answer.output)


def wait_ready(engine: RunningEngine, path: str, timeout_s: float) -> None:
    """Wait until the health check answers 200.

    Raises:
        EngineError: the process ended, or the time ran out; the log's last lines are quoted.

    """
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        code = engine.process.poll()
        if code is not None:
            raise _not_ready(engine, f"the engine ended with code {code} before it was ready")
        if _status(engine.base_url, path) == http.client.OK:
            return
        time.sleep(POLL_INTERVAL_S)
    raise _not_ready(engine, f"no 200 from {engine.base_url}{path} within {timeout_s:g} s")


def _not_ready(engine: RunningEngine, what: str) -> EngineError:
    tail = " | ".join(_log_lines(engine.log_path)[-LOG_TAIL_LINES:])
    return EngineError(
        f"{what}; its log ends: {tail or '(empty)'}",
        where=f"instance {engine.instance}, {engine.log_path}",
        next_step="read that log, mend [engine] in the site file, then `r8 preflight --site FILE`",
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
