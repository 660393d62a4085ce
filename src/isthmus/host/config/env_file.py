"""Files of environment variables, as ``envFile`` names them: ``NAME=value``, a line each."""

import re

__all__ = ["parse_env"]

LINE = re.compile(r"(?:export\s+)?([A-Za-z_][\w.]*)\s*=\s*(.*)")
QUOTED = re.compile(r"""'([^']*)'\s*(?:#.*)?|"((?:[^"\\]|\\.)*)"\s*(?:#.*)?""")
ESCAPE = re.compile(r"\\(.)")
ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


def parse_env(text: str) -> dict[str, str]:
    r"""The variables that a file has.

    Values stand bare, in ``'…'`` as they are, or in ``"…"`` with ``\n``, ``\"`` and the like.
    Blank lines and what follows a ``#`` are passed over; nothing is filled in.

    Raises:
        ValueError: a line is none of these; the message has its number, and never what it says.
    """
    found: dict[str, str] = {}
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
        bare = line.strip()
        if not bare or bare.startswith("#"):
            continue
        match = LINE.fullmatch(bare)
        if match is None:
            raise ValueError(f"line {number} is no NAME=value")
        name, value = match.groups()
        if value[:1] in {"'", '"'}:
            quoted = QUOTED.fullmatch(value)
            if quoted is None:
                raise ValueError(f"line {number} has a quote that does not end")
            plain, escaped = quoted.groups()
            value = (
                plain
                if plain is not None
                else ESCAPE.sub(lambda m: ESCAPES.get(m[1], m[1]), escaped)
            )
        elif value.startswith("#"):
            value = ""
        else:
            value = value.partition(" #")[0].rstrip()
        found[name] = value
    return found
