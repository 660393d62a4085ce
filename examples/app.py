"""A tool with a page of its own (MCP Apps): hosts that can show it do, others get the text.

Run it with ``isthmus run examples/app.py``; its page speaks to the host by postMessage.
"""

from isthmus import Context, Server
from isthmus.types import TextResourceContents

UI = "io.modelcontextprotocol/ui"
HTML = "text/html;profile=mcp-app"
PAGE = "ui://dice/view.html"

server = Server("dice", version="1.0", extensions={UI: {}})

VIEW = """<!doctype html>
<title>Dice</title>
<p id="rolled">…</p>
<script>
  let last = 0;
  const say = (method, params) =>
    parent.postMessage({ jsonrpc: "2.0", id: ++last, method, params }, "*");
  addEventListener("message", ({ data }) => {
    const rolled = data.params?.structuredContent?.result;
    if (rolled) document.querySelector("#rolled").textContent = rolled.join(" ");
  });
  say("ui/initialize", { appInfo: { name: "dice", version: "1.0" }, appCapabilities: {} });
</script>
"""


@server.resource(PAGE, mime_type=HTML, title="Dice")
def view() -> TextResourceContents:
    """Shows what was rolled."""
    asks = {"csp": {"connectDomains": []}, "prefersBorder": True}
    return TextResourceContents(uri=PAGE, mime_type=HTML, text=VIEW, meta={"ui": asks})


@server.tool(read_only=True, meta={"ui": {"resourceUri": PAGE}})
def roll(count: int, ctx: Context) -> list[int]:
    """Roll dice."""
    shown = ctx.extension(UI)  # what the host can show, or None: since 2026-07-28
    ctx.log.debug("rolled", count=count, shown=shown is not None)
    return [1 + (7 * die + 3) % 6 for die in range(count)]


if __name__ == "__main__":
    server.run()
