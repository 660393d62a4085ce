"""Matching of grants with attempts: for whom, for what, and with which arguments a yes holds.

A grant for a shape is one for another file of the same folder, another page of the same site.

Everything that is neither a path nor an address has to be the same; a command, a recipient or an
amount is never "such a one".
"""

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from isthmus.host.model.attempt import Attempt
from isthmus.host.model.facts import Facts
from isthmus.host.model.trace import ASSURANCES, REMEMBER_SCOPES, Assurance, Remember
from isthmus.host.policy.places import canonicalize_path, parse_host
from isthmus.host.policy.predicates import Predicate
from isthmus.host.policy.rule_table import resolve_hints


class Grant(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One yes that lasts.

    Attributes:
        id: its name.
        scope: what it holds for.
        principal: for whom.
        action: for what.
        server: the server's name when it was given, ``identity`` what it is bound to.
        object: the tool, URI or prompt; empty for every trusted tool that only reads.
        fingerprint: of the tool's definition.
        arguments: digest of the arguments it is bound to, without those in ``shape``; empty for any.
        shape: predicates that the other arguments must meet, as in the ``where`` of a rule.
        run: the run it is bound to, ``session`` the life of a host.
        created: seconds since the epoch.
        until: when it ends, in seconds since the epoch; None for no end of its own.
        uses: how often it may still be used; None for any number.
        by: who gave it.
        assurance: how sure one can be that it was a person.
        ended: why it counts no longer: ``revoked``, ``expired`` or ``used up``; empty while it does.
    """

    id: str
    scope: Remember
    principal: str
    action: str
    server: str
    identity: str = ""
    object: str = ""
    fingerprint: str = ""
    arguments: str = ""
    shape: tuple[str, ...] = ()
    run: str = ""
    session: str = ""
    created: float = 0.0
    until: float | None = None
    uses: int | None = None
    by: str = ""
    assurance: Assurance = "callback"
    ended: str = ""


class GrantShape:
    """The predicates of a grant.

    Args:
        predicates: each is about one argument, by a JSON pointer.
    """

    def __init__(self, predicates: Sequence[Predicate]) -> None:
        self._predicates = predicates
        self._names = {_unescape_pointer(one.text.split(" ", 1)[0]) for one in predicates}

    def covers(self, attempt: Attempt, facts: Facts, rest: str) -> bool:
        """Whether the arguments have this shape.

        Args:
            attempt: with the arguments.
            facts: the circumstances.
            rest: the digest of the arguments that have to be the same.
        """
        others = {k: v for k, v in attempt.arguments.items() if k not in self._names}
        return digest_arguments(others) == rest and all(
            one.fits(attempt, facts, forbids=False) for one in self._predicates
        )


class GrantMatcher:
    """Matches grants with attempts, for one life of a host.

    Args:
        session: names that life; it may change.
        is_over: says whether the time of a grant is over, by the time of the attempt.
    """

    def __init__(self, session: str, is_over: Callable[[Grant, float], bool]) -> None:
        self.session = session
        self._is_over = is_over
        self._by_server: dict[tuple[str, str, str], list[Grant]] = {}
        self._shapes: dict[str, GrantShape] = {}

    def replace(self, grants: Sequence[Grant]) -> None:
        """Match with these grants from now on."""
        ids = {grant.id for grant in grants}
        self._shapes = {id: shape for id, shape in self._shapes.items() if id in ids}
        self._by_server = {}
        for grant in sorted(grants, key=rank_narrowness):
            key = grant.principal, grant.action, grant.server
            self._by_server.setdefault(key, []).append(grant)

    def remove(self, grant: Grant) -> None:
        """Match with this one no more."""
        key = grant.principal, grant.action, grant.server
        self._by_server[key] = [one for one in self._by_server[key] if one.id != grant.id]

    def find(
        self,
        attempt: Attempt,
        facts: Facts,
        *,
        remember: tuple[Remember, ...] | None,
        assurance: Assurance,
    ) -> Grant | None:
        """The grant that covers an attempt, the narrowest where several do; see ``Grants.find``."""
        least = ASSURANCES.index(assurance)
        for grant in self._by_server.get((attempt.principal, attempt.action, attempt.server), ()):
            if (
                (remember is None or grant.scope in remember)
                and ASSURANCES.index(grant.assurance) >= least
                and self.covers(grant, attempt, facts)
            ):
                return grant
        return None

    def covers(self, grant: Grant, attempt: Attempt, facts: Facts) -> bool:
        """Whether a grant of this principal, action and server is one for the attempt."""
        if grant.identity != facts.identity or self._is_over(grant, facts.now):
            return False
        if grant.session not in {"", self.session} or grant.run not in {"", attempt.run}:
            return False
        if grant.scope == "server_read_only":
            return is_read_only(facts)
        if grant.object != attempt.object or grant.fingerprint != facts.fingerprint:
            return False
        if grant.scope == "arguments":
            return grant.arguments == digest_arguments(attempt.arguments)
        return grant.scope != "shape" or self._shape(grant).covers(attempt, facts, grant.arguments)

    def _shape(self, grant: Grant) -> GrantShape:
        shape = self._shapes.get(grant.id)
        if shape is None:
            shape = self._shapes[grant.id] = GrantShape([Predicate(text) for text in grant.shape])
        return shape


def bind_arguments(
    scope: Remember, attempt: Attempt, facts: Facts
) -> tuple[tuple[str, ...], str | None]:
    """The shape and the digest that a grant is bound to; None for what has no digest."""
    if scope == "arguments":
        return (), digest_arguments(attempt.arguments)
    if scope == "shape":
        return derive_shape(attempt.arguments, facts)
    return (), ""


def is_read_only(facts: Facts) -> bool:
    """Whether a trusted tool says that it only reads."""
    return facts.trust != "untrusted" and resolve_hints(facts)["read_only"]


def rank_narrowness(grant: Grant) -> tuple[bool, int, str]:
    """Sort key of grants: the narrowest first."""
    return (grant.uses is not None, REMEMBER_SCOPES.index(grant.scope), grant.id)


def digest_arguments(arguments: object) -> str | None:
    """SHA-256 of arguments in hex, whatever the order of their members; None where there is none."""
    try:
        return hashlib.sha256(msgspec.json.encode(arguments, order="sorted")).hexdigest()
    except (TypeError, ValueError, RecursionError):
        return None


def derive_shape(arguments: Mapping[str, Any], facts: Facts) -> tuple[tuple[str, ...], str | None]:
    """The predicates that arguments meet, and the digest of those that have to be the same."""
    texts, others = [], {}
    for name, value in arguments.items():
        predicate = _make_predicate(name, value, facts) if isinstance(value, str) else None
        if predicate is None:
            others[name] = value
        else:
            texts.append(predicate)
    return tuple(texts), digest_arguments(others)


def _make_predicate(name: str, value: str, facts: Facts) -> str | None:
    if not name or not name.isprintable() or " " in name:
        return None  # it would not be one word of a predicate
    host = parse_host(value)
    if host is not None:
        return f"{_escape_pointer(name)} host-in {_quote_text(host)}"
    path = canonicalize_path(value, facts.cwd)
    if path is None or not os.path.isabs(value.removeprefix("file:")):  # noqa: PTH117 - a text of others
        return None
    folder = os.path.dirname(path)  # noqa: PTH120 - as above
    # The root and the home folder are no folders that anybody means by "such a file".
    if os.path.dirname(folder) == folder or folder == os.path.realpath(os.path.expanduser("~")):  # noqa: PTH111, PTH120 - as above
        return None
    return f"{_escape_pointer(name)} under {_quote_text(folder)}"


def _escape_pointer(name: str) -> str:
    return "/" + name.replace("~", "~0").replace("/", "~1")


def _unescape_pointer(pointer: str) -> str:
    return pointer[1:].replace("~1", "/").replace("~0", "~")


def _quote_text(text: str) -> str:
    return msgspec.json.encode(text).decode().replace("\x7f", "\\u007f")
