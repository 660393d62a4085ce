"""Mounted servers as their clients see them, over every transport and revision."""

import msgspec

from isthmus import Accepted, Context, Server
from isthmus.client.subscriptions import Change
from isthmus.revisions import BY_NAME, Feature
from isthmus.testing import every_revision, every_transport
from isthmus.types import EmbeddedResource, PromptReference, ResourceTemplateReference

pytestmark = [every_transport(), every_revision()]


class Yes(msgspec.Struct):
    """A form of one blank."""

    sure: bool


def weather():
    """The innermost server: something of each kind."""
    server = Server("weather", version="1")

    @server.tool
    async def forecast(city: str, ctx: Context) -> str:
        """Ask, tell how far it is, and answer."""
        if ctx.capabilities.elicitation:
            answer = await ctx.elicit("Sure?", Yes)
            city += f" {answer.value.sure}"
        await ctx.progress(1, total=2)
        return city

    @server.tool
    def chart() -> EmbeddedResource:
        """A resource in a result."""
        from isthmus.types import TextResourceContents

        return EmbeddedResource(resource=TextResourceContents(uri="charts://today", text="|||"))

    @server.tool
    def stir() -> str:
        """Change a resource and the list of tools."""
        server.notify_resource_updated("charts://today")
        server.add_tool(lambda: "hail", name="hail", description="Hail.")
        return "stirred"

    @server.resource("charts://today")
    def today() -> str:
        """A resource."""
        return "|||"

    @server.resource("charts://{day}/hourly")
    def hourly(day: str) -> str:
        """A template."""
        return f"{day} by the hour"

    @server.prompt
    def explain(city: str) -> str:
        """A prompt."""
        return f"Explain the weather of {city}."

    server.completes("explain", "city")(lambda: ["Oslo", "Rome"])
    server.completes("charts://{day}/hourly", "day")(lambda: ["monday", "sunday"])
    return server


def make_nested():
    """Weather in regional in world."""
    regional, world = Server("regional", version="1"), Server("world", version="1")
    regional.mount(weather(), "weather")
    world.mount(regional, "eu")
    return world


async def test_everything_of_a_mounted_server_is_there_by_its_new_name(joined, revision):
    """Ours: what is listed can be used, and questions and progress pass through."""
    heard = []
    asks = {"elicit": lambda asked: Accepted(Yes(True))}
    can_ask = BY_NAME[revision].has(Feature.ELICITATION_FORM)
    async with joined(make_nested(), **(asks if can_ask else {})) as client:
        tools = [one.name for one in await client.list_tools()]
        resources = [one.uri for one in await client.list_resources()]
        templates = [one.uri_template for one in await client.list_resource_templates()]
        prompts = [one.name for one in await client.list_prompts()]
        forecast = await client.call_tool(
            "eu_weather_forecast", {"city": "Oslo"}, on_progress=heard.append
        )
        chart = await client.call_tool("eu_weather_chart")
        read = await client.read_resource("charts://eu/weather/monday/hourly")
        prompt = await client.get_prompt(prompts[0], {"city": "Rome"})
        completed = await client.complete(PromptReference(name=prompts[0]), "city", "Os")
        days = await client.complete(ResourceTemplateReference(uri=templates[0]), "day", "sun")

    assert ["eu_weather_forecast", "eu_weather_chart", "eu_weather_stir"] == tools
    assert ["charts://eu/weather/today"] == resources
    assert ["charts://eu/weather/{day}/hourly"] == templates
    assert ["eu_weather_explain"] == prompts
    assert ("Oslo True" if can_ask else "Oslo") == forecast.text
    assert 1 == heard[-1].progress
    assert "charts://eu/weather/today" == chart.content[0].resource.uri
    assert "charts://eu/weather/monday/hourly" == read.contents[0].uri
    assert "monday by the hour" == read.contents[0].text
    assert "Explain the weather of Rome." == prompt.messages[0].content.text
    assert ["Oslo"] == completed.values
    assert ["sunday"] == days.values


async def test_changes_of_a_mounted_server_are_heard_outside(joined):
    """Ours: the mount is live: what is added inside is told and listed outside."""
    async with (
        joined(make_nested()) as client,
        client.listen(tools=True, uris=["charts://eu/weather/today"]) as changes,
    ):
        await client.call_tool("eu_weather_stir")
        heard = {await anext(aiter(changes)), await anext(aiter(changes))}
        tools = [one.name for one in await client.list_tools()]
        hail = await client.call_tool("eu_weather_hail")

    assert {Change("tools"), Change("resource", "charts://eu/weather/today")} == heard
    assert "eu_weather_hail" == tools[-1]
    assert "hail" == hail.text
