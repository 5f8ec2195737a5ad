"""What a server means by its `finish_reason`: one table, by the servers' own words.

    complete   the model ended the answer itself
    truncated  a limit of length ended it; what was asked for is there
    failed     the server gave the answer up
    unknown    a word of no table: kept as said, never taken for complete

Sources: OpenAI API reference (stop, length, tool_calls, function_call, content_filter); vLLM
v1/engine/__init__.py (abort, error, repetition); SGLang entrypoints/openai/protocol.py (abort); TGI
router/src/lib.rs (eos_token, stop_sequence); TensorRT-LLM executor/result.py (cancelled, timeout);
LMDeploy serve/openai/protocol.py (error); FastDeploy entrypoints/openai/protocol.py (recover_stop);
Mistral client (model_length, error); DeepSeek API (insufficient_system_resource); Anthropic's words
as gateways pass them on (end_turn, tool_use, max_tokens, refusal).
"""

from __future__ import annotations

COMPLETE, TRUNCATED, FAILED, UNKNOWN = "complete", "truncated", "failed", "unknown"
MEANING = {
    **dict.fromkeys(("stop", "eos_token", "stop_sequence", "end_turn"), COMPLETE),
    **dict.fromkeys(("tool_calls", "function_call", "tool_use"), COMPLETE),
    **dict.fromkeys(("length", "max_tokens", "model_length"), TRUNCATED),
    **dict.fromkeys(("abort", "error", "repetition", "cancelled", "timeout"), FAILED),
    **dict.fromkeys(("content_filter", "refusal"), FAILED),
    **dict.fromkeys(("insufficient_system_resource", "recover_stop"), FAILED),
}


def meaning_of(finish_reason: str | None) -> str | None:
    """One of the four meanings; None where the server gave no reason, as some never do."""
    return None if finish_reason is None else MEANING.get(finish_reason, UNKNOWN)
