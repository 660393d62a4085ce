"""Text of a policy rule made of a call: what was done may be done, asked or refused from now on."""

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from isthmus.core.redaction.live_secrets import REDACTED
from isthmus.host.model.trace import Effect

MAX_PREDICATES = 8
MAX_PREDICATE_CHARS = 400
MAX_NAMED_ARGUMENTS = 20  # that a rule says nothing about
MAX_ID_CHARS = 60
TARGET_KEYS = {"tool.call": "tool", "tool.change": "tool", "prompt.get": "prompt"}
PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
ODD_ID_CHARS = re.compile(r"[^A-Za-z0-9_-]+")
PLAIN_PATH = re.compile(r"[!-~]+")
MAX_TOML_INTEGER = 2**63
WILD_KEYS = frozenset({"*", "**"})  # in a path they mean others, too
GLOB_CHARS = re.compile(r"[*?]")
NOT_KEPT = "# The arguments of the call were not kept: the rule holds for any."


def write_rule(
    effect: Effect,
    *,
    action: str,
    server: str,
    object: str,
    principal: str = "",
    arguments: object = None,
) -> str:
    """A rule for what one call was, as a policy file has it.

    Arguments that it cannot have a condition about stand in a comment: it holds whatever they are.

    Args:
        effect: what the rule shall say.
        action: what was wanted.
        server: where.
        object: the tool, URI or prompt.
        principal: for whom it shall hold; empty for everybody.
        arguments: those that shall be the same; None where they do not matter, and something else than
            an object where they are not known.
    """
    when = {"action": action, "server": server}
    if object:
        key = "uri" if action.startswith("resource.") else TARGET_KEYS.get(action, "object")
        when[key] = GLOB_CHARS.sub("?", object)  # a glob has no other sign for itself
    if principal:
        when["principal"] = GLOB_CHARS.sub("?", principal)
    conditions = ", ".join(f"{key} = {_quote(value)}" for key, value in when.items())
    lines = [
        "[[rule]]",
        f"id = {_quote(_make_id(effect, server, object))}",
        f"effect = {_quote(effect)}",
        f"reason = {_quote(f'made of a call of {object or action}')}",
        f"when = {{ {conditions} }}",
    ]
    given = arguments if isinstance(arguments, Mapping) else {}
    found = {key: _make_predicate(key, value) for key, value in given.items()}
    predicates = [text for text in found.values() if text][:MAX_PREDICATES]
    if predicates:
        lines.append(f"where = [{', '.join(map(_quote, predicates))}]")
    left_out = [key for key, text in found.items() if text not in predicates]
    if left_out:
        lines.append(_name_left_out(left_out))
    elif arguments is not None and not isinstance(arguments, Mapping):
        lines.append(NOT_KEPT)
    return "\n".join(lines) + "\n"


def _name_left_out(names: list[str]) -> str:
    """A comment about the arguments of the call that the rule has no condition about."""
    more = len(names) - MAX_NAMED_ARGUMENTS
    named = [_quote(name[:MAX_ID_CHARS]) for name in names[:MAX_NAMED_ARGUMENTS]]
    told = ", ".join(named) + (f" and {more} more" if more > 0 else "")
    return f"# The rule holds whatever these arguments are: {told}"


def _make_id(effect: str, server: str, object: str) -> str:
    words = ODD_ID_CHARS.sub("-", f"{effect}-{server}-{object}")[:MAX_ID_CHARS]
    return words.strip("-_") or effect


def _quote(text: str) -> str:
    """A basic string of TOML, in which every unusual character is an escape."""
    return f'"{"".join(map(_escape_character, text))}"'


def _escape_character(character: str) -> str:
    if character in {'"', "\\"}:
        return f"\\{character}"
    code = ord(character)
    if 0x20 <= code < 0x7F:
        return character
    if 0xD800 <= code < 0xE000:
        return "?"  # TOML has no lone surrogates; in a glob it fits any one character
    return f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"


def _make_predicate(key: str, value: Any) -> str:
    """A predicate for an argument that is a text, a number or a truth value; empty for another one.

    Those that hold something redacted are left out: nobody knows what they were.
    """
    if isinstance(value, str) and REDACTED not in value:
        written = _quote(value)
    elif (isinstance(value, bool | int) and abs(value) < MAX_TOML_INTEGER) or (
        isinstance(value, float) and math.isfinite(value)
    ):
        written = json.dumps(value)
    else:
        return ""
    path = f"args.{key}" if PLAIN_KEY.fullmatch(key) else f"/{_escape_pointer(key)}"
    text = f"{path} == {written}"
    fits = PLAIN_PATH.fullmatch(path) and len(text) <= MAX_PREDICATE_CHARS
    return text if fits and key not in WILD_KEYS else ""


def _escape_pointer(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
