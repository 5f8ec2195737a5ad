"""Starting a null server as a process of its own, and reading its truth."""

from __future__ import annotations

import json
import select
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ..errors import ClientError
from ..processes import send_line, start_module

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

    from .null_server import Script

_SILENCE_S = 60.0  # a null server that says nothing for so long is given up


@dataclass(slots=True)
class NullServerProcess:
    """A null server that runs; its port is known."""

    process: subprocess.Popen[str]
    url: str = ""

    def stop(self) -> None:
        """End a server without a number of requests; its truth comes then."""
        send_line(self.process, "stop")

    def answer(self) -> Any:
        """Its next line: the truth; ClientError when none comes."""
        stdout = self.process.stdout
        if not (stdout and select.select([stdout], [], [], _SILENCE_S)[0]):
            raise calibration_failed(f"the null server said nothing within {_SILENCE_S:g} s")
        line = stdout.readline()
        if not line:
            raise calibration_failed("the null server stopped early")
        return json.loads(line)


@contextmanager
def start_null_server(script: Script) -> Iterator[NullServerProcess]:
    """A null server on loopback, as a process of its own; it is ended when the block ends."""
    scheme = "http" if script.certificate is None else "https"
    with start_module("calibration.null_server", [json.dumps(asdict(script))]) as process:
        server = NullServerProcess(process)
        try:
            server.url = f"{scheme}://127.0.0.1:{server.answer()['port']}"
            yield server
        finally:
            process.kill()


def calibration_failed(what: str) -> ClientError:
    """The error of a calibration that gave no figures."""
    return ClientError(
        f"calibration failed: {what}",
        where="the null server on 127.0.0.1",
        next_step="run it again on a quiet machine, or with a smaller --concurrency",
    )
