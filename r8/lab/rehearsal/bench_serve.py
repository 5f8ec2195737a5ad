"""The engine's own load client against a running server; runs under the engine's Python.

Given prompts as token ids it turns them into text, makes sure that the text comes back as the very
same tokens, and starts the client behind `vllm bench serve` on them, all at once. What that client
measured is left as it writes it. Its module is called: the CPU build has no working command line.

    python bench_serve.py --tokenizer DIR --prompts ids.json --base-url URL --model NAME \
        --output-tokens 8 --result FILE
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

BAD_INPUT = 4


def main() -> int:
    """Run the client once; 4 when the prompts have no text of the same tokens."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--prompts", type=Path, required=True)
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--output-tokens", type=int, required=True)
    parser.add_argument("--result", type=Path, required=True)
    args = parser.parse_args()
    prompts: list[list[int]] = json.loads(args.prompts.read_text())
    texts = _texts(args.tokenizer, prompts)
    if texts is None:
        print("the prompts have no text of the same tokens", file=sys.stderr)
        return BAD_INPUT
    dataset = args.result.with_suffix(".dataset.json")
    # The form this client reads without further packages: a conversation of two turns.
    turns = [[{"value": text}, {"value": text}] for text in texts]
    dataset.write_text(json.dumps([{"conversations": pair} for pair in turns]))
    _run(_words(args, dataset, len(texts)))
    return 0


def _texts(directory: Path, prompts: list[list[int]]) -> list[str] | None:
    from transformers import AutoTokenizer  # noqa: PLC0415 - the engine's environment only

    tokenizer: Any = AutoTokenizer.from_pretrained(directory)
    texts = [tokenizer.decode(prompt) for prompt in prompts]
    same = all(tokenizer(text).input_ids == ids for text, ids in zip(texts, prompts, strict=True))
    return texts if same else None


def _words(args: argparse.Namespace, dataset: Path, count: int) -> list[str]:
    options = {
        "backend": "openai",
        "base-url": args.base_url,
        "endpoint": "/v1/completions",
        "model": args.model,
        "tokenizer": str(args.tokenizer),
        "dataset-name": "sharegpt",
        "dataset-path": str(dataset),
        "sharegpt-output-len": str(args.output_tokens),
        "num-prompts": str(count),
        "request-rate": "inf",
        "temperature": "0",
        # Its readiness check is a request of its own, and the server is known to be ready.
        "ready-check-timeout-sec": "0",
        "result-dir": str(args.result.parent),
        "result-filename": args.result.name,
    }
    words = [word for key, value in options.items() for word in (f"--{key}", value)]
    switches = ["--ignore-eos", "--save-result", "--save-detailed", "--disable-tqdm"]
    return [*words, *switches, "--disable-shuffle"]


def _run(words: list[str]) -> None:
    from vllm.benchmarks import serve  # noqa: PLC0415 - the engine's environment only
    from vllm.utils.argparse_utils import FlexibleArgumentParser  # noqa: PLC0415

    parser = FlexibleArgumentParser()
    serve.add_cli_args(parser)
    serve.main(parser.parse_args(words))


if __name__ == "__main__":
    sys.exit(main())
