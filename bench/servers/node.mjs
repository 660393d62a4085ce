// Measured cases, on the two npm packages: node.mjs FOLDER sdk|server CASE stdio|http [PORT json|sse]
// FOLDER holds their node_modules.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const [folder, which, given, transport, port, answer] = process.argv.slice(2);
const [kase, size] = given.split('=');
const load = createRequire(join(folder, 'package.json'));
const z = load('zod');

const packages = {
  sdk: () => {
    const { McpServer, ResourceTemplate } = load('@modelcontextprotocol/sdk/server/mcp.js');
    const { StdioServerTransport } = load('@modelcontextprotocol/sdk/server/stdio.js');
    const http = () => load('@modelcontextprotocol/sdk/server/streamableHttp.js').StreamableHTTPServerTransport;
    return {
      McpServer,
      ResourceTemplate,
      http,
      shape: (fields) => fields,
      stdio: (build) => build().connect(new StdioServerTransport()),
      modern: () => null,
      notify: (extra, message) => extra.sendNotification(message),
      progressToken: (extra) => extra._meta?.progressToken,
    };
  },
  server: () => {
    const { McpServer, ResourceTemplate, createMcpHandler } = load('@modelcontextprotocol/server');
    const node = () => load('@modelcontextprotocol/node');
    return {
      McpServer,
      ResourceTemplate,
      http: () => node().NodeStreamableHTTPServerTransport,
      shape: (fields) => z.object(fields),
      stdio: (build) => load('@modelcontextprotocol/server/stdio').serveStdio(build),
      modern: (build) => node().toNodeHandler(createMcpHandler(build, { legacy: 'reject' })),
      notify: (extra, message) => extra.mcpReq.notify(message),
      progressToken: (extra) => extra.mcpReq._meta?.progressToken,
    };
  },
};

const kit = packages[which]();
const numbers = () => kit.shape({ a: z.number().int(), b: z.number().int() });
const person = () =>
  z.object({ id: z.number().int(), name: z.string(), email: z.string(), score: z.number(), tags: z.array(z.string()) });
const PLAIN = 'The quick brown fox jumps over the lazy dog, and then once more, as it has always done. ';
const DOCUMENT = 'The quick brown fox said "no", and jumps over the lazy dog, once more.\n';
const kept = new Map();

function keep(key, make) {
  if (!kept.has(key)) kept.set(key, make());
  return kept.get(key);
}

// a result with structured content, as the schema of a typed tool demands; its text is optional
function structured(value, text = JSON.stringify(value)) {
  return { content: [{ type: 'text', text }], structuredContent: { result: value } };
}

function tool(server, name, inputSchema, run, output = z.number()) {
  server.registerTool(name, { inputSchema, outputSchema: kit.shape({ result: output }) }, run);
}

function addTool(server, name = 'add') {
  const outputSchema = kit.shape({ result: z.number().int() });
  server.registerTool(name, { inputSchema: numbers(), outputSchema }, async ({ a, b }) => structured(a + b));
}

function makePeople(count) {
  const seven = (n) => String(n).padStart(7, '0');
  return Array.from({ length: count }, (_, n) => ({
    id: n, name: `Person ${seven(n)}`, email: `person${seven(n)}@example.org`, score: n / 8, tags: ['a', 'b'],
  }));
}

function offerContext(server) {
  const outputSchema = kit.shape({ result: z.number().int() });
  server.registerTool('add_with_context', { inputSchema: numbers(), outputSchema }, async ({ a, b }, extra) =>
    structured(a + b + (extra === null ? 1 : 0)));
}

function offerStructured(server) {
  server.registerTool('add_structured', { inputSchema: numbers(), outputSchema: person() }, async ({ a, b }) => {
    const found = { id: a + b, name: 'Ada', email: 'ada@example.org', score: 0.5, tags: ['x'] };
    return { content: [{ type: 'text', text: JSON.stringify(found) }], structuredContent: found };
  });
}

function offerPayload(server) {
  tool(server, 'take_text', kit.shape({ text: z.string() }), async ({ text }) => structured(text.length));
  for (const [name, line] of [['give_text', PLAIN], ['give_document', DOCUMENT]]) {
    tool(server, name, kit.shape({ size: z.number().int() }), async ({ size }) => {
      const text = keep(`${name} ${size}`, () => line.repeat(Math.ceil(size / line.length)).slice(0, size));
      return structured(text, text);
    }, z.string());
  }
  tool(server, 'take_structs', kit.shape({ people: z.array(person()) }), async ({ people }) => structured(people.length));
  tool(server, 'take_dicts', kit.shape({ people: z.array(z.record(z.string(), z.any())) }),
    async ({ people }) => structured(people.length));
  tool(server, 'take_strings', kit.shape({ words: z.array(z.any()) }), async ({ words }) => structured(words.length));
  for (const [name, write] of [['give_structs', JSON.stringify], ['give_data', null]]) {
    tool(server, name, kit.shape({ count: z.number().int() }), async ({ count }) => {
      const people = keep(`people ${count}`, () => makePeople(count));
      const content = write ? [{ type: 'text', text: write(people) }] : [];
      return { content, structuredContent: { result: people } };
    }, z.array(person()));
  }
}

function offerBlob(server) {
  const blob = keep('blob', () => Buffer.alloc(Number(size) << 20, Uint8Array.from({ length: 256 }, (_, n) => n)));
  server.registerResource('big', 'blob://big', { mimeType: 'application/octet-stream' }, async () => ({
    contents: [{ uri: 'blob://big', mimeType: 'application/octet-stream', blob: blob.toString('base64') }],
  }));
  let last = performance.now();
  let longest = 0;
  const tick = () => {
    const now = performance.now();
    longest = Math.max(longest, now - last - 2);
    last = now;
  };
  tool(server, 'watch', kit.shape({}), async () => {
    keep('timer', () => setInterval(tick, 2).unref());
    longest = 0;
    last = performance.now();
    return structured(1);
  });
  tool(server, 'longest_ms', kit.shape({}), async () => {
    await new Promise((done) => setTimeout(done, 5));
    return structured(longest);
  });
}

const cases = {
  add: (server) => addTool(server),
  add_with_context: offerContext,
  add_structured: offerStructured,
  payload: offerPayload,
  blob: offerBlob,
  tools: (server) => {
    for (let n = 0; n < Number(size); n++) addTool(server, n ? `add_${n}` : 'add');
  },
  templates: (server) => {
    for (let n = 0; n < Number(size); n++) {
      const template = new kit.ResourceTemplate(`note${n}://{name}`, { list: undefined });
      server.registerResource(`note ${n}`, template, {}, async (uri, { name }) => ({
        contents: [{ uri: uri.href, text: name }],
      }));
    }
  },
  progress: (server) =>
    tool(server, 'report', kit.shape({ times: z.number().int() }), async ({ times }, extra) => {
      const progressToken = kit.progressToken(extra);
      for (let n = 1; n <= times; n++) {
        await kit.notify(extra, {
          method: 'notifications/progress', params: { progressToken, progress: n, total: times },
        });
      }
      return structured(times);
    }),
  waiting: (server) =>
    tool(server, 'pause', kit.shape({ ms: z.number().int(), text: z.string().optional() }), async ({ ms, text }) => {
      await new Promise((done) => setTimeout(done, ms));
      return structured((text ?? '').length);
    }),
};

function build() {
  const server = new kit.McpServer({ name: 'bench', version: '1' });
  cases[kase](server);
  return server;
}

function serveHttp() {
  const Transport = kit.http();
  const modern = kit.modern(build);
  const sessions = new Map();
  const opened = async () => {
    const transport = new Transport({
      sessionIdGenerator: randomUUID,
      enableJsonResponse: answer === 'json',
      onsessioninitialized: (id) => sessions.set(id, transport),
    });
    await build().connect(transport);
    return transport;
  };
  createServer(async (request, response) => {
    if (modern && request.headers['mcp-protocol-version'] === '2026-07-28') return modern(request, response);
    const known = sessions.get(request.headers['mcp-session-id']);
    return (known ?? (await opened())).handleRequest(request, response);
  }).listen(Number(port), '127.0.0.1');
}

if (transport === 'stdio') await kit.stdio(build);
else serveHttp();
