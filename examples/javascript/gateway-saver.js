/**
 * A checkpointer for LangGraph.js that stores its threads through the gateway of langgraph-dynamodb.
 *
 * It serializes values, and the service does the rest. docs/wire.md describes the requests.
 */

import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { gzipSync } from "node:zlib";

import { BaseCheckpointSaver, TASKS, getCheckpointId, maxChannelVersion } from "@langchain/langgraph-checkpoint";

import { fromPython, toPython } from "./python.js";

const WIRE_VERSION = 3;
const TIMEOUT_MS = 60_000;
// The service's clock is known to the second.
const UNSURE_MS = 2_000;
const RETRY_SECONDS = 60;
const WAIT_SECONDS_FIRST = 0.05;
const WAIT_SECONDS_MAX = 5;
const MAY_BE_REPEATED = [429, 502, 503, 504];
// Another attempt changes nothing about these.
const IS_LASTING = /CERT|SIGNATURE|INVALID_URL/;
// A smaller body is not worth compressing.
const GZIP_BYTES_MIN = 1_000;
// The service wants all values that it does not have at once. A deletion meanwhile may make it want more.
const PUT_ATTEMPTS_MAX = 4;
const PAGE_MAX = 100;

/** An error that the gateway answered with, or no answer. */
export class GatewayError extends Error {
  /**
   * @param {string} message
   * @param {{type?: string, status?: number, requestId?: string, cause?: unknown}} [problem] The class of the error,
   *   such as "ThreadBusyError", the HTTP status, and the id by which the service's log names the request.
   */
  constructor(message, { type = "CheckpointerError", status, requestId, cause } = {}) {
    super(message, { cause });
    this.name = "GatewayError";
    Object.assign(this, { type, status, requestId });
  }

  static of({ type, title, detail, status, request_id: requestId }) {
    return new GatewayError(detail ?? title, { type: type?.split(":").at(-1), status, requestId });
  }
}

export class GatewaySaver extends BaseCheckpointSaver {
  #url;
  #token;
  #ownerFrom;
  #retryMs;
  #about;
  #serviceAheadMs;

  /**
   * @param {string} url The gateway's address.
   * @param {{
   *   token?: string | (() => string | Promise<string>),
   *   ownerFrom?: string,
   *   retrySeconds?: number,
   *   serde?: import("@langchain/langgraph-checkpoint").SerializerProtocol,
   * }} [options] The bearer token, or a function that returns one; the key of `configurable`, or of the metadata, that
   *   names the owner of a thread; for how many seconds to retry a request; and the serializer.
   */
  constructor(url, { token, ownerFrom, retrySeconds = RETRY_SECONDS, serde } = {}) {
    super(serde);
    if (!(retrySeconds >= 0)) throw new Error(`retrySeconds is ${retrySeconds}; give seconds, or 0 for no retries`);
    this.#ownerFrom = ownerFrom;
    this.#retryMs = retrySeconds * 1_000;
    this.#url = url.replace(/\/+$/, "");
    this.#token = token;
  }

  async getTuple(config) {
    const { thread_id, checkpoint_ns = "" } = config.configurable ?? {};
    if (thread_id === undefined) return undefined;
    const checkpoint_id = getCheckpointId(config) || null;
    while (true) {
      const { checkpoint } = await this.#ask("get-tuple", { thread_id, checkpoint_ns, checkpoint_id });
      if (checkpoint === null) return undefined;
      const found = await this.#tuple(checkpoint);
      // If the newest one was deleted before all of it came, another is that now.
      if (found !== undefined || checkpoint_id !== null) return found;
    }
  }

  async *list(config, { limit = Infinity, before, filter = {} } = {}) {
    const { thread_id, checkpoint_ns } = config.configurable ?? {};
    const request = { thread_id: thread_id ?? null, filter, before: (before && getCheckpointId(before)) || null };
    if (thread_id !== undefined) {
      Object.assign(request, { checkpoint_ns, checkpoint_id: getCheckpointId(config) || null });
    }
    let left = limit;
    for await (const found of left > 0 ? this.#listed(request, limit) : []) {
      // A list of all threads has all their namespaces.
      if (checkpoint_ns !== undefined && found.checkpoint_ns !== checkpoint_ns) continue;
      const tuple = await this.#tuple(found);
      if (tuple === undefined) continue;
      // The service cannot filter by metadata that it cannot read.
      if (!Object.entries(filter).every(([name, value]) => isDeepStrictEqual(tuple.metadata[name], value))) continue;
      yield tuple;
      left -= 1;
      if (left === 0) return;
    }
  }

  async put(config, checkpoint, metadata, newVersions) {
    const { thread_id, checkpoint_ns = "" } = placeOf(config);
    const parent_checkpoint_id = getCheckpointId(config) || null;
    const { channel_values, ...fields } = checkpoint;
    // All of them, even if only some are sent: the agent may change the others before the service wants them.
    const serialized = {};
    for (const [name, value] of Object.entries(channel_values)) serialized[name] = await this.#dumps(value, name);
    const sent = new Set(Object.keys(serialized).filter((name) => Object.hasOwn(newVersions, name)));
    // What is not new is the parent's. LangGraph.js has no version of a channel that has never changed.
    const isKept = (name) => parent_checkpoint_id !== null && Object.hasOwn(checkpoint.channel_versions, name);
    const isStored = (name) => sent.has(name) || isKept(name);
    const names = Object.keys(serialized).filter(isStored);
    const request = {
      thread_id,
      checkpoint_ns,
      parent_checkpoint_id,
      checkpoint: fields,
      ...above(config),
      ...this.#entry(config, metadata),
      ...(await this.#metadata(metadata)),
      new_versions: newVersions,
    };
    for (let attempt = 1; attempt <= PUT_ATTEMPTS_MAX; attempt += 1) {
      const values = Object.fromEntries([...sent].map((name) => [name, serialized[name]]));
      const kept = names.filter((name) => !sent.has(name));
      const { wanted } = await this.#ask("put", { ...request, values, kept });
      if (wanted.length === 0) return { configurable: { thread_id, checkpoint_ns, checkpoint_id: checkpoint.id } };
      for (const name of wanted) sent.add(name);
    }
    throw new GatewayError(`The gateway keeps asking for values of checkpoint "${checkpoint.id}". Retry the call.`);
  }

  async putWrites(config, writes, task_id, task_path = "") {
    const { thread_id, checkpoint_ns = "" } = placeOf(config);
    const checkpoint_id = getCheckpointId(config);
    if (!checkpoint_id) throw new Error("config.configurable.checkpoint_id is missing; give the id of the checkpoint");
    const serialized = [];
    for (const [channel, value] of writes) serialized.push([channel, await this.#dumps(value, channel)]);
    const task = { thread_id, checkpoint_ns, checkpoint_id, ...above(config), task_id, task_path, writes: serialized };
    const request = { ...task, ...this.#entry(config, {}) };
    for (let order = Date.now(); order !== null; ) {
      const { later } = await this.#ask("put-writes", { ...request, order });
      order = later === null ? null : later + 1;
    }
  }

  /** Goes on with the versions of a thread: numbers, or the padded texts of another checkpointer, from which it came. */
  getNextVersion(current) {
    if (typeof current !== "string") return super.getNextVersion(current);
    return `${String(parseInt(current, 10) + 1).padStart(32, "0")}.${Math.random()}`;
  }

  async deleteThread(thread_id) {
    await this.#ask("delete-thread", { thread_id });
  }

  /** What enters a new thread in the directory. */
  #entry(config, metadata) {
    if (this.#ownerFrom === undefined) return {};
    const places = [metadata, config.configurable, config.metadata];
    const owner = places.map((place) => place?.[this.#ownerFrom]).find((each) => each !== undefined && each !== null);
    return { listed: true, owner: owner === undefined ? null : String(owner) };
  }

  // Values

  async #dumps(value, channel = "") {
    const [type, data] = toPython(channel, ...(await this.serde.dumpsTyped(value)));
    return { type, data: Buffer.from(data).toString("base64") };
  }

  async #loads({ type, data }, what) {
    try {
      return await this.serde.loadsTyped(...fromPython(type, new Uint8Array(Buffer.from(data, "base64"))));
    } catch (cause) {
      const said = `${what} has "${type}" data that this serializer cannot read: ${cause.message}`;
      throw new GatewayError(said, { cause });
    }
  }

  /** Metadata as JSON, by which lists filter; typed instead if the serializer does not write JSON. */
  async #metadata(metadata) {
    const typed_metadata = await this.#dumps(metadata);
    if (typed_metadata.type !== "json") return { metadata: {}, typed_metadata };
    return { metadata: JSON.parse(Buffer.from(typed_metadata.data, "base64").toString()) };
  }

  /** A checkpoint with its values; undefined if it was deleted before all of it came. */
  async #tuple(found) {
    const { thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id } = found;
    const placeWith = (id) => ({ configurable: { thread_id, checkpoint_ns, checkpoint_id: id } });
    found = await this.#completed(found);
    if (found === null) return undefined;
    const channel_values = {};
    for (const [name, value] of Object.entries(found.values)) {
      channel_values[name] = await this.#loads(value, `Channel "${name}" of thread "${thread_id}"`);
    }
    const typed = found.typed_metadata ?? asJson(found.metadata);
    const tuple = {
      config: placeWith(checkpoint_id),
      checkpoint: { ...found.checkpoint, channel_values },
      metadata: await this.#loads(typed, `The metadata of a checkpoint of thread "${thread_id}"`),
      pendingWrites: await this.#writes(found),
    };
    if (parent_checkpoint_id !== null) {
      tuple.parentConfig = placeWith(parent_checkpoint_id);
      if (tuple.checkpoint.v < 4) await this.#addPendingSends(tuple);
    }
    return tuple;
  }

  /** A checkpoint with what did not fit into one answer, and comes in others; null if it was deleted meanwhile. */
  async #completed(found) {
    const { thread_id, checkpoint_ns, checkpoint_id } = found;
    const shown = () => [...Object.values(found.values), ...found.pending_writes.map(([, , value]) => value)];
    const known = new Map();
    // A value without data did not fit into the answer, or is known.
    const isLeft = ({ data, digest }) => data === null && !known.has(digest);
    while (shown().some(isLeft)) {
      for (const { data } of shown()) if (data !== null) known.set(digestOf(data), data);
      const have = [...known.keys()];
      ({ checkpoint: found } = await this.#ask("get-tuple", { thread_id, checkpoint_ns, checkpoint_id, have }));
      if (found === null) return null;
    }
    for (const value of shown()) value.data ??= known.get(value.digest);
    return found;
  }

  async #writes({ thread_id, pending_writes }) {
    const read = async ([task, channel, value]) => [
      task,
      channel,
      await this.#loads(value, `A write to channel "${channel}" of thread "${thread_id}"`),
    ];
    return Promise.all(pending_writes.map(read));
  }

  /** Before version 4 of LangGraph's checkpoints, the sends of a step were pending writes of its parent. */
  async #addPendingSends({ checkpoint, parentConfig }) {
    const answer = await this.#ask("get-tuple", { ...parentConfig.configurable, channels: [] });
    const writes = answer.checkpoint === null ? [] : await this.#writes(answer.checkpoint);
    checkpoint.channel_values[TASKS] = writes.filter(([, channel]) => channel === TASKS).map(([, , value]) => value);
    const versions = Object.values(checkpoint.channel_versions);
    checkpoint.channel_versions[TASKS] =
      versions.length > 0 ? maxChannelVersion(...versions) : this.getNextVersion(undefined);
  }

  // Requests

  async #ask(operation, request) {
    await this.#check();
    return this.#send(`/checkpoints/${operation}`, request);
  }

  /** The checkpoints of a list, page by page. */
  async *#listed(request, limit) {
    let after = null;
    let failure;
    do {
      const page = await this.#ask("list", { ...request, after, limit: Math.min(limit, PAGE_MAX) });
      yield* page.checkpoints;
      if (page.problem) failure ??= GatewayError.of(page.problem);
      ({ after } = page);
    } while (after !== null);
    // What is wrong with one thread does not keep the others from being listed.
    if (failure) throw failure;
  }

  /** Makes sure, once, that the service speaks this version of the wire. */
  async #check() {
    this.#about ??= this.#send("/about");
    try {
      const { wire_version } = await this.#about;
      if (wire_version !== WIRE_VERSION) {
        throw new GatewayError(`The gateway speaks version ${wire_version} of the wire, and this is ${WIRE_VERSION}.`);
      }
    } catch (error) {
      this.#about = undefined;
      throw error;
    }
  }

  async #send(path, request) {
    const lastMs = Date.now() + this.#retryMs;
    for (let attempt = 1; ; attempt += 1) {
      const answer = await this.#attempt(path, request);
      if ("value" in answer) return answer.value;
      const { cause, mayRepeat, waitSeconds = 0 } = answer;
      const leftSeconds = (lastMs - Date.now()) / 1_000;
      if (!mayRepeat || leftSeconds <= 0 || waitSeconds > leftSeconds) throw cause;
      const backoff = Math.min(WAIT_SECONDS_MAX, WAIT_SECONDS_FIRST * 2 ** attempt) * (0.5 + Math.random() / 2);
      // A little more at random, so that clients that were refused together do not come back together.
      await sleep(1_000 * Math.max(waitSeconds * (1 + Math.random() / 2), Math.min(backoff, leftSeconds)));
    }
  }

  async #attempt(path, request) {
    const headers = {};
    const token = typeof this.#token === "function" ? await this.#token() : this.#token;
    if (token !== undefined) headers.Authorization = `Bearer ${token}`;
    if (this.#serviceAheadMs !== undefined) {
      // The service ends what this client no longer waits for.
      headers["X-Deadline"] = (Date.now() + this.#serviceAheadMs + TIMEOUT_MS - UNSURE_MS) / 1_000;
    }
    // Requests of a thread go to the same process, if a proxy looks for it.
    if (request?.thread_id) headers["X-Thread"] = digest(request.thread_id);
    let body;
    if (request !== undefined) {
      headers["Content-Type"] = "application/json";
      body = Buffer.from(JSON.stringify(request));
      if (body.length >= GZIP_BYTES_MIN) {
        headers["Content-Encoding"] = "gzip";
        body = gzipSync(body);
      }
    }
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const method = body === undefined ? "GET" : "POST";
    let response;
    let text;
    try {
      // Another address, which has no business with them, would get the values.
      response = await fetch(this.#url + path, { method, headers, body, signal, redirect: "manual" });
      text = await response.text();
    } catch (cause) {
      const why = cause.cause?.code ?? cause.message;
      return {
        cause: new GatewayError(`No answer from ${this.#url}: ${why}`, { cause }),
        mayRepeat: !IS_LASTING.test(why),
      };
    }
    const { status } = response;
    const now = Date.parse(response.headers.get("Date"));
    if (!Number.isNaN(now)) this.#serviceAheadMs = now - Date.now();
    const answer = parsed(text);
    if (response.ok) {
      if (answer !== undefined) return { value: answer };
      return { cause: new GatewayError(`${this.#url} is no gateway: its answer is no JSON. Check the address.`) };
    }
    // A proxy's error has another form.
    const isProblem = response.headers.get("Content-Type")?.includes("problem+json") && answer !== undefined;
    const problem = isProblem ? answer : { title: `HTTP status ${status} from ${this.#url}` };
    return {
      cause: GatewayError.of({ ...problem, status }),
      mayRepeat: MAY_BE_REPEATED.includes(status) || (status === 500 && !isProblem),
      waitSeconds: Number(response.headers.get("Retry-After")) || 0,
    };
  }
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The checkpoints of the graphs above a subgraph's. */
function above({ configurable }) {
  const { checkpoint_map } = configurable;
  return checkpoint_map && Object.keys(checkpoint_map).length > 0 ? { checkpoint_map } : {};
}

function placeOf(config) {
  const { configurable } = config;
  if (!configurable?.thread_id) throw new Error("config.configurable.thread_id is missing; give the id of the thread");
  return configurable;
}

function asJson(document) {
  return { type: "json", data: Buffer.from(JSON.stringify(document)).toString("base64") };
}

function digest(threadId) {
  return createHash("sha256").update(threadId).digest("hex").slice(0, 16);
}

/** The digest by which a request names data: the first 16 bytes of their SHA-256. */
function digestOf(data) {
  const whole = createHash("sha256").update(Buffer.from(data, "base64")).digest();
  return whole.subarray(0, 16).toString("base64");
}
