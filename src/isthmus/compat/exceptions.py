"""Exceptions of ``mcp``'s servers and sessions, in the names of 2.x and of 1.x."""

from collections.abc import Sequence
from typing import Any, Self

from isthmus.compat import types
from isthmus.compat.dialect import InvalidSignature

__all__ = [
    "InvalidSignature",
    "MCPDeprecationWarning",
    "MCPError",
    "MCPServerError",
    "McpError",
    "ResourceError",
    "ResourceNotFoundError",
    "ToolError",
    "UnexpectedResourceError",
    "UnexpectedToolError",
    "UrlElicitationRequiredError",
    "ValidationError",
]

URL_REQUIRED_MESSAGE = "URL elicitation{} required"


class MCPDeprecationWarning(UserWarning):
    """Something of the protocol or of ``mcp`` is deprecated."""


class MCPError(Exception):
    """A JSON-RPC error: raised by a handler it is the answer to its request.

    It takes a code and a message, as in ``mcp`` 2, or one ``ErrorData``, as in 1.x.
    """

    def __init__(self, code: Any, message: str = "", data: Any = None) -> None:
        if not isinstance(code, int):
            code, message, data = code.code, code.message, code.data
        super().__init__(message)
        self.error = types.ErrorData(code=code, message=message, data=data)

    @property
    def code(self) -> int:
        """The code of the error."""
        return int(self.error.code)

    @property
    def message(self) -> str:
        """The message of the error."""
        return str(self.error.message)

    @property
    def data(self) -> Any:
        """The data of the error, or None."""
        return self.error.data

    @classmethod
    def from_error_data(cls, error: Any) -> Self:
        """The exception of an ``ErrorData``."""
        return cls(error)


McpError = MCPError
"""The name of :class:`MCPError` in ``mcp`` 1.x."""


class UrlElicitationRequiredError(MCPError):
    """The user must visit pages before the request can be served."""

    def __init__(self, elicitations: Sequence[Any], message: str | None = None) -> None:
        self.elicitations = list(elicitations)
        several = "s" if len(self.elicitations) > 1 else ""
        pages = [one.model_dump(by_alias=True, exclude_none=True) for one in self.elicitations]
        super().__init__(
            types.URL_ELICITATION_REQUIRED,
            message or URL_REQUIRED_MESSAGE.format(several),
            {"elicitations": pages},
        )


class MCPServerError(Exception):
    """Base of the errors of a server's tools and resources."""


FastMCPError = MCPServerError


class ValidationError(MCPServerError):
    """Parameters or a return value do not fit."""


class ResourceError(MCPServerError):
    """A resource cannot be read; the client gets the message."""


class ResourceNotFoundError(ResourceError):
    """There is no such resource."""


class UnexpectedResourceError(ResourceError):
    """A resource broke; the client gets a message without the cause."""


class ToolError(MCPServerError):
    """A tool failed; the model gets the message."""


class UnexpectedToolError(ToolError):
    """A tool broke; the model gets a message without the cause."""
