// Tabs as the ARIA practices describe them: arrow keys move between them, and each has one panel.

import { el } from "./dom.js";

/** A row of tabs; `choose(name)` is told which one was chosen. */
export class Tabs {
  constructor(names, label, choose) {
    this.names = Object.keys(names);
    this.choose = choose;
    this.panel = el("div", { role: "tabpanel", id: "panel", tabindex: "0", class: "panel" });
    this.buttons = new Map(this.names.map((name) => [name, this.#button(name, names[name])]));
    this.list = el("div", { role: "tablist", "aria-label": label, class: "tabs" }, [...this.buttons.values()]);
  }

  /** Marks one as chosen. */
  mark(name) {
    for (const [each, button] of this.buttons) {
      button.setAttribute("aria-selected", String(each === name));
      button.tabIndex = each === name ? 0 : -1;
    }
    this.panel.setAttribute("aria-labelledby", `tab-${name}`);
  }

  #button(name, text) {
    return el(
      "button",
      {
        type: "button",
        role: "tab",
        id: `tab-${name}`,
        "aria-controls": "panel",
        click: () => this.choose(name),
        keydown: (event) => this.#press(event, name),
      },
      text,
    );
  }

  #press(event, name) {
    const at = this.names.indexOf(name);
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: this.names.length - 1 }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      const next = this.names.at(to % this.names.length);
      this.buttons.get(next).focus();
      this.choose(next);
    }
  }
}
