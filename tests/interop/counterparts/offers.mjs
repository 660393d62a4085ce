// What isthmus_server.py offers, for the two npm servers, which register things the same way.
// `reach(context)` gives what a tool needs of its library: ask, log, progress, signal, close.
export const state = { grown: false, stopped: new Set() };

const text = value => ({ content: [{ type: "text", text: value }] });
const NAMES = ["Ada", "Alan", "Grace"];
const SEAT = { type: "object", properties: { row: { type: "integer" } }, required: ["row"] };
const pause = ms => new Promise(done => setTimeout(done, ms));

export function offer(server, { z, completable, Template, reach, changed, object = shape => shape }) {
  const tool = (name, shape, run) =>
    server.registerTool(
      name,
      { description: `The tool ${name}.`, inputSchema: object(shape) },
      (args, context) => run(args, reach(context)),
    );
  const key = { key: z.string() };

  tool("echo", { text: z.string() }, args => text(args.text));
  tool("fail", {}, () => {
    throw new Error("it broke");
  });
  tool("steps", {}, async (_, at) => {
    for (const step of [1, 2, 3]) {
      await at.progress(step, 3);
      await pause(20);
    }
    return text("done");
  });
  tool("chat", {}, async (_, at) => {
    await at.log("debug", "quiet");
    await at.log("warning", "loud");
    return text("said");
  });
  tool("ask", {}, async (_, at) => {
    const params = { mode: "form", message: "Which seat?", requestedSchema: SEAT };
    const { answer, pending } = await at.ask("seat", "elicitation/create", params);
    return pending ?? text(`row ${answer.content.row}`);
  });
  tool("think", { topic: z.string() }, async (args, at) => {
    const messages = [{ role: "user", content: { type: "text", text: args.topic } }];
    const params = { messages, maxTokens: 10 };
    const { answer, pending } = await at.ask("thought", "sampling/createMessage", params);
    return pending ?? text(answer.content.text);
  });
  tool("where", {}, async (_, at) => {
    const { answer, pending } = await at.ask("roots", "roots/list", {});
    return pending ?? text(answer.roots.map(root => root.uri).join(","));
  });
  tool("slow", key, async (args, at) => {
    await at.progress(1);
    await new Promise(done => at.signal.addEventListener("abort", done));
    state.stopped.add(args.key);
    return text("too late");
  });
  tool("stopped", key, async args => {
    for (let tries = 0; tries < 50 && !state.stopped.has(args.key); tries++) await pause(100);
    return text(state.stopped.has(args.key) ? "yes" : "no");
  });
  let extra;
  const grow = () => {
    extra = tool("extra", {}, () => text("new"));
  };
  if (state.grown) grow();
  tool("grow", {}, () => {
    state.grown = !state.grown;
    if (state.grown) grow();
    else extra?.remove();
    changed.tools?.();
    return text("changed");
  });
  tool("touch", {}, async () => {
    await server.server.sendResourceUpdated({ uri: "note://one" });
    changed.resource?.("note://one");
    return text("touched");
  });
  tool("drop", {}, async (_, at) => {
    if (!at.close) return text("kept");
    at.close();
    await pause(50);
    return text("resumed");
  });

  const read = (uri, value) => ({ contents: [{ uri: uri.href, mimeType: "text/plain", text: value }] });
  server.registerResource("one", "note://one", {}, uri => read(uri, "Remember the milk."));
  server.registerResource(
    "note",
    new Template("note://{name}", { list: undefined }),
    {},
    (uri, { name }) => read(uri, `Note ${name}.`),
  );
  const name = completable(z.string(), value => NAMES.filter(known => known.startsWith(value)));
  server.registerPrompt(
    "hello",
    { description: "Say hello.", argsSchema: object({ name }) },
    args => ({
      messages: [{ role: "user", content: { type: "text", text: `Say hello to ${args.name}.` } }],
    }),
  );
}

// The events of a server's streams.
export class Events {
  events = [];

  async storeEvent(stream, message) {
    this.events.push({ stream, message });
    return String(this.events.length);
  }

  async getStreamIdForEventId(id) {
    return this.events[Number(id) - 1]?.stream;
  }

  async replayEventsAfter(last, { send }) {
    const { stream } = this.events[Number(last) - 1];
    for (let n = Number(last); n < this.events.length; n++) {
      const event = this.events[n];
      if (event.stream === stream && Object.keys(event.message).length) {
        await send(String(n + 1), event.message);
      }
    }
    return stream;
  }
}

export const CAPABILITIES = {
  logging: {},
  resources: { subscribe: true, listChanged: true },
  tools: { listChanged: true },
};
