"""Scopes as text, under the names of ``fastmcp.utilities.auth``."""

import msgspec


def parse_scopes(value: str | list[str] | None) -> list[str] | None:
    """Parse scopes: a list as JSON, or words between commas or blanks.

    Raises:
        msgspec.DecodeError: it begins as a list, and is none.
    """
    if value is None or isinstance(value, list):
        return value
    text = value.strip()
    if text.startswith("["):
        return msgspec.json.decode(text, type=list[str])
    return [word for word in text.replace(",", " ").split() if word]
