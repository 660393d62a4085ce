// The tool `add` on the two npm packages, over stdio or HTTP.
// node.mjs FOLDER sdk|server stdio|http [PORT json|sse]; FOLDER holds their node_modules.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const [folder, which, transport, port, answer] = process.argv.slice(2);
const load = createRequire(join(folder, 'package.json'));
const z = load('zod');

const packages = {
  sdk: () => {
    const { McpServer } = load('@modelcontextprotocol/sdk/server/mcp.js');
    const { StdioServerTransport } = load('@modelcontextprotocol/sdk/server/stdio.js');
    const http = () => load('@modelcontextprotocol/sdk/server/streamableHttp.js').StreamableHTTPServerTransport;
    return {
      McpServer,
      http,
      shape: (fields) => fields,
      stdio: (build) => build().connect(new StdioServerTransport()),
      modern: () => null,
    };
  },
  server: () => {
    const { McpServer, createMcpHandler } = load('@modelcontextprotocol/server');
    const node = () => load('@modelcontextprotocol/node');
    return {
      McpServer,
      http: () => node().NodeStreamableHTTPServerTransport,
      shape: (fields) => z.object(fields),
      stdio: (build) => load('@modelcontextprotocol/server/stdio').serveStdio(build),
      modern: (build) => node().toNodeHandler(createMcpHandler(build, { legacy: 'reject' })),
    };
  },
};

const kit = packages[which]();

function build() {
  const server = new kit.McpServer({ name: 'bench', version: '1' });
  const inputSchema = kit.shape({ a: z.number().int(), b: z.number().int() });
  const outputSchema = kit.shape({ result: z.number().int() });
  server.registerTool('add', { inputSchema, outputSchema }, async ({ a, b }) => ({
    content: [{ type: 'text', text: String(a + b) }],
    structuredContent: { result: a + b },
  }));
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
