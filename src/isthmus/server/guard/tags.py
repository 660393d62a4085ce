"""Tags of tools, resources and prompts, and rules that offer or hide what they select."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from isthmus.errors import UsageError
from isthmus.wire.struct import Meta

TAGS_META = "isthmus/tags"  # the member of an item's ``_meta`` that has its tags

SESSION_RULES_KEY = "\0visibility"  # of the session state; no author's key begins so

MAX_SESSION_RULES = 100

NO_TAGS: frozenset[str] = frozenset()


def check_tags(tags: Any, what: str) -> frozenset[str]:
    """Tags as a set.

    Raises:
        UsageError: they are none.
    """
    if isinstance(tags, str) or not isinstance(tags, Collection):
        raise UsageError(f"{what}: tags are a set, as {{'admin'}}, not {tags!r}")
    if not all(isinstance(tag, str) and tag for tag in tags):
        raise UsageError(f"{what}: tags are words, not {tags!r}")
    return frozenset(tags)


def add_tags(meta: Mapping[str, Any] | None, tags: Collection[str], what: str = "tags=") -> Meta:
    """A ``_meta`` with these tags beside those that are in it.

    Raises:
        UsageError: they are no tags.
    """
    found = dict(meta or {})
    if tags:
        found[TAGS_META] = sorted({*read_tags(found), *check_tags(tags, what)})
    return found


def read_tags(meta: Any) -> frozenset[str]:
    """The tags in a ``_meta``; none where there is none."""
    found = meta.get(TAGS_META) if isinstance(meta, Mapping) else None
    if not isinstance(found, list):
        return NO_TAGS
    return frozenset(one for one in found if isinstance(one, str))


class VisibilityRule(msgspec.Struct, frozen=True, array_like=True):
    """One call of ``enable`` or ``disable``.

    Attributes:
        enables: what it selects is offered; otherwise it is hidden.
        names: what it selects, by name or URI.
        tags: what it selects, by any of these tags.
        only: what it does not select is hidden.
    """

    enables: bool
    names: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    only: bool = False

    def selects(self, key: str, tags: frozenset[str]) -> bool:
        """Whether the rule is about something."""
        return key in self.names or not tags.isdisjoint(self.tags)


def make_rule(
    names: Sequence[str], tags: Any, *, enables: bool, only: bool = False
) -> VisibilityRule:
    """Make a rule of what an author said.

    Raises:
        UsageError: it selects nothing, or a name or tag is none.
    """
    what = "enable()" if enables else "disable()"
    if not all(isinstance(name, str) for name in names):
        raise UsageError(f"{what} takes names and URIs, not {names!r}")
    found = check_tags(tags, what)
    if not names and not found:
        raise UsageError(f"{what} takes names or tags=: nothing was selected")
    return VisibilityRule(enables, tuple(dict.fromkeys(names)), tuple(sorted(found)), only)


def is_offered(rules: Sequence[VisibilityRule], key: str, meta: Any) -> bool:
    """Whether rules offer something; the last one that is about it decides, and everything is at first.

    Args:
        rules: the rules, in the order in which they were made.
        key: its name or URI.
        meta: its ``_meta``, which has its tags.
    """
    tags = read_tags(meta)
    for rule in reversed(rules):
        if rule.selects(key, tags):
            return rule.enables
        if rule.only:
            return False
    return True


def add_rule(rules: Sequence[VisibilityRule], rule: VisibilityRule) -> list[VisibilityRule]:
    """Rules with one more, and without those that it makes idle."""
    if rule.only:
        return [rule]
    names, tags = set(rule.names), set(rule.tags)
    kept = [one for one in rules if one.only or {*one.names} - names or {*one.tags} - tags]
    return [*kept, rule]


_decode_rules = msgspec.json.Decoder(list[VisibilityRule]).decode


def decode_rules(written: bytes | None) -> Sequence[VisibilityRule]:
    """The rules of a session from its state."""
    return () if written is None else _decode_rules(written)


def add_session_rule(values: dict[str, bytes], rule: VisibilityRule) -> dict[str, bytes]:
    """The state of a session with one more rule in it.

    Raises:
        UsageError: there are too many.
    """
    rules = add_rule(decode_rules(values.get(SESSION_RULES_KEY)), rule)
    if len(rules) > MAX_SESSION_RULES:
        raise UsageError(
            f"a session has {MAX_SESSION_RULES} rules of visibility at most: select by tags= instead of names"
        )
    return {**values, SESSION_RULES_KEY: msgspec.json.encode(rules)}
