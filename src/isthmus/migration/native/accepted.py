"""Accepted differences: what clients may notice after ``isthmus migrate --native``."""

from typing import NamedTuple


class AcceptedDifference(NamedTuple):
    """Something that differs between the façades and native isthmus, and changes no valid call's answer.

    Attributes:
        subject: what it is about.
        before: under the façades.
        after: natively.
    """

    subject: str
    before: str
    after: str


ACCEPTED_DIFFERENCES = (
    AcceptedDifference(
        "lists",
        "titles in schemas, marks of wrapped results, tags under the library's key",
        "none of them; descriptions of arguments are read from docstrings",
    ),
    AcceptedDifference(
        "name and version",
        "a server without a version tells the library's; it announces tools, resources and prompts",
        'version "0"; it announces what it has',
    ),
    AcceptedDifference(
        "arguments that do not fit the schema",
        'pydantic\'s text; `"yes"` or `1` is taken for a bool, and mcp ignores unknown names',
        "isthmus' text; they are refused",
    ),
    AcceptedDifference(
        "unknown names",
        "an error of the call or of the request, by library",
        "an error of the request: -32602, or that of the revision",
    ),
    AcceptedDifference(
        "programming errors in a function",
        "the exception's text may reach the client",
        "the class only; the text is logged",
    ),
    AcceptedDifference(
        "log messages",
        "fastmcp sends `{msg, extra}`; secrets stay in; `debug` is sent to every client",
        "the text; secrets are taken out; `debug` is sent to a client that sets this level",
    ),
    AcceptedDifference(
        "variables in URIs",
        "mcp 1 leaves percent escapes in them",
        "they are decoded",
    ),
    AcceptedDifference(
        "settings in the environment",
        "`FASTMCP_PORT` and its kind are read",
        "what `run` is called with counts",
    ),
)


def list_accepted_lines() -> list[str]:
    """The accepted differences as lines for a terminal."""
    return [f"{each.subject}: {each.before} → {each.after}" for each in ACCEPTED_DIFFERENCES]
