"""Text of others made safe for a terminal: nothing in it that the terminal obeys.

It may hold escape sequences that move the cursor, or marks that turn the reading direction round to
make one word look like another.
"""

import unicodedata

__all__ = ["clean", "mixed", "visible"]

_KEPT = {"\n", "\t"}
# Direction marks, embeddings, overrides and isolates, and the invisible joiners among them.
_FORMATS = {"Cc", "Cf", "Co", "Cs", "Zl", "Zp"}
_HARMLESS = {"\u200d"}  # the joiner that emoji are made with
_SCRIPTS = ("LATIN", "GREEK", "CYRILLIC", "ARMENIAN", "CHEROKEE", "COPTIC")  # with letters alike


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


def mixed(text: str) -> str:
    """Which scripts with letters that look alike stand side by side in a name; empty for one only.

    A word of Latin letters with a Cyrillic ``U+0430`` for its ``a`` is such a name.
    """
    if text.isascii():
        return ""
    names = [unicodedata.name(c, "") for c in text if c.isalpha()]
    found = sorted(s.capitalize() for s in _SCRIPTS if any(n.startswith(s) for n in names))
    return " and ".join(found) if len(found) > 1 else ""
