"""Pydantic models of ``mcp.types``, made of the table when one is first asked for.

Fields have the names of ``mcp`` 2 (``input_schema``) and are reached by those of 1.x (``inputSchema``), too.
"""

import types
import typing
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model
from pydantic.alias_generators import to_camel, to_snake

from isthmus.compat.types.table import ALIASES, CONSTANTS, MESSAGE_UNIONS, MESSAGES, MODELS


class MCPModel(BaseModel):
    """Base of the models: camelCase on the wire, both spellings in Python, unknown members kept."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="allow", defer_build=True
    )

    if not TYPE_CHECKING:  # a checker would take every misspelt attribute for one

        def __getattr__(self, name: str) -> Any:
            """Read a field by its name of 1.x: ``tool.inputSchema``."""
            snake = to_snake(name)
            if snake != name and snake in type(self).model_fields:
                return getattr(self, snake)
            return super().__getattr__(name)

        def __setattr__(self, name: str, value: Any) -> None:
            """Set a field, also by its name of 1.x."""
            snake = to_snake(name)
            known = snake != name and snake in type(self).model_fields
            super().__setattr__(snake if known else name, value)


class MessageModel(MCPModel):
    """Base of requests and notifications, which in 1.x lie as ``root`` in a model of their kind."""

    @property
    def root(self) -> Any:
        """The message itself."""
        return self


class MessageUnion(type):
    """Metaclass of the kinds of messages: ``ClientRequest(request)`` of 1.x is the request, and an instance of it."""

    members: Any

    def __call__(cls, root: Any) -> Any:
        """The message itself."""
        return root

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.members)


def _make_text(value: Any) -> Any:
    """The text of a URI that is an object: ``AnyUrl``, as 1.x has it."""
    return value if isinstance(value, str) or value is None else str(value)


class TypeNames(dict[str, Any]):
    """Names of ``mcp.types`` that are made when they are looked up."""

    def __missing__(self, name: str) -> Any:
        """Make the model or the alias of a name.

        Raises:
            KeyError: there is none.
        """
        if name in MODELS:
            made: Any = _make_model(name, MODELS[name])
        elif name in MESSAGES:
            made = _make_message(name, *MESSAGES[name])
        elif name in MESSAGE_UNIONS:
            made = _make_union(name, read_type(ALIASES[name]))
        elif name in ALIASES:
            made = read_type(ALIASES[name])
        elif name in CONSTANTS:
            made = CONSTANTS[name]
        else:
            raise KeyError(name)
        self[name] = made
        return made


NAMES = TypeNames(
    MCPModel=MCPModel,
    BaseModel=BaseModel,
    Any=Any,
    Literal=Literal,
    Uri=Annotated[str, BeforeValidator(_make_text)],
)


def read_type(text: str) -> Any:
    """A type as the table writes it."""
    holder = types.SimpleNamespace(__annotations__={"it": text})
    return typing.get_type_hints(holder, vars(types), NAMES, include_extras=True)["it"]


def _make_model(name: str, line: str) -> Any:
    base, *fields = (part.strip() for part in line.split(";"))
    made: dict[str, Any] = {}
    for field in fields:
        key, _, text = field.partition(":")
        text = text.strip()
        if key.endswith("="):
            value = {"False": False}.get(text, text.strip("'"))
            made[key[:-1]] = (bool if value is False else Literal[value], value)
        elif key.endswith("?"):
            kind: Any = typing.Optional[read_type(text)]  # noqa: UP045 - of a value
            made[key[:-1]] = (
                (kind, Field(default=None, alias="_meta")) if key == "meta?" else (kind, None)
            )
        else:
            made[key] = (read_type(text), ...)
    model: Any = create_model(name, __base__=NAMES[base], __module__="isthmus.compat.types", **made)
    return model


def _make_message(name: str, method: str, params: str) -> Any:
    kind = NAMES[params.rstrip("?")]
    fields: dict[str, Any] = {
        "method": (Literal[method], method),
        "params": (kind | None, None) if params.endswith("?") else (kind, ...),
    }
    where = "isthmus.compat.types"
    model: Any = create_model(name, __base__=MessageModel, __module__=where, **fields)
    return model


def _make_union(name: str, members: Any) -> Any:
    def describe(_cls: Any, _source: Any, handler: Any) -> Any:
        return handler(members)  # for fields of this type

    hook = {"__get_pydantic_core_schema__": classmethod(describe)}
    return MessageUnion(name, (), {"members": members, **hook})
