// The first page: the list of threads, and finding one by its id or by a run.

import { directoryView } from "./directory.js";
import { el, fill } from "./dom.js";
import { showMemories } from "./memories.js";

/** The page; `open(thread)` shows a thread, and `searched(place)` hears what the list is searched for. */
export function threadsView(source, start, place, open, searched) {
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
        fill(results, threadsOf(run, threads, open));
      }),
      form("Memories of an owner, or under labels such as users/ada", "memories", "Show", (of) =>
        showMemories(source, of, results),
      ),
    ),
    results,
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

function threadsOf(run, threads, open) {
  const title = `Threads of run ${run}`;
  const item = (thread) =>
    el("li", {}, el("button", { type: "button", class: "thread", click: () => open(thread) }, thread));
  return el(
    "section",
    { "aria-label": title },
    el("h2", {}, title),
    threads.length === 0
      ? el("p", { class: "empty" }, "No thread has a checkpoint of that run.")
      : el("ul", { class: "threads" }, threads.map(item)),
  );
}
