"""Mounting: what is looked at before a server is mounted in another."""

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from isthmus.errors import UsageError
from isthmus.revisions import Revision
from isthmus.runtime.failures import log_warning
from isthmus.server.composition.mount import (
    Mount,
    MountedServer,
    find_mounted,
    list_names,
    provider_names,
)
from isthmus.server.composition.names import NameMap, check_prefix
from isthmus.server.composition.transformation import IncludeOptions
from isthmus.server.features.tools import TOOL_NAME_PATTERN
from isthmus.server.options import check_options

if TYPE_CHECKING:
    from isthmus.server.declare import Declarations


def mount_server(
    declared: "Declarations",
    revisions: Sequence[Revision],
    other: Any,
    make: Callable[[], MountedServer] | None,
    prefix: Any,
) -> None:
    """Mount a server in another; see ``Server.mount``.

    Args:
        declared: the declarations of the outer server.
        revisions: those that the outer server speaks.
        other: the server to mount.
        make: gives what a mount needs of it; None for what is no server.
        prefix: what its names get, or None.

    Raises:
        UsageError: it cannot be mounted; the message says why.
    """
    if make is None:
        raise UsageError(
            f"mount() takes a Server, not {other!r}: for one that is reached by a command or a URL write "
            "mount(Server.proxy(target))"
        )
    inner = make()
    prefix, settings, what = check_prefix(prefix), declared.settings, repr(inner.name)
    _check_server(declared, inner)
    lacking = [one.name for one in revisions if one not in other.revisions]
    if lacking:
        raise UsageError(
            f"server {what} does not speak {', '.join(lacking)}, as {settings.info.name!r} does: give "
            "both the same revisions="
        )
    mounts = [] if declared.composition is None else declared.composition.providers
    for there in mounts:
        if not isinstance(there, Mount) or there.prefix != prefix:
            continue
        if prefix is not None or there.inner.declared is inner.declared:
            where = "without a prefix" if prefix is None else f"under the prefix {prefix!r}"
            raise UsageError(
                f"the {there.label} is mounted {where} already: give this one another prefix"
            )
    mount = Mount(inner, settings, prefix)
    _check_names(declared, mount)
    declared.add_provider(mount)


def include_tool(
    declared: "Declarations", tool: Any, inner: MountedServer | None, options: IncludeOptions
) -> None:
    """Include a tool; see ``Server.include``.

    Args:
        declared: the declarations of the server.
        tool: the name of a tool, or a function.
        inner: the server that has it; None for this one.
        options: the changes.

    Raises:
        UsageError: it cannot be included; the message says why.
    """
    check_options(options, IncludeOptions)
    if not isinstance(tool, str) and not callable(tool):
        raise UsageError(f"include() takes the name of a tool or a function, not {tool!r}")
    mount = None
    if inner is not None and inner.declared is not declared:
        _check_server(declared, inner)
        mount = Mount(inner, declared.settings, None)
    declared.compose().include(tool, mount, options)


def _check_server(declared: "Declarations", inner: MountedServer) -> None:
    """See that one server can be a part of another.

    Raises:
        UsageError: it cannot; the message says why.
    """
    settings, what = declared.settings, repr(inner.name)
    if id(declared) in find_mounted(inner.declared):
        raise UsageError(
            f"server {what} cannot be mounted in {settings.info.name!r}: it is that server, or "
            "contains it, so calls would loop"
        )
    if inner.settings.auth is not None:
        raise UsageError(
            f"server {what} has auth= of its own, which is not used where it is mounted: give auth= to "
            f"{settings.info.name!r}; the scopes of its tools apply there as they are"
        )


def _check_names(declared: "Declarations", mount: Mount) -> None:
    """See that what is there now can be named, and by one name each.

    Raises:
        UsageError: something is of a name that is taken, or of a URI that takes no prefix.
    """
    taken = list_names(declared)
    for (use, key), owner in provider_names(mount).items():
        other = taken.get((use, key))
        if other is not None:
            raise UsageError(
                f"{key!r} of the {mount.label} is taken: {other} has it; mount it under another prefix"
            )
        if use == "tools/call" and not re.fullmatch(TOOL_NAME_PATTERN, key):
            # spec 2026-07-28 server/tools#tool-names: SHOULD be of these, and of 1 to 128
            log_warning("tool %r of %s: some clients do not take its name", key, owner)
    names = NameMap(mount.prefix)
    for use, key in list_names(mount.inner.declared):
        if use in {"resources/read", "template"} and names.outer_uri(key) is None:
            raise UsageError(
                f"{key!r} of the {mount.label} takes no prefix, for it does not begin with a scheme: "
                "mount the server without one"
            )
