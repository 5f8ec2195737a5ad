"""R8: measure, prove and judge external KV-cache tiers for LLM serving."""

__version__ = "0.1.0"
