"""No secret in a log: what the loggers of authorization say is looked through before anybody hears it.

Every :class:`~isthmus.auth.tokens.secret.Secret` that is alive is taken out wherever it stands, in exceptions
and tracebacks too, and so is what merely looks like a token. It is a net under the code, which has
no business to log secrets in the first place; Authlib logs whole tokens at DEBUG, so its loggers
never go below INFO.
"""

import logging
import re
import traceback
from collections.abc import Iterator
from typing import Any

from isthmus.auth.tokens.secret import live_secrets

__all__ = ["REDACTED", "Redaction", "install", "redact"]

REDACTED = "[redacted]"
"""What stands where a secret was."""

SHORTEST = 6
"""Characters of a secret that is looked for; shorter ones stand in ordinary words."""

OURS = ("isthmus", "isthmus.auth")

AUTHLIBS = (
    "authlib",
    "authlib.oauth2.drafts.id_jag",
    "authlib.oauth2.rfc6749.authenticate_client",
    "authlib.oauth2.rfc6749.grants.authorization_code",
    "authlib.oauth2.rfc6749.grants.client_credentials",
    "authlib.oauth2.rfc6749.grants.implicit",
    "authlib.oauth2.rfc6749.grants.refresh_token",
    "authlib.oauth2.rfc6749.grants.resource_owner_password_credentials",
    "authlib.oauth2.rfc7523.client",
    "authlib.oauth2.rfc7523.jwt_bearer",
    "authlib.oauth2.rfc7523.validator",
    "authlib.oauth2.rfc8628.device_code",
    "authlib.oidc.core.grants.code",
    "authlib.oidc.core.grants.hybrid",
    "authlib.oidc.core.grants.implicit",
)
"""The loggers of Authlib: a filter hears only what its own logger says, so that each has one."""

SCHEME = re.compile(r"(?i)\b(bearer|dpop|basic) {1,3}[A-Za-z0-9\-._~+/]{6,8192}={0,3}")
NAMED = re.compile(
    r"""(?i)(?<![a-z])((?:access_|refresh_|id_|subject_|actor_)token|client_secret|"""
    r"""(?:client_)?assertion|code_verifier|device_code|password|d)(["']?\s?[=:]\s?["']?)"""
    r"""[^\s&"',;)}\]]{6,8192}"""
)
PARAMETER = re.compile(
    r"""(?i)(?<![a-z_])(code|token|state)(=|["']: ?["'])(?=[^\s&"']{0,20}[a-z])[^\s&"',;)}\]]{8,8192}"""
)
JWT = re.compile(
    r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{4,8192}\.[A-Za-z0-9_-]{2,16384}(?:\.[A-Za-z0-9_-]{0,8192}){0,3}"
)

PLAIN = re.compile(r"[A-Za-z0-9\-._~]*")
"""What looks the same wherever it is written."""

ORDINARY = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
"""What every record has; anything else was hung on it by who logged."""


def redact(text: str) -> str:
    """A text without live secrets, and without what looks like a token.

    Example::

        >>> redact("POST /token code=SplxlOBeZQQYbYS6WxSbIA&state=af0ifjsldkj")
        'POST /token code=[redacted]&state=[redacted]'
    """
    for secret in sorted(_within(text), key=len, reverse=True):
        text = text.replace(secret, REDACTED)
    text = JWT.sub(REDACTED, text)
    text = SCHEME.sub(rf"\1 {REDACTED}", text)
    text = NAMED.sub(rf"\1\2{REDACTED}", text)
    return PARAMETER.sub(rf"\1\2{REDACTED}", text)


def _within(text: str) -> Iterator[str]:
    """The live secrets that stand in a text, as they are and as URLs spell them."""
    longest = len(text)
    for secret in live_secrets():
        if SHORTEST <= len(secret) <= longest:
            yield from (form for form in _forms(secret) if form in text)


def _forms(secret: str) -> tuple[str, ...]:
    if PLAIN.fullmatch(secret):
        return (secret,)
    from urllib.parse import quote, quote_plus

    try:
        return secret, quote(secret, ""), quote_plus(secret), repr(secret)[1:-1]
    except UnicodeEncodeError:
        return (secret,)


class Redaction(logging.Filter):
    """Takes secrets out of records, and lets all of them through but Authlib's below INFO."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Look through one record, and change what has to be."""
        if record.levelno < logging.INFO and record.name.startswith("authlib"):
            return False  # it says what it hands out: "Issue token %r to %r"
        try:
            said = record.getMessage()
        except Exception:  # noqa: BLE001 - a format that does not fit its arguments is told by logging
            said = f"{record.msg} {record.args!r}"
        clean = redact(said)
        if clean != said:
            record.msg, record.args = clean, ()
        if record.exc_info or record.exc_text:
            self._exception(record)
        if record.stack_info:
            record.stack_info = redact(record.stack_info)
        for name in vars(record).keys() - ORDINARY:
            setattr(record, name, _clean(getattr(record, name)))
        return True

    @staticmethod
    def _exception(record: logging.LogRecord) -> None:
        """A traceback that has a secret is kept as text, without the exception that carries it."""
        told = record.exc_text or ""
        if isinstance(record.exc_info, tuple) and record.exc_info[1] is not None:
            told = "".join(traceback.format_exception(*record.exc_info)).rstrip("\n")
        clean = redact(told)
        if clean != told:
            record.exc_info, record.exc_text = None, clean


def _clean(value: Any) -> Any:
    """What hangs on a record: as it is, or as the text that is left of it."""
    told = value if isinstance(value, str) else repr(value)
    clean = redact(told)
    return value if clean == told else clean


NET = Redaction()


def install(*names: str) -> None:
    """Put the net under the loggers of authorization, and further ones; safe to call twice.

    Args:
        names: loggers of the application's own that shall have it, too.
    """
    for name in (*OURS, *AUTHLIBS, *names):
        logging.getLogger(name).addFilter(NET)
