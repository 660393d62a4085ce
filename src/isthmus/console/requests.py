"""Requests to the console and the replies of its pages.

A page is a function ``async def show_…(request: ConsoleRequest) -> ConsoleReply``. It reads
``request.fields`` (query or form), ``request.parameters`` (of its path) and ``request.view`` (the host), and
gives a :class:`PageReply`, whose body is made with :func:`isthmus.cards.markup.element`, or a
:class:`PageRedirect` after a form. :mod:`isthmus.console.routes` says how it is listed.
"""

from collections.abc import AsyncGenerator, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from msgspec import Struct

from isthmus.auth.authorization_server.core.requests import RequestRefused
from isthmus.auth.authorization_server.pages.browser import BrowserRequest
from isthmus.auth.authorization_server.pages.form_tokens import FormTokens
from isthmus.cards.markup import Child, Markup, Verbatim, element
from isthmus.console.login import ConsoleVisitor

if TYPE_CHECKING:
    from isthmus.host.remote.view import HostView

T = TypeVar("T")

NOT_HERE_TEXT = "There is no such page."


class PageReply(Struct, frozen=True, kw_only=True):
    """A page, or a part of one.

    Attributes:
        title: its heading, and what stands before the name of the console.
        body: what stands below the heading.
        status: of HTTP.
        section: the entry of the navigation that it belongs to, such as ``"servers"``.
        live: names of events after which the page loads itself again, such as ``("inbox",)``.
    """

    title: str
    body: Markup
    status: int = 200
    section: str = ""
    live: tuple[str, ...] = ()


class PageRedirect(Struct, frozen=True):
    """Go to another page of the console, by GET.

    Attributes:
        path: of the console, with the query; what :meth:`ConsoleRequest.link` gives.
        cookies: values of ``Set-Cookie``.
    """

    path: str
    cookies: tuple[str, ...] = ()


class Download(Struct, frozen=True, kw_only=True):
    """A file, which the browser keeps or shows.

    Attributes:
        content: its bytes, or where it is long its pieces as they come.
        kind: its media type.
        name: the name it is kept under; empty where it is shown.
        forever: whether it never changes under its URL.
    """

    content: bytes | AsyncGenerator[bytes, None]
    kind: str
    name: str = ""
    forever: bool = False


ConsoleReply: TypeAlias = PageReply | PageRedirect | Download


class ConsoleRequest(Struct, frozen=True, kw_only=True):
    """A request of a browser to a page.

    Attributes:
        browser: the request.
        segments: of the path below the console's prefix, decoded.
        parameters: the parts of the path that its route has names for.
        visitor: who has signed in.
        view: the host, as this visitor sees it.
        prefix: the console's path.
        tokens: of forms.
        now: says the seconds since the epoch.
        states: what the pages of a console keep from one request to the next, by its class.
        renews: whether the token can be made invalid, and another one told at a terminal.
    """

    browser: BrowserRequest
    segments: tuple[str, ...]
    parameters: Mapping[str, str]
    visitor: ConsoleVisitor
    view: "HostView"
    prefix: str
    tokens: FormTokens
    now: Callable[[], float]
    states: dict[type, Any] = {}
    renews: bool = False

    @property
    def fields(self) -> Mapping[str, str]:
        """What a form holds, or the query where there is none."""
        return self.browser.fields

    def find_state(self, kind: type[T]) -> T:
        """The one object of a class that a console keeps for its pages; made when it is first wanted."""
        if kind not in self.states:
            self.states[kind] = kind()
        found: T = self.states[kind]
        return found

    def link(self, *parts: str, **query: str | int) -> str:
        """The path of a page of the console: ``request.link("servers", name, page=2)``."""
        from urllib.parse import quote  # slow to import

        path = "".join(f"/{quote(part, safe='')}" for part in parts)
        words = "&".join(f"{key}={quote(str(value), safe='')}" for key, value in query.items())
        return f"{self.prefix}{path or '/'}{'?' if words else ''}{words}"

    def make_form(
        self,
        action: str,
        *children: Child,
        version: str = "",
        attributes: Mapping[str, str] | None = None,
    ) -> Markup:
        """A form that this visitor may send, once.

        Args:
            action: where it goes: what :meth:`link` gives.
            *children: its fields and buttons.
            version: of what is shown beside it; the page that takes the form finds it in its fields, and a
                form with another one is refused.
            attributes: further ones of the form.
        """
        token = self.tokens.make(self.visitor.session, f"{action} {version}")
        return element(
            "form",
            {"method": "post", "action": action, **(attributes or {})},
            element("input", {"type": "hidden", "name": "form", "value": token}),
            element("input", {"type": "hidden", "name": "version", "value": Verbatim(version)})
            if version
            else None,
            *children,
        )

    def check_form(self) -> None:
        """See that a form is one of ours, of this visitor, sent for the first time.

        Raises:
            RequestRefused: it is not.
        """
        about = f"{self.link(*self.segments)} {self.fields.get('version', '')}"
        if not self.tokens.take(self.fields.get("form", ""), self.visitor.session, about):
            raise RequestRefused(
                "This form was used already, or is too old. Open the page again.", status=403
            )


def refuse_unknown() -> RequestRefused:
    """What is raised where there is no such thing, or none that this visitor may know of."""
    return RequestRefused(NOT_HERE_TEXT, status=404)
