// A thread: its tree above, and below it one checkpoint with all that it holds.

import { changesView } from "./changes.js";
import { el, fill } from "./dom.js";
import { Findings } from "./findings.js";
import { conversation, messageCard } from "./messages.js";
import { ThreadModel, keyOf } from "./model.js";
import { pendingView } from "./pending.js";
import { stateView } from "./state.js";
import { summaryView } from "./summary.js";
import { Tabs } from "./tabs.js";
import { TreeView } from "./tree.js";
import { reveal } from "./value.js";

const TABS = { state: "State", changes: "What changed", pending: "Pending" };
/** Who holds an arrow key down passes checkpoints by: they are read only where that stops. */
const REST_MILLISECONDS = 80;

/** The page of a thread. `told` has `progress(text)`, `moved(place)` and `described(texts)`. */
export class ThreadPage {
  #shown = null;
  #tab = "state";
  #stop = new AbortController();
  #closed = new AbortController();
  #timer = 0;

  constructor(source, thread, table, told) {
    Object.assign(this, { source, thread, table, told });
    this.model = new ThreadModel(source, thread);
    const tell = {
      select: (key) => this.select(key),
      toggle: (path) => this.toggle(path),
    };
    this.tree = new TreeView(this.model, tell);
    this.findings = new Findings(source, thread, (...place) => this.go(...place));
    this.tabs = new Tabs(TABS, "The checkpoint", (name) => this.show(name));
    this.summary = el("div", { class: "summary", role: "region", "aria-label": "Checkpoint", tabindex: "0" });
    this.element = el(
      "div",
      { class: "thread-page" },
      el("section", { class: "tree-panel", "aria-label": "Tree of checkpoints" }, this.tree.element, legend()),
      el(
        "div",
        { class: "below" },
        this.summary,
        el(
          "section",
          { class: "inspector", "aria-label": "What the checkpoint holds" },
          this.tabs.list,
          this.tabs.panel,
        ),
        this.findings.element,
      ),
    );
  }

  /** Reads the thread: the newest checkpoints first, so that there is something to see; `place` is where to begin. */
  async open({ ns = "", checkpoint = null, tab = "state" }) {
    const signal = this.#closed.signal;
    this.#tab = Object.hasOwn(TABS, tab) ? tab : "state";
    this.tabs.mark(this.#tab);
    this.told.described(await this.model.open(signal));
    for await (const page of this.model.read("", signal)) {
      this.tree.refresh();
      this.told.progress(page.done ? "" : `${page.read.toLocaleString("en-US")} checkpoints read…`);
      if (this.#shown !== null) {
        continue;
      }
      if (checkpoint === null) {
        this.#begin();
      } else if (this.model.checkpoints.has(keyOf(ns, checkpoint))) {
        await this.go(ns, checkpoint, null);
      }
    }
    if (this.model.problems.length > 0) {
      this.told.progress(this.model.problems.join(" "));
    }
    if (this.#shown === null && checkpoint !== null) {
      await this.go(ns, checkpoint, null);
    }
    // By now its parent and its children are known.
    this.#summarize();
    performance.mark("whole");
  }

  /** Whether there is something to see. */
  get hasBegun() {
    return this.#shown !== null;
  }

  /** Ends all that is under way. */
  close() {
    this.#closed.abort();
    this.#stop.abort();
    this.findings.close();
    clearTimeout(this.#timer);
  }

  /** Selects a checkpoint, and shows it once the selection rests. */
  select(key) {
    if (key !== this.#shown?.key) {
      this.#turnTo(key);
      this.tabs.panel.setAttribute("aria-busy", "true");
      this.#timer = setTimeout(() => this.show(this.#tab), REST_MILLISECONDS);
    }
  }

  /** Opens a subgraph's lane, or closes it. */
  async toggle(path) {
    if (this.tree.isOpen(path)) {
      this.tree.setOpen(path, false);
      return;
    }
    await this.#openLane(path);
  }

  /** Shows a checkpoint wherever it is, and what a path leads to in it. */
  async go(ns, checkpoint, path) {
    const focused = document.activeElement;
    const lane = this.model.lanes.get(ns);
    const names = lane === undefined || lane.path === "" ? [] : lane.path.split("|");
    for (let depth = 1; depth <= names.length; depth += 1) {
      await this.#openLane(names.slice(0, depth).join("|"));
    }
    const key = keyOf(ns, checkpoint);
    if (!this.model.checkpoints.has(key)) {
      this.told.progress(`Checkpoint ${checkpoint} is not there any more.`);
      this.#begin();
      return;
    }
    this.#turnTo(key);
    await this.show(path === null ? this.#tab : path[0] === "writes" ? "pending" : "state");
    const found = path === null ? null : reveal(this.tabs.panel, path);
    if (found !== null) {
      found.tabIndex = -1;
      found.scrollIntoView({ block: "center" });
      found.classList.add("revealed");
      // Whoever has gone on to something else by now stays there.
      if ([focused, document.body].includes(document.activeElement)) {
        found.focus({ preventScroll: true });
      }
    }
  }

  /** Shows a tab of the checkpoint. */
  async show(tab) {
    if (this.#shown === null) {
      return;
    }
    this.#stop.abort();
    this.#stop = new AbortController();
    const { signal } = this.#stop;
    clearTimeout(this.#timer);
    this.#tab = tab;
    this.tabs.mark(tab);
    this.told.moved({ ns: this.#shown.ns, checkpoint: this.#shown.id, tab });
    this.tabs.panel.setAttribute("aria-busy", "true");
    try {
      const content = await this.#content(tab, signal);
      if (!signal.aborted) {
        fill(this.tabs.panel, content);
        this.tabs.panel.scrollTop = 0;
        performance.mark("useful");
      }
    } catch (error) {
      if (!signal.aborted) {
        fill(this.tabs.panel, el("p", { class: "problem", role: "alert" }, error.message));
      }
    } finally {
      if (!signal.aborted) {
        this.tabs.panel.setAttribute("aria-busy", "false");
      }
    }
  }

  /** Makes another checkpoint the selected one, but for what the tabs show. */
  #turnTo(key) {
    clearTimeout(this.#timer);
    this.#shown = this.model.checkpoints.get(key);
    this.tree.select(key);
    this.#summarize();
    this.told.moved({ ns: this.#shown.ns, checkpoint: this.#shown.id, tab: this.#tab });
  }

  #summarize() {
    if (this.#shown === null) {
      return;
    }
    const tell = {
      select: (key) => this.select(key),
      tab: (name) => this.show(name),
      toggle: (path) => this.toggle(path),
    };
    fill(this.summary, summaryView(this.#shown, this.model, this.#view(), tell));
  }

  #begin() {
    const all = this.model.ordered();
    const newest = all.find((each) => each.newest) ?? all.at(-1);
    if (newest === undefined) {
      fill(
        this.tabs.panel,
        el("p", { class: "empty" }, `There is no checkpoint of a thread ${this.thread} in table ${this.table}.`),
        el("p", {}, "The id may be mistyped, the thread in another table or expired. ", listLink()),
      );
    } else {
      this.select(newest.key);
    }
  }

  async #openLane(path) {
    const namespaces = this.model.namespacesOf(path);
    for (const [position, ns] of namespaces.entries()) {
      for await (const page of this.model.read(ns, this.#closed.signal)) {
        this.told.progress(
          `Subgraph ${path.split("|").at(-1)}: call ${position + 1} of ${namespaces.length}, ${page.read} checkpoints read…`,
        );
      }
    }
    this.told.progress("");
    this.tree.setOpen(path, true);
  }

  async #content(tab, signal) {
    const asked = { thread: this.thread, ns: this.#shown.ns, checkpoint: this.#shown.id };
    const view = this.#view();
    switch (tab) {
      case "changes": {
        const changes = await this.source.stored("changes", asked, signal);
        return changesView(changes, this.#viewOf(this.#shown.ns, changes.parent), view);
      }
      case "pending":
        return pendingView(await this.source.get("pending", asked, signal), view);
      default:
        return stateView(await this.source.stored("state", asked, signal), view);
    }
  }

  #view() {
    return this.#viewOf(this.#shown.ns, this.#shown.id);
  }

  /** How the values of a checkpoint are shown. */
  #viewOf(ns, checkpoint) {
    const view = {
      beyond: this.source.isFile ? "is not in this file." : null,
      part: (path, start) =>
        this.source.get("part", { thread: this.thread, ns, checkpoint, path: JSON.stringify(path), start }),
      message: (node, path) => messageCard(node, path, view),
      conversation: (node, path) => conversation(node, path, view),
    };
    return view;
  }
}

function listLink() {
  return el("a", { href: "#find=" }, "List the threads of this table");
}

function legend() {
  const signs = [
    ["source-input", "input"],
    ["source-loop", "step"],
    ["source-fork", "update or fork"],
    ["failed", "! failed"],
    ["retried", "↻ tried again"],
    ["waiting", "? asks a human"],
    ["answered", "✓ answered"],
    ["calls", "+ subgraph (O opens it)"],
  ];
  return el(
    "p",
    { class: "legend-row", "aria-hidden": "true" },
    signs.map(([name, text]) => el("span", { class: `sign ${name}` }, text)),
  );
}
