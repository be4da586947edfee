/** The requests of the checkpointer, by a service that gives scripted answers. */

import { createServer } from "node:http";
import { gunzipSync } from "node:zlib";

import { GatewayError, GatewaySaver } from "./gateway-saver.js";

describe("the requests of a checkpointer", () => {
  const config = { configurable: { thread_id: "t", checkpoint_ns: "" } };
  const value = { type: "json", data: Buffer.from('"x"').toString("base64") };
  const about = { wire_version: 3 };
  const stored = {
    thread_id: "t",
    checkpoint_ns: "",
    checkpoint_id: "1",
    parent_checkpoint_id: null,
    checkpoint: { v: 4, id: "1" },
    metadata: {},
    values: {},
    pending_writes: [],
  };

  /** Runs a service that gives these answers, each a document, or a status with headers; returns what it was asked. */
  async function served(answers, use, options = {}) {
    const asked = [];
    const server = createServer(async (request, response) => {
      const chunks = await request.toArray();
      const body = Buffer.concat(chunks);
      const text = request.headers["content-encoding"] === "gzip" ? gunzipSync(body) : body;
      asked.push({ path: request.url, headers: request.headers, body: text.length > 0 ? JSON.parse(text) : null });
      const { status = 200, headers = {}, text: sent, ...document } = answers.shift();
      response.writeHead(status, headers);
      response.end(sent ?? JSON.stringify(document));
    });
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    try {
      await use(new GatewaySaver(`http://127.0.0.1:${server.address().port}/`, { token: () => "secret", ...options }));
    } finally {
      server.closeAllConnections();
      server.close();
    }
    expect(answers).toEqual([]);
    return asked;
  }

  async function listed(saver, ...rest) {
    const found = [];
    for await (const each of saver.list(...rest)) found.push(each);
    return found;
  }

  it("are sent again while the service is busy, or restarts", async () => {
    const failed = [429, 500, 502, 503, 504].map((status) => ({ status, headers: { "Retry-After": "0" }, text: "<html>" }));
    const asked = await served([about, ...failed, { checkpoint: null }], async (saver) => {
      expect(await saver.getTuple(config)).toBeUndefined();
    });
    const [, ...tried] = asked.map(({ path }) => path);
    expect(tried).toEqual(Array(6).fill("/checkpoints/get-tuple"));
  }, 60_000);

  it.each([
    ["an error of the service", { status: 500, title: "Oh", headers: { "Content-Type": "application/problem+json" } }, {}],
    ["no JSON", { text: "<html>" }, {}],
    ["another address", { status: 307, headers: { Location: "/elsewhere" } }, {}],
    ["any error, without retries", { status: 503 }, { retrySeconds: 0 }],
    ["a longer wait than is left", { status: 503, headers: { "Retry-After": "9" } }, { retrySeconds: 5 }],
  ])("are sent once if the answer is %s", async (_, answer, options) => {
    await served([about, answer], (saver) => expect(saver.getTuple(config)).rejects.toThrow(GatewayError), options);
  });

  it("say above which checkpoints a subgraph's is, and whose the thread is", async () => {
    const checkpoint_map = { "": "1" };
    const inside = { configurable: { thread_id: "t", checkpoint_ns: "sub", checkpoint_id: "1", checkpoint_map, user_id: 7 } };
    const checkpoint = { v: 4, id: "2", channel_values: {}, channel_versions: {} };
    const use = async (saver) => {
      await saver.put(inside, checkpoint, {}, {});
      await saver.putWrites(inside, [], "task");
    };
    const answers = [about, { wanted: [] }, { later: null }];
    const [, put, writes] = await served([...answers], use, { ownerFrom: "user_id" });
    expect(put.body).toMatchObject({ checkpoint_map, listed: true, owner: "7" });
    expect(writes.body).toMatchObject({ checkpoint_map });
    const [, unlisted] = await served([...answers], use);
    expect(unlisted.body).not.toHaveProperty("listed");
  });

  it("say who sends them, for which thread and until when", async () => {
    const before = Date.now() / 1_000;
    const [first, second] = await served([about, { checkpoint: null }], (saver) => saver.getTuple(config));
    expect(first.headers["x-deadline"]).toBeUndefined();
    expect(first.headers.authorization).toBe("Bearer secret");
    // The first characters of the SHA-256 of "t".
    expect(second.headers["x-thread"]).toBe("e3b98a4da31a127d");
    expect(Number(second.headers["x-deadline"])).toBeGreaterThan(before);
  });

  it("end with the error that the service names", async () => {
    const problem = { type: "urn:langgraph-dynamodb:error:ThreadBusyError", detail: "busy", request_id: "r" };
    const refused = { ...problem, status: 409, headers: { "Content-Type": "application/problem+json" } };
    await served([about, refused], async (saver) => {
      const error = { type: "ThreadBusyError", status: 409, requestId: "r", message: "busy" };
      await expect(saver.getTuple(config)).rejects.toMatchObject(error);
    });
  });

  it("name a service of another version", async () => {
    await served([{ wire_version: 4 }, about, { checkpoint: null }], async (saver) => {
      await expect(saver.getTuple(config)).rejects.toThrow("version 4");
      // It may have been replaced.
      expect(await saver.getTuple(config)).toBeUndefined();
    });
  });

  it("send the values that the service wants", async () => {
    const checkpoint = { v: 4, id: "2", channel_values: { a: "x", b: "x" }, channel_versions: { a: 1, b: 2 } };
    const [, first, second] = await served([about, { wanted: ["a"] }, { wanted: [] }], (saver) => {
      const parent = { configurable: { ...config.configurable, checkpoint_id: "1" } };
      return saver.put(parent, checkpoint, {}, { b: 2 });
    });
    expect(first.body).toMatchObject({ values: { b: value }, kept: ["a"], parent_checkpoint_id: "1" });
    expect(second.body).toMatchObject({ values: { a: value, b: value }, kept: [] });
  });

  it("take no name of every object for a channel that has changed", async () => {
    const checkpoint = { v: 4, id: "2", channel_values: { constructor: "x" }, channel_versions: {} };
    const [, { body }] = await served([about, { wanted: [] }], (saver) => {
      return saver.put({ configurable: { ...config.configurable, checkpoint_id: "1" } }, checkpoint, {}, {});
    });
    expect([body.values, body.kept]).toEqual([{}, []]);
  });

  it("keep no channel without a version", async () => {
    const checkpoint = { v: 4, id: "2", channel_values: { __pregel_tasks: [] }, channel_versions: {} };
    const [, { body }] = await served([about, { wanted: [] }], (saver) => {
      return saver.put({ configurable: { ...config.configurable, checkpoint_id: "1" } }, checkpoint, {}, {});
    });
    expect([body.values, body.kept]).toEqual([{}, []]);
  });

  it("ask for what did not fit into an answer", async () => {
    // The first 16 bytes of the SHA-256 of the value's data.
    const same = { type: "json", data: null, digest: "ui30kDosFOhtw7zKWJEbRA==" };
    const left = { type: "json", data: null, digest: "AAAAAAAAAAAAAAAAAAAAAA==" };
    const part = { checkpoint: { ...stored, values: { a: value }, pending_writes: [["task", "b", left]] } };
    const rest = { checkpoint: { ...stored, values: { a: same }, pending_writes: [["task", "b", value]] } };
    const [, , last] = await served([about, part, rest], async (saver) => {
      const found = await saver.getTuple(config);
      expect(found.checkpoint.channel_values).toEqual({ a: "x" });
      expect(found.pendingWrites).toEqual([["task", "b", "x"]]);
    });
    expect(last.body).toMatchObject({ checkpoint_id: "1", have: [same.digest] });
  });

  it("leave out what was deleted before all of it came", async () => {
    const left = { type: "json", data: null, digest: "AAAAAAAAAAAAAAAAAAAAAA==" };
    const part = { checkpoint: { ...stored, values: { a: left } } };
    const gone = { checkpoint: null };
    const named = { configurable: { ...config.configurable, checkpoint_id: "1" } };
    await served([about, part, gone, { checkpoint: stored }, part, gone], async (saver) => {
      // Another one is the newest then.
      expect((await saver.getTuple(config)).checkpoint.channel_values).toEqual({});
      expect(await saver.getTuple(named)).toBeUndefined();
    });
    await served([about, { checkpoints: [part.checkpoint, stored], after: null }, gone], async (saver) => {
      expect(await listed(saver, config)).toHaveLength(1);
    });
  });

  it("list page by page", async () => {
    const end = { thread_id: "t", checkpoint_ns: "", checkpoint_id: "1" };
    const page = (after) => ({ checkpoints: [stored], after });
    const [, , last] = await served([about, page(end), page(null)], async (saver) => {
      expect(await listed(saver, config, { limit: 3 })).toHaveLength(2);
    });
    expect(last.body).toMatchObject({ limit: 3, after: end });
  });

  it("leave out what the service could not compare", async () => {
    const metadata = (source) => {
      return { type: "json", data: Buffer.from(JSON.stringify({ source })).toString("base64") };
    };
    const found = ["loop", "input", "loop"].map((source) => ({ ...stored, typed_metadata: metadata(source) }));
    await served([about, { checkpoints: found, after: null }], async (saver) => {
      const tuples = await listed(saver, config, { filter: { source: "loop" }, limit: 2 });
      expect(tuples.map((each) => each.metadata)).toEqual([{ source: "loop" }, { source: "loop" }]);
    });
  });

  it("end a list with what was wrong with a thread", async () => {
    const failed = { checkpoints: [stored], after: null, problem: { status: 409, title: "Oh" } };
    await served([about, failed], async (saver) => {
      await expect(listed(saver, config)).rejects.toThrow("Oh");
    });
  });

  it("name a value that JavaScript cannot read", async () => {
    // An empty array of NumPy.
    const python = { ...stored, values: { a: { type: "msgpack", data: "xwAG" } } };
    await served([about, { checkpoint: python }], async (saver) => {
      const message = /Channel "a" of thread "t" has "msgpack" data .*: it has an array of NumPy/;
      await expect(saver.getTuple(config)).rejects.toThrow(message);
    });
  });

  it("name a service that does not answer", async () => {
    let gone;
    const use = async (saver) => {
      gone = saver;
    };
    await served([], use, { retrySeconds: 0 });
    await expect(gone.getTuple(config)).rejects.toThrow("No answer from");
  });
});
