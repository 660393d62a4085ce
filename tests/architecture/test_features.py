"""Features of the wire: each decided once in the tables, and acted on in one place."""

import ast
from collections import defaultdict

from isthmus.revisions import Feature

# Facts of the tables that no code asks for: the phases, the HTTP rules or the methods of a
# revision settle them already, or what they stand for is not built. The list may only shrink.
UNREAD = {
    "DISCONNECT_CANCELS",
    "SESSION_HEADER",
    "VERSION_HEADER",
}


def mentions(source) -> set[str]:
    """The features a file names as ``Feature.X``."""
    return {
        node.attr
        for node in source.nodes
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "Feature"
    }


def readers(sources) -> dict[str, set[str]]:
    """The files that mention each feature, but for the tables and the help for tests."""
    found = defaultdict(set)
    for s in sources:
        for name in mentions(s) if s.package not in {"revisions", "testing"} else ():
            found[name].add(s.name)
    return found


def test_a_feature_is_read_in_one_place(sources):
    """Ours: when a feature's meaning changes, one file changes."""
    twice = {name: sorted(files) for name, files in readers(sources).items() if len(files) > 1}

    assert {} == twice, "ask in one place and hand the answer on"


def test_the_features_nobody_reads_are_known(sources):
    """Ours: a feature nobody acts on is a promise somebody else keeps, or nobody."""
    tables = {"revisions/legacy.py", "revisions/modern.py"}
    rules = [s for s in sources if s.package == "revisions" and s.name not in tables]
    acted_on = set(readers(sources)).union(*map(mentions, rules))

    assert UNREAD == {f.name for f in Feature} - acted_on
