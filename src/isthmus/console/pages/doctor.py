"""Doctor pages: the way to each server step by step, the first that fails, and running it again."""

import asyncio
import shlex
import shutil
import time
from collections.abc import Sequence

from msgspec import Struct

from isthmus.cards.markup import Markup, element
from isthmus.console.drawing.page_parts import (
    INLINE,
    NOTHING,
    TableColumn,
    draw_badge,
    draw_code,
    draw_command,
    draw_empty,
    draw_facts,
    draw_link,
    draw_notice,
    draw_section,
    draw_table,
    draw_time,
)
from isthmus.console.drawing.plots import format_seconds
from isthmus.console.pages.servers import find_server, make_missing
from isthmus.console.requests import ConsoleReply, ConsoleRequest, PageRedirect, PageReply
from isthmus.host.model.view import ServerAddress, ServerStatus
from isthmus.linter.doctor.reach import ReachStep, find_first_failure, walk_to_server

MAX_EXAMINATIONS = 200
MAX_AT_ONCE = 4
FORM_WAIT_S = 8.0  # until the page comes, whatever goes on
FAILED_STATES = frozenset({"failed", "backoff", "broken", "quarantined", "needs_auth"})
LIST_COLUMNS = (
    TableColumn("server", "name"),
    TableColumn("state"),
    TableColumn("where", "where"),
    TableColumn("first failing step", "wide"),
    TableColumn("examined", "at"),
    TableColumn("do", "do"),
)


class Examination(Struct):
    """What was found on the way to one server.

    Attributes:
        begun: when, in seconds since the epoch.
        running: whether it goes on.
        steps: what was found so far.
    """

    begun: float
    running: bool = True
    steps: list[ReachStep] = []


class Examinations:
    """What was found last about each server, and the examinations that go on."""

    def __init__(self) -> None:
        self._found: dict[str, Examination] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._places = asyncio.Semaphore(MAX_AT_ONCE)

    def find(self, server: str) -> Examination | None:
        """What was found about a server; None where nobody has looked."""
        return self._found.get(server)

    def begin(self, status: ServerStatus, address: ServerAddress) -> None:
        """Examine a server, where it is not being examined."""
        name = status.name
        if name in self._tasks:
            return
        made = self._found[name] = Examination(begun=time.time())
        while len(self._found) > MAX_EXAMINATIONS:
            del self._found[next(iter(self._found))]
        task = asyncio.get_running_loop().create_task(self._examine(made, status, address))
        self._tasks[name] = task
        task.add_done_callback(lambda _: self._tasks.pop(name, None))

    async def wait(self) -> None:
        """Wait until all have ended, or for a while."""
        if self._tasks:
            await asyncio.wait(list(self._tasks.values()), timeout=FORM_WAIT_S)

    async def close(self) -> None:
        """End the examinations that go on."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _examine(
        self, made: Examination, status: ServerStatus, address: ServerAddress
    ) -> None:
        try:
            async with self._places:
                if address.url.startswith(("http://", "https://")):
                    made.steps = await walk_to_server(address.url)
                else:
                    made.steps = list_local_steps(status, address.argv)
        finally:
            made.running = False


async def show_doctor(request: ConsoleRequest) -> PageReply:
    """Every server, and the first step that fails."""
    button = element("button", {"type": "submit", "class": "main"}, "Examine all")
    table = draw_table(
        "Servers and their first failing step",
        LIST_COLUMNS,
        [_list_cells(request, one) for one in request.view.servers()],
        empty="There are no servers.",
    )
    form = request.make_form(request.link("doctor"), button, attributes=INLINE)
    body = element("div", {}, element("p", {}, form), table)
    return PageReply(title="Doctor", body=body, section="doctor", live=("servers",))


def _list_cells(request: ConsoleRequest, one: ServerStatus) -> list[Markup | str]:
    found = request.find_state(Examinations).find(one.name)
    button = element(
        "button",
        {"type": "submit", "class": "small", "aria-label": f"Examine {one.name}"},
        "examine",
    )
    return [
        draw_link(request.link("doctor", one.name), one.name),
        draw_badge(one.state),
        draw_code(one.where),
        _draw_first_failure(one, found),
        draw_time(found.begun) if found else "",
        request.make_form(request.link("doctor", one.name), button, attributes=INLINE),
    ]


async def show_examination(request: ConsoleRequest) -> PageReply:
    """The steps on the way to one server."""
    name = request.parameters["name"]
    status = find_server(request, name)
    if status is None:
        return make_missing(f"There is no server {name!r}.")
    found = request.find_state(Examinations).find(name)
    address = await request.view.server_address(name)
    body = draw_examination(request, status, address, found)
    return PageReply(title=f"Doctor: {name}", body=body, section="doctor")


async def examine_servers(request: ConsoleRequest) -> ConsoleReply:
    """Examine one server, or all; the answer comes when that is done, or after a while."""
    name = request.parameters.get("name", "")
    wanted = [one for one in request.view.servers() if name in {"", one.name}]
    if name and not wanted:
        return make_missing(f"There is no server {name!r}.")
    examinations = request.find_state(Examinations)
    for status in wanted:
        examinations.begin(status, await request.view.server_address(status.name))
    await examinations.wait()
    return PageRedirect(request.link("doctor", *([name] if name else [])))


def list_local_steps(status: ServerStatus, argv: Sequence[str]) -> list[ReachStep]:
    """The steps to a program on this machine, as its host has seen them.

    It is not started once more: its host starts it with its own variables, and within its sandbox.
    """
    if not argv:
        found = (f"it is in the host's process and is {status.state}",)
        return [ReachStep(name="program", found=found), _judge_opening(status)]
    path = shutil.which(argv[0])
    if path is None:
        program = ReachStep(
            name="program",
            verdict="problem",
            faults=(f"there is no program {argv[0]} on this machine's path",),
            mend=("install it, or write its whole path",),
        )
        if status.state not in {"ready", "degraded", "draining"}:
            return [program]
        program = ReachStep(name="program", found=(f"{argv[0]} (found by the host only)",))
    else:
        program = ReachStep(name="program", found=(path,))
    process = ReachStep(name="process", found=(f"process {status.pid}",))
    if status.pid is None:
        process = ReachStep(
            name="process",
            verdict="problem" if status.state in FAILED_STATES else "skipped",
            found=(f"it is {status.state}",),
            faults=(status.error,) if status.error else (),
            mend=("look at what it wrote to standard error, and start it again",)
            if status.error
            else (),
        )
    return [program, process, _judge_opening(status)]


def _judge_opening(status: ServerStatus) -> ReachStep:
    if status.revision:
        said = status.said or "a server without a name"
        return ReachStep(name="era", found=(f"{said} speaks {status.revision}",))
    if status.state in FAILED_STATES:
        return ReachStep(
            name="era", verdict="problem", faults=(status.error or f"it is {status.state}",)
        )
    return ReachStep(name="era", verdict="skipped", found=(f"it is {status.state}",))


def _draw_first_failure(status: ServerStatus, found: Examination | None) -> Markup:
    if found is None:
        return element(
            "span", {"class": "beside"}, status.error.partition("\n")[0] or "not examined yet"
        )
    if found.running:
        return draw_badge("running")
    failure = find_first_failure(found.steps)
    if failure is None:
        return draw_badge("ok")
    why = failure.faults[0] if failure.faults else ""
    return element("span", {}, draw_badge(failure.name, "bad"), " ", why)


def draw_examination(
    request: ConsoleRequest,
    status: ServerStatus,
    address: ServerAddress,
    found: Examination | None,
) -> Markup:
    """The steps to one server, with the first that fails above them."""
    where = address.url or " ".join(address.argv)
    again = "Run again" if found else "Examine it"
    button = element("button", {"type": "submit", "class": "main"}, again)
    form = request.make_form(request.link("doctor", status.name), button, attributes=INLINE)
    facts = draw_facts(
        [
            ("server", draw_link(request.link("servers", status.name), status.name)),
            ("state", draw_badge(status.state)),
            ("address", draw_code(where)),
            ("transport", address.transport),
            ("host speaks", status.revision),
            ("examined", draw_time(found.begun) if found else ""),
        ]
    )
    return element(
        "div",
        {},
        facts,
        form,
        _draw_verdict(request, status.name, found),
        _draw_steps(found),
        _draw_more(status, address),
    )


def _draw_verdict(request: ConsoleRequest, name: str, found: Examination | None) -> Markup:
    if found is None or found.running:
        if found is None:
            return NOTHING
        again = draw_link(request.link("doctor", name), "Look again")
        return element(
            "p", {"class": "notice", "role": "status"}, "The examination is running. ", again
        )
    failure = find_first_failure(found.steps)
    if failure is None:
        return draw_notice("Every step works.", "good")
    return draw_notice(
        f"The first step that fails is “{failure.name}”: {failure.faults[0] if failure.faults else ''}",
        "bad",
    )


def _draw_steps(found: Examination | None) -> Markup:
    if found is None or not found.steps:
        return NOTHING if found else draw_empty("The server was not examined yet.")
    return element("ol", {"class": "steps"}, *map(_draw_step, found.steps))


def _draw_step(step: ReachStep) -> Markup:
    parts = [element("p", {"class": "found"}, one) for one in step.found]
    parts += [element("p", {"class": "fault"}, one) for one in step.faults]
    parts += [element("p", {"class": "mend"}, f"To fix it: {one}") for one in step.mend]
    return element(
        "li",
        {"class": f"reach reach-{step.verdict}"},
        element(
            "div",
            {"class": "reach-head"},
            draw_badge(step.verdict),
            element("h3", {}, step.name),
            element(
                "span", {"class": "beside"}, format_seconds(step.seconds) if step.seconds else ""
            ),
        ),
        element("div", {}, *parts),
    )


def _draw_more(status: ServerStatus, address: ServerAddress) -> Markup:
    """The command that holds a server against every clause of the specification."""
    line = shlex.join(["isthmus", "check", address.url or status.name])
    note = "Run this in a terminal, beside the mcp.json. It checks every clause of the specification, in every revision."
    return draw_section("More", draw_command("command", line), note=note)
