"""Approval pages: what waits, each card whole, and plain forms by which a signed-in person decides.

There are no scripts, and nothing from elsewhere. Whoever knows the address of a page, as the client and its
model do, sees the form to sign in and nothing else.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import UNSET

from isthmus.auth.authorization_server.core.requests import RequestRefused
from isthmus.auth.authorization_server.pages.browser import (
    BrowserRequest,
    is_cross_site,
    read_browser_request,
)
from isthmus.auth.authorization_server.pages.form_tokens import FormTokens
from isthmus.auth.authorization_server.pages.templates import STYLE_SHEET
from isthmus.cards.drafts import read_draft
from isthmus.core.encoding import is_same_json
from isthmus.errors import IsthmusError
from isthmus.gateway.approvals.cards import (
    can_allow,
    make_card_markup,
    make_layout,
    make_login_markup,
    make_text_markup,
)
from isthmus.gateway.approvals.operator import ApproverIdentity, OperatorSignIn, SignedInApprover
from isthmus.gateway.gateway import APPROVALS_PATH
from isthmus.host.model.interaction import CallAsked, Decision, Interaction
from isthmus.host.model.trace import Assurance
from isthmus.transports.http.reply import Receive, Scope, Send, send_response

if TYPE_CHECKING:
    from isthmus.host.approvals.approval_rows import ApprovalRow
    from isthmus.host.host import Host

LOGIN_PATH = "/approvals/login"
STYLE_PATH = "/approvals/style.css"

CSP = (
    "default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; "
    "base-uri 'none'"
)
PAGE_HEADERS = [
    (b"content-type", b"text/html; charset=utf-8"),
    (b"content-security-policy", CSP.encode()),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]


class PageSurface:
    """The pages as a surface of the host: their decisions come by forms."""

    name = "page"
    # of the surest of those who may sign in; each decision says its own
    assurance: Assurance = "second_person"
    only_decides = True  # no form of a server's can be filled in there

    async def offer(self, interaction: Interaction) -> Decision:
        """Wait, until somebody decides anywhere."""
        del interaction
        decision: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()
        return await decision


class ApprovalPages:
    """The pages of approvals, as an ASGI app.

    Args:
        host: whose approvals they are.
        address: of the gateway, as browsers reach it: scheme, host and port.
        identity: says who may decide; by default the operator, who has a token.
        clock: says the seconds since the epoch.
    """

    def __init__(
        self,
        host: "Host",
        address: str,
        *,
        identity: ApproverIdentity | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._host = host
        self._address = address.rstrip("/")
        self.operator = OperatorSignIn(self._address)
        self._identity: ApproverIdentity = identity or self.operator
        self._tokens = FormTokens(clock)
        self.surface = PageSurface()

    @property
    def login_address(self) -> str:
        """The address that an operator is told, with the token in its fragment."""
        return f"{self._address}{LOGIN_PATH}#{self.operator.token.reveal()}"

    def find_address(self, id: str) -> str:
        """The address of the page of an approval."""
        return f"{self._address}{APPROVALS_PATH}/{id}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request of a browser."""
        try:
            request = await read_browser_request(scope, receive)
            await self._serve(request, scope["path"].rstrip("/"), send)
        except RequestRefused as refusal:
            await self._send(send, refusal.status, "Not possible", [refusal.text])
        except IsthmusError as error:
            await self._send(send, 503, "Not decided", [str(error)])

    async def _serve(self, request: BrowserRequest, path: str, send: Send) -> None:
        if request.posted and is_cross_site(request, self._address):
            raise RequestRefused("This form came from another page.", status=403)
        if path == STYLE_PATH:
            await send_response(send, 200, [(b"content-type", b"text/css")], STYLE_SHEET)
        elif path == LOGIN_PATH:
            await self._log_in(request, send)
        elif (who := self._identity.identify(request)) is None:
            # The same words whether or not there is such an approval.
            await self._show_login(send, 401, "Sign in to see what waits.")
        elif path == APPROVALS_PATH:
            await self._show_list(send)
        else:
            await self._serve_one(request, who, path.removeprefix(f"{APPROVALS_PATH}/"), send)

    # Signing in

    async def _log_in(self, request: BrowserRequest, send: Send) -> None:
        if not request.posted:
            await self._show_login(send, 200, "")
            return
        cookie = self.operator.sign_in(request.fields.get("token", "").strip().lstrip("#"))
        if cookie is None:
            await self._show_login(
                send, 403, "This token is wrong: use the one that the gateway printed."
            )
            return
        headers = [(b"location", APPROVALS_PATH.encode()), (b"set-cookie", cookie.encode())]
        await send_response(send, 303, [*headers, (b"cache-control", b"no-store")])

    async def _show_login(self, send: Send, status: int, notice: str) -> None:
        page = make_layout("Sign in", make_login_markup(LOGIN_PATH, notice), STYLE_PATH)
        await send_response(send, status, PAGE_HEADERS, page)

    # Approvals

    async def _show_list(self, send: Send) -> None:
        lines = [
            (f"{APPROVALS_PATH}/{one.id}", describe_question(one))
            for one in self._host.core.broker.pending()
        ]
        await self._send(send, 200, "Approvals", [] if lines else ["Nothing waits."], lines)

    async def _serve_one(
        self, request: BrowserRequest, who: SignedInApprover, id: str, send: Send
    ) -> None:
        asked = self._host.core.broker.find(id)
        if asked is None:
            row = self._host.core.approvals.find(id)
            said = describe_end(row) if row is not None else "There is no such approval."
            await self._send(send, 404 if row is None else 200, "Approval", [said])
        elif request.posted:
            await self._decide(request, who, asked, send)
        else:
            token = self._tokens.make(who.session, id)
            markup = make_card_markup(asked, f"{APPROVALS_PATH}/{id}", token)
            await send_response(
                send, 200, PAGE_HEADERS, make_layout("Approval", markup, STYLE_PATH)
            )

    async def _decide(
        self, request: BrowserRequest, who: SignedInApprover, asked: Interaction, send: Send
    ) -> None:
        fields = request.fields
        if not self._tokens.take(fields.get("form", ""), who.session, asked.id):
            raise RequestRefused(
                "This form was used already, or is too old. Open the page again.", status=403
            )
        verdict = {"allow": "allow", "deny": "deny"}.get(fields.get("verdict", ""))
        if verdict is None or (verdict == "allow" and not can_allow(asked)):
            raise RequestRefused("Choose one of the actions on this page.")
        edited = read_edit(asked, fields.get("arguments", "")) if verdict == "allow" else UNSET
        others = who.principal != asked.attempt.owner
        decision = Decision(
            verdict="allow" if verdict == "allow" else "deny",
            edited=edited,
            by=f"page ({who.name})",
            assurance="second_person" if others else "authenticated_web",
            reason=fields.get("reason", "")[:500],
            principal=who.principal,
        )
        if await self._host.core.broker.decide(asked.id, decision):
            await self._send(
                send, 200, "Decided", ["Allowed." if verdict == "allow" else "Denied."]
            )
        elif self._host.core.broker.find(asked.id) is not None:
            text = "Your approval does not count: the rule requires a second person or a stronger login."
            await self._send(send, 403, "Not decided", [text])
        else:
            await self._send(send, 409, "Decided before", ["Somebody else has decided already."])

    async def _send(
        self,
        send: Send,
        status: int,
        title: str,
        texts: Sequence[str],
        links: Sequence[tuple[str, str]] = (),
    ) -> None:
        page = make_layout(title, make_text_markup(texts, links), STYLE_PATH)
        await send_response(send, status, PAGE_HEADERS, page)


def describe_question(asked: Interaction) -> str:
    """A question in one line."""
    attempt = asked.attempt
    return f"{attempt.action} {attempt.words}, for {attempt.principal} ({asked.risk} risk)"


def read_edit(asked: Interaction, text: str) -> object:
    """The arguments as a person has edited them; unset where they are as they were.

    Raises:
        RequestRefused: they are no JSON object.
    """
    if not isinstance(asked.payload, CallAsked) or not text.strip():
        return UNSET
    before = dict(asked.payload.arguments)
    draft = read_draft(text, before)
    if draft.error:
        raise RequestRefused(
            f"The arguments are not a JSON object: {draft.error}. Nothing was decided."
        )
    return UNSET if is_same_json(draft.value, before) else draft.value


def describe_end(row: "ApprovalRow") -> str:
    """The state of an approval that waits for nobody's decision, in a sentence."""
    if row.state == "decided" and row.decision is not None:
        if row.decision.verdict == "allow":
            return "The call is allowed. It runs when its client calls again."
        return "The call was denied."
    return {
        "used": "The call was allowed, and is running.",
        "over": "The approval has ended.",
        "unknown": "The call was allowed, but it is unknown whether it happened.",
    }.get(row.state, "The call waits for a decision.")
