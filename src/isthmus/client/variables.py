"""Variables of the environment in configurations: ``${VAR}``, ``${VAR:-default}``, ``${env:VAR}``."""

import re
from collections.abc import Mapping
from typing import Any

from isthmus.errors import UsageError

__all__ = ["filled"]

_PLACE = re.compile(r"\$\{([^}]*)\}")
_VARIABLE = re.compile(r"(?:env:)?([A-Za-z_]\w*)(?::-(.*))?", re.DOTALL)


def filled(value: Any, where: str, environ: Mapping[str, str]) -> Any:
    """A value with its variables filled in, at any depth.

    Args:
        value: decoded JSON.
        where: what the value is called, for messages.
        environ: where variables are looked up.

    Raises:
        UsageError: a variable is not set, or ``${…}`` names none; the message says where.
    """
    if isinstance(value, dict):
        return {k: filled(v, f"{where}.{k}", environ) for k, v in value.items()}
    if isinstance(value, list):
        return [filled(v, f"{where}[{i}]", environ) for i, v in enumerate(value)]
    if not isinstance(value, str):
        return value

    def found(place: re.Match[str]) -> str:
        variable = _VARIABLE.fullmatch(place[1])
        if not variable:
            raise UsageError(f"{where}: {place[0]} is no variable of the environment")
        name, default = variable.groups()
        if name not in environ and default is None:
            raise UsageError(f"{where}: {place[0]} is not set; export {name}=…")
        return environ.get(name, default or "")

    return _PLACE.sub(found, value)
