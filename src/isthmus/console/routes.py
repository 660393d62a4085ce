"""Routes of the console: which function serves which path.

To add a page, write a function as :mod:`isthmus.console.requests` says in a module of
``isthmus/console/pages/``, and add a :class:`PageRoute` for it below. A route of POST needs nothing more against
forged forms: the app checks the form's token, made by ``request.make_form``, before the page is called. A page
for operators only says so; others are told that there is no such page. An entry of the navigation is a row of
:data:`SECTIONS`. Modules of pages are imported with their first request.

A page is alive where its reply names topics (``live=("servers",)``): after an event of such a topic the
browser fetches the page again and puts what has changed in place. Topics are listed in
:mod:`isthmus.console.live`.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from importlib import import_module
from typing import TypeAlias

from msgspec import Struct

from isthmus.console.requests import ConsoleReply, ConsoleRequest

ConsolePage: TypeAlias = Callable[[ConsoleRequest], Awaitable[ConsoleReply]]

PAGES = "isthmus.console.pages"


class PageRoute(Struct, frozen=True):
    """A path and the function that serves it.

    Attributes:
        method: GET, which HEAD goes with, or POST.
        pattern: the path below the prefix; ``{name}`` stands for one part of it.
        page: ``module.function`` in ``isthmus.console.pages``.
        operator: whether it is for operators only.
    """

    method: str
    pattern: str
    page: str
    operator: bool = False

    def match(self, segments: tuple[str, ...]) -> Mapping[str, str] | None:
        """The parameters of a path; None where it is another one."""
        parts = split_path(self.pattern)
        if len(parts) != len(segments):
            return None
        pairs = list(zip(parts, segments, strict=True))
        if not all(part.startswith("{") or part == given for part, given in pairs):
            return None
        return {part.strip("{}"): given for part, given in pairs if part.startswith("{")}

    def find_page(self) -> ConsolePage:
        """The function, whose module is imported now."""
        module, _, name = self.page.partition(".")
        found: ConsolePage = getattr(import_module(f"{PAGES}.{module}"), name)
        return found


class Section(Struct, frozen=True):
    """An entry of the navigation.

    Attributes:
        name: as in :attr:`~isthmus.console.requests.PageReply.section`, and its path.
        title: what it is called.
        operator: whether it is for operators only.
    """

    name: str
    title: str
    operator: bool = False


SECTIONS: tuple[Section, ...] = (
    Section("inbox", "Inbox"),
    Section("servers", "Servers", operator=True),
    Section("traffic", "Traffic"),
    Section("access", "Access"),
    Section("audit", "Audit", operator=True),
    Section("doctor", "Doctor", operator=True),
)

ROUTES: tuple[PageRoute, ...] = (
    PageRoute("GET", "/", "inbox.show_inbox"),
    PageRoute("GET", "/inbox", "inbox.show_inbox"),
    PageRoute("GET", "/inbox/{id}", "inbox.show_card"),
    PageRoute("POST", "/inbox/{id}", "inbox.decide_question"),
    PageRoute("GET", "/inbox/{id}/batch", "batch.show_batch"),
    PageRoute("POST", "/inbox/{id}/batch", "batch.decide_batch"),
    PageRoute("GET", "/servers", "servers.show_servers", operator=True),
    PageRoute("POST", "/servers", "servers.add_servers", operator=True),
    PageRoute("GET", "/servers/{name}", "servers.show_server", operator=True),
    PageRoute("POST", "/servers/{name}", "servers.change_server", operator=True),
    PageRoute("GET", "/servers/{name}/tools/{tool}", "tools.show_tool", operator=True),
    PageRoute("POST", "/servers/{name}/tools/{tool}", "tools.use_tool", operator=True),
    PageRoute("GET", "/traffic", "traffic.show_traffic"),
    PageRoute("GET", "/traffic/{call}", "calls.show_call"),
    PageRoute("POST", "/traffic/{call}", "calls.stop_call"),
    PageRoute("GET", "/access", "access.show_principals"),
    PageRoute("POST", "/access/runs/{run}", "access.stop_run", operator=True),
    PageRoute("GET", "/access/grants", "access.show_grants"),
    PageRoute("POST", "/access/grants/{grant}", "access.change_grant"),
    PageRoute("GET", "/access/accounts", "access.show_accounts"),
    PageRoute("POST", "/access/accounts/{server}", "access.change_account"),
    PageRoute("GET", "/access/policy", "policy.show_policy", operator=True),
    PageRoute("GET", "/access/policy/try", "policy.show_policy", operator=True),
    PageRoute("POST", "/access/policy/try", "policy.try_attempt", operator=True),
    PageRoute("GET", "/access/policy/replay", "policy.show_policy", operator=True),
    PageRoute("POST", "/access/policy/replay", "policy.replay_text", operator=True),
    PageRoute("POST", "/access/policy/promote", "policy.promote_shadow", operator=True),
    PageRoute("GET", "/audit", "audit.show_audit", operator=True),
    PageRoute("GET", "/audit/export", "audit.export_audit", operator=True),
    PageRoute("GET", "/audit/verify", "audit.show_audit", operator=True),
    PageRoute("POST", "/audit/verify", "audit.verify_chain", operator=True),
    PageRoute("GET", "/audit/{seq}", "audit.show_row", operator=True),
    PageRoute("GET", "/doctor", "doctor.show_doctor", operator=True),
    PageRoute("POST", "/doctor", "doctor.examine_servers", operator=True),
    PageRoute("GET", "/doctor/{name}", "doctor.show_examination", operator=True),
    PageRoute("POST", "/doctor/{name}", "doctor.examine_servers", operator=True),
)


def split_path(path: str) -> tuple[str, ...]:
    """The parts of a path between its slashes."""
    return tuple(part for part in path.split("/") if part)


def find_route(
    method: str, segments: tuple[str, ...]
) -> Iterator[tuple[PageRoute, Mapping[str, str]]]:
    """The routes of a path that answer a method, with the parameters of the path."""
    wanted = "GET" if method == "HEAD" else method
    for route in ROUTES:
        found = route.match(segments)
        if found is not None and route.method == wanted:
            yield route, found
