r"""Regular expressions for schemas: what msgspec reads and writes, exactly, in every dialect.

Schemas are read by hosts with ECMAScript, Rust or RE2 engines. The patterns here use what all of
them have: no look-around, no ``\\d`` (which is Unicode's digits in some).
"""

import re

from isthmus.errors import UsageError

__all__ = [
    "DATETIME",
    "DECIMAL",
    "DURATION_ACCEPTED",
    "DURATION_WRITTEN",
    "FLOAT_KEY",
    "INTEGER_KEY",
    "LOCAL_DATETIME",
    "TIMES_BY_ZONE",
    "make_base64_pattern",
    "translate_pattern",
]

DATE = "[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
CLOCK = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?"
ZONE = "(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"

DATETIME = f"^{DATE}T{CLOCK}{ZONE}?$"
LOCAL_DATETIME = f"^{DATE}T{CLOCK}$"
# by whether a time of day must have a zone (None: it may)
TIMES_BY_ZONE = {None: f"^{CLOCK}{ZONE}?$", True: f"^{CLOCK}{ZONE}$", False: f"^{CLOCK}$"}


SECONDS = r"[0-9]{1,9}(\.[0-9]{1,6})?S"
PART_OF_DAY = f"T([0-9]{{1,9}}H([0-9]{{1,9}}M)?({SECONDS})?|[0-9]{{1,9}}M({SECONDS})?|{SECONDS})"
# ISO 8601 without years, months and weeks, and within what a timedelta can hold
DURATION_ACCEPTED = f"^-?P([0-9]{{1,8}}D({PART_OF_DAY})?|{PART_OF_DAY})$"
DURATION_WRITTEN = r"^-?P([0-9]+D)?(T([0-9]+(\.[0-9]+)?S))?$"

DECIMAL = r"^-?[0-9]+(\.[0-9]+)?$"
INTEGER_KEY = "^(0|-?[1-9][0-9]{0,17})$"
FLOAT_KEY = r"^-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,17})?$"

BLOCK = "[A-Za-z0-9+/]"
ANY_BASE64 = f"^({BLOCK}{{4}})*({BLOCK}{{2}}==|{BLOCK}{{3}}=)?$"


def make_base64_pattern(least: int = 0, most: int | None = None) -> str:
    """Base64 text of so many bytes, to the byte."""
    if not least and most is None:
        return ANY_BASE64
    forms = []
    for rest, tail in ((0, ""), (1, f"{BLOCK}{{2}}=="), (2, f"{BLOCK}{{3}}=")):
        low = max(0, -((rest - least) // 3))
        high = None if most is None else (most - rest) // 3
        if high is None or low <= high:
            upto = "" if high is None else high
            forms.append(f"({BLOCK}{{4}}){{{low},{upto}}}{tail}")
    return f"^({'|'.join(forms)})$"


SPELLINGS = {r"\A": "^", r"\Z": "$", "(?P<": "(?<"}  # Python's, by which ECMAScript has others

TOKENS = r"(?s)\\.|\(\?P<|\(\?(?!:|=|!|<=|<!)|[*+?}]\+"


def translate_pattern(pattern: str) -> str:
    """An author's pattern as JSON Schema wants it, in ECMAScript's dialect.

    Raises:
        UsageError: it uses what only Python has, such as inline flags.
    """

    def translated(token: re.Match[str]) -> str:
        text = token[0]
        if text.startswith("\\") and text not in SPELLINGS:
            return text
        if text not in SPELLINGS:
            raise UsageError(
                f"the pattern {pattern!r} uses {text!r}, which JSON Schema's regular expressions "
                "(ECMAScript) do not have"
            )
        return SPELLINGS[text]

    return re.sub(TOKENS, translated, pattern)
