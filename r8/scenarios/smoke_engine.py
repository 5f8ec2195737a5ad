"""Run by a Python that has vLLM, from standard input: a model without meaning answers prompts.

Its weights are dummies made on the card, so nothing is downloaded. One JSON object is printed last;
what vLLM prints before it is its log.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from pathlib import Path

PROMPTS, PROMPT_TOKENS, OUTPUT_TOKENS = 8, 256, 64
# Enough for this model on the smallest card, little enough to find room beside a desktop.
MEMORY_SHARE = 0.15
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 512,
    "intermediate_size": 1024,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
    "num_hidden_layers": 4,
    "max_position_embeddings": 2048,
    "vocab_size": 1024,
    "rms_norm_eps": 1e-5,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "torch_dtype": "float16",
}


def main() -> None:
    """Load, answer, print what came."""
    # The engine in this very process: a program from standard input cannot be started again.
    os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    begin_ns = time.monotonic_ns()
    import vllm  # noqa: PLC0415 - its settings are read as it is imported

    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "config.json").write_text(json.dumps(CONFIG))
        engine = vllm.LLM(
            model=folder,
            load_format="dummy",
            skip_tokenizer_init=True,
            dtype="float16",
            max_model_len=1024,
            gpu_memory_utilization=MEMORY_SHARE,
            enforce_eager=True,
        )
        loaded_ns = time.monotonic_ns()
        prompts = [
            {"prompt_token_ids": [3 + (n + one) % 1000 for one in range(PROMPT_TOKENS)]}
            for n in range(PROMPTS)
        ]
        sampling = vllm.SamplingParams(
            max_tokens=OUTPUT_TOKENS, ignore_eos=True, detokenize=False, temperature=0.0
        )
        answers = engine.generate(prompts, sampling, use_tqdm=False)
    tokens = sum(len(one.outputs[0].token_ids) for one in answers)
    facts = {
        "vllm": vllm.__version__,
        "load_ns": loaded_ns - begin_ns,
        "generate_ns": time.monotonic_ns() - loaded_ns,
        "prompts": len(answers),
        "output_tokens": tokens,
    }
    print(json.dumps(facts), flush=True)


if __name__ == "__main__":
    main()
