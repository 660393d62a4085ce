"""Text of others made safe for a terminal: nothing in it that the terminal obeys.

It may hold escape sequences that move the cursor, or marks that turn the reading direction round to
make one word look like another.
"""

import re
import unicodedata
from collections.abc import Callable

_KEPT_CONTROLS = {"\n", "\t"}
# Direction marks, embeddings, overrides and isolates, and the invisible joiners among them.
_FORMAT_CATEGORIES = {"Cc", "Cf", "Co", "Cs", "Zl", "Zp"}
_HARMLESS_FORMATS = {"\u200d"}  # the joiner that emoji are made with
# Letters and signs that are drawn as nothing, and marks that only choose how a letter is drawn.
_UNDRAWN_CHARACTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0") | {
    chr(code) for first, last in ((0x180B, 0x180F), (0xFE00, 0xFE0E), (0xE0100, 0xE01EF))
    for code in range(first, last + 1)
}  # fmt: skip
_JOINER = "\u200d"
_STRAY_JOINER = re.compile(
    "(?<![\u2190-\u2bff\ufe0f\U0001f000-\U0001faff])\u200d|\u200d(?![\u2190-\u2bff\U0001f000-\U0001faff])"
)
_PICTURE_CHAIN = re.compile(
    "(?:[\u2190-\u2bff\U0001f000-\U0001faff][\ufe0f\U0001f3fb-\U0001f3ff]*\u200d){6,}"
)
_COMBINING_MARK = (
    "[\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u064b-\u065f\u0e31\u0e34-\u0e3a\u0e47-\u0e4e"
    "\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\u302a-\u302f\u3099\u309a\ufe20-\ufe2f]"
)
_PILED_MARKS = re.compile(
    f"(?<={_COMBINING_MARK * 4}){_COMBINING_MARK}+"
)  # more than any language puts upon one letter
_SCRIPTS = ("LATIN", "GREEK", "CYRILLIC", "ARMENIAN", "CHEROKEE", "COPTIC")  # with letters alike


class _CharacterTable(dict[int, str | int]):
    """The replacement of each character, found out when it first comes.

    Args:
        of: says it.
    """

    def __init__(self, of: Callable[[str], str]) -> None:
        super().__init__()
        self._of = of

    def __missing__(self, code: int) -> str:
        found = self._of(chr(code))
        if len(self) < _MAX_CACHED_CHARACTERS:
            self[code] = found
        return found


_MAX_CACHED_CHARACTERS = (
    10_000  # characters whose fate is remembered: more than any language has in use
)


def _clean_character(character: str) -> str:
    kept = character in _KEPT_CONTROLS or character in _HARMLESS_FORMATS
    return character if kept or unicodedata.category(character) not in _FORMAT_CATEGORIES else ""


def _show_character(character: str) -> str:
    return character if character in _KEPT_CONTROLS else _show_character_in_line(character)


def _show_character_in_line(character: str) -> str:
    category = unicodedata.category(character)
    blank = category == "Zs" and character != " "
    odd = (
        blank
        or category in _FORMAT_CATEGORIES
        or category == "Cn"
        or character in _UNDRAWN_CHARACTERS
    )
    return f"<U+{ord(character):04X}>" if odd and character not in _HARMLESS_FORMATS else character


_CLEAN_TABLE = _CharacterTable(_clean_character)
_SHOW_TABLE = _CharacterTable(_show_character)
_SHOW_IN_LINE_TABLE = _CharacterTable(_show_character_in_line)


def clean_text(text: str) -> str:
    """Text without control characters and direction marks; line ends and tabs stay."""
    if text.isascii() and text.isprintable():
        return text
    return text.replace("\r\n", "\n").translate(_CLEAN_TABLE)


def show_invisible(text: str, *, line: bool = False) -> str:
    """Text in which whatever :func:`clean_text` would drop, and odd blanks, can be seen: ``<U+202E>``.

    For what somebody decides upon: there, a mark that was dropped in silence would be a lie.

    Args:
        text: somebody else's.
        line: it is to be one line: line ends and tabs are made visible, too.
    """
    if text.isascii() and text.isprintable():
        return text
    if _JOINER in text:  # elsewhere than in emoji it only makes two words that look the same
        text = _STRAY_JOINER.sub("<U+200D>", text)
        text = _PICTURE_CHAIN.sub(lambda found: found[0].replace(_JOINER, "<U+200D>"), text)
    text = _PILED_MARKS.sub(lambda found: "".join(f"<U+{ord(c):04X}>" for c in found[0]), text)
    return text.translate(_SHOW_IN_LINE_TABLE if line else _SHOW_TABLE)


def format_count(count: int, noun: str) -> str:
    """A number of things: ``1 tool``, ``2 tools``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def find_mixed_scripts(text: str) -> str:
    """Find the scripts with look-alike letters that a name mixes; empty where it has one only.

    A word of Latin letters with a Cyrillic ``U+0430`` for its ``a`` is such a name.
    """
    if text.isascii():
        return ""
    names = [unicodedata.name(c, "") for c in text if c.isalpha()]
    found = sorted(s.capitalize() for s in _SCRIPTS if any(n.startswith(s) for n in names))
    return " and ".join(found) if len(found) > 1 else ""
