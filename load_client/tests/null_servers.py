"""A null server as a process for tests, and what it says at the end."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class NullProcess:
    process: subprocess.Popen[bytes]
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def stop(self) -> list[dict[str, Any]]:
        """End an endless server; its last words."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(b"stop\n")
        self.process.stdin.flush()
        words: list[dict[str, Any]] = json.loads(self.process.stdout.readline())
        return words


@contextmanager
def null_server(*flags: str, ttft_ms: int, chunks: int, interval_ms: int) -> Iterator[NullProcess]:
    """An endless server; over when the block ends."""
    words = [sys.executable, "-m", "load_client.null_server", "--requests", "0"]
    words += ["--prompt-tokens", "12", "--ttft-ns", str(ttft_ms * 1_000_000)]
    words += ["--chunks", str(chunks), "--interval-ns", str(interval_ms * 1_000_000), *flags]
    with subprocess.Popen(
        words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        try:
            yield NullProcess(process, json.loads(process.stdout.readline())["port"])
        finally:
            process.kill()
