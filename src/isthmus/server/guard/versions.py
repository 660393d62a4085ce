"""Versions of tools and prompts: several functions under one name, of which a client may ask for one."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Raw, structs

from isthmus.errors import Refuse, UsageError
from isthmus.wire.jsonrpc import shorten
from isthmus.wire.struct import Meta

P = TypeVar("P")

VERSION_META = "isthmus/version"  # the member of ``_meta``, of an item as of a request

VERSION_PATTERN = r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}"

_read_dotted = re.compile(r"v?([0-9]+(?:\.[0-9]+)*)").fullmatch


class _RequestMeta(msgspec.Struct):
    version: Any = msgspec.field(name=VERSION_META, default=None)


_decode_meta = msgspec.json.Decoder(_RequestMeta).decode


def rank_version(version: str) -> tuple[bool, tuple[int, ...], str]:
    """Give what versions are ordered by: dotted numbers as numbers, before them anything else as text."""
    dotted = _read_dotted(version)
    if dotted is None:
        return False, (), version
    numbers = [int(one) for one in dotted[1].split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()  # 2.0 is 2
    return True, tuple(numbers), ""


def add_version(meta: Meta, version: Any, what: str) -> Meta:
    """A ``_meta`` with a version in it; as it is where there is none.

    Raises:
        UsageError: it is no version.
    """
    if version is None:
        return meta
    if not isinstance(version, str) or not re.fullmatch(VERSION_PATTERN, version):
        raise UsageError(
            f"{what}: version= is a text of up to 64 letters, digits and '.', '_', '+' or '-', as '2.0', not "
            f"{version!r}"
        )
    return {**meta, VERSION_META: version}


def read_version(meta: Any) -> str | None:
    """The version that a request asks for, by its ``_meta``; None for the highest one.

    Raises:
        Refuse: what it says is no version.
    """
    if meta is UNSET or meta is None:
        return None
    try:
        found = _decode_meta(meta).version if isinstance(meta, Raw) else meta.get(VERSION_META)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refuse(-32602, "Invalid params: Expected `object` - at `$._meta`") from error
    if found is not None and not isinstance(found, str):
        raise Refuse(-32602, f"Invalid params: Expected `str` - at `$._meta.{VERSION_META}`")
    return found


def replace_version(params: P, version: str) -> P:
    """The params of a request, which asks for this version now."""
    given: Any = params
    meta = given.meta
    if isinstance(meta, Raw):
        written = {**msgspec.json.decode(meta), VERSION_META: version}
        return structs.replace(given, meta=Raw(msgspec.json.encode(written)))  # type: ignore[no-any-return]
    return structs.replace(  # type: ignore[no-any-return]
        given, meta={**({} if meta is UNSET else meta), VERSION_META: version}
    )


def make_unknown_version(what: str, name: str, wanted: str, known: Iterable[str]) -> Refuse:
    """Make the refusal of a version that is not there for the caller.

    Args:
        what: ``"tool"`` or ``"prompt"``.
        name: its name.
        wanted: the version that was asked for.
        known: those that the caller may be told of.
    """
    there = ", ".join(known)
    return Refuse(
        -32602,
        f"Unknown version of {what} {shorten(name)}: {shorten(wanted)}"
        + (f"; there are {there}" if there else ""),
    )


def sort_versions(entries: Mapping[str, P]) -> dict[str, P]:
    """Entries by their versions, the highest one first."""
    order = sorted(entries, key=rank_version, reverse=True)
    return {version: entries[version] for version in order}
