"""The page of the plugin is a test file, and passes."""

import asyncio

from isthmus import Server
from isthmus.testing import Cassette, connect
from support.docs.blocks import ROOT, list_blocks

pytest_plugins = ["pytester"]

PAGE = ROOT / "docs" / "guide" / "pytest-plugin.md"


async def record_weather(path):
    """The recording that the page speaks of, made from a server of ours."""
    server = Server("weather", version="1")

    @server.tool
    def forecast(town: str) -> str:
        """Say what the weather will be."""
        return f"rain in {town}"

    with Cassette(path) as cassette:
        async with connect(cassette.target(server)) as client:
            await client.call_tool("forecast", {"town": "Ulm"})


async def make_recording(tmp_path):
    """The text of that recording."""
    await record_weather(tmp_path / "weather.wire")
    return (tmp_path / "weather.wire").read_text()


def test_the_tests_of_the_page_pass(run, pytester, tmp_path):
    """Ours: code that no test ran is not shown."""
    text = asyncio.run(make_recording(tmp_path))
    (pytester.mkdir("__mcp__") / "test_shop.test_weather.wire").write_text(text)
    blocks = [block.code for block in list_blocks(PAGE, "python")]
    result = run("\n".join(blocks))

    result.assert_outcomes(passed=sum(code.count("async def test_") for code in blocks) + 3)
