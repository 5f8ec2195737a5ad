"""A hook of the refused runs: the real engine, behind which one measured request answers 500.

Started in the place of the engine's own module, with its arguments. Every other request, and every
phase but the measured one, reaches the engine untouched.
"""

from __future__ import annotations

import runpy
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping
    from typing import Any

    Message = MutableMapping[str, Any]

ENGINE = "vllm.entrypoints.openai.api_server"
PHASE = b"measure-"
SESSION = b"-s5-"


class FailOneOfSixteen:
    """ASGI layer: the measured request of one session is answered with 500 and a body."""

    def __init__(self, app: Callable[..., Awaitable[None]]) -> None:
        self.app = app

    async def __call__(
        self,
        scope: Message,
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        name = dict(scope.get("headers", ())).get(b"x-request-id", b"")
        if not (name.startswith(PHASE) and SESSION in name + b"-"):
            await self.app(scope, receive, send)
            return
        head = [(b"content-type", b"text/plain"), (b"content-length", b"7")]
        await send({"type": "http.response.start", "status": 500, "headers": head})
        await send({"type": "http.response.body", "body": b"planted"})


if __name__ == "__main__":
    sys.argv += ["--middleware", "failing_server.FailOneOfSixteen"]
    runpy.run_module(ENGINE, run_name="__main__", alter_sys=True)
