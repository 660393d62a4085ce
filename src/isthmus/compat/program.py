"""Program of another library's server: a module, a console script or a file, run on the façades."""

import os
import runpy
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from operator import attrgetter
from typing import Any

from isthmus.compat.imports import install_facades
from isthmus.compat.placement import COMMAND_LINE, Placement
from isthmus.errors import UsageError


def run_program(target: str, arguments: Sequence[str], placement: Placement | None) -> None:
    """Run a program with the façades in the place of ``mcp`` and ``fastmcp``.

    Args:
        target: a module ``package.module``, an object ``package.module:name``, the name of a console script, or a
            path of a ``.py`` file.
        arguments: those of the program itself.
        placement: where its server listens; None where the program says it.

    Raises:
        UsageError: there is no such program, or it was no client, has not served, and has not one server.
    """
    install_facades()
    COMMAND_LINE.placement = placement
    sys.argv = [target, *arguments]
    if target.endswith(".py"):
        if not os.path.isfile(target):  # noqa: PTH113 - pathlib costs start-up time
            raise UsageError(f"there is no file {target}")
        sys.path.insert(0, os.path.realpath(os.path.dirname(target)))  # noqa: PTH120 - as above
        _serve_what_is_left(runpy.run_path(target, run_name="__main__"), target)
        return
    script = _find_script(target)
    if script is not None:
        _start(script, target)
        return
    sys.path.insert(0, "")  # the folder that this was started in
    if ":" in target:
        module, _, name = target.partition(":")
        sys.argv[0] = module
        _start(attrgetter(name)(import_module(module)), target)
        return
    if not _is_module(target):
        raise UsageError(
            f"{target} is no module that can be run, no console script, and no .py file here; "
            "MODULE:FUNCTION names a function of a module"
        )
    names = runpy.run_module(target, run_name="__main__", alter_sys=True)
    _serve_what_is_left(names, target)


def _start(script: Any, target: str) -> None:
    """Call the function of a program, or serve the server that it is; its value is the exit code."""
    if _is_server(script):
        script.run()
        return
    code = script()
    if code:
        raise SystemExit(code)
    _serve_what_is_left(vars(sys.modules[script.__module__]), target)


def _is_module(name: str) -> bool:
    """Whether there is a module of this name, or a package that can be run."""
    try:
        found = find_spec(name)
        if found is not None and found.submodule_search_locations is not None:
            found = find_spec(f"{name}.__main__")
    except (ModuleNotFoundError, ValueError):
        return False
    return found is not None


def _is_server(value: Any) -> bool:
    """Whether something is a server of a façade."""
    kind = type(value)
    return kind.__module__.startswith("isthmus.compat.") and callable(getattr(kind, "run", None))


def _find_script(name: str) -> Any:
    """The function of a console script; None if no distribution here has one of this name."""
    if "." in name or ":" in name or os.path.isdir(name):  # noqa: PTH112 - as above
        return None
    from importlib.metadata import entry_points

    found = [*entry_points(group="console_scripts", name=name)]
    return found[0].load() if found else None


def _serve_what_is_left(names: dict[str, Any], target: str) -> None:
    """Serve the server of a program that has not served it itself."""
    if COMMAND_LINE.served or COMMAND_LINE.connected:
        return
    servers = {id(one): one for one in names.values() if _is_server(one)}
    if len(servers) != 1:
        raise UsageError(
            f"{target} has not served, and has {len(servers)} servers of mcp or fastmcp: it must have one"
        )
    next(iter(servers.values())).run()
