// Memories of an owner or under a namespace, newest first.

import { el, fill } from "./dom.js";
import { counted, moment } from "./format.js";
import { conversation, messageCard } from "./messages.js";
import { asking, entry } from "./value.js";

/** Shows memories in a place, page by page. */
export async function showMemories(source, of, place) {
  const list = el("ul", { class: "threads memories" });
  const more = el("div", { class: "more" });
  const said = el("p", { class: "listed", role: "status" }, "Reading memories…");
  fill(place, el("section", { "aria-label": `Memories of ${of}` }, el("h2", {}, `Memories of ${of}`), list, more, said));
  const read = async (offset) => {
    const page = await source.get("memories", { of, offset });
    list.append(...page.memories.map(memoryView));
    fill(said, `${counted(list.children.length, "memory", "memories")}, newest first.`);
    fill(more, page.offset !== null && asking("Older memories", () => read(page.offset)));
  };
  try {
    await read(0);
  } catch (error) {
    fill(place, el("p", { class: "problem", role: "alert" }, error.message));
  }
}

function memoryView({ namespace, key, updated_at: updated, value }) {
  const view = {
    beyond: "is shown by `langgraph-dynamodb memories get`.",
    message: (node, path) => messageCard(node, path, view),
    conversation: (node, path) => conversation(node, path, view),
  };
  return el(
    "li",
    { class: "memory" },
    el("small", {}, `${namespace.map(encodeLabel).join("/")} · updated ${moment(updated)}`),
    entry(key, value, ["values", key], view),
  );
}

/** A label as the command line takes it. */
function encodeLabel(label) {
  return label.replaceAll("%", "%25").replaceAll("/", "%2F");
}
