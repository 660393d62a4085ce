"""Settings that a program gives a host, beside what its configuration says."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class HostSettings:
    """Settings that a program gives a host besides its configuration; see ``Host``."""

    policy: Any = None
    models: Any = None
    providers: Any = None
    state: Any = None
    workspace: str = ""
    clock: Callable[[], float] = time.time
    opener: Any = None
    store: Any = None
    name: str = "host"
    secrets: tuple[bytes, ...] = ()
