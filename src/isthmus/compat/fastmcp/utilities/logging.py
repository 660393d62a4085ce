"""Loggers under the names of ``fastmcp.utilities.logging``."""

import logging
import sys
from typing import Any

ROOT_LOGGER = "fastmcp"


def get_logger(name: str) -> logging.Logger:
    """Get the logger of a module, below ``fastmcp``."""
    inside = name == ROOT_LOGGER or name.startswith(f"{ROOT_LOGGER}.")
    return logging.getLogger(name if inside else f"{ROOT_LOGGER}.{name}")


def configure_logging(
    level: str | int = "INFO", logger: logging.Logger | None = None, **_: Any
) -> None:
    """Write what fastmcp's loggers say to stderr, in plain lines.

    Args:
        level: the least level that is written.
        logger: the logger; that of fastmcp by default.
        **_: settings of rich, which is not used.
    """
    logger = logger or logging.getLogger(ROOT_LOGGER)
    logger.setLevel(level)
    logger.propagate = False
    for handler in logger.handlers[:]:
        logger.removeHandler(handler)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("[%(asctime)s] %(levelname)-8s %(message)s"))
    logger.addHandler(handler)
