// What isthmus_server.py offers, on npm @modelcontextprotocol/server 2.4.
// node npm2_server.mjs MODULES stdio | http PORT
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { CAPABILITIES, Events, offer } from "./offers.mjs";

const [modules, transport, port] = process.argv.slice(2);
const require = createRequire(pathToFileURL(modules + "/package.json"));
const library = require("@modelcontextprotocol/server");
const { serveStdio } = require("@modelcontextprotocol/server/stdio");
const { NodeStreamableHTTPServerTransport, toNodeHandler, toWebRequest } = require(
  "@modelcontextprotocol/node",
);
const { z } = require("zod");

const changed = {};

function make({ era }) {
  const info = { name: "counterpart", version: "1" };
  const server = new library.McpServer(info, { capabilities: CAPABILITIES });
  const reach = context => {
    const { mcpReq, http } = context;
    const token = mcpReq._meta?.progressToken;
    return {
      signal: mcpReq.signal,
      close: http?.closeSSE,
      log: (level, data) => mcpReq.log(level, data),
      progress: async (progress, total) => {
        const params = { progressToken: token, progress, total };
        if (token !== undefined) await mcpReq.notify({ method: "notifications/progress", params });
      },
      ask: async (key, method, params) => {
        if (era === "legacy") return { answer: await mcpReq.send({ method, params }) };
        const answer = mcpReq.inputResponses?.[key];
        if (answer) return { answer };
        return { pending: library.inputRequired({ inputRequests: { [key]: { method, params } } }) };
      },
    };
  };
  const { completable, ResourceTemplate: Template } = library;
  offer(server, { z, completable, Template, reach, changed, object: z.object });
  if (era === "legacy") {
    server.server.setRequestHandler("resources/subscribe", async () => ({}));
    server.server.setRequestHandler("resources/unsubscribe", async () => ({}));
  }
  return server;
}

if (transport === "stdio") {
  serveStdio(make);
} else {
  const modern = library.createMcpHandler(make, { legacy: "reject" });
  changed.tools = () => modern.notify.toolsChanged();
  changed.resource = uri => modern.notify.resourceUpdated(uri);
  const serveModern = toNodeHandler(modern);
  const sessions = new Map();
  const opened = async () => {
    const session = new NodeStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      eventStore: new Events(),
      retryInterval: 100,
      onsessioninitialized: id => sessions.set(id, session),
    });
    await make({ era: "legacy" }).connect(session);
    return session;
  };
  createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = chunks.length ? JSON.parse(Buffer.concat(chunks)) : undefined;
    const legacy = await library.isLegacyRequest(await toWebRequest(request, body), body);
    if (!legacy) return serveModern(request, response, body);
    const id = request.headers["mcp-session-id"];
    const session = id === undefined ? await opened() : sessions.get(id);
    if (session === undefined) return response.writeHead(404).end();
    return session.handleRequest(request, response, body);
  }).listen(Number(port), "127.0.0.1");
}
