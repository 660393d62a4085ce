"""Index of URI templates: finds those that can match a URI without trying all of them.

It is a trie over the parts of templates that are the same in every URI of theirs: the literal that
a template begins with and, after each ``{name}`` that must end at the next ``/``, ``?`` or ``#``, the
literal that stands there. What a template has beyond that is left to its ``match``.
"""

import re
from collections import Counter
from typing import Generic, TypeVar

T = TypeVar("T")

SEGMENT_END = re.compile(r"[/?#]")


class _Node(Generic[T]):
    """The templates whose literals up to here are the same.

    Attributes:
        entries: those that have no more of them, by their number.
        children: the others, by their next literal.
        lengths: how many of these have each length.
    """

    __slots__ = ("children", "entries", "lengths")

    def __init__(self) -> None:
        self.entries: dict[int, T] = {}
        self.children: dict[str, _Node[T]] = {}
        self.lengths: Counter[int] = Counter()

    def child(self, literal: str) -> "_Node[T]":
        """The node after a literal, which is made where there is none."""
        node = self.children.get(literal)
        if node is None:
            node = self.children[literal] = _Node()
            self.lengths[len(literal)] += 1
        return node

    def drop(self, literal: str) -> None:
        """Forget the node after a literal if nothing is left there."""
        node = self.children[literal]
        if not node.entries and not node.children:
            del self.children[literal]
            self.lengths[len(literal)] -= 1
            self.lengths += Counter()  # only lengths that there are


class TemplateIndex(Generic[T]):
    """Entries by the literals of their templates, in the order in which they came.

    Example:
        >>> index = TemplateIndex()
        >>> index.add("notes://{id}/draft", ("notes://", "/draft"), 1)
        >>> index.add("notes://{+path}", ("notes://",), 2)
        >>> index.find("notes://7/draft"), index.find("notes://7")
        ([1, 2], [2])
    """

    def __init__(self) -> None:
        self._root: _Node[T] = _Node()
        self._added = 0
        self._places: dict[str, tuple[int, tuple[str, ...]]] = {}

    def add(self, key: str, literals: tuple[str, ...], entry: T) -> None:
        """Take in an entry.

        Args:
            key: what it is known by; no other entry has it.
            literals: what each of its URIs begins with, and what then follows each segment.
            entry: the entry.
        """
        node = self._root
        for literal in literals:
            node = node.child(literal)
        self._added += 1
        node.entries[self._added] = entry
        self._places[key] = self._added, literals

    def remove(self, key: str) -> None:
        """Take out an entry that is there."""
        number, literals = self._places.pop(key)
        path = [self._root]
        for literal in literals:
            path.append(path[-1].children[literal])
        del path[-1].entries[number]
        for node, literal in zip(reversed(path[:-1]), reversed(literals), strict=True):
            node.drop(literal)

    def find(self, uri: str) -> list[T]:
        """The entries whose literals stand in a URI where they must, in the order they came."""
        found: dict[int, T] = {}
        waiting = [(self._root, 0)]
        while waiting:
            node, at = waiting.pop()
            for length in tuple(node.lengths):  # another thread may add one
                end = at + length
                child = node.children.get(uri[at:end])
                if child is None or end > len(uri):
                    continue
                found.update(child.entries)
                stop = SEGMENT_END.search(uri, end) if child.children else None
                if stop is not None:
                    waiting.append((child, stop.start()))
        return [found[number] for number in sorted(found)]
