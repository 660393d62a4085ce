"""Tour of fastmcp in one program: run under the library itself and under the façade, with the same answers."""

from pathlib import Path
from typing import Annotated, Literal

from fastmcp import Context, FastMCP
from fastmcp.dependencies import Depends
from fastmcp.exceptions import ToolError
from fastmcp.server.middleware import Middleware, MiddlewareContext
from fastmcp.server.providers import LocalProvider
from fastmcp.server.providers.skills import SkillsDirectoryProvider
from fastmcp.tools import Tool
from fastmcp.tools.tool_transform import ArgTransform
from fastmcp.utilities.types import Image
from pydantic import BaseModel, Field


class Counting(Middleware):
    """Counts calls of tools, and hides one of them."""

    calls = 0

    async def on_call_tool(self, context: MiddlewareContext, call_next):
        Counting.calls += 1
        return await call_next(context)

    async def on_list_tools(self, context: MiddlewareContext, call_next):
        return [tool for tool in await call_next(context) if tool.name != "hidden"]


mcp = FastMCP("tour", instructions="Use it.", version="1.0", middleware=[Counting()])


class Point(BaseModel):
    """A point."""

    x: int
    y: int = Field(0, description="height")


@mcp.tool
def add(a: int, b: int = 2) -> int:
    """Add two numbers.

    Args:
        a: the first
        b: the second

    Returns:
        the sum
    """
    return a + b


@mcp.tool("named", tags={"z", "a"}, annotations={"readOnlyHint": True}, meta={"k": 1})
async def move(p: Point, ctx: Context, mode: Literal["a", "b"] = "a") -> Point:
    """Move it."""
    await ctx.report_progress(1, 2)
    await ctx.set_state("seen", p.x, serializable=False)
    return Point(x=p.x + 1 + (mode == "b"), y=await ctx.get_state("seen"))


@mcp.tool()
def fails(kind: str) -> str:
    if kind == "tool":
        raise ToolError("as said")
    raise ValueError("oops")


@mcp.tool
def hidden() -> int:
    return Counting.calls


@mcp.tool
def picture() -> Image:
    return Image(data=b"123", format="png")


@mcp.tool
def listed(n: Annotated[int, "how many"]) -> list[dict]:
    return [{"i": i} for i in range(n)]


def who() -> str:
    return "me"


@mcp.tool(title="Depends")
def depends(x: str, w: str = Depends(who)) -> str | None:
    return x + w


mcp.add_tool(
    Tool.from_tool(
        Tool.from_function(add),
        name="plus_ten",
        transform_args={
            "a": ArgTransform(name="number", description="The number."),
            "b": ArgTransform(hide=True, default=10),
        },
    )
)


@mcp.resource("data://config")
def config() -> dict:
    """Config."""
    return {"a": 1}


@mcp.resource("data://{name}/rows{?limit}", mime_type="application/json")
def rows(name: str, limit: int = 3) -> str:
    return f"{name}:{limit}"


@mcp.resource("files://{path*}")
def files(path: str) -> str:
    return path


@mcp.prompt
def ask(topic: str, n: int = 1) -> str:
    """Ask.

    Args:
        topic: what about
        n: how often
    """
    return f"{topic} x{n}"


child = FastMCP("child")


@child.tool
def hi() -> str:
    return "hi"


@child.resource("data://inner")
def inner() -> str:
    return "inner"


mcp.mount(child, "sub")

provider = LocalProvider()


@provider.tool
def give(ctx: Context, n: int = 1) -> list[str]:
    """Give something, and say whose it is."""
    return [ctx.fastmcp.name] * n


@provider.tool
def fail_provided() -> str:
    """Fail."""
    raise ValueError("the inside")


@provider.resource("data://provided")
def read_provided() -> str:
    """Give it."""
    return "provided"


@provider.resource("data://{name}/of")
def read_provided_of(name: str) -> str:
    """Give a part of it."""
    return f"of {name}"


@provider.prompt
def ask_provided(topic: str) -> str:
    """Ask."""
    return topic


mcp.add_provider(provider, namespace="given")
SKILLS = Path(__file__).parents[3] / "examples" / "skills"
mcp.add_provider(SkillsDirectoryProvider(SKILLS))

if __name__ == "__main__":
    mcp.run()
