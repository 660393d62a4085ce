"""Failure log: what went wrong and has nobody else to be told, written to the logger ``isthmus``.

``logging`` is imported when something is logged: where all goes well nothing needs it.
"""

from isthmus.errors import IsthmusError, Refused, StoreUnavailable
from isthmus.revisions.codes import UNAVAILABLE_CODE
from isthmus.wire.jsonrpc import ErrorBody

LOGGER_NAME = "isthmus"

STORE_UNAVAILABLE = "The store of this server cannot be reached now: try again later"
STORE_RETRY_AFTER_S = 2.0  # that callers are asked to wait when the store cannot be reached


def log_failure(what: object, error: BaseException, *, detail: str = "") -> None:
    """Log that something failed, with the traceback of its exception.

    Args:
        what: what failed: a method, or a callback.
        error: the exception.
        detail: more about it, put behind the message as it is.
    """
    import logging

    logger = logging.getLogger(LOGGER_NAME)
    logger.error("%s failed%s", what, detail, exc_info=error, stacklevel=2)


def log_request_failure(what: object, error: BaseException) -> None:
    """Log what kept a request from being served; a warning where the other side is the cause."""
    import logging

    level = logging.WARNING if isinstance(error, Refused | IsthmusError) else logging.ERROR
    logger = logging.getLogger(LOGGER_NAME)
    logger.log(level, "%s failed", what, exc_info=error, stacklevel=2)


def make_store_error(what: object, error: StoreUnavailable) -> ErrorBody:
    """Make the error that a caller is told when the store cannot be reached; the reason is logged."""
    log_warning("%s: %s", what, error)
    data = {"retryAfterMs": round(STORE_RETRY_AFTER_S * 1000)}
    return ErrorBody(code=UNAVAILABLE_CODE, message=STORE_UNAVAILABLE, data=data)


def log_error(message: str, *values: object, error: BaseException | None = None) -> None:
    """Log that something does not work, with the traceback of an exception where there is one."""
    import logging

    logging.getLogger(LOGGER_NAME).error(message, *values, exc_info=error, stacklevel=2)


def log_warning(message: str, *values: object) -> None:
    """Log what the program should know, though everything goes on."""
    import logging

    logging.getLogger(LOGGER_NAME).warning(message, *values, stacklevel=2)


def log_info(message: str, *values: object) -> None:
    """Log what is of interest only to whoever searches for a fault."""
    import logging

    logging.getLogger(LOGGER_NAME).info(message, *values, stacklevel=2)


def log_debug(message: str, *values: object) -> None:
    """Log what happens every day, and explains something now and then."""
    import logging

    logging.getLogger(LOGGER_NAME).debug(message, *values, stacklevel=2)
