"""A null server for tests, with a schedule in milliseconds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from load_client.calibration.null_process import start_null_server
from load_client.calibration.null_server import Script

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from load_client.calibration.null_process import NullServerProcess


def null_server(
    *, ttft_ms: int, chunks: int, interval_ms: int, keep_truth: bool = True
) -> AbstractContextManager[NullServerProcess]:
    """An endless server; over when the block ends."""
    script = Script(
        requests=0,
        prompt_tokens=12,
        ttft_ns=ttft_ms * 1_000_000,
        chunks=chunks,
        interval_ns=interval_ms * 1_000_000,
        keep_truth=keep_truth,
    )
    return start_null_server(script)
