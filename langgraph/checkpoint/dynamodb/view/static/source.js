// Where documents come from: the server's answers, or the file that the page is.

/** Something that was asked for and cannot be had; the message is for people. */
class Refusal extends Error {}

/** An address with its parameters in their order, as both sides write it; those without a value are left out. */
function address(name, parameters) {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== null);
  const joined = given.map(([key, value]) => `${key}=${encodeURIComponent(value)}`).join("&");
  return joined ? `api/${name}?${joined}` : `api/${name}`;
}

/** Answers of the server, which are remembered where they cannot change; or all that an exported file has. */
export class Source {
  #remembered = new Map();
  #file = null;

  /** `data` is the element of a file that has its documents. */
  constructor(data) {
    this.isFile = data !== null;
    if (this.isFile) {
      this.#file = unpacked(JSON.parse(data.textContent));
    }
  }

  async get(name, parameters = {}, signal = undefined) {
    return this.isFile ? this.#find(name, parameters) : this.#answer(address(name, parameters), { signal });
  }

  #find(name, { ns, checkpoint }) {
    const path = [name, ns, checkpoint].filter((each) => each !== undefined);
    const found = path.reduce((inner, each) => inner?.[each], this.#file);
    if (found === undefined) {
      throw new Refusal("This is not in the file. Open it with `langgraph-dynamodb view`.");
    }
    return found;
  }

  /** What a checkpoint holds never changes; what its tasks have stored may. */
  async stored(name, parameters, signal) {
    const key = address(name, parameters);
    const found = this.#remembered.get(key) ?? (await this.get(name, parameters, signal));
    this.#remembered.delete(key);
    this.#remembered.set(key, found);
    if (this.#remembered.size > REMEMBERED_MAX) {
      this.#remembered.delete(this.#remembered.keys().next().value);
    }
    return found;
  }

  /** A search, request after request; `tell` hears how far it is and may stop it by its signal. */
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

/** Documents whose equal parts a file has once: an object with a number under `=` stands for that part. */
function unpacked({ parts, documents }) {
  const whole = (value) => {
    if (value === null || typeof value !== "object") {
      return value;
    }
    if (typeof value["="] === "number") {
      return parts[value["="]];
    }
    for (const [key, each] of Object.entries(value)) {
      value[key] = whole(each);
    }
    return value;
  };
  // A part names only earlier ones.
  parts.forEach((each, at) => (parts[at] = whole(each)));
  return whole(documents);
}
