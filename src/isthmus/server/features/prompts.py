"""Prompts: messages a user may start from."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

from msgspec import UNSET

from isthmus.core.principal import NO_SCOPES, Principal
from isthmus.errors import Refuse
from isthmus.runtime.inbound import Inbound
from isthmus.server.asking.context import Context
from isthmus.server.features.invocation import Run, make_runner, run_refusing, to_result
from isthmus.server.features.listing import Listing, make_meta, make_target
from isthmus.server.guard.scopes import ScopeDemand, Scopes, find_required_scopes, parse_scopes
from isthmus.server.schema.functions import ArgumentError, UserFunction
from isthmus.server.schema.results import (
    make_none_returned,
    name_unless_optional,
    to_prompt_messages,
)
from isthmus.server.settings import SharedSettings
from isthmus.wire import (
    GetPromptParams,
    GetPromptResult,
    Icon,
    InputRequiredResult,
    ListPromptsResult,
    Prompt,
    PromptArgument,
    PromptMessage,
)
from isthmus.wire.struct import Meta, Wire


class RegisteredPrompt:
    """A function as a prompt.

    Args:
        function: the function.
        shown: how it is listed.
        run: runs the function.
        scopes: what its caller must have been granted.
        version: which of several under one name it is, or None.

    Attributes:
        target: what sealed states and completers are bound to: its name and version.
    """

    __slots__ = ("function", "run", "scopes", "shown", "target")

    def __init__(
        self,
        function: UserFunction,
        shown: Prompt,
        run: Run,
        scopes: ScopeDemand = NO_SCOPES,
        version: str | None = None,
    ) -> None:
        self.target = make_target(shown.name, version)
        self.scopes = scopes
        self.function = function
        self.shown = shown
        self.run = run


class Prompts:
    """The prompts of one server.

    Args:
        settings: those of the server, shared by all its parts.
    """

    def __init__(self, settings: SharedSettings) -> None:
        self.listing: Listing[RegisteredPrompt] = Listing(
            "prompt",
            "prompts/list",
            show=lambda prompt: prompt.shown,
            result=lambda items, cursor: ListPromptsResult(prompts=items, next_cursor=cursor),
            settings=settings,
            announce=settings.changes.announce_prompts,
        )
        self._settings = settings

    def add(
        self,
        fn: Callable[..., Any],
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        icons: Sequence[Icon] | None = None,
        meta: Meta | None = None,
        tags: Collection[str] = (),
        version: str | None = None,
        blocking: bool | None = None,
        scopes: Scopes = NO_SCOPES,
    ) -> str:
        """Offer a function as a prompt; see ``Server.prompt`` for the arguments.

        Returns:
            The prompt's name, and its version where it has one: what completers are for.
        """
        function = UserFunction.of(
            fn, context_type=Context, name=name, description=description, blocking=blocking
        )
        properties, what = function.input_schema["properties"], f"prompt {function.name!r}"
        arguments = [
            PromptArgument(
                name=parameter.wire,
                description=properties[parameter.wire].get("description", UNSET),
                required=parameter.required,
            )
            for parameter in function.parameters
        ]
        shown = Prompt(
            name=function.name,
            title=title or UNSET,
            description=function.description or UNSET,
            arguments=arguments or UNSET,
            icons=list(icons) if icons else UNSET,
            meta=make_meta(meta, tags, what, version) or UNSET,
        )
        run = make_runner(function, self._settings)
        prompt = RegisteredPrompt(function, shown, run, parse_scopes(scopes, what), version)
        self.listing.add(function.name, prompt, version)
        return prompt.target

    def needs(self, params: GetPromptParams, principal: Principal | None) -> frozenset[str]:
        """The scopes that getting a prompt takes."""
        prompt = self.listing.seek(params.name, params.meta)
        if prompt is None or not prompt.scopes:
            return NO_SCOPES

        def arguments() -> dict[str, Any] | None:
            try:
                return prompt.function.name_arguments(
                    prompt.function.bind_text(params.arguments or {})
                )
            except ArgumentError:
                return None

        return find_required_scopes(prompt.scopes, principal, f"prompt {params.name!r}", arguments)

    async def get(self, params: GetPromptParams, inbound: Inbound) -> Wire:
        """Handle ``prompts/get``.

        Raises:
            Refuse: there is no such prompt, its arguments do not fit, or its function refused.
        """
        prompt = self.listing.find(params.name, params.meta)
        try:
            bound = prompt.function.bind_text(params.arguments or {})
        except ArgumentError as error:
            # spec 2026-07-28 server/prompts#error-handling: missing arguments are -32602
            raise Refuse(-32602, str(error)) from error

        async def body(context: Context) -> Any:
            return await prompt.run(bound, context)

        value = await run_refusing(body, inbound, params, prompt.target, self._settings)
        if isinstance(value, InputRequiredResult | GetPromptResult):
            return value

        def make() -> list[PromptMessage]:
            promised = name_unless_optional(prompt.function.signature.returns)
            if value is None and promised:
                raise make_none_returned(promised)
            return to_prompt_messages(value)

        messages = to_result(make, f"prompt {params.name!r}", prompt.function.fn)
        return GetPromptResult(messages=messages, description=prompt.shown.description)
