// The first page: the list of threads, and finding one by its id, by a run, or among recent ones.

import { directoryView } from "./directory.js";
import { el, fill } from "./dom.js";

const RECENT_MAX = 12;

/** Threads that were opened in this browser lately, for each table. */
export class Recent {
  constructor(table) {
    this.key = `langgraph-dynamodb view ${table}`;
  }

  all() {
    try {
      const found = JSON.parse(localStorage.getItem(this.key) ?? "[]");
      return Array.isArray(found) ? found.filter((each) => typeof each === "string") : [];
    } catch {
      // The browser may keep nothing, or something else may have written there.
      return [];
    }
  }

  add(thread) {
    const others = this.all().filter((each) => each !== thread);
    try {
      localStorage.setItem(this.key, JSON.stringify([thread, ...others].slice(0, RECENT_MAX)));
    } catch {
      // Then there are no recent ones.
    }
  }
}

/** The page; `open(thread)` shows a thread, and `searched(place)` hears what the list is searched for. */
export function threadsView(source, start, recent, place, open, searched) {
  const results = el("div", { class: "results", "aria-live": "polite" });
  return el(
    "div",
    { class: "finder" },
    el("h2", { class: "finder-title" }, "Threads of ", el("code", {}, start.table)),
    directoryView(source, place, open, searched),
    el(
      "div",
      { class: "finder-forms" },
      form("Thread id", "thread", "Open", (id) => open(id)),
      form("Run id", "run", "Find", async (run) => {
        const { threads } = await source.get("threads", { run });
        fill(results, listOf(threads, open, `Threads of run ${run}`, "No thread has a checkpoint of that run."));
      }),
    ),
    results,
    recent.all().length > 0 && listOf(recent.all(), open, "Recently opened in this browser"),
  );
}

function form(label, name, action, submit) {
  const input = el("input", {
    id: `find-${name}`,
    name,
    type: "text",
    required: true,
    autocomplete: "off",
    spellcheck: "false",
  });
  return el(
    "form",
    {
      submit: (event) => {
        event.preventDefault();
        submit(input.value.trim());
      },
    },
    el("label", { for: `find-${name}` }, label),
    el("span", { class: "field" }, input, el("button", { type: "submit" }, action)),
  );
}

function listOf(threads, open, title, none = "") {
  return el(
    "section",
    { "aria-label": title },
    el("h2", {}, title),
    threads.length === 0
      ? el("p", { class: "empty" }, none)
      : el(
          "ul",
          { class: "threads" },
          threads.map((each) => item(each, open)),
        ),
  );
}

function item(thread, open) {
  return el("li", {}, el("button", { type: "button", class: "thread", click: () => open(thread) }, thread));
}
