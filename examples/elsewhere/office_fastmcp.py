"""Two servers as one, with tags and a tool in other words, with fastmcp."""

from fastmcp import FastMCP
from fastmcp.tools import Tool
from fastmcp.tools.tool_transform import ArgTransform

calendar = FastMCP("calendar")
rooms = FastMCP("rooms")
office = FastMCP("office")


@calendar.tool
def plan(title: str, day: str, calendar_id: str = "main") -> str:
    """Put something into a calendar."""
    return f"{title} on {day} in {calendar_id}"


@rooms.tool(tags={"admin"})
def close_room(room: str) -> str:
    """Close a room for everybody."""
    return f"{room} is closed"


@rooms.tool
def find_room(seats: int) -> str:
    """Find a room with enough seats."""
    return "Tahoe" if seats > 4 else "Como"


@rooms.resource("rooms://list")
def list_rooms() -> list[str]:
    """All rooms."""
    return ["Como", "Tahoe"]


rooms.disable(tags={"admin"})
office.mount(rooms, namespace="rooms")
office.mount(calendar, namespace="calendar")
office.add_tool(
    Tool.from_tool(
        plan,
        name="plan_holiday",
        description="Put a holiday into the calendar of holidays.",
        transform_args={
            "calendar_id": ArgTransform(hide=True, default="holidays"),
            "day": ArgTransform(name="first_day", description="The first day, as 2026-12-24."),
        },
    )
)

if __name__ == "__main__":
    office.run()
