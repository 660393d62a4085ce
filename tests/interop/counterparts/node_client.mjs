// npm @modelcontextprotocol/client on our bookings server, pinned to one revision.
// node node_client.mjs MODULES REVISION URL | COMMAND ARGUMENT...     prints one JSON object
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [modules, revision, ...target] = process.argv.slice(2);
const require = createRequire(pathToFileURL(modules + "/package.json"));
const { Client, StreamableHTTPClientTransport } = require("@modelcontextprotocol/client");
const { StdioClientTransport } = require("@modelcontextprotocol/client/stdio");

const modern = revision >= "2026";
const asks = revision >= "2025-06-18";
const client = new Client(
  { name: "node", version: "1" },
  {
    capabilities: asks ? { elicitation: {}, sampling: {}, roots: {} } : { sampling: {}, roots: {} },
    supportedProtocolVersions: [revision],
    versionNegotiation: modern ? { mode: { pin: revision } } : { mode: "legacy" },
  },
);
const questions = [];
if (asks) {
  client.setRequestHandler("elicitation/create", async request => {
    questions.push(request.params.message);
    return { action: "accept", content: { row: 9, window: true } };
  });
}
client.setRequestHandler("sampling/createMessage", async () => ({
  role: "assistant",
  content: { type: "text", text: "In short: nothing." },
  model: "node",
}));
client.setRequestHandler("roots/list", async () => ({ roots: [] }));

const transport = target[0].startsWith("http")
  ? new StreamableHTTPClientTransport(new URL(target[0]))
  : new StdioClientTransport({ command: target[0], args: target.slice(1) });
await client.connect(transport);
const out = { server: client.getServerVersion()?.name };
out.tools = (await client.listTools()).tools.map(tool => tool.name);
out.price = (await client.callTool({ name: "price", arguments: { kind: "quiet" } })).content[0].text;
const wrong = await client.callTool({ name: "price", arguments: { kind: "loud" } });
out.wrong = wrong.isError === true;
const progress = [];
if (asks) {
  const booked = await client.callTool(
    { name: "book", arguments: { date: "2026-05-01" } },
    { onprogress: p => progress.push(p.progress) },
  );
  out.booked = booked.structuredContent ?? JSON.parse(booked.content[0].text);
}
out.progress = progress;
out.questions = questions;
const summary = await client.callTool({ name: "summarise", arguments: { text: "Lorem." } });
out.summary = summary.content[0].text;
const prompt = await client.getPrompt({ name: "apology", arguments: { name: "Ada" } });
out.prompt = prompt.messages[0].content.text;
out.resources = (await client.listResources()).resources.map(resource => resource.uri);
const read = await client.readResource({ uri: "bookings://all" });
out.read = JSON.parse(read.contents[0].text).length;
const completed = await client.complete({
  ref: { type: "ref/prompt", name: "apology" },
  argument: { name: "tone", value: "f" },
});
out.completed = completed.completion.values;
try {
  await client.callTool({ name: "no_such_tool", arguments: {} });
} catch (error) {
  out.unknown = error.code;
}
await client.close();
console.log(JSON.stringify(out));
process.exit(0);
