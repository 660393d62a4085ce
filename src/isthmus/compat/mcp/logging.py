"""Logging of ``mcp``: its loggers are those of ``logging``, and its log goes to standard error."""

import logging
import sys
from typing import Any


def get_logger(name: str) -> logging.Logger:
    """A logger."""
    return logging.getLogger(name)


def configure_logging(level: Any = "INFO") -> None:
    """Send the log to standard error, unless the program has said where it goes."""
    logging.basicConfig(level=level, format="%(message)s", stream=sys.stderr)
