"""A worker that loads a model by starting the inference engine on it; standard library only.

    python load_engine.py --answers FILE < orders

Orders, by their key `do`:

    start  start the engine on `path` with `argv` and `env`, read its log until it says that the
           weights are loaded, wait until it is ready, and let it answer once. `keep` true leaves it
           running. With `serve_until_ns` it answers until that instant and is then stopped; with
           `turn` it waits until the worker before it has stopped its own engine.
    stop   stop the engine that was kept

Timed is what the engine's log marks: `begin_ns` is the instant its line of a load that begins was
seen, `end_ns` that of its line of loaded weights. Beside them: `started_ns` (the order's instant),
`turn_ns` (the engine before is gone), `ready_ns`, `serve_begin_ns` (its first answer),
`serve_end_ns`, `stopped_ns`. Whatever the engine started is waited for here, orphans too, so that
the kernel adds what they read to this process's counters. The protocol is that of
`r8/lab/transfer/worker_pool.py`.
"""

from __future__ import annotations

import contextlib
import ctypes
import http.client
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

if not __package__:
    # A script of the engine's Python: the checkout is not on its path.
    sys.path[0] = str(Path(__file__).resolve().parents[4])
from r8.lab.transfer.tools.worker import SERVE_PAUSE_S, options, outcome, serve

if TYPE_CHECKING:
    from collections.abc import Iterator

# The engine's own words around reading weights, in every version R8 was run with.
LOAD_BEGINS, LOAD_ENDS = "Starting to load model", "Loading weights took"
# Far below a hundredth of any load; each look reads what the log grew by.
LOOK_S = 0.004
ASK_S, ANSWER_S = 0.1, 60.0  # between two questions whether it is ready; for an answer
KILL_WAIT_S = 10.0  # a process stuck on a dead device may never be gone
_PR_SET_CHILD_SUBREAPER = 36
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # no proxy of a shell


class EngineError(Exception):
    """The engine did not do what the order asks."""


class Log:
    """An engine's log as it grows."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch()
        self._source = path.open("rb", buffering=0)
        self._source.seek(0, os.SEEK_END)
        self._rest = b""

    def lines(self) -> list[str]:
        """Lines that were finished since the last look."""
        *whole, self._rest = (self._rest + self._source.read()).split(b"\n")
        return [line.decode(errors="replace") for line in whole]

    def tail(self) -> str:
        """The last words, for a message."""
        return self.path.read_text(errors="replace").strip()[-300:]


class Engine:
    """One engine process and all it started."""

    def __init__(self, order: dict[str, Any]) -> None:
        self._url = str(order["url"])
        self._ready_path, self._grace_s = order["ready_path"], float(order["stop_grace_s"])
        if self.answers():
            raise EngineError(f"a server that is not ours answers at {order['url']}")
        with Path(order["log"]).open("ab") as sink:
            self.process = subprocess.Popen(
                order["argv"],
                env={**os.environ, **order["env"]},
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def ended(self) -> int | None:
        """Its exit code once it has one; its orphaned children are waited for here as well."""
        while self.process.returncode is None:
            pid, status = _waited()
            if pid == 0:
                return None
            if pid in {self.process.pid, -1}:
                self.process.returncode = os.waitstatus_to_exitcode(status) if pid > 0 else -1
        return self.process.returncode

    def answers(self) -> bool:
        """Whether the ready check answers 200."""
        return self._ask("GET", self._ready_path)[0] == http.client.OK

    def model(self) -> str:
        """The name it serves its model under."""
        return str(json.loads(self._ask("GET", "/v1/models")[1])["data"][0]["id"])

    def complete(self, model: str) -> None:
        """One token of one prompt: the loaded weights are used."""
        wish = json.dumps({"model": model, "prompt": "a", "max_tokens": 1, "temperature": 0})
        status, body = self._ask("POST", "/v1/completions", wish)
        if status != http.client.OK or not json.loads(body)["choices"]:
            raise EngineError(f"no answer of the engine: {status} {body[:200]!r}")

    def _ask(self, method: str, path: str, body: str | None = None) -> tuple[int | None, bytes]:
        where, kind = self._url + path, {"Content-Type": "application/json"}
        data = None if body is None else body.encode()
        request = urllib.request.Request(where, data, kind, method=method)  # noqa: S310
        try:
            with _DIRECT.open(request, timeout=ANSWER_S) as answer:
                return answer.status, answer.read()
        except (OSError, http.client.HTTPException):
            return None, b""

    def stop(self) -> None:
        """Ask it to end, kill what is left after the grace, and wait for every process of it."""
        if self.ended() is None:
            os.kill(self.process.pid, signal.SIGTERM)
        if _all_gone(self._grace_s):
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        if not _all_gone(KILL_WAIT_S):
            raise EngineError("processes of the engine do not end")


def _waited() -> tuple[int, int]:
    """A child that ended and its status; 0 when none has, -1 when there is no child at all."""
    try:
        return os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return -1, 0


def _all_gone(patience_s: float) -> bool:
    deadline = time.monotonic() + patience_s
    while (pid := _waited()[0]) != -1 and time.monotonic() < deadline:
        if pid == 0:
            time.sleep(LOOK_S)
    return pid == -1


def _take_turn(turn: dict[str, Any] | None, until_ns: int | None) -> int:
    """Wait until the worker before this one has let go; the instant it had."""
    if turn is None or turn["number"] == 0:
        return time.monotonic_ns()
    before = Path(turn["directory"]) / f"done-{turn['number'] - 1}"
    while not before.exists():
        if until_ns is not None and time.monotonic_ns() > until_ns:
            raise EngineError("the engine before this one was not stopped in time")
        time.sleep(LOOK_S)
    return time.monotonic_ns()


def _watch_load(engine: Engine, log: Log, deadline: float) -> dict[str, Any]:
    """The instants of the engine's two marks, and the line of the second."""
    begin_ns: int | None = None
    for seen_ns in _looks(engine, log, LOOK_S, deadline):
        for line in log.lines():
            if LOAD_BEGINS in line and begin_ns is None:
                begin_ns = seen_ns
            if begin_ns is not None and LOAD_ENDS in line:
                return {"begin_ns": begin_ns, "end_ns": seen_ns, "load_line": line.strip()}
    raise EngineError(f"no line '{LOAD_ENDS}' in time; its log ends: {log.tail()}")


def _watch_ready(engine: Engine, log: Log, deadline: float) -> int:
    for _ in _looks(engine, log, ASK_S, deadline):
        if engine.answers():
            return time.monotonic_ns()
    raise EngineError(f"weights loaded and never ready; its log ends: {log.tail()}")


def _looks(engine: Engine, log: Log, pause_s: float, deadline: float) -> Iterator[int]:
    """Instants to look at, until the deadline or the end of the engine."""
    while time.monotonic() < deadline:
        yield time.monotonic_ns()
        code = engine.ended()
        if code is not None:
            raise EngineError(f"the engine ended with code {code}; its log ends: {log.tail()}")
        time.sleep(pause_s)


def _weights(directory: Path) -> tuple[int, int]:
    """Bytes of all tensors by the headers of the files, and the files; read after the load."""
    total, shards = 0, list(directory.glob("*.safetensors"))
    for shard in shards:
        with shard.open("rb") as source:
            length = int.from_bytes(source.read(8), "little")
            header = json.loads(source.read(length))
        header.pop("__metadata__", None)
        total += sum(one["data_offsets"][1] - one["data_offsets"][0] for one in header.values())
    return total, len(shards)


def _serve(engine: Engine, model: str, until_ns: int) -> int:
    """Answers given until the instant, one after another."""
    answered = 0
    while time.monotonic_ns() < until_ns:
        engine.complete(model)
        answered += 1
        time.sleep(SERVE_PAUSE_S)
    return answered


class Loader:
    """This worker: at most one engine at a time."""

    engine: Engine | None = None

    def carry_out(self, order: dict[str, Any]) -> dict[str, Any]:
        """One order; the instants it went through."""
        started_ns = time.monotonic_ns()
        if order["do"] == "stop":
            self.close()
            return {"begin_ns": started_ns, "end_ns": time.monotonic_ns(), "bytes": 0, "files": 0}
        try:
            return {"started_ns": started_ns, **self._start(order)}
        except BaseException:
            self.close()
            raise
        finally:
            if turn := order.get("turn"):
                (Path(turn["directory"]) / f"done-{turn['number']}").touch()

    def _start(self, order: dict[str, Any]) -> dict[str, Any]:
        until_ns = order.get("serve_until_ns")
        row: dict[str, Any] = {"turn_ns": _take_turn(order.get("turn"), until_ns)}
        deadline = time.monotonic() + float(order["timeout_s"])
        log = Log(Path(order["log"]))
        self.engine = Engine(order)
        row |= _watch_load(self.engine, log, deadline)
        row["ready_ns"] = _watch_ready(self.engine, log, deadline)
        model = self.engine.model()
        self.engine.complete(model)
        row["serve_begin_ns"] = time.monotonic_ns()
        if until_ns is not None:
            row["answered"] = _serve(self.engine, model, int(until_ns))
            row |= {"serve_end_ns": time.monotonic_ns(), "serve_until_ns": until_ns}
        if not order.get("keep"):
            self.close()
            row["stopped_ns"] = time.monotonic_ns()
        size, files = _weights(Path(order["path"]))
        return {**row, "bytes": size, "files": files, "path": order["path"]}

    def close(self) -> None:
        """Stop the engine, if there is one."""
        engine, self.engine = self.engine, None
        if engine is not None:
            engine.stop()


def main() -> int:
    """Serve orders; an engine that was kept is stopped when the input ends."""
    given = options(__doc__)  # the engine's own settings choose its device
    adopted = ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    loader = Loader()
    try:
        facts = {"reaps_orphans": adopted}
        return serve(given.answers, facts, lambda order: outcome(loader.carry_out, order))
    finally:
        loader.close()


if __name__ == "__main__":
    sys.exit(main())
