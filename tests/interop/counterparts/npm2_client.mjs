// npm @modelcontextprotocol/client 2.4, playing the script of steps.py.
import { answer, forms, plan, Player, report, require, ROOTS, THOUGHT } from "./steps.mjs";

const library = require("@modelcontextprotocol/client");
const { StdioClientTransport } = require("@modelcontextprotocol/client/stdio");
const { Client, SSEClientTransport, StreamableHTTPClientTransport } = library;

const { revision, target, transport } = plan;
const modern = revision >= "2026";
const asks = revision >= "2025-06-18";
const client = new Client(
  { name: "npm2", version: "1" },
  {
    capabilities: { sampling: {}, roots: {}, ...(asks ? { elicitation: forms(revision) } : {}) },
    supportedProtocolVersions: [revision],
    versionNegotiation: modern ? { mode: { pin: revision } } : { mode: "legacy" },
  },
);

class Theirs extends Player {
  async hear(uris) {
    if (modern) await client.listen({ toolsListChanged: true, resourceSubscriptions: uris });
    else for (const uri of uris) await client.subscribeResource({ uri });
    return true;
  }

  // Since 2026-07-28 each request says which log messages it wants.
  callTool(params, request) {
    const _meta = modern ? { "io.modelcontextprotocol/logLevel": "info" } : undefined;
    return client.callTool({ ...params, _meta }, request);
  }
}

const player = new Theirs(client);
if (asks) {
  client.setRequestHandler("elicitation/create", async request => answer(request));
}
client.setRequestHandler("sampling/createMessage", async () => THOUGHT);
client.setRequestHandler("roots/list", async () => ROOTS);
client.setNotificationHandler("notifications/message", n => player.hears("logs", n.params.data));
client.setNotificationHandler("notifications/tools/list_changed", () =>
  player.hears("changes", "tools"),
);
client.setNotificationHandler("notifications/resources/updated", n =>
  player.hears("changes", `updated ${n.params.uri}`),
);

const ways = {
  stdio: () => new StdioClientTransport({ command: target[0], args: target.slice(1) }),
  http: () => new StreamableHTTPClientTransport(new URL(target)),
  sse: () => new SSEClientTransport(new URL(target)),
};
await client.connect(ways[transport]());
if (!modern) await client.setLoggingLevel("info");
report(client.getNegotiatedProtocolVersion?.() ?? revision, await player.play());
