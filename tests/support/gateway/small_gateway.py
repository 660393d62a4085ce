"""A small gateway: two servers, one up to 2025-11-25 and one since, and a policy that allows everything."""

from isthmus import Context, Server
from isthmus.gateway import Gateway
from isthmus.host import Host
from isthmus.host.policy.policy import Policy
from isthmus.host.policy.rule_file import read_layers
from isthmus.revisions import REVISIONS

ALLOW_ALL = """
[[rule]]
id = "everything"
effect = "allow"
"""

REVISION_NAMES = [revision.name for revision in REVISIONS]


def make_shop(revision: str, name: str = "shop") -> Server:
    """A server of one revision, with something of every kind."""
    shop = Server(name, revisions=[revision])

    @shop.tool
    async def add(a: int, b: int, ctx: Context) -> int:
        """Add two numbers."""
        await ctx.progress(1, 2, "half")
        return a + b

    @shop.tool
    async def order(item: str, ctx: Context) -> str:
        """Order something, of which the size is asked."""
        size = await ctx.elicit(f"Which size of {item}?", str)
        return f"{item}: {size}"

    @shop.resource("shop://catalogue")
    def catalogue() -> str:
        """List all."""
        return "shirts"

    @shop.resource("shop://items/{name}")
    def item(name: str) -> str:
        """Describe one."""
        return f"a {name}"

    @shop.prompt
    def praise(name: str) -> str:
        """Praise something."""
        return f"praise {name}"

    @praise.completes("name")
    def names(value: str) -> list[str]:
        return [one for one in ("shirt", "shoe") if one.startswith(value)]

    return shop


def make_allowing_host(**options) -> Host:
    """A host whose policy allows everything."""
    return Host(policy=Policy.of(read_layers(ALLOW_ALL, "user")), **options)


def make_gateway(**servers) -> Gateway:
    """A gateway in front of servers, by name."""
    host = make_allowing_host()
    for name, server in servers.items():
        host.add(name, server)
    return Gateway(host)
