"""Edits of a source text: spans that are replaced, and comments that are put on lines."""

import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

COMMENT_PREFIX = "# isthmus:"
_LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of a source text, as offsets."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Note:
    """A comment for the author on a line: what to check there."""

    line: int
    text: str


class LineTable:
    """Lines of a source text, to get from a line and column to an offset and back."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = [0, *(found.end() for found in _LINE_END.finditer(text))]

    def offset_of(self, line: int, column: int) -> int:
        """The offset of a line (from 1) and a column (from 0)."""
        return self._starts[line - 1] + column

    def end_of(self, line: int) -> int:
        """The offset at which a line ends, before its line break."""
        found = _LINE_END.search(self.text, self._starts[line - 1])
        return len(self.text) if found is None else found.start()

    def text_of(self, line: int) -> str:
        """A line without its line break."""
        return self.text[self._starts[line - 1] : self.end_of(line)]


@dataclass(slots=True)
class TextEdits:
    """Edits of one text; spans do not overlap."""

    replaced: dict[Span, str] = field(default_factory=dict)
    notes: dict[int, list[str]] = field(default_factory=dict)

    def replace(self, span: Span, text: str) -> None:
        """Put a text in the place of a span."""
        self.replaced[span] = text

    def add_notes(self, notes: Iterable[Note]) -> None:
        """Put comments on lines; the same one stands on a line once."""
        for note in notes:
            texts = self.notes.setdefault(note.line, [])
            if note.text not in texts:
                texts.append(note.text)

    def apply(self, text: str) -> str:
        """Make the new text."""
        lines = LineTable(text)
        pieces = dict(self.replaced)
        for line, words in self._settle_notes(text, lines).items():
            end = lines.end_of(line)
            pieces[Span(end, end)] = f"  {COMMENT_PREFIX} {'; '.join(words)}"
        made: list[str] = []
        at = 0
        for span in sorted(pieces, key=lambda span: (span.start, span.end)):
            made += [text[at : span.start], pieces[span]]
            at = span.end
        return "".join([*made, text[at:]])

    def _settle_notes(self, text: str, lines: LineTable) -> dict[int, list[str]]:
        """Find for each comment the first line from its own on that can end with one."""
        if not self.notes:
            return {}
        possible = sorted(_find_comment_lines(text))
        settled: dict[int, list[str]] = {}
        for line, words in sorted(self.notes.items()):
            at = next((each for each in possible if each >= line), None)
            if at is None or COMMENT_PREFIX in lines.text_of(at):
                continue  # it stands there from an earlier run
            if any(span.start <= lines.end_of(at) < span.end for span in self.replaced):
                at = next((n for n in possible if n > at and not self._covers(lines, n)), at)
            known = settled.setdefault(at, [])
            known += [word for word in words if word not in known]
        return settled

    def _covers(self, lines: LineTable, line: int) -> bool:
        end = lines.end_of(line)
        return any(span.start <= end < span.end for span in self.replaced)


def _find_comment_lines(text: str) -> Iterator[int]:
    """Lines whose end is neither in a string nor behind a backslash."""
    normal = _LINE_END.sub("\n", text)
    for token in tokenize.generate_tokens(io.StringIO(normal).readline):
        if token.type in (tokenize.NEWLINE, tokenize.NL):
            yield token.start[0]
