"""Observation of a server: its lists and answers in one revision, as plain data."""

import json
import re
import time
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from isthmus import Client, Command
from isthmus.errors import CapabilityMissing, IsthmusError, Refused
from support.compat.recipes import Recipe

LISTS = {
    "tools": "tools/list",
    "resources": "resources/list",
    "resourceTemplates": "resources/templates/list",
    "prompts": "prompts/list",
}
MAX_PAGES = 20
CALL_TIMEOUT_S = 40.0


async def observe_server(
    command: Command, recipe: Recipe, revision: str, work: str
) -> tuple[dict[str, Any], float]:
    """Everything that a server says in a revision, and the seconds until its first answer.

    Where it does not open in this revision, ``unopened`` says why.
    """
    client = Client(command, revision=revision, cache=False, timeout=CALL_TIMEOUT_S)
    began = time.monotonic()
    try:
        await client.open()
    except IsthmusError as error:
        return {"unopened": f"{error}"}, 0.0
    spawned = time.monotonic() - began
    try:
        seen = await _observe_lists(client)
        for place, method, params in _list_requests(seen, recipe, work):
            seen[place] = await _ask(client, method, params)
    finally:
        await client.close()
    return seen, spawned


async def _observe_lists(client: Client) -> dict[str, Any]:
    seen: dict[str, Any] = {
        "server": {
            "info": _to_plain(client.info),
            "capabilities": _to_plain(client.capabilities),
            "instructions": client.instructions,
        }
    }
    for kind, method in LISTS.items():
        seen[method] = await _list_pages(client, kind, method)
    return seen


async def _list_pages(client: Client, kind: str, method: str) -> Any:
    found: list[Any] = []
    params: dict[str, Any] = {}
    for _ in range(MAX_PAGES):
        answer = await _ask(client, method, params)
        if kind not in answer:
            return answer
        found += answer[kind]
        rest = {key: value for key, value in answer.items() if key not in (kind, "nextCursor")}
        if "nextCursor" not in answer:
            break
        params = {"cursor": answer["nextCursor"]}
    named = {str(one.get("name") or one.get("uri")): one for one in found}
    return {"order": list(named), "rest": rest, **named}


def _list_requests(
    seen: dict[str, Any], recipe: Recipe, work: str
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The place in the observation, the method and the parameters of each request."""
    for number, (name, given) in enumerate(recipe.calls, 1):
        params = json.loads(json.dumps(given).replace("{work}", work))
        if "/" in name and name in ("resources/read", "prompts/get", "completion/complete"):
            yield f"{number} {name}", name, params
        else:
            yield f"{number} call {name}", "tools/call", {"name": name, "arguments": params}
    yield "unknown tool", "tools/call", {"name": "no_such_tool", "arguments": {}}
    yield "unknown prompt", "prompts/get", {"name": "no_such_prompt", "arguments": {}}
    yield "unknown resource", "resources/read", {"uri": "nothing://at/all"}
    for name, tool in seen["tools/list"].items():
        schema = tool.get("inputSchema") if isinstance(tool, dict) else None
        if isinstance(schema, dict) and schema.get("required"):
            missing: dict[str, Any] = {"name": name, "arguments": {}}
            yield f"missing {name}", "tools/call", missing
            wrong = {one: {"wrong": [1]} for one in schema["required"]}
            yield f"wrong {name}", "tools/call", {"name": name, "arguments": wrong}
    for name, prompt in seen["prompts/list"].items():
        if isinstance(prompt, dict) and any(
            one.get("required") for one in prompt.get("arguments") or ()
        ):
            yield f"missing prompt {name}", "prompts/get", {"name": name, "arguments": {}}


async def _ask(client: Client, method: str, params: dict[str, Any]) -> dict[str, Any]:
    try:
        return await client.request(method, params)
    except CapabilityMissing:
        return {"missing capability": method}
    except Refused as error:
        return {"error": {"code": error.code, "message": error.message, "data": error.data}}
    except IsthmusError as error:
        return {"failed": f"{type(error).__name__}: {error}"}


def _to_plain(value: Any) -> Any:
    return json.loads(msgspec.json.encode(value))


def mask_answers(seen: Any, masks: Iterable[str]) -> Any:
    """The observation with what varies from run to run replaced by stars."""
    text = json.dumps(seen)
    for pattern in masks:
        text = re.sub(pattern, "***", text)
    return json.loads(text)


def compare_answers(own: Any, ours: Any, place: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Each place at which two observations differ, with both values."""
    if isinstance(own, dict) and isinstance(ours, dict):
        for key in [*own, *(key for key in ours if key not in own)]:
            yield from compare_answers(
                own.get(key, "(absent)"), ours.get(key, "(absent)"), f"{place}/{key}"
            )
    elif isinstance(own, list) and isinstance(ours, list) and len(own) == len(ours):
        for number, (left, right) in enumerate(zip(own, ours, strict=True)):
            yield from compare_answers(left, right, f"{place}/{number}")
    elif own != ours or type(own) is not type(ours):
        yield place, own, ours
