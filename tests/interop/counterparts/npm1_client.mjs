// npm @modelcontextprotocol/sdk 1.32's client, playing the script of steps.py.
import { answer, forms, plan, Player, report, require, ROOTS, THOUGHT } from "./steps.mjs";

const types = require("@modelcontextprotocol/sdk/types.js");
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");
const { SSEClientTransport } = require("@modelcontextprotocol/sdk/client/sse.js");
const { StreamableHTTPClientTransport } = require(
  "@modelcontextprotocol/sdk/client/streamableHttp.js",
);

const { revision, target } = plan;
const asks = revision >= "2025-06-18";
const client = new Client(
  { name: "npm1", version: "1" },
  {
    capabilities: { sampling: {}, roots: {}, ...(asks ? { elicitation: forms(revision) } : {}) },
  },
);

class Theirs extends Player {
  async hear(uris) {
    for (const uri of uris) await client.subscribeResource({ uri });
    return true;
  }

  callTool(params, request) {
    return client.callTool(params, undefined, request);
  }
}

const player = new Theirs(client);
if (asks) {
  client.setRequestHandler(types.ElicitRequestSchema, async request => answer(request));
}
client.setRequestHandler(types.CreateMessageRequestSchema, async () => THOUGHT);
client.setRequestHandler(types.ListRootsRequestSchema, async () => ROOTS);
client.setNotificationHandler(types.LoggingMessageNotificationSchema, n =>
  player.hears("logs", n.params.data),
);
client.setNotificationHandler(types.ToolListChangedNotificationSchema, () =>
  player.hears("changes", "tools"),
);
client.setNotificationHandler(types.ResourceUpdatedNotificationSchema, n =>
  player.hears("changes", `updated ${n.params.uri}`),
);

const ways = {
  stdio: () => new StdioClientTransport({ command: target[0], args: target.slice(1) }),
  http: () => new StreamableHTTPClientTransport(new URL(target)),
  sse: () => new SSEClientTransport(new URL(target)),
};
const transport = ways[plan.transport]();
// The handshake always offers the newest revision it knows: an older one is put in on the way out.
const send = transport.send.bind(transport);
transport.send = (message, options) => {
  if (message.method === "initialize") message.params.protocolVersion = revision;
  return send(message, options);
};
let agreed = revision;
transport.setProtocolVersion = (set => version => {
  agreed = version;
  return set?.(version);
})(transport.setProtocolVersion?.bind(transport));
await client.connect(transport);
await client.setLoggingLevel("info");
report(agreed, await player.play());
