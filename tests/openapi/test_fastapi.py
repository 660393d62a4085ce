"""FastAPI applications as servers: in process, with all that the application does."""

import asyncio
import base64
import contextvars
import warnings
from contextlib import asynccontextmanager
from typing import Annotated

import pytest
from fastapi import (
    APIRouter,
    BackgroundTasks,
    Cookie,
    Depends,
    FastAPI,
    Form,
    Header,
    HTTPException,
    UploadFile,
    WebSocket,
)
from fastapi.responses import StreamingResponse
from fastapi.security import HTTPBearer
from pydantic import BaseModel
from starlette.routing import WebSocketRoute

from isthmus import Client, Server
from isthmus.errors import UsageError


class Item(BaseModel):
    """A thing, with more of its kind."""

    name: str
    parts: "list[Item]" = []


def make_app(**options) -> FastAPI:
    """A small shop."""
    app = FastAPI(title="Shop", version="2.1", **options)

    @app.get("/items/{item_id}", tags=["items"])
    def read_item(item_id: int, wanted: bool = False) -> dict[str, int | bool]:
        """Read an item."""
        return {"id": item_id, "wanted": wanted}

    @app.post("/items", operation_id="makeItem", status_code=201)
    async def make_item(item: Item) -> Item:
        return item

    return app


async def list_names(client: Client) -> list[str]:
    return [tool.name for tool in await client.list_tools()]


async def test_operations_are_tools_by_the_names_of_their_functions():
    """An ``operation_id`` of the author's wins; what FastAPI makes up is never one."""
    server = Server.from_fastapi(make_app())

    async with Client(server) as client:
        assert ["read_item", "makeItem"] == await list_names(client)
        result = await client.call_tool("read_item", {"item_id": 3, "wanted": True})

    assert ("Shop", "2.1") == (server.info.name, server.info.version)
    assert {"id": 3, "wanted": True} == result.structured


async def test_a_model_that_holds_itself_is_an_argument():
    """Recursion in models: fastapi_mcp and others fail here."""
    item = {"name": "a", "parts": [{"name": "b", "parts": [{"name": "c", "parts": []}]}]}

    async with Client(Server.from_fastapi(make_app())) as client:
        result = await client.call_tool("makeItem", item)

    assert item == result.structured


async def test_a_name_of_two_functions_gets_the_method_beside_it():
    """In the order of the routes: what is added later never renames what was there."""
    app = make_app()

    @app.put("/items/{item_id}")
    def read_item(item_id: int) -> None: ...

    @app.api_route("/both", methods=["GET", "DELETE"], operation_id=None)
    def both() -> None: ...

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # FastAPI tells of ids that it made twice itself
        async with Client(Server.from_fastapi(app)) as client:
            names = await list_names(client)

    assert ["read_item", "makeItem", "read_item_put", "both_delete", "both_get"] == sorted(
        names, key=["read_item", "makeItem", "read_item_put", "both_delete", "both_get"].index
    )


async def test_routes_that_are_not_described_are_no_tools():
    """``include_in_schema=False``, pages and mounted applications stay out."""
    app = make_app()

    @app.get("/secret", include_in_schema=False)
    def secret() -> str:
        return "secret"

    app.mount("/inner", FastAPI())

    async with Client(Server.from_fastapi(app, exclude=["POST /*"])) as client:
        assert ["read_item"] == await list_names(client)


async def test_routes_that_come_late_are_seen():
    """The list follows the application, and a router that it includes."""
    app, router = make_app(), APIRouter(prefix="/late")
    app.include_router(router)
    async with Client(Server.from_fastapi(app)) as client:
        assert ["read_item", "makeItem"] == await list_names(client)

        @app.get("/more")
        def more() -> dict[str, int]:
            return {"more": 1}

        @router.get("/deep")
        def deep() -> dict[str, int]:
            return {"deep": 1}

        called = await client.call_tool("more", {})
        assert {"more": 1} == called.structured
        assert "more" in await list_names(client)
        if "deep" in await list_names(client):  # FastAPI 0.118 and before copy a router's routes
            assert {"deep": 1} == (await client.call_tool("deep", {})).structured


async def test_late_routes_are_found_by_searching():
    """Above the limit the search tools stay what they are, and find more."""
    app = make_app()
    async with Client(Server.from_fastapi(app, search=True)) as client:

        @app.get("/zebra")
        def find_zebra() -> dict[str, str]:
            return {"stripes": "many"}

        found = await client.call_tool("search_tools", {"query": "zebra"})
        called = await client.call_tool("call_tool", {"name": "find_zebra", "arguments": {}})

    assert "find_zebra" in found.text
    assert {"stripes": "many"} == called.structured


async def test_the_lifespan_of_the_application_is_around_that_of_the_server():
    """And its state is there for requests."""
    story = []

    @asynccontextmanager
    async def app_life(app):
        story.append("app up")
        yield {"db": "open"}
        story.append("app down")

    @asynccontextmanager
    async def life(server):
        story.append("server up")
        yield
        story.append("server down")

    server = Server.from_fastapi(make_app(lifespan=app_life), lifespan=life)
    async with Client(server) as client:
        await client.call_tool("read_item", {"item_id": 1})
    await server.close()

    assert ["app up", "server up", "server down", "app down"] == story


async def test_dependencies_and_middleware_of_the_application_apply():
    """A call is a request like any other."""
    app, story = make_app(), []

    async def open_session():
        story.append("open")
        yield "session"
        story.append("close")

    @app.middleware("http")
    async def note(request, call_next):
        story.append(request.url.path)
        return await call_next(request)

    @app.get("/with")
    async def use(session: Annotated[str, Depends(open_session)]) -> dict[str, str]:
        story.append("use")
        return {"session": session}

    async with Client(Server.from_fastapi(app)) as client:
        result = await client.call_tool("use", {})

    assert {"session": "session"} == result.structured
    assert ["/with", "open", "use", "close"] == story


async def test_authorization_of_the_application_applies():
    """Without a credential a call is refused with the application's words; with one it is not."""
    app, seen = make_app(), []
    bearer = HTTPBearer()

    @app.get("/me")
    def me(token: Annotated[object, Depends(bearer)]) -> dict[str, str]:
        seen.append(token.credentials)
        return {"user": "ada"}

    async with Client(Server.from_fastapi(app)) as client:
        refused = await client.call_tool("me", {})
    async with Client(
        Server.from_fastapi(app, credentials={"HTTPBearer": lambda ctx: "t0ken"})
    ) as client:
        granted = await client.call_tool("me", {})

    assert refused.is_error
    assert "Not authenticated" in refused.text
    assert {"user": "ada"} == granted.structured
    assert ["t0ken"] == seen


async def test_mistakes_of_a_caller_are_told_in_the_words_of_the_application():
    """422 of FastAPI's validation, and any ``HTTPException`` with 4xx."""
    app = make_app()

    @app.get("/odd/{n}")
    def odd(n: int) -> None:
        raise HTTPException(409, f"{n} is taken: try {n + 1}")

    @app.get("/short")
    def short(text: str, other: Annotated[str | None, Header()] = None) -> None:
        from fastapi.exceptions import RequestValidationError

        raise RequestValidationError([{"loc": ["query", "text"], "msg": "too odd", "type": "x"}])

    async with Client(Server.from_fastapi(app)) as client:
        taken = await client.call_tool("odd", {"n": 7})
        invalid = await client.call_tool("short", {"text": "?"})

    assert taken.is_error
    assert "7 is taken: try 8" in taken.text
    assert invalid.is_error
    assert "too odd" in invalid.text


@pytest.mark.parametrize("debug", [False, True])
async def test_faults_of_the_application_are_told_without_words(caplog, debug):
    """Not even where the application is in debug mode, whose page has the traceback."""
    app = make_app(debug=debug)

    @app.get("/boom")
    def boom() -> None:
        raise ValueError("the password is hunter2")

    async with Client(Server.from_fastapi(app)) as client:
        result = await client.call_tool("boom", {})

    assert result.is_error
    assert "hunter2" not in result.text
    assert "hunter2" in caplog.text


async def test_answers_that_differ_from_their_models_are_answers():
    """fastapi_mcp and others fail the call; ``strict`` does so here."""
    app = make_app()

    @app.get("/loose", responses={200: {"model": Item}})
    def loose() -> object:
        from fastapi.responses import JSONResponse

        return JSONResponse({"nom": "a"})

    async with Client(Server.from_fastapi(app)) as client:
        result = await client.call_tool("loose", {})
    async with Client(Server.from_fastapi(app, strict=True)) as client:
        strict = await client.call_tool("loose", {})

    assert {"nom": "a"} == result.structured
    assert strict.is_error


async def test_a_stream_is_read_to_its_end_and_bounded(caplog):
    """An answer in pieces is one result; one without an end is an error in words."""
    app = make_app()

    @app.get("/three")
    async def three() -> object:
        async def pieces():
            for piece in "abc":
                yield piece

        return StreamingResponse(pieces(), media_type="text/plain")

    @app.get("/endless")
    async def endless() -> object:
        async def pieces():
            while True:
                yield "x" * 1000

        return StreamingResponse(pieces(), media_type="text/plain")

    async with Client(Server.from_fastapi(app, max_bytes=20_000)) as client:
        whole = await client.call_tool("three", {})
        cut = await client.call_tool("endless", {})

    assert not caplog.records
    assert "abc" == whole.text
    assert cut.is_error
    assert "more than 20000 bytes" in cut.text


async def test_background_tasks_run_after_the_answer():
    """They are waited for when the server ends."""
    app, go, done = make_app(), asyncio.Event(), asyncio.Event()

    async def mail() -> None:
        await go.wait()
        done.set()

    @app.post("/mail")
    async def send_mail(tasks: BackgroundTasks) -> dict[str, bool]:
        tasks.add_task(mail)
        return {"sent": True}

    server = Server.from_fastapi(app)
    async with Client(server) as client:
        result = await client.call_tool("send_mail", {})
        assert {"sent": True} == result.structured
        assert not done.is_set()
        go.set()
    await server.close()
    assert done.is_set()


async def test_context_variables_reach_the_application():
    """What a middleware of the server sets is there in an endpoint."""
    tenant = contextvars.ContextVar("tenant", default="none")
    app = make_app()

    @app.get("/tenant")
    async def read_tenant() -> dict[str, str]:
        return {"tenant": tenant.get()}

    server = Server.from_fastapi(app)

    async def set_tenant(inbound, call_next):
        tenant.set("ada")
        return await call_next(inbound)

    server.use(set_tenant)
    async with Client(server) as client:
        result = await client.call_tool("read_tenant", {})

    assert {"tenant": "ada"} == result.structured


async def test_forms_and_uploads_arrive_as_the_application_declares_them():
    """What a browser would send: fields, lists of them, and files with any bytes in them."""
    app, picture = FastAPI(), bytes(range(256))

    @app.post("/orders")
    async def order(
        item: Annotated[str, Form()],
        pieces: Annotated[int, Form()] = 1,
        notes: Annotated[list[str], Form()] = [],  # noqa: B006 - FastAPI's own way
    ) -> dict[str, object]:
        return {"item": item, "pieces": pieces, "notes": notes}

    @app.post("/pictures")
    async def upload(title: Annotated[str, Form()], file: UploadFile) -> dict[str, object]:
        return {"title": title, "same": await file.read() == picture}

    ordered = {"item": "tea & milk=50%", "pieces": 3, "notes": ["warm", "grün\r\n--x"]}
    async with Client(Server.from_fastapi(app)) as client:
        taken = await client.call_tool("order", ordered)
        wrong = await client.call_tool("order", {"item": "tea", "pieces": "many"})
        file = base64.b64encode(picture).decode()
        uploaded = await client.call_tool("upload", {"title": "all bytes", "file": file})
        garbled = await client.call_tool("upload", {"title": "none", "file": "no base64!"})

    assert ordered == taken.structured
    assert wrong.is_error
    assert "pieces" in wrong.text
    assert {"title": "all bytes", "same": True} == uploaded.structured
    assert garbled.is_error
    assert "base64" in garbled.text


async def test_headers_that_are_passed_on_are_nobodys_arguments():
    """``pass_headers`` takes them out of what a model fills in."""
    app = make_app()

    @app.get("/who")
    def who(
        x_user: Annotated[str, Header()] = "nobody", lang: Annotated[str, Cookie()] = "en"
    ) -> dict[str, str]:
        return {"user": x_user, "lang": lang}

    async with Client(Server.from_fastapi(app, pass_headers=["X-User"])) as client:
        (tool,) = [tool for tool in await client.list_tools() if tool.name == "who"]
        forged = await client.call_tool("who", {"lang": "de"})

    assert ["lang"] == list(tool.input_schema["properties"])
    assert {"user": "nobody", "lang": "de"} == forged.structured


@pytest.mark.parametrize("value", ["tea house", lambda ctx: "tea house"])
async def test_a_header_that_the_option_sets_is_no_argument(value):
    """``headers`` names it: no model is asked for it, and none that gives it changes it."""
    app = make_app()

    @app.get("/shop")
    def read_shop(x_tenant: Annotated[str, Header()], lang: str = "en") -> dict[str, str]:
        return {"shop": x_tenant, "lang": lang}

    async with Client(Server.from_fastapi(app, headers={"X-Tenant": value})) as client:
        (tool,) = [tool for tool in await client.list_tools() if tool.name == "read_shop"]
        asked = await client.call_tool("read_shop", {"lang": "de"})

    assert ["lang"] == list(tool.input_schema["properties"])
    assert "required" not in tool.input_schema
    assert {"shop": "tea house", "lang": "de"} == asked.structured


@pytest.mark.parametrize("item", ["me", "1/delete", "..", "%2e%2e/secret", "a%2Fdelete"])
async def test_an_argument_never_leads_to_another_route(item):
    """``/users/{user}`` with ``me`` in it would be ``/users/me``: no tool that was left out is reached."""
    app, story = FastAPI(), []

    @app.get("/users/me")
    def read_me() -> None:
        story.append("me")

    @app.get("/users/{user}/delete", include_in_schema=False)
    def delete(user: str) -> None:
        story.append("delete")

    @app.get("/users/{user}")
    def read_user(user: str) -> dict[str, str]:
        story.append(user)
        return {"user": user}

    async with Client(Server.from_fastapi(app, exclude=["read_me"])) as client:
        result = await client.call_tool("read_user", {"user": item})
        plain = await client.call_tool("read_user", {"user": "ada"})

    assert result.is_error or {"user": item} == result.structured
    assert {"user": "ada"} == plain.structured
    assert {"me", "delete"}.isdisjoint(story)


async def test_a_root_path_in_an_argument_leads_to_no_other_route():
    """An application takes its ``root_path`` away before it matches: ``/api/admin`` is ``/admin``."""
    app, story = FastAPI(), []
    app.root_path = "/api"

    @app.get("/admin", include_in_schema=False)
    def admin() -> None:
        story.append("admin")

    @app.get("/{tenant}/{item}")
    def read_item(tenant: str, item: str) -> dict[str, str]:
        return {"item": f"{tenant}/{item}"}

    async with Client(Server.from_fastapi(app)) as client:
        result = await client.call_tool("read_item", {"tenant": "api", "item": "admin"})
        plain = await client.call_tool("read_item", {"tenant": "a", "item": "admin"})

    assert result.is_error
    assert [] == story
    assert {"item": "a/admin"} == plain.structured


@pytest.mark.parametrize("kind", ["fastapi", "starlette"])
async def test_a_websocket_beside_an_operation_is_not_in_its_way(kind):
    """Both at one path: a request of HTTP is never for the WebSocket."""
    app = FastAPI()

    async def talk(websocket: WebSocket) -> None:
        await websocket.close()

    if kind == "fastapi":
        app.websocket("/chat")(talk)
    else:
        app.router.routes.append(WebSocketRoute("/chat", talk))

    @app.get("/chat")
    def read_chat() -> dict[str, int]:
        return {"messages": 3}

    async with Client(Server.from_fastapi(app)) as client:
        result = await client.call_tool("read_chat", {})

    assert {"messages": 3} == result.structured


async def test_a_path_parameter_of_many_parts_has_slashes():
    """``{name:path}`` takes them, and nothing else does."""
    app = FastAPI()

    @app.get("/files/{name:path}")
    def read_file(name: str) -> dict[str, str]:
        return {"name": name}

    async with Client(Server.from_fastapi(app)) as client:
        result = await client.call_tool("read_file", {"name": "a/b c/d.txt"})

    assert {"name": "a/b c/d.txt"} == result.structured


async def test_a_server_of_an_application_can_stand_in_it():
    """Mounted into the application whose tools it offers: one lifespan, and no circle."""
    starts = []

    @asynccontextmanager
    async def app_life(app):
        starts.append("up")
        yield
        starts.append("down")

    app = make_app(lifespan=app_life)
    server = Server.from_fastapi(app)
    server.asgi().attach(app, "/mcp")
    async with app.router.lifespan_context(app), Client(server) as client:
        assert ["read_item", "makeItem"] == await list_names(client)
        result = await client.call_tool("read_item", {"item_id": 5})
        assert {"id": 5, "wanted": False} == result.structured
    await server.close()

    assert ["up", "down"] == starts


def test_what_is_no_fastapi_application_is_told_what_to_write():
    """Any ASGI application works with a document of its own."""

    async def app(scope, receive, send): ...

    with pytest.raises(UsageError, match="from_openapi"):
        Server.from_fastapi(app)
    with pytest.raises(UsageError, match="pass_headers"):
        Server.from_fastapi(make_app(), pass_headers=["host"])


async def test_any_application_with_a_document_is_a_server():
    """``Server.from_openapi(spec, app=app)``: Starlette, or whatever speaks ASGI."""
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    async def greet(request):
        return JSONResponse({"hello": request.path_params["name"], "host": request.url.hostname})

    name = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}
    spec = {
        "openapi": "3.1.0",
        "info": {"title": "greeter", "version": "1"},
        "servers": [{"url": "https://greeter.example/v1"}],
        "paths": {"/hello/{name}": {"get": {"operationId": "greet", "parameters": [name]}}},
    }
    app = Starlette(routes=[Route("/v1/hello/{name}", greet)])

    async with Client(Server.from_openapi(spec, app=app)) as client:
        result = await client.call_tool("greet", {"name": "ada lovelace"})
        slashed = await client.call_tool("greet", {"name": "a/b"})
    async with Client(
        Server.from_openapi(spec, app=app, base_url="http://me.example/v1")
    ) as client:
        named = await client.call_tool("greet", {"name": "ada"})

    assert {"hello": "ada lovelace", "host": "localhost"} == result.structured
    assert slashed.is_error
    assert "me.example" == named.structured["host"]
    with pytest.raises(UsageError, match="app="):
        Server.from_openapi(spec, pass_headers=["x-user"])
