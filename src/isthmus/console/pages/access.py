"""Access pages: principals, profiles, grants and accounts, and what can be taken back or connected."""

from collections.abc import Sequence

from isthmus.auth.authorization_server.core.requests import RequestRefused
from isthmus.cards.markup import Markup, element
from isthmus.console.drawing.page_parts import (
    INLINE,
    NOTHING,
    TableColumn,
    draw_badge,
    draw_code,
    draw_link,
    draw_notice,
    draw_section,
    draw_table,
    draw_time,
    name_actor,
)
from isthmus.console.pages.servers import make_missing
from isthmus.console.requests import ConsoleReply, ConsoleRequest, PageRedirect, PageReply
from isthmus.errors import IsthmusError
from isthmus.host.model.view import AccountLine, GrantLine, PrincipalLine, ProfileLine, RunLine

PRINCIPAL_COLUMNS = (
    TableColumn("principal", "name"),
    TableColumn("clients"),
    TableColumn("sessions", "number"),
    TableColumn("running", "number"),
    TableColumn("calls", "number"),
    TableColumn("last", "at"),
    TableColumn("do", "do"),
)
PROFILE_COLUMNS = (
    TableColumn("profile", "name"),
    TableColumn("servers"),
    TableColumn("tools"),
    TableColumn("rules"),
)
GRANT_COLUMNS = (
    TableColumn("grant", "wide"),
    TableColumn("for"),
    TableColumn("scope"),
    TableColumn("given", "at"),
    TableColumn("by"),
    TableColumn("until", "at"),
    TableColumn("uses", "number"),
    TableColumn("do", "do"),
)
ACCOUNT_COLUMNS = (
    TableColumn("server", "name"),
    TableColumn("for"),
    TableColumn("kind"),
    TableColumn("state"),
    TableColumn("since", "at"),
    TableColumn("until", "at"),
    TableColumn("do", "do"),
)
RUN_COLUMNS = (
    TableColumn("run", "name"),
    TableColumn("for"),
    TableColumn("calls", "number"),
    TableColumn("labels"),
    TableColumn("do", "do"),
)
NARROWER_ENDS = {
    "hour": ("for an hour", 3_600.0),
    "day": ("for a day", 86_400.0),
}  # seconds from now
ONE_USE, SESSION = "once", "session"
OUTLIVING_SCOPES = frozenset({"until", "tool_always"})  # of grants that outlive the host
OWN_PAGES = (("grants", "Grants"), ("accounts", "Accounts"))
ALL_PAGES = (("", "Principals"), ("policy", "Policy"), *OWN_PAGES)


def draw_tabs(request: ConsoleRequest, here: str) -> Markup:
    """The pages of access; those of an operator for operators only."""
    pages = ALL_PAGES if request.visitor.operator else OWN_PAGES
    links = []
    for page, name in pages:
        current = {"aria-current": "page"} if page == here else {}
        path = request.link("access", *([page] if page else []))
        links.append(element("a", {"href": path, **current}, name))
    return element("nav", {"class": "tabs", "aria-label": "Access"}, *links)


# Principals


async def show_principals(request: ConsoleRequest) -> ConsoleReply:
    """Who is connected and who was; profiles; runs that are under way."""
    if not request.visitor.operator:
        return PageRedirect(request.link("access", "grants"))
    view = request.view
    body = element(
        "div",
        {},
        draw_tabs(request, ""),
        draw_section(
            "Principals", draw_principals(request, await view.principals()), key="principals"
        ),
        draw_section("Active runs", draw_runs(request, await view.runs()), key="runs"),
        draw_section("Profiles", draw_profiles(await view.profiles()), key="profiles"),
    )
    return PageReply(title="Access", body=body, section="access")


def draw_principals(request: ConsoleRequest, principals: Sequence[PrincipalLine]) -> Markup:
    """The principals, those that were last seen first."""
    return draw_table(
        "Principals",
        PRINCIPAL_COLUMNS,
        [
            [
                one.principal,
                element("div", {}, *(element("div", {}, name) for name in one.clients)),
                str(one.sessions or ""),
                str(one.in_flight or ""),
                f"{one.calls:,}",
                draw_time(one.last),
                element(
                    "div",
                    {"class": "links"},
                    draw_link(request.link("traffic", principal=one.principal), "calls"),
                    draw_link(request.link("access", "grants", principal=one.principal), "grants"),
                    draw_link(
                        request.link("access", "accounts", principal=one.principal), "accounts"
                    ),
                ),
            ]
            for one in principals
        ],
        empty="No principal has made a call yet.",
    )


def draw_profiles(profiles: Sequence[ProfileLine]) -> Markup:
    """The profiles of the gateway."""
    return draw_table(
        "Profiles",
        PROFILE_COLUMNS,
        [
            [
                one.name,
                ", ".join(one.servers),
                ", ".join(one.tools),
                f"{one.rules} {one.policy}".strip() if one.rules else "",
            ]
            for one in profiles
        ],
        empty="There are no profiles: every client sees what the policy allows.",
    )


def draw_runs(request: ConsoleRequest, runs: Sequence[RunLine]) -> Markup:
    """The runs that are under way, each with the button that stops it."""
    return draw_table(
        "Runs",
        RUN_COLUMNS,
        [
            [
                draw_code(one.run),
                one.principal,
                f"{one.calls:,}",
                ", ".join(one.labels),
                _draw_button(
                    request, request.link("access", "runs", one.run), "stop", f"Stop run {one.run}"
                ),
            ]
            for one in runs
        ],
        empty="No run is active.",
    )


async def stop_run(request: ConsoleRequest) -> ConsoleReply:
    """Stop everything of a run."""
    if not await request.view.stop_run(
        request.parameters["run"], by=name_actor(request.visitor.name)
    ):
        return make_missing("There is no such active run.")
    return PageRedirect(request.link("access"))


def _draw_button(
    request: ConsoleRequest, path: str, what: str, label: str, look: str = "small"
) -> Markup:
    button = element(
        "button",
        {"type": "submit", "name": "what", "value": what, "class": look, "aria-label": label},
        what,
    )
    return request.make_form(path, button, attributes=INLINE)


# Grants


def choose_principal(request: ConsoleRequest) -> str:
    """The principal whose lines are shown: for an operator the chosen one or all, else one's own."""
    if request.visitor.operator:
        return request.fields.get("principal", "")
    return request.visitor.principal


async def show_grants(request: ConsoleRequest) -> PageReply:
    """Every yes that lasts."""
    principal = choose_principal(request)
    grants = [
        one for one in await request.view.grants() if not principal or one.principal == principal
    ]
    said = NOTHING
    if principal and request.visitor.operator:
        said = element(
            "p",
            {"class": "note"},
            f"Grants of {principal}. ",
            draw_link(request.link("access", "grants"), "All"),
        )
    lasting = [one for one in grants if not one.ended]
    over = [one for one in grants if one.ended]
    body = element(
        "div",
        {},
        draw_tabs(request, "grants"),
        said,
        draw_section("Grants", draw_grants(request, lasting)),
        draw_section("Ended", draw_grants(request, over[:100])) if over else NOTHING,
    )
    return PageReply(title="Grants", body=body, section="access")


def draw_grants(request: ConsoleRequest, grants: Sequence[GrantLine]) -> Markup:
    """Grants, the newest first."""
    return draw_table(
        "Grants",
        GRANT_COLUMNS,
        [_list_grant_cells(request, one) for one in grants],
        empty="There are no grants: nothing was allowed for longer than once.",
    )


def _list_grant_cells(request: ConsoleRequest, one: GrantLine) -> list[Markup | str]:
    do = element("span", {"class": "beside"}, one.ended)
    if not one.ended:
        path = request.link("access", "grants", one.id)
        do = element(
            "div",
            {"class": "buttons"},
            _draw_button(request, path, "revoke", f"Revoke: {one.text}"),
            *_draw_narrower(request, path, one),
        )
    return [
        element(
            "div",
            {},
            one.text or one.object,
            element("div", {"class": "beside"}, f"{one.action} {one.server}: {one.object}"),
        ),
        one.principal,
        one.scope,
        draw_time(one.created),
        element("div", {}, one.by, element("div", {"class": "beside"}, one.assurance)),
        draw_time(one.until),
        "" if one.uses is None else str(one.uses),
        do,
    ]


def _list_narrowings(one: GrantLine, now: float) -> list[tuple[str, str]]:
    """The ways in which a grant may be narrowed, with their names."""
    found = [
        (key, name)
        for key, (name, seconds) in NARROWER_ENDS.items()
        if one.until is None or now + seconds < one.until
    ]
    if one.uses is None or one.uses > 1:
        found.append((ONE_USE, "one more use"))
    if one.scope in OUTLIVING_SCOPES:
        found.append((SESSION, "until the host ends"))
    return found


def _draw_narrower(request: ConsoleRequest, path: str, one: GrantLine) -> list[Markup]:
    """The form that narrows a grant, where it can be."""
    ways = _list_narrowings(one, request.now())
    if not ways:
        return []
    choice = element(
        "select",
        {"name": "narrower", "aria-label": f"Narrow to: {one.text}"},
        *(element("option", {"value": key}, name) for key, name in ways),
    )
    button = element(
        "button",
        {
            "type": "submit", "name": "what", "value": "narrow", "class": "small",
            "aria-label": f"Narrow: {one.text}",
        },
        "narrow to",
    )  # fmt: skip
    return [request.make_form(path, button, choice, attributes=INLINE)]


async def change_grant(request: ConsoleRequest) -> ConsoleReply:
    """Revoke or narrow a grant; one's own, where the visitor is no operator."""
    id, visitor = request.parameters["grant"], request.visitor
    found = next((one for one in await request.view.grants() if one.id == id), None)
    own = found is not None and (visitor.operator or found.principal == visitor.principal)
    if not own or not await _change_grant(request, id, name_actor(visitor.name)):
        return make_missing("This grant no longer exists.")
    return PageRedirect(request.link("access", "grants"))


async def _change_grant(request: ConsoleRequest, id: str, by: str) -> bool:
    if request.fields.get("what") != "narrow":
        return await request.view.revoke(id, by=by)
    way = request.fields.get("narrower", "")
    if way in NARROWER_ENDS:
        until = request.now() + NARROWER_ENDS[way][1]
        return await request.view.narrow_grant(id, until=until, by=by)
    if way == ONE_USE:
        return await request.view.narrow_grant(id, uses=1, by=by)
    if way == SESSION:
        return await request.view.narrow_grant(id, scope="session", by=by)
    raise RequestRefused("Choose one of the actions on this page.")


# Accounts


async def show_accounts(request: ConsoleRequest) -> PageReply:
    """Accounts at the servers behind, and their states."""
    principal, own = choose_principal(request), request.visitor.principal
    accounts = list(await request.view.accounts(principal))
    if not principal and all(one.principal != own for one in accounts):
        # those of all are of who has called; an operator connects his own before that
        accounts += await request.view.accounts(own)
    body = element(
        "div",
        {},
        draw_tabs(request, "accounts"),
        draw_section(
            "Accounts",
            draw_accounts(request, accounts),
            note="The logins of each user at the servers. Tokens are stored encrypted, and no page shows them.",
        ),
    )
    return PageReply(title="Accounts", body=body, section="access")


def draw_accounts(request: ConsoleRequest, accounts: Sequence[AccountLine]) -> Markup:
    """Accounts, each with what can be done about it."""
    return draw_table(
        "Accounts",
        ACCOUNT_COLUMNS,
        [_list_account_cells(request, one) for one in accounts],
        empty="No server here needs an account of yours.",
    )


def _list_account_cells(request: ConsoleRequest, one: AccountLine) -> list[Markup | str]:
    path = request.link("access", "accounts", one.server)
    hidden = element("input", {"type": "hidden", "name": "principal", "value": one.principal})
    buttons = []
    if one.by_person and one.principal == request.visitor.principal:
        word = "connect" if one.state == "none" else "connect again"
        button = element(
            "button", {"type": "submit", "name": "what", "value": "connect", "class": "small"}, word
        )
        buttons.append(request.make_form(path, button, attributes=INLINE))
    if one.state != "none":
        button = element(
            "button",
            {"type": "submit", "name": "what", "value": "forget", "class": "small"},
            "forget",
        )
        buttons.append(request.make_form(path, hidden, button, attributes=INLINE))
    return [
        one.server,
        one.principal,
        one.kind,
        draw_badge("not connected" if one.state == "none" else one.state),
        draw_time(one.since),
        draw_time(one.until),
        element("div", {"class": "buttons"}, *buttons),
    ]


async def change_account(request: ConsoleRequest) -> ConsoleReply:
    """Connect an account of one's own, or forget one."""
    server, what = request.parameters["server"], request.fields.get("what", "")
    own = request.visitor.principal
    principal = request.fields.get("principal", own) if request.visitor.operator else own
    if what == "connect":
        try:
            url = await request.view.connect_account(
                server, own, by=name_actor(request.visitor.name)
            )
        except IsthmusError as error:
            return PageReply(
                title="Not connected",
                body=draw_notice(str(error), "bad"),
                status=409,
                section="access",
            )
        go = draw_link(url, f"Continue to the login of {server}")
        return PageReply(title="Connect an account", body=element("p", {}, go), section="access")
    if what == "forget" and await request.view.forget_account(
        server, principal, by=name_actor(request.visitor.name)
    ):
        return PageRedirect(request.link("access", "accounts"))
    return make_missing("There is no such account.")
