// What steps.py says, for the two npm clients, which have the same methods: plays a list of steps.
// node CLIENT.mjs MODULES PLAN     prints {"revision": …, "outcomes": […]}
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [modules, json] = process.argv.slice(2);
export const plan = JSON.parse(json);
export const require = createRequire(pathToFileURL(modules + "/package.json"));

export const ROW = { row: 7 };
// Forms, and since 2025-11-25 pages; before that nothing says which.
export const forms = revision => (revision < "2025-11-25" ? {} : { form: {}, url: {} });
export const answer = ({ params }) =>
  params.mode === "url" ? { action: "accept" } : { action: "accept", content: ROW };
export const THOUGHT = {
  role: "assistant",
  content: { type: "text", text: "A thought." },
  model: "node",
};
export const ROOTS = { roots: [{ uri: "file:///work" }] };
const SECONDS = 15;

export class Player {
  heard = { logs: new Set(), changes: new Set() };
  news = [];

  constructor(client) {
    this.client = client;
  }

  hears(kind, what) {
    this.heard[kind].add(what);
    this.news.splice(0).forEach(wake => wake());
  }

  async until(heard) {
    while (!heard()) await new Promise(wake => this.news.push(wake));
  }

  async logs(count) {
    await this.until(() => this.heard.logs.size >= count);
    return [...this.heard.logs].sort();
  }

  async changed(what) {
    await this.until(() => this.heard.changes.has(what));
    return what;
  }

  async pages(method, items) {
    const found = [];
    let cursor;
    do {
      const page = await this.client[method](cursor === undefined ? {} : { cursor });
      found.push(...page[items]);
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    return found;
  }

  tools = async () => (await this.pages("listTools", "tools")).map(t => t.name).sort();
  resources = async () => (await this.pages("listResources", "resources")).map(r => r.uri).sort();
  templates = async () =>
    (await this.pages("listResourceTemplates", "resourceTemplates")).map(t => t.uriTemplate).sort();
  prompts = async () => (await this.pages("listPrompts", "prompts")).map(p => p.name).sort();

  async call(name, args, options = {}) {
    const progress = [];
    const onprogress = report => {
      progress.push(report.progress);
      options.begun?.();
    };
    const request = { onprogress, signal: options.signal };
    const result = await this.callTool({ name, arguments: args }, request);
    const text = result.content.filter(b => b.type === "text").map(b => b.text).join("\n");
    return { text, error: result.isError === true, progress };
  }

  callTool(params, request) {
    return this.client.callTool(params, request);
  }

  async cancel(name, args) {
    const ender = new AbortController();
    const begun = () => ender.abort();
    try {
      return await this.call(name, args, { begun, signal: ender.signal });
    } catch {
      return "cancelled";
    }
  }

  read = async uri => (await this.client.readResource({ uri })).contents[0].text;
  prompt = async (name, args) =>
    (await this.client.getPrompt({ name, arguments: args })).messages[0].content.text;

  async complete(prompt, name, value) {
    const ref = { type: "ref/prompt", name: prompt };
    const found = await this.client.complete({ ref, argument: { name, value } });
    return found.completion.values.sort();
  }

  ping = async () => (await this.client.ping(), true);

  async play() {
    const outcomes = [];
    for (const [verb, ...args] of plan.steps) {
      let timer;
      const late = new Promise((_, fail) => {
        timer = setTimeout(() => fail(new Error("too late")), SECONDS * 1000);
      });
      try {
        outcomes.push(await Promise.race([this[verb](...args), late]));
      } catch (error) {
        const code = Number.isInteger(error.code) ? error.code : undefined;
        outcomes.push(code === undefined ? { raised: String(error) } : { code });
      }
      clearTimeout(timer);
    }
    return outcomes;
  }
}

export function report(revision, outcomes) {
  console.log(JSON.stringify({ revision, outcomes }));
  process.exit(0);
}
