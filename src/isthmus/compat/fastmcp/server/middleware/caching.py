"""Middleware that keeps answers, under the names of ``fastmcp.server.middleware.caching``."""

import json
import time
from collections.abc import Mapping
from copy import deepcopy
from typing import Any, NamedTuple

import pydantic_core

from isthmus.auth.cache import BoundedDict
from isthmus.compat.fastmcp.server.dependencies import get_access_token
from isthmus.compat.fastmcp.server.middleware.middleware import (
    CallNext,
    Middleware,
    MiddlewareContext,
)
from isthmus.compat.fastmcp.server.middleware.response_limiting import write_result
from isthmus.compat.fastmcp.tools.model import ToolResult
from isthmus.errors import UsageError

LIST_LIFE_S, ANSWER_LIFE_S = 300, 3600

MAX_ITEM_BYTES = 1024 * 1024
MAX_ITEMS = 1000

Settings = Mapping[str, Any]

# Settings are plain mappings with `ttl` and `enabled`; of calls also `included_tools` and `excluded_tools`.
ListToolsSettings = ListResourcesSettings = ListPromptsSettings = dict
CallToolSettings = ReadResourceSettings = GetPromptSettings = dict


class KeptAnswer(NamedTuple):
    """An answer, and until when it is kept."""

    answer: Any
    until: float


class ResponseCachingMiddleware(Middleware):
    """Keep lists for five minutes, and results of tools, resources and prompts for an hour, for each caller.

    A call that asked its user something is not kept, and neither is a result that is an error.

    Args:
        cache_storage: none, or one in memory: answers are kept in this process.
        list_tools_settings, list_resources_settings, list_prompts_settings: of lists.
        read_resource_settings, get_prompt_settings, call_tool_settings: of results.
        max_item_size: bytes above which an answer is not kept.

    Raises:
        UsageError: answers are to be kept elsewhere.
    """

    def __init__(
        self,
        cache_storage: Any = None,
        list_tools_settings: Settings | None = None,
        list_resources_settings: Settings | None = None,
        list_prompts_settings: Settings | None = None,
        read_resource_settings: Settings | None = None,
        get_prompt_settings: Settings | None = None,
        call_tool_settings: Settings | None = None,
        max_item_size: int = MAX_ITEM_BYTES,
    ) -> None:
        if cache_storage is not None and type(cache_storage).__name__ != "MemoryStore":
            raise UsageError(
                f"ResponseCachingMiddleware(cache_storage={type(cache_storage).__name__}(…)) is not offered by "
                "isthmus.compat.fastmcp: use isthmus.server.middleware.Caching with Server(store=…); see "
                "docs/guide/middleware.md"
            )
        self._settings: dict[str, Settings] = {
            "tools/list": list_tools_settings or {},
            "resources/list": list_resources_settings or {},
            "prompts/list": list_prompts_settings or {},
            "resources/read": read_resource_settings or {},
            "prompts/get": get_prompt_settings or {},
            "tools/call": call_tool_settings or {},
        }
        self._max_item_size = max_item_size
        self._kept: BoundedDict[str, KeptAnswer] = BoundedDict(MAX_ITEMS)

    async def on_request(self, context: MiddlewareContext[Any], call_next: CallNext) -> Any:
        """Give the answer that is kept, or serve the request and keep its answer."""
        settings = self._settings.get(context.method or "")
        if settings is None or not is_cached(settings, context):
            return await call_next(context)
        key, listed = make_key(context), (context.method or "").endswith("/list")
        kept = self._kept.get(key)
        if kept is not None and kept.until > time.monotonic():
            return kept.answer if listed else deepcopy(kept.answer)
        answer = await call_next(context)
        if self._may_keep(answer, context, listed=listed):
            life = settings.get("ttl", LIST_LIFE_S if listed else ANSWER_LIFE_S)
            kept_answer = tuple(answer) if listed else deepcopy(answer)
            self._kept[key] = KeptAnswer(kept_answer, time.monotonic() + life)
        return answer

    def _may_keep(self, answer: Any, context: MiddlewareContext[Any], *, listed: bool) -> bool:
        asked = context.fastmcp_context is not None and context.fastmcp_context.has_asked
        if asked or (isinstance(answer, ToolResult) and answer.is_error):
            return False
        if isinstance(answer, ToolResult):
            return len(write_result(answer)) <= self._max_item_size
        return listed or len(repr(getattr(answer, "__dict__", answer))) <= self._max_item_size


def is_cached(settings: Settings, context: MiddlewareContext[Any]) -> bool:
    """Whether answers to a message are kept by settings."""
    if settings.get("enabled") is False:
        return False
    if context.method != "tools/call":
        return True
    name, wanted = context.message.name, settings.get("included_tools")
    return (not wanted or name in wanted) and name not in (settings.get("excluded_tools") or ())


def make_key(context: MiddlewareContext[Any]) -> str:
    """The key of an answer: the caller, the revision, and the whole message."""
    from hashlib import sha256

    token = get_access_token()
    caller = None if token is None else [token.token, token.client_id, sorted(token.scopes)]
    own = None if context.fastmcp_context is None else context.fastmcp_context.find_own()
    revision = None if own is None else own.revision.name
    message = pydantic_core.to_jsonable_python(context.message, fallback=str)
    said = json.dumps([context.method, caller, revision, message], sort_keys=True, default=str)
    return sha256(said.encode()).hexdigest()
