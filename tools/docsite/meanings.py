"""Meanings of parameters that stand in no docstring: of many methods, and of modules without room."""

from collections.abc import Mapping

COMMON = {
    "fresh": "ask the server, also where a kept answer is still good.",
    "meta": "members of `_meta` to send along.",
    "on_progress": "called with each notification of progress.",
    "timeout": "seconds to wait; by default as the client or the host is set.",
    "principal": "the user for whom this is done.",
    "run": "the run that this belongs to.",
    "uri": "URI of the resource.",
    "identifier": "name of the extension.",
    "fn": "the function.",
    "name": "its name.",
    "arguments": "its arguments by name.",
    "version": "one of several versions; all by default.",
    "tags": "tags that select.",
    "names": "names and URIs that select.",
    "only": "hide all that is not selected.",
    "level": "the least severe level that is sent.",
    "by": "who did it, for the audit log.",
}
"""Meanings of parameters that many methods share, where a docstring does not repeat them."""

OWN: Mapping[str, Mapping[str, str]] = {
    "Client.set_roots": {
        "roots": "the roots: paths, URIs or `Root`s, or a function that gives them."
    },
    "Host.reload": {"config": "the whole new configuration."},
    "Host.subscribe": {
        "server": "the name of the server.",
        "on": "True subscribes, False ends the subscription.",
    },
    "Host.prompt": {"server": "the server whose own name of the prompt is given; none by default."},
    "Host.cancel_task": {
        "server": "the name of the server.",
        "task": "the id that the server gave the task.",
    },
    "Host.attach": {
        "approver": "the surface, or a function that gets a question and returns a decision."
    },
    "Host.detach": {"approver": "the surface."},
    "Host.beside": {"work": "the coroutine."},
    "Host.notice": {
        "about": "the subject, such as `policy`.",
        "text": "the text for people.",
        "server": "the server concerned; none by default.",
    },
    "Server.from_fastapi": {"app": "the FastAPI application."},
    "Server.use": {"middleware": "an object with hooks, or an async function."},
    "Server.extend": {"extension": "the extension."},
    "Server.add_skills": {
        "root": "the folder of a skill, or of several.",
        "prefix": "the first part of the paths of their URIs; none by default.",
    },
    "Server.mount": {
        "other": "the server to offer here.",
        "prefix": "what its names begin with here; None, the default, leaves them as they are.",
    },
    "Server.include": {
        "tool": "the name of a tool, or a function.",
        "source": "the server that has the tool; this one by default.",
    },
    "Server.visibility": {
        "sessions": "whether rules may differ from session to session; False by default."
    },
    "Server.add_provider": {"provider": "the object that has tools, resources or prompts."},
    "Server.override": {
        "functions": "the functions to call instead, by those that are depended on."
    },
    "Server.route": {"path": "the path, from the root of the application."},
    "Server.with_router": {"use": "the function; it gets the router."},
    "Server.run_async": {
        "transport": "the name of the transport; `stdio` by default.",
        "given": "options of the transport.",
    },
}
"""Meanings by the method; their modules are as long as a module may be."""
