"""A stand-in for vLLM with LMCache: streams the tokens asked for, leaves a file a chunk and rank.

Run as a program by `standins.py`; it ends with code 3 as soon as the file of R8_STANDIN_DIE exists.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

CHUNK_TOKENS = 256


class Handler(BaseHTTPRequestHandler):
    """Health, metrics and completions."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer(b"" if self.path == "/health" else b"standin_requests 1\n", "text/plain")

    def do_POST(self) -> None:
        if Path(os.environ["R8_STANDIN_DIE"]).exists():
            print("out of memory, says the stand-in", flush=True)
            os._exit(3)
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt, count = body["prompt"], body["max_tokens"]
        store(prompt)
        usage = {"prompt_tokens": len(prompt), "completion_tokens": count}
        events: list[Any] = [{"choices": [{"text": "x", "token_ids": [1]}]}] * count
        events.append({"choices": [], "usage": usage})
        text = "".join(f"data: {json.dumps({'id': 'cmpl-standin', **one})}\n\n" for one in events)
        self._answer(f"{text}data: [DONE]\n\n".encode(), "text/event-stream")

    def _answer(self, content: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def store(prompt: list[int]) -> None:
    """One small file for every whole chunk and rank, named by what it holds."""
    place = os.environ.get("LMCACHE_LOCAL_DISK", "").removeprefix("file://")
    if not place:
        return
    for number in range(len(prompt) // CHUNK_TOKENS):
        head = json.dumps(prompt[: (number + 1) * CHUNK_TOKENS])
        key = hashlib.sha256(head.encode()).hexdigest()
        for rank in range(int(option("--tensor-parallel-size"))):
            Path(place, f"{key}@{rank}.pt").write_bytes(b"kv")


def option(name: str) -> str:
    """The value of one flag of the command line."""
    return sys.argv[sys.argv.index(name) + 1]


if __name__ == "__main__":
    print(f"non-default args: {sys.argv[1:]}", flush=True)
    ThreadingHTTPServer(("127.0.0.1", int(option("--port"))), Handler).serve_forever()
