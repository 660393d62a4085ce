// An agent of npm `ai` whose scripted model calls two tools of a server, through @ai-sdk/mcp.
// node ai_sdk_agent.mjs MODULES URL-OR-COMMAND     prints what the model read
import { pathToFileURL } from "node:url";

const [modules, json] = process.argv.slice(2);
const load = path => import(pathToFileURL(`${modules}/node_modules/${path}`));
const { generateText, isStepCount, stepCountIs } = await load("ai/dist/index.js");
const { MockLanguageModelV4 } = await load("ai/dist/test/index.js");
const { createMCPClient, ElicitationRequestSchema } = await load("@ai-sdk/mcp/dist/index.js");
const { Experimental_StdioMCPTransport, StdioMCPTransport = Experimental_StdioMCPTransport } =
  await load("@ai-sdk/mcp/dist/mcp-stdio/index.js");

const target = JSON.parse(json);
const transport = Array.isArray(target)
  ? new StdioMCPTransport({ command: target[0], args: target.slice(1) })
  : { type: target.endsWith("/sse") ? "sse" : "http", url: target };
const client = await createMCPClient({ transport, capabilities: { elicitation: {} } });
client.onElicitationRequest(ElicitationRequestSchema, () => ({
  action: "accept",
  content: { row: 7 },
}));

const script = [["echo", { text: "hé ☃" }], ["ask", {}]];
const came = {};
const model = new MockLanguageModelV4({
  doGenerate: async ({ prompt }) => {
    for (const part of prompt.filter(message => message.role === "tool").flatMap(m => m.content)) {
      const { value } = part.output;
      came[part.toolName] = value.content?.[0]?.text ?? value[0]?.text ?? value;
    }
    const next = script.find(([name]) => !(name in came));
    return {
      content: next
        ? [{ type: "tool-call", toolCallId: next[0], toolName: next[0], input: JSON.stringify(next[1]) }]
        : [{ type: "text", text: JSON.stringify(came) }],
      finishReason: { unified: next ? "tool-calls" : "stop", raw: undefined },
      usage: {
        inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
        outputTokens: { total: 1, text: 1, reasoning: 0 },
      },
      warnings: [],
    };
  },
});
const tools = await client.tools();
const done = await generateText({
  model,
  tools,
  prompt: "Do it.",
  stopWhen: (isStepCount ?? stepCountIs)(4),
});
console.log(done.text);
await client.close();
process.exit(0);
