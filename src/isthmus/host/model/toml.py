"""TOML parser for every file of the host: in bounded depth, and with the place of what is wrong."""

import re
from typing import Any

PLACE_PATTERN = re.compile(r" \(at line (\d+), column (\d+)\)")


class BadToml(ValueError):
    """A text is no TOML.

    Attributes:
        said: what is wrong, without its place.
        line, column: where, from 1; 0 where nobody knows.
    """

    def __init__(self, message: str, said: str, line: int = 0, column: int = 0) -> None:
        super().__init__(message)
        self.said = said
        self.line = line
        self.column = column


def parse_toml(text: str) -> dict[str, Any]:
    """Parse a text in TOML.

    Raises:
        BadToml: it is none.
    """
    from tomllib import TOMLDecodeError, loads  # most configurations are JSON

    try:
        return loads(text.removeprefix("\ufeff"))
    except TOMLDecodeError as error:
        message = str(error)
        found = PLACE_PATTERN.search(message)
        place = (int(found[1]), int(found[2])) if found else ()
        raise BadToml(message, PLACE_PATTERN.sub("", message).strip(), *place) from None
    except RecursionError:
        message = "it is nested too deep"
        raise BadToml(message, message) from None
