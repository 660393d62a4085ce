"""Log filter of authorization: no record of its loggers shows a secret.

Every :class:`~isthmus.auth.tokens.secret.Secret` that is alive is taken out wherever it stands, in
exceptions and tracebacks too, and so is what merely looks like a token. Redaction is a safety net;
do not log secrets on purpose. Authlib logs whole tokens at DEBUG, so its loggers never go below
INFO.
"""

import logging
import traceback
from typing import Any

from isthmus.core.redaction.lines import redact_log

OWN_LOGGERS = ("isthmus", "isthmus.auth")

AUTHLIB_LOGGERS = (  # each has the filter: it hears only what its own logger says
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

# What every record has; anything else was hung on it by who logged.
RECORD_ATTRIBUTES = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class LogRedaction(logging.Filter):
    """Takes secrets out of records, and lets all of them through but Authlib's below INFO."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Look through one record, and change what has to be."""
        if record.levelno < logging.INFO and record.name.startswith("authlib"):
            return False  # it says what it hands out: "Issue token %r to %r"
        try:
            message = record.getMessage()
        except Exception:  # noqa: BLE001 - a format that does not fit its arguments is told by logging
            message = f"{record.msg} {record.args!r}"
        clean = redact_log(message)
        if clean != message:
            record.msg, record.args = clean, ()
        if record.exc_info or record.exc_text:
            self._redact_exception(record)
        if record.stack_info:
            record.stack_info = redact_log(record.stack_info)
        for name in vars(record).keys() - RECORD_ATTRIBUTES:
            setattr(record, name, _redact_attribute(getattr(record, name)))
        return True

    @staticmethod
    def _redact_exception(record: logging.LogRecord) -> None:
        """A traceback that has a secret is kept as text, without the exception that carries it."""
        text = record.exc_text or ""
        if isinstance(record.exc_info, tuple) and record.exc_info[1] is not None:
            text = "".join(traceback.format_exception(*record.exc_info)).rstrip("\n")
        clean = redact_log(text)
        if clean != text:
            record.exc_info, record.exc_text = None, clean


def _redact_attribute(value: Any) -> Any:
    """An attribute of a record: as it is, or as the text that is left of it."""
    text = value if isinstance(value, str) else repr(value)
    clean = redact_log(text)
    return value if clean == text else clean


LOG_FILTER = LogRedaction()


def install(*names: str) -> None:
    """Put the filter on the loggers of authorization, and further ones; safe to call twice.

    Args:
        names: loggers of the application's own that shall have it, too.
    """
    for name in (*OWN_LOGGERS, *AUTHLIB_LOGGERS, *names):
        logging.getLogger(name).addFilter(LOG_FILTER)
