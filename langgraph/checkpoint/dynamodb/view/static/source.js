// Where documents come from: the server's answers, or what an exported file has of them. Nothing else knows which.

import { blameOffline, searchOffline } from "./offline.js";

/** Something that was asked for and cannot be had; the message is for people. */
class Refusal extends Error {}

/** The source of this page. */
export function openSource() {
  const embedded = document.getElementById("export");
  return embedded === null ? new Served() : new Exported(JSON.parse(embedded.textContent));
}

/** An address with its parameters in their order, as both sides write it; those without a value are left out. */
export function address(name, parameters) {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== null);
  const joined = given.map(([key, value]) => `${key}=${encodeURIComponent(value)}`).join("&");
  return joined ? `api/${name}?${joined}` : `api/${name}`;
}

/** Answers of the server, which are remembered where they cannot change. */
class Served {
  exported = null;
  #remembered = new Map();

  async get(name, parameters = {}, signal = undefined) {
    return this.#answer(address(name, parameters), { signal });
  }

  async post(name, parameters, signal) {
    return this.#answer(address(name, parameters), { method: "POST", signal });
  }

  /** What a checkpoint holds never changes; what its tasks have stored may. */
  async stored(name, parameters, signal) {
    const key = address(name, parameters);
    const found = this.#remembered.get(key) ?? (await this.#answer(key, { signal }));
    this.#remembered.delete(key);
    this.#remembered.set(key, found);
    if (this.#remembered.size > REMEMBERED_MAX) {
      this.#remembered.delete(this.#remembered.keys().next().value);
    }
    return found;
  }

  /** A search or a blame, request after request; `tell` hears how far it is and may stop it by its signal. */
  async follow(name, parameters, tell, signal) {
    let cursor = null;
    do {
      const found = await this.get(name, { ...parameters, cursor }, signal);
      tell(found);
      cursor = found.cursor;
    } while (cursor !== null);
  }

  async #answer(where, options) {
    let response;
    try {
      response = await fetch(where, { ...options, cache: "no-store", credentials: "same-origin" });
    } catch (error) {
      if (error.name === "AbortError") {
        throw error;
      }
      throw new Refusal(
        "The server does not answer. Start `langgraph-dynamodb view` again and open the address that it prints.",
      );
    }
    const found = await response.json();
    if (!response.ok) {
      throw new Refusal(found.detail);
    }
    return found;
  }
}

const REMEMBERED_MAX = 64;

/** The documents of an exported file. */
class Exported {
  constructor(document) {
    this.exported = { madeAt: document.made_at, masks: document.masks, cutBytes: document.cut_bytes };
    this.documents = document.documents;
    this.shared = document.shared;
  }

  async get(name, parameters = {}) {
    const found = this.documents[address(name, parameters)];
    if (found === undefined) {
      throw new Refusal("The export does not have this.");
    }
    return this.#whole(found);
  }

  async stored(name, parameters) {
    return this.get(name, parameters);
  }

  async follow(name, parameters, tell, signal) {
    const steps = { blame: blameOffline, search: searchOffline }[name];
    for await (const found of steps(this, parameters)) {
      signal?.throwIfAborted();
      tell(found);
    }
  }

  /** A document with what it shares with others in its place. */
  #whole(part) {
    if (Array.isArray(part)) {
      return part.map((each) => this.#whole(each));
    }
    if (part === null || typeof part !== "object") {
      return part;
    }
    if (Object.hasOwn(part, "$")) {
      return this.#whole(this.shared[part.$]);
    }
    return Object.fromEntries(Object.entries(part).map(([key, value]) => [key, this.#whole(value)]));
  }
}
