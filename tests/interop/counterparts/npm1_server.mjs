// What isthmus_server.py offers, on npm @modelcontextprotocol/sdk 1.32.
// node npm1_server.mjs MODULES stdio | http PORT | sse PORT
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { CAPABILITIES, Events, offer } from "./offers.mjs";

const [modules, transport, port] = process.argv.slice(2);
const require = createRequire(pathToFileURL(modules + "/package.json"));
const types = require("@modelcontextprotocol/sdk/types.js");
const library = require("@modelcontextprotocol/sdk/server/mcp.js");
const { completable } = require("@modelcontextprotocol/sdk/server/completable.js");
const { SSEServerTransport } = require("@modelcontextprotocol/sdk/server/sse.js");
const { StdioServerTransport } = require("@modelcontextprotocol/sdk/server/stdio.js");
const { StreamableHTTPServerTransport } = require(
  "@modelcontextprotocol/sdk/server/streamableHttp.js",
);
const { z } = require("zod");

const RESULTS = {
  "elicitation/create": types.ElicitResultSchema,
  "sampling/createMessage": types.CreateMessageResultSchema,
  "roots/list": types.ListRootsResultSchema,
};

function make() {
  const info = { name: "counterpart", version: "1" };
  const server = new library.McpServer(info, { capabilities: CAPABILITIES });
  const reach = context => {
    const token = context._meta?.progressToken;
    return {
      signal: context.signal,
      close: context.closeSSEStream,
      log: (level, data) => server.sendLoggingMessage({ level, data }, context.sessionId),
      progress: async (progress, total) => {
        const params = { progressToken: token, progress, total };
        if (token === undefined) return;
        await context.sendNotification({ method: "notifications/progress", params });
      },
      ask: async (_, method, params) => ({
        answer: await context.sendRequest({ method, params }, RESULTS[method]),
      }),
    };
  };
  const { ResourceTemplate: Template } = library;
  offer(server, { z, completable, Template, reach, changed: {} });
  server.server.setRequestHandler(types.SubscribeRequestSchema, async () => ({}));
  server.server.setRequestHandler(types.UnsubscribeRequestSchema, async () => ({}));
  return server;
}

const sessions = new Map();

async function overHttp(request, response) {
  const id = request.headers["mcp-session-id"];
  let session = sessions.get(id);
  if (session === undefined && id === undefined) {
    session = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      eventStore: new Events(),
      retryInterval: 100,
      onsessioninitialized: fresh => sessions.set(fresh, session),
    });
    await make().connect(session);
  }
  if (session === undefined) return response.writeHead(404).end();
  return session.handleRequest(request, response);
}

async function overSse(request, response) {
  const url = new URL(request.url, "http://localhost");
  if (request.method === "GET" && url.pathname === "/sse") {
    const session = new SSEServerTransport("/messages", response);
    sessions.set(session.sessionId, session);
    return make().connect(session);
  }
  const session = sessions.get(url.searchParams.get("sessionId"));
  if (session === undefined) return response.writeHead(404).end();
  return session.handlePostMessage(request, response);
}

if (transport === "stdio") await make().connect(new StdioServerTransport());
else createServer(transport === "sse" ? overSse : overHttp).listen(Number(port), "127.0.0.1");
