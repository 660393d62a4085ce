"""The five official schemas, to hold messages against.

``validate(message, "2025-06-18", "server", answers="tools/list")`` raises :class:`Mismatch` with
every reason when a message is not what that revision's schema says that side may send. Beside the
schema itself, which is open to members it does not name, a message must not hold members that
only other revisions have.

What is held against is what ``tests/schemas/`` keeps of them: all but what is written for people.
The official files are compared with that where they are at hand: in ``../shared/spec`` beside the
project, or where ``ISTHMUS_SPEC`` says.
"""

import json
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from support.schemas import extensions

REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
KEPT = Path(__file__).parents[2] / "schemas"
OFFICIAL = Path(
    os.environ.get("ISTHMUS_SPEC") or Path(__file__).parents[4] / "shared" / "spec"
).resolve()


class Mismatch(AssertionError):
    """A message is not what its revision's schema says."""


@cache
def schema(revision: str) -> dict[str, Any]:
    """One revision's schema as published, but for two slips."""
    whole = json.loads((KEPT / f"{revision}.json").read_text(encoding="utf-8"))
    known = whole.get("$defs") or whole["definitions"]
    # schema.ts, the source, says number where the generated file says integer, and allows null
    # in any JSON.
    for slip, types in (("JSONValue", ["number", "null"]), ("ElicitResult", ["number"])):
        for part in _scalars(known.get(slip, {})):
            part["type"] = [*part["type"], *types]
    return whole


def _scalars(definition: Any) -> Iterator[dict[str, Any]]:
    """The places in a definition that allow several kinds of plain values."""
    if isinstance(definition, list):
        for item in definition:
            yield from _scalars(item)
    elif isinstance(definition, dict):
        if isinstance(definition.get("type"), list):
            yield definition
        for item in definition.values():
            yield from _scalars(item)


@cache
def definitions(revision: str) -> dict[str, Any]:
    """One revision's definitions by name."""
    whole = schema(revision)
    return whole.get("$defs") or whole["definitions"]


def union(revision: str, name: str) -> tuple[str, ...]:
    """The definitions a union such as ``ClientRequest`` names; itself where it is no union."""
    definition = definitions(revision).get(name)
    if definition is None:
        return ()
    members = definition.get("anyOf")
    return tuple(refers_to(m) for m in members) if members else (name,)


def refers_to(definition: dict[str, Any]) -> str:
    """The name that a ``$ref`` refers to."""
    return definition["$ref"].rsplit("/", 1)[1]


def method_of(revision: str, name: str) -> str | None:
    """The method that a request or notification definition is for."""
    return definitions(revision)[name].get("properties", {}).get("method", {}).get("const")


@cache
def methods(revision: str, sender: str) -> dict[str, str]:
    """The definition of each message that a side may send, by method."""
    side = sender.capitalize()
    names = union(revision, f"{side}Request") + union(revision, f"{side}Notification")
    return {method_of(revision, name): name for name in names}


@cache
def result_of(revision: str, method: str) -> str:
    """The definition of a method's result."""
    known = definitions(revision)
    for name in known:
        if name.endswith("Request") and method_of(revision, name) == method:
            result = f"{name.removesuffix('Request')}Result"
            return result if result in known else "EmptyResult"
    return "Result"


def validate(message: Any, revision: str, kind: str, *, answers: str | None = None) -> None:
    """Hold one message against its revision's schema.

    Args:
        message: JSON bytes, or decoded JSON.
        revision: the revision's date.
        kind: who sent it, ``"client"`` or ``"server"``; or the name of a definition.
        answers: for an answer, the method of the request it answers.

    Raises:
        Mismatch: it is not what the schema says, and how.
    """
    plain = json.loads(message) if isinstance(message, bytes | str) else message
    if isinstance(plain, list):
        if "JSONRPCBatchRequest" not in definitions(revision):
            raise Mismatch(f"{revision} has no batches: {plain!r}")
        for one in plain:
            validate(one, revision, kind, answers=answers)
        return
    for name, part in _claims(plain, revision, kind, answers):
        _hold(part, revision, name)


def _claims(
    message: dict[str, Any], revision: str, kind: str, answers: str | None
) -> list[tuple[str, Any]]:
    """The definitions that the parts of a message must meet."""
    if kind not in {"client", "server"}:
        return [(kind, message)]
    if "method" in message:
        frame = "JSONRPCRequest" if "id" in message else "JSONRPCNotification"
        name = methods(revision, kind).get(message["method"])
        extended = _extended(revision, extensions.METHODS[kind], message["method"])
        if extended is not None:
            return [(frame, message), (extended, message.get("params"))]
        if name is None and any(message["method"] in methods(r, kind) for r in REVISIONS):
            raise Mismatch(f"a {kind} may not send {message['method']} in {revision}")
        return [(frame, message)] + ([(name, message)] if name else [])
    if "error" in message:
        return _error_claims(message, revision)
    result = message["result"]
    frame = _first(revision, "JSONRPCResultResponse", "JSONRPCResponse")
    claims: list[tuple[str, Any]] = [(frame, message)]
    if answers is not None:
        claims.append((_result_claim(result, revision, answers), result))
    return claims


def _result_claim(result: dict[str, Any], revision: str, method: str) -> str:
    known = definitions(revision)
    extended = _extended(revision, extensions.RESULTS, method)
    if result.get("resultType") == "task" and revision == extensions.REVISION:
        return "TaskCreated"
    if extended is not None:
        return extended
    if result.get("resultType") == "input_required" and "InputRequiredResult" in known:
        return "InputRequiredResult"
    if "task" in result and "CreateTaskResult" in known:
        return "CreateTaskResult"
    return result_of(revision, method)


def _extended(revision: str, names: dict[str, str], method: str) -> str | None:
    """The definition of an extension's message, where the revision can have the extension."""
    return names.get(method) if revision == extensions.REVISION else None


def _error_claims(message: dict[str, Any], revision: str) -> list[tuple[str, Any]]:
    frame = _first(revision, "JSONRPCErrorResponse", "JSONRPCError")
    if message.get("id", 0) is None:
        # JSON-RPC 2.0 demands "id": null where the id could not be read; the schemas forgot
        # that case, or leave the member out.
        message = {**message, "id": 0}
    claims: list[tuple[str, Any]] = [(frame, message)]
    code = message["error"].get("code")
    return claims + [(name, message) for name in _errors(revision).get(code, ())]


@cache
def _errors(revision: str) -> dict[int, list[str]]:
    """The definitions of particular errors, by code."""
    found: dict[int, list[str]] = {}
    for name, definition in definitions(revision).items():
        for part in definition.get("properties", {}).get("error", {}).get("allOf", ()):
            code = part.get("properties", {}).get("code", {}).get("const")
            if code is not None:
                found.setdefault(code, []).append(name)
    return found


def _first(revision: str, *names: str) -> str:
    return next(name for name in names if name in definitions(revision))


def _hold(value: Any, revision: str, name: str) -> None:
    for which, validator in (("", _open(revision, name)), ("another", _closed(revision, name))):
        flaws = [f"{e.instance_path or '(all)'}: {e.message}" for e in validator.iter_errors(value)]
        if flaws:
            what = f"{name} of {revision}" + (", which has not all these members" if which else "")
            text = json.dumps(value, ensure_ascii=False)
            raise Mismatch(f"this is no {what}:\n  " + "\n  ".join(flaws) + f"\n{text[:2000]}")


@cache
def _open(revision: str, name: str) -> Any:
    whole = schema(revision)
    if revision == extensions.REVISION:
        whole = {**whole, "$defs": {**whole["$defs"], **extensions.DEFINITIONS}}
    return _validator(whole, name)


@cache
def _closed(revision: str, name: str) -> Any:
    return _validator(_without_surplus(revision), name)


def _validator(whole: dict[str, Any], name: str) -> Any:
    import jsonschema_rs

    where = "$defs" if "$defs" in whole else "definitions"
    return jsonschema_rs.validator_for({**whole, "$ref": f"#/{where}/{name}"})


# Open by their nature: what extends them names more members.
OPEN = {"Request", "Notification", "Task", "NotificationParams", "Error"}
OPEN_ENDINGS = ("MetaObject", "Schema", "Error")
OPEN_PREFIXES = ("JSONRPC", "Paginated", "JSON")
OPEN_MEMBERS = {"_meta", "inputSchema", "outputSchema", "requestedSchema", "data"}


@cache
def _without_surplus(revision: str) -> dict[str, Any]:
    """The schema, closed to members that it does not name."""
    whole = schema(revision)
    where = "$defs" if "$defs" in whole else "definitions"
    closed = {
        name: definition if _stays_open(name) else _close(definition, name)
        for name, definition in definitions(revision).items()
    }
    if revision == extensions.REVISION:
        for name, members in extensions.MEMBERS.items():
            closed[name]["properties"].update(members)
        closed.update(extensions.DEFINITIONS)
    return {**whole, where: closed}


def _stays_open(name: str) -> bool:
    return name in OPEN or name.endswith(OPEN_ENDINGS) or name.startswith(OPEN_PREFIXES)


def _close(definition: Any, name: str) -> Any:
    if isinstance(definition, list):
        return [_close(item, name) for item in definition]
    if not isinstance(definition, dict):
        return definition
    closed = {
        key: {k: v if k in OPEN_MEMBERS else _close(v, k) for k, v in value.items()}
        if key == "properties"
        else _close(value, key)
        for key, value in definition.items()
    }
    if "properties" in closed and "additionalProperties" not in closed:
        closed["additionalProperties"] = False
        if "method" in closed["properties"]:
            # The frame's own members, and those that every params may have.
            closed["properties"] = {"jsonrpc": {}, "id": {}, **closed["properties"]}
        if name == "params":
            closed["properties"] = {"_meta": {}, **closed["properties"]}
    return closed
