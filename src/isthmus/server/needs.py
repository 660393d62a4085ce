"""What a client must have declared before it may be asked something.

spec 2026-07-28 basic/patterns/mrtr#server-requirements-basic-workflow: a server MUST NOT send
a question that the client has not declared support for; up to 2025-11-25 client/elicitation,
client/sampling and client/roots say the same.
"""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import UNSET

from isthmus.errors import CapabilityMissing
from isthmus.wire import ClientCapabilities, CreateMessageParams, ElicitParams

__all__ = ["require"]

Missing = Mapping[str, Any] | None


def _elicitation(has: ClientCapabilities, params: ElicitParams) -> Missing:
    declared = has.elicitation
    if params.mode == "url":
        able = declared is not UNSET and declared.url is not UNSET
        return None if able else {"elicitation": {"url": {}}}
    # spec 2026-07-28 client/elicitation#capabilities: naming no mode means forms
    able = declared is not UNSET and (declared.form is not UNSET or declared.url is UNSET)
    return None if able else {"elicitation": {"form": {}} if declared is not UNSET else {}}


def _sampling(has: ClientCapabilities, params: CreateMessageParams) -> Missing:
    if has.sampling is UNSET:
        return {"sampling": {}}
    # spec 2026-07-28 client/sampling: tool-enabled requests only with sampling.tools
    uses_tools = params.tools is not UNSET or params.tool_choice is not UNSET
    return {"sampling": {"tools": {}}} if uses_tools and has.sampling.tools is UNSET else None


def _roots(has: ClientCapabilities, _params: Any) -> Missing:
    return {"roots": {}} if has.roots is UNSET else None


_NEEDS: Mapping[str, Callable[[ClientCapabilities, Any], Missing]] = {
    "elicitation/create": _elicitation,
    "sampling/createMessage": _sampling,
    "roots/list": _roots,
}


def require(has: ClientCapabilities, method: str, params: Any) -> None:
    """See to it that a question may be asked.

    Args:
        has: what the client declared.
        method: the question's method.
        params: its parameters, as the method's struct.

    Raises:
        CapabilityMissing: the client did not declare what it takes.
    """
    missing = _NEEDS[method](has, params)
    if missing is not None:
        name, part = next(iter(missing.items()))
        said = ".".join([name, *part])
        raise CapabilityMissing(
            f"the client cannot be asked {method}: it did not declare the capability {said}",
            missing,
        )
