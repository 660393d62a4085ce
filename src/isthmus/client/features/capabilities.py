"""Capabilities that a client declares: what there are handlers for, and extensions."""

from collections.abc import Sequence
from typing import Any

from msgspec import UNSET, UnsetType, structs

from isthmus.client.features.elicitation import Elicit
from isthmus.client.features.roots import Roots
from isthmus.client.features.sampling import Sample
from isthmus.errors import UsageError
from isthmus.runtime.extension import Extension
from isthmus.tasks.shapes import accepts_as_task
from isthmus.wire import (
    TASKS,
    ClientCapabilities,
    ClientTaskRequests,
    ClientTasksCapability,
    ElicitationCapability,
    ElicitationTasks,
    RootsCapability,
    SamplingCapability,
    SamplingTasks,
)


def add_capabilities(
    base: ClientCapabilities | None,
    supported: Sequence[Extension],
    tools: bool,
    context: bool,
    tasks: bool,
) -> ClientCapabilities:
    """Capabilities with extensions, with what a model may be given, and with tasks."""
    declared = declare_extensions(base, supported)
    more: dict[str, Any] = {
        name: {} for name, wanted in (("tools", tools), ("context", context)) if wanted
    }
    if more:
        sampling = structs.replace(declared.sampling or SamplingCapability(), **more)
        declared = structs.replace(declared, sampling=sampling)
    if tasks and declared.tasks is UNSET:
        declared = structs.replace(declared, tasks=ClientTasksCapability())
    return declared


def declare_extensions(
    capabilities: ClientCapabilities | None, extensions: Sequence[Extension]
) -> ClientCapabilities:
    """The capabilities of a client with the extensions it supports: tasks, and those given.

    Raises:
        UsageError: an extension is there twice.
    """
    base = capabilities or ClientCapabilities()
    declared: dict[str, dict[str, Any]] = {TASKS: {}, **(base.extensions or {})}
    for extension in extensions:
        if extension.identifier in declared:
            raise UsageError(f"this client has the extension {extension.identifier!r} already")
        declared[extension.identifier] = extension.settings
    return structs.replace(base, extensions=declared)


def declare_capabilities(
    base: ClientCapabilities, elicit: Elicit | None, sample: Sample | None, roots: Roots | None
) -> ClientCapabilities:
    """The capabilities of a client: what there are handlers for, and no more.

    Raises:
        UsageError: ``base`` declares what has no handler.
    """
    for name, handler in (("elicitation", elicit), ("sampling", sample), ("roots", roots)):
        if handler is None and getattr(base, name) is not UNSET:
            argument = {"elicitation": "elicit", "sampling": "sample"}.get(name, name)
            raise UsageError(
                f"capabilities declares {name}, and no handler answers it: give {argument}= as well"
            )
    return structs.replace(
        base,
        elicitation=base.elicitation or (all_elicitation_modes() if elicit is not None else UNSET),
        sampling=base.sampling or (SamplingCapability() if sample is not None else UNSET),
        roots=base.roots or (RootsCapability(list_changed=True) if roots is not None else UNSET),
        tasks=base.tasks and declare_task_requests(base.tasks, elicit, sample),
    )


def declare_task_requests(
    base: ClientTasksCapability, elicit: Elicit | None, sample: Sample | None
) -> ClientTasksCapability:
    """Questions that the client answers as tasks: those there are handlers for.

    Raises:
        UsageError: there are none, or ``base`` declares others.
    """
    able = ClientTaskRequests(
        elicitation=UNSET if elicit is None else ElicitationTasks(create={}),
        sampling=UNSET if sample is None else SamplingTasks(create_message={}),
    )
    tasks = ClientTasksCapability(list={}, cancel={}, requests=base.requests or able)
    for method, argument, handler in (
        ("elicitation/create", "elicit", elicit),
        ("sampling/createMessage", "sample", sample),
    ):
        if handler is None and accepts_as_task(tasks, method):
            raise UsageError(f"no handler answers {method}, as a task or at once: give {argument}=")
    if elicit is None and sample is None:
        raise UsageError("answer_tasks=True needs a handler: give elicit= or sample= as well")
    return tasks


def limit_task_requests(
    tasks: ClientTasksCapability, *, elicits: bool, samples: bool
) -> ClientTasksCapability | UnsetType:
    """Questions that are answered as tasks, of those alone that are declared; unset for none."""
    before = tasks.requests or ClientTaskRequests()
    left = ClientTaskRequests(
        elicitation=before.elicitation if elicits else UNSET,
        sampling=before.sampling if samples else UNSET,
    )
    return structs.replace(tasks, requests=left) if elicits or samples else UNSET


def all_elicitation_modes() -> ElicitationCapability:
    """Both ways to ask a user."""
    return ElicitationCapability(form={}, url={})
