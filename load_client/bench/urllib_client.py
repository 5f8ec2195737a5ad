"""A peer: a thread a request, urllib, stamps in the line loop, as many published clients do it."""

from __future__ import annotations

import json
import sys
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any


def _one(url: str, prompt: str, barrier: threading.Barrier, found: list[dict[str, Any]]) -> None:
    body = {"model": "null", "prompt": prompt, "max_tokens": 64, "stream": True}
    barrier.wait()
    begin_ns = time.monotonic_ns()
    request = urllib.request.Request(  # noqa: S310 - the null server's own URL
        f"{url}/v1/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    text, first_ns, last_ns = "", None, None
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:  # noqa: S310 - same
            for line in answer:
                if not line.startswith(b"data: {"):
                    continue
                choices = json.loads(line[6:])["choices"]
                if choices and choices[0]["text"]:
                    last_ns = time.monotonic_ns()
                    first_ns = first_ns or last_ns
                    text += choices[0]["text"]
    except OSError as refusal:
        text = str(refusal)
    found.append(
        {
            "text": text,
            "ttft_ns": first_ns and first_ns - begin_ns,
            "last_ns": last_ns and last_ns - begin_ns,
        }
    )


def main() -> None:
    """`urllib_client URL PROMPTS OUT`."""
    url, prompts_path, out = sys.argv[1:]
    prompts = [json.loads(line)["prompt"] for line in Path(prompts_path).read_text().splitlines()]
    found: list[dict[str, Any]] = []
    barrier = threading.Barrier(len(prompts))
    threading.stack_size(256 * 1024)
    threads = [
        threading.Thread(target=_one, args=(url, prompt, barrier, found)) for prompt in prompts
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    Path(out).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
