// Memories by namespace: labels to go down by, and the memories under a namespace, page by page.

import { el, fill } from "./dom.js";
import { counted, lasted, moment, sized } from "./format.js";
import { conversation, messageCard } from "./messages.js";
import { asking, valueOf } from "./value.js";

/** A namespace's first two labels name where its memories are; those below them are told by the memories. */
const LISTED_LABELS = 2;

/** The page of a namespace, given by its labels; `go(labels)` shows another one. */
export function memoriesView(source, table, labels, go) {
  return el(
    "div",
    { class: "finder" },
    el("h2", { class: "finder-title" }, "Memories of ", el("code", {}, table)),
    way(labels, go),
    labels.length < LISTED_LABELS && namespacesView(source, labels, go),
    labels.length > 0 && listView(source, labels, go),
  );
}

/** The labels on the way to a namespace, each of which leads back. */
function way(labels, go) {
  const steps = [
    step("All namespaces", () => go([])),
    ...labels.map((each, at) => step(each, () => go(labels.slice(0, at + 1)))),
  ];
  return el("nav", { class: "way", "aria-label": "Namespace" }, steps);
}

function step(text, press) {
  return el("button", { type: "button", click: press }, text);
}

function namespacesView(source, labels, go) {
  const place = el("div", { "aria-live": "polite" }, "Reading the namespaces…");
  read(place, async () => {
    const found = await source.get("namespaces", { labels: JSON.stringify(labels) });
    fill(
      place,
      found.labels.length === 0
        ? el("p", { class: "empty" }, "There are none.")
        : el(
            "ul",
            { class: "threads" },
            found.labels.map((each) =>
              el("li", {}, el("button", { type: "button", class: "thread", click: () => go([...labels, each]) }, each)),
            ),
          ),
      found.more > 0 && el("p", { class: "listed" }, `${counted(found.more, "more label")}. Enter the one you look for.`),
    );
  });
  const input = el("input", { id: "label", type: "text", required: true, autocomplete: "off", spellcheck: "false" });
  const submit = (event) => {
    event.preventDefault();
    go([...labels, input.value]);
  };
  return el(
    "section",
    { "aria-label": "Namespaces" },
    el(
      "form",
      { submit },
      el("label", { for: "label" }, "Label"),
      el("span", { class: "field" }, input, el("button", { type: "submit" }, "Open")),
    ),
    place,
  );
}

/** The memories under a namespace. Of one label, those that have no second one. */
function listView(source, labels, go) {
  const list = el("div", { class: "memories" });
  const said = el("p", { class: "listed", role: "status" }, "Reading memories…");
  const more = el("div", { class: "more" });
  const place = el("section", { "aria-label": "Memories" }, list, more, said);
  let [count, around] = [0, null];
  const next = async (after) => {
    const page = await source.get("memories", { labels: JSON.stringify(labels), after });
    for (const each of page.memories) {
      const namespace = JSON.stringify(each.namespace);
      if (namespace !== around && each.namespace.length > labels.length) {
        list.append(el("h3", {}, step(each.namespace.slice(labels.length).join(" › "), () => go(each.namespace))));
      }
      around = namespace;
      list.append(memory(source, each));
    }
    count += page.memories.length;
    fill(said, `Memories: ${count}${page.after === null ? "." : " so far."}`);
    fill(more, page.after !== null && asking("More memories", () => next(page.after)));
  };
  read(place, () => next(undefined));
  return place;
}

async function read(place, ask) {
  try {
    await ask();
  } catch (error) {
    fill(place, el("p", { class: "problem", role: "alert" }, error.message));
  }
}

function memory(source, { namespace, key, value, problem, ...facts }) {
  const at = { labels: JSON.stringify(namespace), key };
  const view = {
    beyond: null,
    part: (path, start) => source.get("memory", { ...at, path: JSON.stringify(path), start }),
    blame: null,
    message: (node, path) => messageCard(node, path, view),
    conversation: (node, path) => conversation(node, path, view),
  };
  const place = el("div", {});
  const show = async () => fill(place, valueOf(await source.get("memory", at), [], view));
  if (problem !== null) {
    fill(place, el("p", { class: "problem" }, problem));
  } else {
    fill(place, value === null ? asking("Show the value", show) : valueOf(value, [], view));
  }
  return el(
    "article",
    { class: "memory", "aria-label": key },
    el("h4", {}, key),
    el("small", {}, factsOf(facts).join(" · ")),
    place,
  );
}

function factsOf({ revision, created_at, updated_at, ttl_seconds, expires_at, vectors, bytes }) {
  return [
    updated_at !== null && `updated ${moment(updated_at)}`,
    created_at !== null && `created ${moment(created_at)}`,
    revision !== null && `revision ${revision}`,
    expires_at === null ? "no ttl" : `ttl ${lasted(ttl_seconds * 1000)}, expires ${moment(expires_at)}`,
    vectors === 0 ? "no vectors" : counted(vectors, "vector"),
    `item of ${sized(bytes)}`,
  ].filter(Boolean);
}
