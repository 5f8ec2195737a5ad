"""A peer: sixty plain lines of aiohttp, as a careful person would write them."""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
import time
from pathlib import Path
from typing import Any

# Only the peers' environment has it; this file is never imported by the client.
aiohttp: Any = importlib.import_module("aiohttp")


async def _one(session: Any, url: str, prompt: str) -> dict[str, Any]:
    body = {"model": "null", "prompt": prompt, "max_tokens": 64, "stream": True}
    text, first_ns, last_ns = "", None, None
    begin_ns = time.monotonic_ns()
    async with session.post(f"{url}/v1/completions", json=body) as answer:
        async for line in answer.content:
            if not line.startswith(b"data: {"):
                continue
            choices = json.loads(line[6:])["choices"]
            if choices and choices[0]["text"]:
                last_ns = time.monotonic_ns()
                first_ns = first_ns or last_ns
                text += choices[0]["text"]
    return {
        "text": text,
        "ttft_ns": first_ns and first_ns - begin_ns,
        "last_ns": last_ns and last_ns - begin_ns,
    }


async def _all(url: str, prompts: list[str]) -> list[dict[str, Any]]:
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=120)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        return list(await asyncio.gather(*(_one(session, url, prompt) for prompt in prompts)))


def main() -> None:
    """`aiohttp_client URL PROMPTS OUT`."""
    url, prompts_path, out = sys.argv[1:]
    prompts = [json.loads(line)["prompt"] for line in Path(prompts_path).read_text().splitlines()]
    Path(out).write_text(json.dumps(asyncio.run(_all(url, prompts))))


if __name__ == "__main__":
    main()
