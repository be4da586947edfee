// What a search has found, beside the checkpoint: it goes through the history and says how far it is.

import { el, fill } from "./dom.js";
import { counted } from "./format.js";

const HITS_MAX = 200;

/** The panel; `go(ns, checkpoint, path)` shows a place. */
export class Findings {
  #stop = new AbortController();

  constructor(source, thread, go) {
    Object.assign(this, { source, thread, go });
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

  /** Finds the steps in which a text appeared. */
  async search(text) {
    const list = el("ol", { class: "hits" });
    let count = 0;
    await this.#follow({ thread: this.thread, text }, `Where “${text}” appeared`, (found) => {
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

  async #follow(asked, title, tell) {
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
        "search",
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
