// npm @modelcontextprotocol/client 2.4 logs in, calls two tools, and comes back without a login.
// node npm2_auth_client.mjs MODULES PLAN     as mcp2_auth_client.py says
import { execFile } from "node:child_process";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";

const [modules, json] = process.argv.slice(2);
const plan = JSON.parse(json);
const require = createRequire(pathToFileURL(modules + "/package.json"));
const library = require("@modelcontextprotocol/client");
const { Client, StreamableHTTPClientTransport, UnauthorizedError } = library;
const run = promisify(execFile);
const modern = plan.revision >= "2026";

const CALLBACK = "http://127.0.0.1:3030/callback";

class Provider {
  asked = [];
  kept = {};
  get redirectUrl() {
    return CALLBACK;
  }
  get clientMetadata() {
    return { client_name: "theirs", redirect_uris: [CALLBACK] };
  }
  state() {
    return (this.kept.state = crypto.randomUUID());
  }
  clientInformation() {
    return this.kept.client;
  }
  saveClientInformation(client) {
    this.kept.client = client;
  }
  tokens() {
    return this.kept.tokens;
  }
  saveTokens(tokens) {
    this.kept.tokens = tokens;
  }
  saveDiscoveryState(state) {
    this.kept.discovery = state;
  }
  discoveryState() {
    return this.kept.discovery;
  }
  saveCodeVerifier(verifier) {
    this.kept.verifier = verifier;
  }
  codeVerifier() {
    return this.kept.verifier;
  }
  async redirectToAuthorization(url) {
    const query = url.searchParams;
    this.asked.push({ scope: query.get("scope") ?? "", resource: query.get("resource") ?? "" });
    const [program, ...rest] = plan.person;
    const person = [...rest.slice(0, -2), url.href, ...rest.slice(-2)];
    this.sent = new URL((await run(program, person)).stdout.trim());
    if (this.sent.searchParams.get("state") !== this.kept.state) throw new Error("wrong state");
  }
}

const provider = new Provider();

function connection() {
  const client = new Client(
    { name: "npm2", version: "1" },
    {
      supportedProtocolVersions: [plan.revision],
      versionNegotiation: modern ? { mode: { pin: plan.revision } } : { mode: "legacy" },
    },
  );
  const transport = new StreamableHTTPClientTransport(new URL(plan.url), { authProvider: provider });
  return { client, transport };
}

// Whatever needs a login says so once; the user comes back, and it is done again.
async function authorized(transport, work) {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof UnauthorizedError)) throw error;
    await transport.finishAuth(provider.sent.searchParams);
    return null;
  }
}

async function calls(...names) {
  let { client, transport } = connection();
  if ((await authorized(transport, () => client.connect(transport).then(() => true))) === null) {
    ({ client, transport } = connection());
    await client.connect(transport);
  }
  const texts = [];
  for (const name of names) {
    const call = () => client.callTool({ name, arguments: {} });
    const result = (await authorized(transport, call)) ?? (await call());
    texts.push(result.content[0].text);
  }
  await client.close();
  return texts;
}

const said = await calls("whoami");
const wrote = await calls("whoami", "write");
const later = await calls("whoami", "write");
console.log(JSON.stringify({ said, wrote, later, asked: provider.asked }));
