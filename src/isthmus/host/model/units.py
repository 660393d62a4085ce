"""Units of a configuration: durations, rates and sizes, which a file may spell in words."""

from typing import Annotated, TypeAlias

from msgspec import Meta

# in a file "15m", "30s", "250ms", or a number of seconds
Seconds: TypeAlias = Annotated[float, Meta(extra={"form": "duration"})]

# in a file "60/min", "5/s", "100/h", or a number a minute
Rate: TypeAlias = Annotated[float, Meta(extra={"form": "rate"})]

# in a file "1MiB", "64KiB", "500KB", or a number of bytes
Size: TypeAlias = Annotated[int, Meta(extra={"form": "size"})]
