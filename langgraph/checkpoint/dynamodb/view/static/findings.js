// What blame and search have found, beside the checkpoint: both go through the history and say how far they are.

import { el, fill } from "./dom.js";
import { counted, moment } from "./format.js";
import { valueOf } from "./value.js";

const HITS_MAX = 200;

/** The panel; `go(ns, checkpoint, path)` shows a place, and `view` is how values are shown. */
export class Findings {
  #stop = new AbortController();

  constructor(source, thread, go, view) {
    Object.assign(this, { source, thread, go, view });
    this.title = el("h2", {});
    this.bar = el("progress", { "aria-label": "Looking through the history" });
    this.progress = el("p", { class: "looking", role: "status" });
    this.body = el("div", {});
    const close = el(
      "button",
      { type: "button", class: "close", "aria-label": "Close the findings", click: () => this.close() },
      "Close",
    );
    this.element = el(
      "aside",
      { class: "findings", "aria-label": "Findings", hidden: true },
      el("header", {}, this.title, close),
      this.bar,
      this.progress,
      this.body,
    );
    this.element.addEventListener("keydown", (event) => event.key === "Escape" && this.close());
  }

  /** Hides the panel and ends what is under way. */
  close() {
    this.#stop.abort();
    if (!this.element.hidden) {
      this.element.hidden = true;
      this.returnTo?.focus();
    }
  }

  /** Finds the step that first made a value so. */
  async blame(ns, checkpoint, path) {
    const asked = { thread: this.thread, ns, checkpoint, path: JSON.stringify(path) };
    let origin = null;
    await this.#follow("blame", asked, `Who made ${path.slice(1).join(" › ")} so`, (found) => {
      origin = found.origin ?? origin;
      if (origin !== null) {
        fill(this.body, this.#origin(origin));
      }
    });
    if (origin === null) {
      fill(this.body, el("p", { class: "empty" }, "No checkpoint that is still there says so."));
    }
  }

  /** Finds the steps in which a text appeared. */
  async search(text) {
    const list = el("ol", { class: "hits" });
    let count = 0;
    await this.#follow("search", { thread: this.thread, text }, `Where “${text}” appeared`, (found) => {
      fill(this.body, list);
      for (const hit of found.hits) {
        count += 1;
        if (count <= HITS_MAX) {
          list.append(this.#hit(hit, text, count === 1));
        }
      }
    });
    if (count === 0) {
      fill(this.body, el("p", { class: "empty" }, "It is nowhere in this thread."));
    } else if (count > HITS_MAX) {
      this.body.append(el("p", { class: "left-out" }, `${counted(count - HITS_MAX, "further place")} not shown.`));
    }
  }

  async #follow(name, asked, title, tell) {
    this.#stop.abort();
    const stop = new AbortController();
    this.#stop = stop;
    this.returnTo = document.activeElement;
    fill(this.title, title);
    fill(this.body);
    fill(this.progress, "Looking…");
    this.bar.removeAttribute("value");
    this.bar.hidden = false;
    this.element.hidden = false;
    try {
      await this.source.follow(
        name,
        asked,
        (found) => {
          this.bar.max = Math.max(1, found.of);
          this.bar.value = found.looked_at;
          fill(
            this.progress,
            `${counted(found.looked_at, "checkpoint")} of ${found.of.toLocaleString("en-US")} looked at`,
          );
          tell(found);
        },
        stop.signal,
      );
    } finally {
      if (!stop.signal.aborted) {
        this.bar.hidden = true;
      }
    }
  }

  #origin(origin) {
    const wrote = origin.tasks.filter((each) => each.wrote_it);
    const makers = wrote.length > 0 ? wrote : origin.tasks;
    const nodes = makers.map((each) => each.node ?? "a task that does not say its node");
    const where =
      origin.ns === ""
        ? ""
        : ` in ${origin.ns
            .split("|")
            .map((each) => each.split(":")[0])
            .join(" › ")}`;
    return el(
      "div",
      { class: "origin" },
      el(
        "p",
        { class: "verdict" },
        el("strong", {}, origin.step === null ? "A checkpoint" : `Step ${origin.step}`),
        where,
        makers.length > 0
          ? [", by ", nodes.map((each) => el("span", { class: "chip" }, each))]
          : `, ${made(origin.source)}`,
      ),
      origin.stored_at && el("p", { class: "kind" }, moment(origin.stored_at)),
      makers.map((each) => el("p", { class: "kind" }, "task ", el("code", { class: "id" }, each.task_id))),
      el(
        "p",
        {},
        el(
          "button",
          { type: "button", class: "go", click: () => this.go(origin.ns, origin.checkpoint, origin.path) },
          "Show that step",
        ),
      ),
      el("h3", {}, "Before it"),
      origin.before === null
        ? el("p", { class: "empty" }, "Nothing was there.")
        : valueOf(origin.before, origin.path, {
            ...this.view(origin.ns, origin.parent),
            beyond: "is in the step before.",
            blame: null,
          }),
    );
  }

  #hit(hit, text, isFirst) {
    const end = hit.at + text.length;
    const step = hit.step === null ? "A checkpoint" : `Step ${hit.step}`;
    const place = hit.path[0] === "writes" ? "pending write" : hit.path.slice(1).join(" › ");
    return el(
      "li",
      { class: isFirst ? "first" : null },
      el(
        "button",
        { type: "button", class: "hit", click: () => this.go(hit.ns, hit.checkpoint, hit.path) },
        el(
          "span",
          { class: "hit-place" },
          el("strong", {}, step),
          isFirst && el("span", { class: "badge changed" }, "first"),
          hit.node && el("span", { class: "chip" }, hit.node),
          el("span", { class: "key" }, place),
        ),
        el(
          "span",
          { class: "excerpt" },
          hit.excerpt.slice(0, hit.at),
          el("mark", {}, hit.excerpt.slice(hit.at, end)),
          hit.excerpt.slice(end),
        ),
      ),
    );
  }
}

/** How a checkpoint that no task wrote to came to be. */
function made(source) {
  return (
    { input: "given as input", update: "by an update from outside", fork: "by a fork" }[source] ??
    "by no task that is still known"
  );
}
