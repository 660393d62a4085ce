"""Dialect: what the other libraries and their versions differ in, where functions become tools."""

from typing import NamedTuple

from pydantic import BaseModel, ConfigDict


class Dialect(NamedTuple):
    """What the libraries and their versions differ in.

    Attributes:
        threads: functions that are not async run in a worker thread, and not on the event loop.
        typed_dict_models: a ``TypedDict`` that is returned becomes a model of its own (``mcp`` 1.x).
        content_unstructured: an annotation of content blocks makes no output schema (``mcp`` 2).
        leading_underscores: names of arguments may begin with an underscore.
    """

    threads: bool = True
    typed_dict_models: bool = False
    content_unstructured: bool = True
    leading_underscores: bool = False


MCP1 = Dialect(threads=False, typed_dict_models=True, content_unstructured=False)
MCP2 = Dialect()


class InvalidSignature(Exception):
    """A function cannot be a tool: its signature says why."""


class FunctionArguments(BaseModel):
    """Base of the models of functions' arguments."""

    model_config = ConfigDict(arbitrary_types_allowed=True)
