"""Traffic page: plots of the last hour, and calls as they happen, with filters."""

from collections.abc import Sequence

from isthmus.cards.markup import Markup, element
from isthmus.console.drawing.page_parts import (
    NOTHING,
    TableColumn,
    draw_badge,
    draw_choice,
    draw_code,
    draw_field,
    draw_link,
    draw_search,
    draw_table,
    draw_time,
)
from isthmus.console.drawing.plots import format_seconds
from isthmus.console.drawing.traffic_figures import draw_figures
from isthmus.console.requests import ConsoleRequest, PageReply
from isthmus.host.model.view import CallRecord, TrafficQuery

PAGE_CALLS = 100
PLOT_MINUTES = 60
FILTERS = ("server", "principal", "outcome", "text")
OUTCOMES = ("running", "ok", "failed", "denied", "cancelled")
MAX_FILTER_CHARS = 200
CALL_COLUMNS = (
    TableColumn("time", "at"),
    TableColumn("outcome"),
    TableColumn("server"),
    TableColumn("what", "name"),
    TableColumn("for", "who"),
    TableColumn("rule"),
    TableColumn("era", "era"),
    TableColumn("took", "number"),
)


async def show_traffic(request: ConsoleRequest) -> PageReply:
    """The calls of the host, newest first."""
    query = read_query(request)
    calls = await request.view.traffic(query)
    plots = NOTHING
    if request.visitor.operator and not query.before:
        plots = draw_figures(await request.view.figures(PLOT_MINUTES))
    body = element(
        "div",
        {},
        plots,
        draw_filters(request, query),
        draw_calls(request, query, calls),
    )
    return PageReply(title="Traffic", body=body, section="traffic", live=("traffic",))


def read_query(request: ConsoleRequest) -> TrafficQuery:
    """The filters of a request."""
    given = {key: request.fields.get(key, "").strip()[:MAX_FILTER_CHARS] for key in FILTERS}
    if given["outcome"] not in OUTCOMES:
        given["outcome"] = ""
    if not request.visitor.operator:
        given["principal"] = request.visitor.principal
    before = request.fields.get("before", "")[:MAX_FILTER_CHARS]
    return TrafficQuery(**given, before=before, count=PAGE_CALLS)


def draw_filters(request: ConsoleRequest, query: TrafficQuery) -> Markup:
    """The form that narrows the list."""
    servers = [("", "all servers"), *((one.name, one.name) for one in request.view.servers())]
    outcomes = [("", "all outcomes"), *((one, one) for one in OUTCOMES)]
    operator = request.visitor.operator
    server = (  # which servers there are is no business of everybody's
        draw_choice("server", "Server", servers, query.server)
        if operator
        else draw_field("server", "Server", query.server)
    )
    fields = [
        server,
        draw_choice("outcome", "Outcome", outcomes, query.outcome),
        draw_field("text", "Text", query.text, kind="search"),
    ]
    if operator:
        fields.insert(1, draw_field("principal", "Principal", query.principal))
    return draw_search(request.link("traffic"), *fields, label="Filter of calls")


def draw_calls(request: ConsoleRequest, query: TrafficQuery, calls: Sequence[CallRecord]) -> Markup:
    """The table of calls, and the way to older ones."""
    table = draw_table(
        "Calls, newest first",
        CALL_COLUMNS,
        [_list_cells(request, one) for one in calls],
        empty="No calls yet. Calls are recorded while somebody watches.",
    )
    older = NOTHING
    if len(calls) == query.count:
        asked = {key: getattr(query, key) for key in FILTERS if getattr(query, key)}
        link = request.link("traffic", **asked, before=calls[-1].id)
        older = element(
            "nav", {"class": "pager", "aria-label": "Older calls"}, draw_link(link, "Older calls")
        )
    return element("div", {}, table, older)


def _list_cells(request: ConsoleRequest, one: CallRecord) -> list[Markup | str]:
    what = [draw_link(request.link("traffic", one.id), one.object or one.action)]
    if one.object and one.action != "tool.call":
        what.append(element("span", {"class": "beside"}, f" {one.action}"))
    if one.error:
        what.append(element("div", {"class": "why"}, one.error.partition("\n")[0]))
    who = [one.principal]
    asker = one.client or one.asker
    if asker:
        who.append(element("div", {"class": "beside"}, asker))
    return [
        draw_time(one.at),
        draw_badge(one.outcome),
        one.server,
        element("div", {}, *what),
        element("div", {}, *who),
        element(
            "div", {}, draw_badge(one.effect) if one.effect else NOTHING, " ", draw_code(one.rule)
        ),
        one.revision,
        format_seconds(one.seconds) if one.seconds is not None else "",
    ]
