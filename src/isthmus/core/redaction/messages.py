"""Secrets taken out of what is sent to be read by people.

Log messages travel to a client, are shown there, and are kept. What looks like a credential is
taken out of them on the way: members named like one, and in any text the forms that keys, tokens
and passwords in URLs have. It is a net under the author, and no licence to log secrets.

spec 2026-07-28 server/utilities/logging#security: log messages MUST NOT contain credentials.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import msgspec

from isthmus.core.encoding import replace_surrogates

__all__ = ["REDACTED", "Redact", "is_secret_name"]

REDACTED = "[redacted]"
"""What stands where a secret was."""

NAMES = (
    *("password", "passwd", "passphrase", "pwd", "secret", "token", "apikey", "accesskey"),
    *("privatekey", "authorization", "credential", "cookie", "sessionid", "connectionstring"),
    *("bearer", "otp", "pin", "cvv", "ssn"),
)
"""What names of secrets end with, in the singular, without what stands between their words."""

MAX_MESSAGE_DEPTH = 60
"""Levels that are looked into; what lies deeper is not sent."""

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
USERINFO = (  # scheme://user:password@host
    r"(?<=://)(?P<userinfo>[^\s/@:]{0,256}:[^\s/@]{1,256}|[^\s/@:]{16,256})(?=@)"
)
PEM = (
    r"(?P<pem>-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[A-Za-z0-9+/=\s]{0,8192}"
    r"(?:-----END [A-Z ]{0,30}PRIVATE KEY-----)?)"
)
JWT = (  # looked for once in each run of its letters, which may be a long one that is none
    r"(?<![A-Za-z0-9_-])(?:[A-Za-z0-9_-]{0,64}?[_-])??"
    r"(?P<jwt>eyJ[A-Za-z0-9_-]{8,4096}+\.[A-Za-z0-9_-]{4,4096}+(?:\.[A-Za-z0-9_-]{0,4096}+)?)"
)
KEY = (  # the prefixes that issuers gave their keys so that they are found
    r"(?P<key>\b(?:sk|pk|rk|gh[oprsu]|github_pat|glpat|xox[abeprs]|npm|pypi|hf|dop_v1|shpat|whsec)"
    r"[-_][A-Za-z0-9_-]{12,255})"
)
CLOUD = (
    r"(?P<cloud>\b(?:(?:AKIA|ASIA)[A-Z0-9]{16}\b|AIza[A-Za-z0-9_-]{30,255}"
    r"|ya29\.[A-Za-z0-9_-]{16,255}))"
)
FORMS = (NAMED, SCHEME, USERINFO, PEM, JWT, KEY, CLOUD)


@cache
def _compile_forms() -> re.Pattern[str]:
    """All of them in one, made when something is logged."""
    return re.compile("|".join(FORMS))


class Redact(msgspec.Struct, frozen=True):
    """What is taken out of log messages; ``Server(redact=Redact(names=["iban"]))``.

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
        return RedactionWalk(
            frozenset(map(_squeeze_name, self.names)), _compile_patterns(self)
        ).value(value, 0)


_own: dict[tuple[str, ...], list[re.Pattern[str]]] = {}


def _compile_patterns(redact: Redact) -> list[re.Pattern[str]]:
    patterns = tuple(redact.patterns)
    if patterns not in _own:
        _own[patterns] = [re.compile(pattern) for pattern in patterns]
    return _own[patterns]


class RedactionWalk:
    """One walk over one message."""

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
        name = _squeeze_name(key)
        if name in self._names:
            return True
        if name.removesuffix("s").endswith("token") and isinstance(member, int | float):
            return False  # how many there were is no secret
        return is_secret_name(key)

    def _text(self, text: str) -> str:
        text = _compile_forms().sub(_blank_match, replace_surrogates(text))
        for pattern in self._patterns:
            text = pattern.sub(REDACTED, text)
        return text


def is_secret_name(key: str) -> bool:
    """Whether something is named like a credential."""
    name = _squeeze_name(key).removesuffix("s")
    return any(name.endswith(known) and _is_word(key, known) for known in NAMES)


def _squeeze_name(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _is_word(key: str, known: str) -> bool:
    """Whether a name ends with a known one as a word, as ``db_pin`` and ``dbPin`` do."""
    if len(known) > MAX_SHORT_NAME_CHARS:
        return True
    words = re.findall(r"[A-Z]?[a-z0-9]+|[A-Z0-9]+", key)
    return bool(words) and words[-1].lower().removesuffix("s") == known


MAX_SHORT_NAME_CHARS = 4
"""Letters of a name so short that it may well be the end of another word."""


def _blank_match(found: re.Match[str]) -> str:
    """What was found, without the secret in it."""
    kind = found.lastgroup or ""
    start, end = found.span(kind)
    text = found[0]
    return text[: start - found.start()] + REDACTED + text[end - found.start() :]
