"""A tiny model with wide KV and a byte tokenizer, made on the spot; runs under the engine's Python.

Little compute and many KV bytes a token, so that bytes and not prefill make the time. The weights
are random by seed, yet not as a framework would draw them: attention is sharp and its output
outweighs the token's own embedding, so that what the model says hangs on the cached keys and
values, and a chunk that came back wrong changes the text. Only printable ASCII can be said, one
byte a token: a stream event is never held back as half a character.

Prints one JSON object: path, bytes_per_token, vocab [low, high) of the printable tokens, seed.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
BYTE_BASE = len(SPECIAL)  # token id of byte b is BYTE_BASE + b
PRINTABLE = (BYTE_BASE + 0x20, BYTE_BASE + 0x7F)
VOCAB_SIZE = 320  # 259 rounded up to a multiple of 64, as kernels like it
FP32_BYTES = 4
STAMP = "r8-model.json"
# Standard deviation of attention scores: at 4 the softmax rests on a handful of tokens instead of
# averaging hundreds, which would wash out any single chunk.
ATTENTION_SHARPNESS = 4.0
# How far a layer's attention outweighs the residual it is added to.
ATTENTION_GAIN = 3.0
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def build(args: argparse.Namespace) -> dict[str, Any]:
    """Write model and tokenizer into `args.out` unless the same ones are there already."""
    out = Path(args.out)
    facts = {
        "path": str(out),
        "bytes_per_token": 2 * args.layers * args.kv_heads * args.head_dim * FP32_BYTES,
        "vocab": list(PRINTABLE),
        **{key: value for key, value in vars(args).items() if key != "out" and value is not None},
    }
    stamp = out / STAMP
    if stamp.exists() and json.loads(stamp.read_text()) == facts:
        return facts
    out.mkdir(parents=True, exist_ok=True)
    _tokenizer(args.max_tokens).save_pretrained(out)
    shards = {} if args.shard_bytes is None else {"max_shard_size": args.shard_bytes}
    _model(args).save_pretrained(out, **shards)
    stamp.write_text(json.dumps(facts))  # last: an interrupted build is built again
    return facts


def _tokenizer(max_tokens: int) -> Any:
    vocab = {text: index for index, text in enumerate(SPECIAL)}
    vocab |= {_letter(byte): BYTE_BASE + byte for byte in range(256)}
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=SPECIAL[2],
        pad_token=SPECIAL[0],
        additional_special_tokens=[SPECIAL[1]],
        model_max_length=max_tokens,
        chat_template=CHAT_TEMPLATE,
        clean_up_tokenization_spaces=False,
    )


def _letter(byte: int) -> str:
    """The visible letter a byte-level tokenizer writes for a byte."""
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    if byte in visible:
        return chr(byte)
    return chr(0x100 + [b for b in range(256) if b not in visible].index(byte))


def _model(args: argparse.Namespace) -> Any:
    config = Qwen3Config(
        vocab_size=VOCAB_SIZE,
        hidden_size=args.hidden,
        intermediate_size=2 * args.hidden,
        num_hidden_layers=args.layers,
        num_attention_heads=args.kv_heads,
        num_key_value_heads=args.kv_heads,
        head_dim=args.head_dim,
        max_position_embeddings=args.max_tokens,
        tie_word_embeddings=False,
        bos_token_id=0,
        eos_token_id=2,
        pad_token_id=0,
        dtype="float32",
    )
    model = Qwen3ForCausalLM(config).to(torch.float32)
    generator = torch.Generator().manual_seed(args.seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            _fill(name, weight, generator)
    return model


def _fill(name: str, weight: Any, generator: Any) -> None:
    if name.endswith("q_norm.weight"):
        weight.fill_(ATTENTION_SHARPNESS)
    elif weight.dim() == 1:
        weight.fill_(1.0)
    else:
        gain = ATTENTION_GAIN if name.endswith("o_proj.weight") else 1.0
        weight.normal_(0.0, gain / math.sqrt(weight.shape[1]), generator=generator)
    if name == "lm_head.weight":
        # A row of zeros scores 0; the best of the 95 random ones is positive in practice always.
        weight[: PRINTABLE[0]] = 0.0
        weight[PRINTABLE[1] :] = 0.0


def main(argv: list[str] | None = None) -> int:
    """Build and print the facts."""
    parser = argparse.ArgumentParser(prog="tiny_model", description=__doc__.splitlines()[0])
    parser.add_argument("out")
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--kv-heads", type=int, default=16)
    parser.add_argument("--head-dim", type=int, default=128)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--max-tokens", type=int, default=8192)
    parser.add_argument("--seed", type=int, default=8)
    parser.add_argument("--shard-bytes", type=int, help="largest weight file; default: one file")
    print(json.dumps(build(parser.parse_args(argv))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
