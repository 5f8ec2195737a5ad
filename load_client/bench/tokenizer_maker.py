"""A tokenizer that splits at spaces: peers want one, and none can be fetched where R8 runs.

Run by the peers' own interpreter: `tokenizer_maker DIRECTORY`.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any


def main() -> None:
    """Write the files transformers loads."""
    tokenizers: Any = importlib.import_module("tokenizers")
    transformers: Any = importlib.import_module("transformers")
    words = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({"[UNK]": 0, "the": 1}, unk_token="[UNK]")  # noqa: S106
    )
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=words,
        unk_token="[UNK]",  # noqa: S106
        eos_token="[UNK]",  # noqa: S106
    )
    fast.save_pretrained(sys.argv[1])


if __name__ == "__main__":
    main()
