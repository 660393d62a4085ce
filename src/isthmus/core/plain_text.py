"""Text of others made safe for a terminal: nothing in it that the terminal obeys.

It may hold escape sequences that move the cursor, or marks that turn the reading direction round to
make one word look like another.
"""

import unicodedata

__all__ = ["clean"]

_KEPT = {"\n", "\t"}
# Direction marks, embeddings, overrides and isolates, and the invisible joiners among them.
_FORMATS = {"Cc", "Cf", "Co", "Cs", "Zl", "Zp"}
_HARMLESS = {"\u200d"}  # the joiner that emoji are made with


def clean(text: str) -> str:
    """Text without control characters and direction marks; line ends and tabs stay."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        c
        for c in text.replace("\r\n", "\n")
        if c in _KEPT or c in _HARMLESS or unicodedata.category(c) not in _FORMATS
    )
