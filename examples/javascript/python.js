/**
 * Values for both libraries: LangGraph.js's serializer knows JSON only, and Python's writes msgpack with extensions.
 *
 * Messages, documents, sets, bytes and what Pregel makes keep their classes. Of another object of Python, JavaScript
 * reads the plain data: the fields of a model, the text of a time.
 */

import { INTERRUPT, TASKS } from "@langchain/langgraph-checkpoint";
import { ExtensionCodec, decode } from "@msgpack/msgpack";

// The extensions of Python's serializer.
const OBJECTS = [0, 1, 2, 3, 4, 5];
const NUMPY_ARRAY = 6;
const DELTA_SNAPSHOT = 7;
// What JSON has in it if a part of it is to be converted.
const PYTHONS = /"(builtins|langgraph|modifier)"/;
const JAVASCRIPTS = /"(Set|RemoveMessage|undefined)"/;

const extensionCodec = new ExtensionCodec();
const unpacked = (data) => decode(data, { extensionCodec });
const register = (type, decode) => extensionCodec.register({ type, decode });
for (const type of OBJECTS) register(type, (data) => javaScripts(...unpacked(data)));
register(DELTA_SNAPSHOT, (data) => ({ lc: 2, type: "delta_snapshot", value: unpacked(data) }));
register(NUMPY_ARRAY, () => {
  throw new Error("it has an array of NumPy");
});

/** Returns data that LangGraph.js's serializer reads. */
export function fromPython(type, data) {
  if (type === "null") return ["json", bytesOf(null)];
  if (type === "msgpack") return ["json", bytesOf(unpacked(data), withBytes)];
  return converted(type, data, (text) => PYTHONS.test(text) && JSON.parse(text, revived));
}

/** Returns data of a channel that Python's serializer reads. */
export function toPython(channel, type, data) {
  const convert = CONVERTED.find(([name]) => name.test(channel))?.[1];
  if (convert) return converted(type, data, (text) => convert(JSON.parse(text, pythons)));
  return converted(type, data, (text) => JAVASCRIPTS.test(text) && JSON.parse(text, pythons));
}

// A checkpointer takes whatever it is given, as in LangGraph.js's tests.
const send = (sent) => (sent?.node ? constructed(["langgraph", "types", "Send"], [sent.node, sent.args]) : sent);
const interrupt = (asked) =>
  asked?.id ? constructed(["langgraph", "types", "Interrupt"], [], { value: null, ...asked }) : asked;
const set = (values) => constructed(["builtins", "set"], [values]);
// The value of a channel is a list, and a write to it may be a part of one.
const each = (convert) => (value) => (Array.isArray(value) ? value.map(convert) : convert(value));
const CONVERTED = [
  [new RegExp(`^${INTERRUPT}$`), each(interrupt)],
  [new RegExp(`^${TASKS}$`), each(send)],
  // The nodes that have ended, of those that an edge waits for.
  [/^join:/, (value) => (Array.isArray(value) ? set(value) : value)],
];

function constructed(id, args, kwargs = {}) {
  return { lc: 2, type: "constructor", id, args, kwargs };
}

/** Returns the JSON of LangGraph.js for an object of Python. */
function javaScripts(module, name, content) {
  const [top, part] = module.split(".");
  switch (top === "langchain_core" ? `${top}.${part}` : `${module}.${name}`) {
    case "langchain_core.messages":
    case "langchain_core.documents": {
      const kwargs = Object.fromEntries(Object.entries(content).filter(([, value]) => value !== null));
      return { lc: 1, type: "constructor", id: [top, part, name], kwargs };
    }
    case "builtins.set":
    case "builtins.frozenset":
      return constructed(["Set"], [content]);
    case "langgraph.types.Send":
      return { node: content[0], args: content[1] };
    case "uuid.UUID":
      return content.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
    default:
      return content;
  }
}

function revived(_, value) {
  if (value?.lc !== 2 || value.type !== "constructor" || !(value.id?.length > 1)) return value;
  const { id, args = [], kwargs } = value;
  return javaScripts(id.slice(0, -1).join("."), id.at(-1), args.length > 1 ? args : (args[0] ?? kwargs));
}

function pythons(_, value) {
  // A field of a message without a value, which Python would take for one.
  if (value?.lc === 2 && value.type === "undefined") return undefined;
  if (value?.type !== "constructor") return value;
  const name = value.id?.join(".");
  if (value.lc === 2 && name === "Set") return set(value.args[0]);
  // The one message that Python does not read by its short name.
  const isRemoval = value.lc === 1 && name === "langchain_core.messages.RemoveMessage";
  return isRemoval ? constructed(["langchain_core", "messages", "modifier", "RemoveMessage"], [], value.kwargs) : value;
}

function withBytes(_, value) {
  return value instanceof Uint8Array ? { ...constructed(["Uint8Array"], [[...value]]), method: "from" } : value;
}

/** Returns data of JSON as `convert` makes them anew, or as they are if it makes nothing. */
function converted(type, data, convert) {
  const value = type === "json" && convert(new TextDecoder().decode(data));
  return [type, value ? bytesOf(value) : data];
}

function bytesOf(value, replacer) {
  return new TextEncoder().encode(JSON.stringify(value, replacer));
}
