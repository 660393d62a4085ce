"""Log messages without secrets, for ``notifications/message``: ``Server(redact=Redact(…))``.

Log messages travel to a client, are shown there, and are kept. What looks like a credential is
taken out of them on the way: members named like one, and in any text the forms that keys, tokens
and passwords in URLs have. Redaction is a safety net; do not log secrets on purpose.

spec 2026-07-28 server/utilities/logging#security: log messages MUST NOT contain credentials.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import msgspec

from isthmus.core.encoding import replace_surrogates
from isthmus.core.redaction.forms import (
    BEFORE_JWT,
    ISSUED_KEY,
    JWT,
    PEM,
    is_secret_name,
    squeeze_name,
)
from isthmus.core.redaction.live_secrets import REDACTED

MAX_MESSAGE_DEPTH = 60  # what lies deeper is not sent

NAME = (  # password=, "token": , api-key: …
    r"""(?i:(?:[a-z]{1,20}[_-]){0,3}(?:password|passwd|pwd|secret|token|api[_-]?key|"""
    r"""access[_-]?key|private[_-]?key)["']?\s{0,3}[=:])"""
)
NAMED = (  # what stands after a name in a text
    rf"""(?i:(?<![a-z])){NAME}\s{{0,3}}["']?(?P<named>[^\s"',;&)}}\]]{{1,4096}})"""
)
SCHEME = (  # Authorization: Basic …, Bearer …; what names a secret itself is none yet
    rf"(?i:\b(?:bearer|basic|digest|dpop|token)\s{{1,3}})(?!{NAME})"
    r"(?P<scheme>[A-Za-z0-9\-._~+/]{8,4096}={0,2})"
)
URL_USERINFO = (  # scheme://user:password@host; a user alone is none
    r"(?<=://)(?P<userinfo>[^\s/@:]{0,256}:[^\s/@]{1,256}|[^\s/@:]{16,256})(?=@)"
)
PREFIXED_KEY = (  # also shorter ones, and other spellings, than issuers have
    r"(?P<prefixed>\b(?:sk|pk|rk|gh[oprsu]|github_pat|glpat|xox[abeprs]|npm|pypi|hf|dop_v1|shpat|"
    r"whsec)[-_][A-Za-z0-9_-]{12,}+)"
)
FORMS = (
    *(NAMED, SCHEME, URL_USERINFO, rf"(?P<pem>{PEM})"),
    *(rf"{BEFORE_JWT}(?P<jwt>{JWT})", PREFIXED_KEY, rf"(?P<key>{ISSUED_KEY})"),
)


@cache
def _compile_forms() -> re.Pattern[str]:
    """All forms in one pattern, compiled when something is logged."""
    return re.compile("|".join(FORMS))


class Redact(msgspec.Struct, frozen=True):
    """Redaction of secrets in log messages; ``Server(redact=Redact(names=["iban"]))``.

    Args:
        names: names of members that are secrets, beside those every server knows; case, and what
            stands between the words, make no difference.
        patterns: regular expressions of texts that are secrets, beside those every server knows.

    Attributes:
        names: as given.
        patterns: as given.
    """

    names: Iterable[str] = ()
    patterns: Iterable[str] = ()

    def __call__(self, value: Any) -> Any:
        """The value without secrets: plain data in, plain data out, never an exception."""
        names = frozenset(map(squeeze_name, self.names))
        return RedactionWalk(names, _compile_patterns(tuple(self.patterns))).value(value, 0)


@cache
def _compile_patterns(patterns: tuple[str, ...]) -> list[re.Pattern[str]]:
    return [re.compile(pattern) for pattern in patterns]


class RedactionWalk:
    """A walk over one message."""

    __slots__ = ("_names", "_patterns")

    def __init__(self, names: frozenset[str], patterns: list[re.Pattern[str]]) -> None:
        self._names = names
        self._patterns = patterns

    def value(self, value: Any, depth: int) -> Any:
        """A part of the message without secrets."""
        if isinstance(value, str):
            return self._text(value)
        if depth > MAX_MESSAGE_DEPTH:
            return "[too deep]" if isinstance(value, Mapping | list | tuple) else value
        if isinstance(value, Mapping):
            return {
                self._text(str(key)): self._member(str(key), member, depth)
                for key, member in value.items()
            }
        if isinstance(value, list | tuple):
            return [self.value(item, depth + 1) for item in value]
        return value

    def _member(self, key: str, member: Any, depth: int) -> Any:
        if member is None or isinstance(member, bool) or not self._is_secret(key, member):
            return self.value(member, depth + 1)
        return REDACTED

    def _is_secret(self, key: str, member: Any) -> bool:
        name = squeeze_name(key)
        if name in self._names:
            return True
        if isinstance(member, int | float) and (
            name == "pass" or name.removesuffix("s").endswith("token")
        ):
            return False  # how many there were is no secret
        return is_secret_name(key)

    def _text(self, text: str) -> str:
        text = _compile_forms().sub(_blank_match, replace_surrogates(text))
        for pattern in self._patterns:
            text = pattern.sub(REDACTED, text)
        return text


def _blank_match(found: re.Match[str]) -> str:
    """The text of a match, without the secret in it."""
    kind = found.lastgroup or ""
    start, end = found.span(kind)
    text = found[0]
    return text[: start - found.start()] + REDACTED + text[end - found.start() :]
