"""Which keys beyond OpenAI's a request carries: a strict server refuses those it does not know.

    vllm     ignore_eos, min_tokens, return_token_ids: the extra parameters of vLLM's server; NIM
             for LLMs 2.x is vLLM behind a door of its own and takes them too
    sglang   the same: entrypoints/openai/protocol.py has all three
    trtllm   ignore_eos, min_tokens: tensorrt_llm/serve/openai_protocol.py, which forbids any other
    nim      nvext.ignore_eos: Dynamo's front end (ai-dynamo/dynamo PR 988 and 1080); NVIDIA's
             hosted NIM refuses the others (sipeed/picoclaw 1019)
    openai   none: the OpenAI API reference, and gateways that check requests by it

Without `ignore_eos` a model may end its answer early; the client then says that output tokens
differ from the plan's.
"""

from __future__ import annotations

NVEXT = "nvext"
PROFILES: dict[str, tuple[str, ...]] = {
    "vllm": ("ignore_eos", "min_tokens", "return_token_ids"),
    "sglang": ("ignore_eos", "min_tokens", "return_token_ids"),
    "trtllm": ("ignore_eos", "min_tokens"),
    "nim": (NVEXT,),
    "openai": (),
}
