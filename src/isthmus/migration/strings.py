"""Strings that name foreign modules: targets of patches and imports, and others that are only marked."""

from isthmus.migration.edits import Note, Span, TextEdits
from isthmus.migration.facade import describe_missing_name, find_facade_path
from isthmus.migration.scan import ForeignString


def rewrite_string(string: ForeignString, text: str, edits: TextEdits) -> bool:
    """Rewrite the target of a patch or an import; put a note on any other string.

    Returns:
        True if the string was rewritten.
    """
    raw = text[string.span.start : string.span.end]
    facade = find_facade_path(string.value)
    if facade is None:
        edits.add_notes([Note(string.line, describe_missing_name(string.value))])
        return False
    if not string.is_target or raw.count(string.value) != 1:
        words = f'"{string.value}" is a name of another library, which is now {facade}'
        edits.add_notes([Note(string.line, words)])
        return False
    start = string.span.start + raw.index(string.value)
    edits.replace(Span(start, start + len(string.value)), str(facade))
    return True
