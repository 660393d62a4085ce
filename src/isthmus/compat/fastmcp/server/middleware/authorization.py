"""Middleware that has every component checked, under the names of ``fastmcp.server.middleware.authorization``."""

from collections.abc import Sequence
from typing import Any

from isthmus.compat.fastmcp.exceptions import AuthorizationError, InsufficientScopeError
from isthmus.compat.fastmcp.flavour import FLAVOUR
from isthmus.compat.fastmcp.server.middleware.middleware import (
    CallNext,
    Middleware,
    MiddlewareContext,
)
from isthmus.compat.fastmcp.utilities.authorization import (
    AuthContext,
    ScopeCheck,
    check_auth,
    find_caller_token,
    find_shortfall,
    is_local_request,
    list_checks,
    name_missing,
    run_auth_checks,
)

GUIDE = "docs/guide/from-fastmcp.md"


class AuthMiddleware(Middleware):
    """Have every tool, resource, template and prompt of a server checked before it is listed or used.

    Args:
        auth: the check, or a list of them, all of which must admit the caller.
    """

    guards_components = True

    def __init__(self, auth: Any) -> None:
        check_auth(auth, "AuthMiddleware")
        self.auth = auth

    async def on_list_tools(
        self, context: MiddlewareContext[Any], call_next: CallNext
    ) -> Sequence[Any]:
        """List the tools that the caller may use."""
        return await self._cut_list(await call_next(context))

    async def on_list_resources(
        self, context: MiddlewareContext[Any], call_next: CallNext
    ) -> Sequence[Any]:
        """List the resources that the caller may use."""
        return await self._cut_list(await call_next(context))

    async def on_list_resource_templates(
        self, context: MiddlewareContext[Any], call_next: CallNext
    ) -> Sequence[Any]:
        """List the templates that the caller may use."""
        return await self._cut_list(await call_next(context))

    async def on_list_prompts(
        self, context: MiddlewareContext[Any], call_next: CallNext
    ) -> Sequence[Any]:
        """List the prompts that the caller may use."""
        return await self._cut_list(await call_next(context))

    async def on_call_tool(self, context: MiddlewareContext[Any], call_next: CallNext) -> Any:
        """Call a tool that the caller may use."""
        if not is_local_request():
            name = context.message.name
            found = await find_server(context, "tool", name).get_tool(name)
            await self._check(context, found, f"tool '{name}'")
        return await call_next(context)

    async def on_read_resource(self, context: MiddlewareContext[Any], call_next: CallNext) -> Any:
        """Read a resource that the caller may use."""
        await self.check_resource_access(context)
        return await call_next(context)

    async def check_resource_access(self, context: MiddlewareContext[Any]) -> None:
        """See that the caller may read a resource.

        Raises:
            AuthorizationError: it may not, or there is none.
        """
        if is_local_request():
            return
        uri = str(context.message.uri)
        server = find_server(context, "resource", uri)
        found = await server.get_resource(uri) or await server.get_resource_template(uri)
        await self._check(context, found, f"resource '{uri}'")

    async def on_get_prompt(self, context: MiddlewareContext[Any], call_next: CallNext) -> Any:
        """Render a prompt that the caller may use."""
        if not is_local_request():
            name = context.message.name
            found = await find_server(context, "prompt", name).get_prompt(name)
            await self._check(context, found, f"prompt '{name}'")
        return await call_next(context)

    async def admits(self, component: Any) -> bool:
        """Whether the caller of the request that is served may use a component."""
        if is_local_request():
            return True
        try:
            return await run_auth_checks(self.auth, AuthContext(find_caller_token(), component))
        except AuthorizationError:
            return False

    async def _cut_list(self, listed: Sequence[Any]) -> Sequence[Any]:
        return [one for one in listed if await self.admits(one)]

    async def _check(self, context: MiddlewareContext[Any], component: Any, what: str) -> None:
        """See that the caller may use a component.

        Raises:
            AuthorizationError: it may not, or there is none: which of the two is not said.
        """
        failed = f"Authorization failed for {what}"
        if component is None:
            raise AuthorizationError(f"{failed}: not found or not authorized")
        asked = AuthContext(find_caller_token(), component)
        missing = await find_shortfall(self.auth, asked)
        if missing is None:
            return
        if missing and FLAVOUR.names_missing_scopes:
            missing = self._widen(missing, asked, context.fastmcp_context.fastmcp)
            raise InsufficientScopeError(
                missing,
                message=f"{failed}: insufficient scope (required: {', '.join(missing)})",
            )
        raise AuthorizationError(f"{failed}: insufficient permissions")

    def _widen(self, missing: list[str], asked: AuthContext, server: Any) -> list[str]:
        """The missing scopes with those that the layers further in will ask for, up to one that asks for more."""
        layers = [one for one in server.middleware if isinstance(one, AuthMiddleware)]
        if self not in layers:
            return missing
        named = set(missing)
        for layer in layers[layers.index(self) + 1 :]:
            checks = list_checks(layer.auth)
            if not all(isinstance(one, ScopeCheck) for one in checks):
                break
            named.update(name_missing(checks, asked))
        return sorted(named)


def find_server(context: MiddlewareContext[Any], kind: str, name: str) -> Any:
    """The server that a message is for.

    Raises:
        AuthorizationError: nobody knows: nothing is used then.
    """
    if context.fastmcp_context is None:
        raise AuthorizationError(f"Authorization failed for {kind} '{name}': missing context")
    return context.fastmcp_context.fastmcp
