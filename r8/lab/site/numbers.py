"""The numbers a site file may hold: what is no size, no level or no port is refused when read."""

from __future__ import annotations

from typing import Annotated

import msgspec

Count = Annotated[int, msgspec.Meta(ge=1)]
Natural = Annotated[int, msgspec.Meta(ge=0)]
Port = Annotated[int, msgspec.Meta(ge=1, le=65_535)]
Seconds = Annotated[float, msgspec.Meta(gt=0)]
Estimate = Annotated[float, msgspec.Meta(ge=0)]
Positive = Annotated[float, msgspec.Meta(gt=0)]
# A half-precision number takes two bytes: less is no weight.
Bytes = Annotated[int, msgspec.Meta(ge=2)]
Levels = Annotated[tuple[Count, ...], msgspec.Meta(min_length=1)]
Names = Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
