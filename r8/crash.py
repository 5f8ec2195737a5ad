"""The outermost handler: what nobody foresaw ends in one line and exit code 70.

Python itself would print a traceback and end with code 1, which says DEVIATES. The traceback lies
in a file of the temporary directory; R8_DEBUG=1 prints it instead.
Standard library alone: programs that start in an engine's environment end here as well.
"""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from typing import TYPE_CHECKING

from r8.errors import EXIT_INTERNAL, EXIT_INTERRUPTED

if TYPE_CHECKING:
    from collections.abc import Callable

DEBUG = "R8_DEBUG"
_PREFIX = "r8-traceback-"
# Of a message that may hold a stranger's text.
_SHOWN_CHARS = 300


def guarded(main: Callable[[], int], program: str, *, folder: str | None = None) -> int:
    """What `main` returns; an error that it did not catch is told, and its code is 70.

    `folder` takes the file with the traceback; by default the temporary directory does.
    """
    try:
        return main()
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except Exception as error:  # noqa: BLE001 - whatever it is
        try:
            _tell(error, program, folder)
        except Exception:  # noqa: BLE001 - no memory, or nowhere to write
            os.write(2, f"{program}: internal error, and no room to say which\n".encode())
        return EXIT_INTERNAL


def _tell(error: Exception, program: str, folder: str | None) -> None:
    text = "".join(traceback.format_exception(error))
    what = f"{type(error).__name__}: {error}"[:_SHOWN_CHARS]
    shown = ascii(what)[1:-1]  # no control character of whatever was read
    if os.environ.get(DEBUG):
        where = "above"
        sys.stderr.write(text.encode("ascii", "backslashreplace").decode().replace("\x1b", "\\x1b"))
    else:
        descriptor, where = tempfile.mkstemp(prefix=_PREFIX, suffix=".txt", dir=folder)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    sys.stderr.write(
        f"{program}: internal error, of R8 and not of its input: {shown} -> "
        f"traceback: {where}; SECURITY.md says how to report it\n"
    )
