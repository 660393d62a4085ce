"""Target of a test session: the server that ``--mcp-target`` or the ini option ``mcp_target`` names."""

import importlib
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from isthmus.transports.command import Command

URL_SCHEMES = ("http://", "https://", "ws://", "wss://", "unix://", "tcp://")
IMPORT_PATH = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):([A-Za-z_]\w*)")


def find_target(config: pytest.Config) -> Any:
    """The target that the command line names, or else the configuration; None without.

    Raises:
        pytest.UsageError: it cannot be read.
    """
    typed = config.getoption("--mcp-target", default=None)
    text = str(typed or config.getini("mcp_target") or "").strip()
    if not text:
        return None
    folder = Path.cwd() if typed else config.rootpath
    return read_target(text, folder)


def read_target(text: str, folder: Path) -> Any:
    """A target as a command line spells it.

    Args:
        text: a URL, the path of a ``.py`` file, ``module:server``, or a command with its arguments.
        folder: where a relative path begins.

    Raises:
        pytest.UsageError: there is no such file, module or server.
    """
    if text.startswith(URL_SCHEMES):
        return text
    path = folder / text
    if text.endswith(".py") and (path.is_file() or " " not in text):  # no command with a script
        if not path.is_file():
            raise pytest.UsageError(f"mcp_target: there is no file {path}")
        ours = "isthmus" in path.read_text(encoding="utf-8", errors="replace")
        start = ("-m", "isthmus", "run", path) if ours else (path,)
        return Command(sys.executable, *start, env=os.environ)
    named = IMPORT_PATH.fullmatch(text)
    if named:
        return _import_server(text, named[1], named[2])
    from shlex import split  # a command is rare

    return Command(*split(text), env=os.environ)


def _import_server(text: str, module: str, name: str) -> Any:
    try:
        return getattr(importlib.import_module(module), name)
    except ImportError as error:
        raise pytest.UsageError(
            f"mcp_target = {text}: {error}; the folder of the module must be in pytest's pythonpath"
        ) from error
    except AttributeError:
        raise pytest.UsageError(f"mcp_target = {text}: {module} has no {name}") from None
