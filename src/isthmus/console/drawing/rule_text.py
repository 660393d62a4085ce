"""Text of a policy rule made of a call: what was done may be done, asked or refused from now on."""

import json
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from isthmus.core.redaction.live_secrets import REDACTED
from isthmus.host.model.trace import Effect

MAX_PREDICATES = 8
MAX_PREDICATE_CHARS = 400
MAX_ID_CHARS = 60
TARGET_KEYS = {"tool.call": "tool", "tool.change": "tool", "prompt.get": "prompt"}
PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
ODD_ID_CHARS = re.compile(r"[^A-Za-z0-9_-]+")
PLAIN_PATH = re.compile(r"[!-~]+")
MAX_TOML_INTEGER = 2**63
GLOB_CHARS = re.compile(r"[*?]")


def write_rule(
    effect: Effect,
    *,
    action: str,
    server: str,
    object: str,
    principal: str = "",
    arguments: Mapping[str, Any] | None = None,
) -> str:
    """A rule for what one call was, as a policy file has it.

    Args:
        effect: what the rule shall say.
        action: what was wanted.
        server: where.
        object: the tool, URI or prompt.
        principal: for whom it shall hold; empty for everybody.
        arguments: those that shall be the same; None where they do not matter.
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
    predicates = [*map(_quote, islice(_list_predicates(arguments or {}), MAX_PREDICATES))]
    if predicates:
        lines.append(f"where = [{', '.join(predicates)}]")
    return "\n".join(lines) + "\n"


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


def _list_predicates(arguments: Mapping[str, Any]) -> Iterator[str]:
    """A predicate for each argument that is a text, a whole number or a truth value.

    Those that hold something redacted are left out: nobody knows what they were.
    """
    for key, value in arguments.items():
        if isinstance(value, str) and REDACTED not in value:
            written = _quote(value)
        elif isinstance(value, bool | int) and abs(value) < MAX_TOML_INTEGER:
            written = json.dumps(value)
        else:
            continue
        path = f"args.{key}" if PLAIN_KEY.fullmatch(key) else f"/{_escape_pointer(key)}"
        text = f"{path} == {written}"
        if PLAIN_PATH.fullmatch(path) and len(text) <= MAX_PREDICATE_CHARS:
            yield text


def _escape_pointer(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
