"""Text of others made safe for a terminal: nothing in it that the terminal obeys.

It may hold escape sequences that move the cursor, or marks that turn the reading direction round to
make one word look like another.
"""

import unicodedata

__all__ = ["clean", "visible"]

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


def visible(text: str, *, line: bool = False) -> str:
    """Text in which whatever :func:`clean` would drop, and odd blanks, can be seen: ``<U+202E>``.

    For what somebody decides upon: there, a mark that was dropped in silence would be a lie.

    Args:
        text: somebody else's.
        line: it is to be one line: line ends and tabs are made visible, too.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if _is_plain(c, line=line) else f"<U+{ord(c):04X}>" for c in text)


def _is_plain(character: str, *, line: bool) -> bool:
    if character in _KEPT:
        return not line
    category = unicodedata.category(character)
    if category == "Zs":
        return character == " "
    return character in _HARMLESS or (category not in _FORMATS and category != "Cn")
