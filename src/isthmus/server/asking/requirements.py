"""Capabilities that a client must have declared before it may be asked something.

spec 2026-07-28 basic/patterns/mrtr#server-requirements-basic-workflow: a server MUST NOT send
a question that the client has not declared support for; up to 2025-11-25 client/elicitation,
client/sampling and client/roots say the same.
"""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import UNSET, structs

from isthmus.core.caller import Caller
from isthmus.core.elicitation import find_form_flaw, find_page_flaw
from isthmus.errors import CapabilityMissing, NotInRevision, UsageError
from isthmus.revisions import Revision
from isthmus.tasks.shapes import accepts_as_task
from isthmus.wire import (
    ClientCapabilities,
    CreateMessageParams,
    ElicitParams,
    UntitledMultiSelectEnumSchema,
)

MissingCapability = Mapping[str, Any] | None


def _find_missing_elicitation(has: ClientCapabilities, params: ElicitParams) -> MissingCapability:
    declared = has.elicitation
    if params.mode == "url":
        able = declared is not UNSET and declared.url is not UNSET
        return None if able else {"elicitation": {"url": {}}}
    # spec 2026-07-28 client/elicitation#capabilities: naming no mode means forms
    able = declared is not UNSET and (declared.form is not UNSET or declared.url is UNSET)
    return None if able else {"elicitation": {"form": {}} if declared is not UNSET else {}}


def _find_missing_sampling(
    has: ClientCapabilities, params: CreateMessageParams
) -> MissingCapability:
    if has.sampling is UNSET:
        return {"sampling": {}}
    # spec 2026-07-28 client/sampling: tool-enabled requests only with sampling.tools
    uses_tools = params.tools is not UNSET or params.tool_choice is not UNSET
    return {"sampling": {"tools": {}}} if uses_tools and has.sampling.tools is UNSET else None


def _find_missing_roots(has: ClientCapabilities, _params: Any) -> MissingCapability:
    return {"roots": {}} if has.roots is UNSET else None


_CAPABILITY_CHECKS: Mapping[str, Callable[[ClientCapabilities, Any], MissingCapability]] = {
    "elicitation/create": _find_missing_elicitation,
    "sampling/createMessage": _find_missing_sampling,
    "roots/list": _find_missing_roots,
}


def find_missing_capability(
    capabilities: ClientCapabilities, method: str, params: Any
) -> MissingCapability:
    """The capability that a client lacks for a question; None where it can be asked."""
    return _CAPABILITY_CHECKS[method](capabilities, params)


def require_askable(caller: Caller, method: str, params: Any) -> None:
    """See to it that a question may be asked.

    Args:
        caller: whom.
        method: the question's method.
        params: its parameters, as the method's struct.

    Raises:
        CapabilityMissing: the client did not declare what it takes.
        NotInRevision: its revision has no such form.
        UsageError: nothing has such a form, or the user cannot be sent to such a page.
    """
    missing = _CAPABILITY_CHECKS[method](caller.capabilities, params)
    if missing is not None:
        name, part = next(iter(missing.items()))
        said = ".".join([name, *part])
        raise CapabilityMissing(
            f"the client cannot be asked {method}: it did not declare the capability {said}",
            missing,
        )
    if method != "elicitation/create":
        return
    if params.mode == "url":
        _check_page(params.url)
    elif params.requested_schema is not UNSET:
        _check_form(caller.revision, params.requested_schema)


def _check_page(url: Any) -> None:
    """See to it that a user can be sent somewhere.

    Raises:
        UsageError: it is no page.
    """
    # spec 2026-07-28 client/elicitation#url-mode-elicitation-requests: MUST be a valid URL
    wrong = find_page_flaw(url)
    if wrong:
        raise UsageError(f"the user cannot be sent to {url!r}: {wrong}")


def _check_form(revision: Revision, schema: Any) -> None:
    """See to it that a form can be shown in a revision.

    Raises:
        NotInRevision: it has a choice of several, which the revision has not.
        UsageError: it is no form.
    """
    # spec 2026-07-28 client/elicitation#requested-schema: flat objects with primitive properties
    wrong = find_form_flaw(schema)
    if wrong:
        raise UsageError(f"this cannot be asked for in a form: {wrong}")
    if revision.knows(UntitledMultiSelectEnumSchema):
        return
    for name, blank in schema.get("properties", {}).items():
        if blank.get("type") == "array":
            raise NotInRevision(
                f"{name!r} cannot be asked for: a form of revision {revision.name} has no choice "
                "of several; ask for one at a time, or for text"
            )


def takes_tasks(caller: Caller, method: str) -> bool:
    """Whether a client declared that it runs a request as a task."""
    # spec 2025-11-25 basic/utilities/tasks#capability-negotiation: SHOULD NOT create tasks
    # where that was not declared; what is not in the list is not supported
    able = caller.revision.allows("server", "tasks/get")
    return able and accepts_as_task(caller.capabilities.tasks, method)


def drop_task(params: Any) -> Any:
    """A question as it is asked where it is to be no task of the client's."""
    return structs.replace(params, task=UNSET) if getattr(params, "task", UNSET) else params
