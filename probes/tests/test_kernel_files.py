from __future__ import annotations

import pytest

from probes.kernel_files import counter_of
from probes.samples import INT64_MAX


@pytest.mark.parametrize(
    ("text", "scale", "value"),
    [
        (b"0", 1, 0),
        (b"007", 4, 28),
        (b"%d" % INT64_MAX, 1, INT64_MAX),
        (b"%d" % (INT64_MAX + 1), 1, None),
        (b"%d" % (INT64_MAX // 4), 4, INT64_MAX // 4 * 4),
        (b"%d" % (INT64_MAX // 4 + 1), 4, None),
        (b"0" * 30 + b"5", 1, 5),
        (b"1" + b"0" * 19, 1, None),
        *((text, 1, None) for text in (b"", b"-1", b"1.0", b" 1", b"1e3", b"x", None)),
    ],
)
def test_a_counter_is_digits_within_64_bits_and_nothing_else(
    text: bytes | None, scale: int, value: int | None
) -> None:
    assert counter_of(text, scale) == value
