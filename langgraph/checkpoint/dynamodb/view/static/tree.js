// The tree of checkpoints, drawn as far as it can be seen: two thousand of them are some forty elements.

import { el, fill, svg } from "./dom.js";
import { counted, lasted } from "./format.js";
import { layOut } from "./layout.js";

const COLUMN = 92;
const ROW = 82;
const MIDDLE = 32;
const RADIUS = 13;
/** How many columns are drawn beyond each end of what can be seen. */
const MARGIN = 3;

/** The tree; `tell` has `select(key)` and `toggle(path)`. */
export class TreeView {
  #open = new Set();
  #selected = null;
  #layout = layOut([], [""], new Set());
  #waits = false;
  /** Checkpoints by their row, in the order of their columns. */
  #rows = [];
  #byColumn = [];

  constructor(model, tell) {
    this.model = model;
    this.tell = tell;
    this.edges = svg("g", { "aria-hidden": "true" });
    this.nodes = svg("g", { role: "none" });
    this.drawing = svg(
      "svg",
      {
        role: "tree",
        tabindex: "0",
        "aria-label": "Checkpoints, from left to right. Arrow keys move along and between branches; O opens subgraphs.",
        keydown: (event) => this.#press(event),
        click: (event) => this.#click(event),
      },
      this.edges,
      this.nodes,
    );
    this.lanes = el("div", { class: "lanes" });
    this.element = el(
      "div",
      { class: "tree", scroll: () => this.#drawSoon() },
      el("div", { class: "tree-inner" }, this.lanes, this.drawing),
    );
    new ResizeObserver(() => this.#drawSoon()).observe(this.element);
  }

  /** Whether a lane is open. */
  isOpen(path) {
    return path === "" || this.#open.has(path);
  }

  /** Opens or closes a lane. */
  setOpen(path, isOpen) {
    if (isOpen) {
      this.#open.add(path);
    } else {
      this.#open.delete(path);
    }
    this.refresh();
  }

  /** Lays out what the model has by now. What is selected stays where it is on the screen. */
  refresh() {
    const before = this.#layout.places.get(this.#selected);
    this.#layout = layOut(this.model.ordered(), [...this.model.paths().keys()], this.#open);
    this.#rows = Array.from({ length: this.#layout.rows }, () => []);
    this.#byColumn = new Array(this.#layout.columns);
    for (const place of this.#layout.places.values()) {
      this.#rows[place.row].push(place);
      this.#byColumn[place.column] = place;
    }
    this.#drawLanes();
    const after = this.#layout.places.get(this.#selected);
    if (before !== undefined && after !== undefined) {
      this.element.scrollLeft += (after.column - before.column) * COLUMN;
    }
    this.#draw();
  }

  /** Selects a checkpoint and scrolls to it. */
  select(key) {
    this.#selected = key;
    this.#show(this.#layout.places.get(key));
    this.#draw();
  }

  #drawLanes() {
    const counts = this.model.paths();
    fill(
      this.lanes,
      this.#layout.lanes.map((lane) => {
        const element = el("div", { class: "lane" }, this.#laneName(lane, counts.get(lane.path) ?? 1));
        element.style.height = `${lane.rows * ROW}px`;
        return element;
      }),
    );
  }

  #laneName(lane, calls) {
    const depth = lane.path === "" ? 0 : lane.path.split("|").length;
    if (depth === 0) {
      return el("span", { class: "lane-name" }, "graph");
    }
    const name = lane.path.split("|").at(-1);
    return el(
      "button",
      {
        type: "button",
        class: `lane-name depth-${Math.min(depth, 4)}`,
        "aria-expanded": String(lane.open),
        "data-lane": lane.path,
        click: () => this.tell.toggle(lane.path),
      },
      el("span", { class: "chevron", "aria-hidden": "true" }),
      el("span", { class: "lane-text" }, name, el("small", {}, `subgraph, ${counted(calls, "call")}`)),
    );
  }

  #drawSoon() {
    if (!this.#waits) {
      this.#waits = true;
      requestAnimationFrame(() => {
        this.#waits = false;
        this.#draw();
      });
    }
  }

  #draw() {
    const { scrollLeft, scrollTop, clientWidth, clientHeight } = this.element;
    this.drawing.setAttribute(
      "width",
      String(Math.max(this.#layout.columns * COLUMN, clientWidth - this.lanes.offsetWidth)),
    );
    this.drawing.setAttribute("height", String(this.#layout.rows * ROW));
    const first = Math.max(0, Math.floor(scrollLeft / COLUMN) - MARGIN);
    const last = Math.ceil((scrollLeft + clientWidth) / COLUMN) + MARGIN;
    const [top, bottom] = [Math.floor(scrollTop / ROW) - 1, Math.ceil((scrollTop + clientHeight) / ROW) + 1];
    const seen = this.#byColumn.slice(first, last + 1).filter((each) => each.row >= top && each.row <= bottom);
    const selected = this.#layout.places.get(this.#selected);
    if (selected !== undefined && !seen.includes(selected)) {
      // A screen reader is told which element is active, so that has to be there.
      seen.push(selected);
    }
    const crossing = this.#layout.long.filter(({ from, to }) => from.column <= last && to.column >= first);
    const near = seen.map((to) => ({ from: this.#layout.places.get(to.checkpoint.parent), to }));
    const short = near.filter(
      ({ from, to }) => from !== undefined && to.column - from.column === 1 && to.row === from.row,
    );
    const lines = this.#layout.lanes.slice(1).map(({ row }) => laneLine(row));
    fill(
      this.edges,
      lines,
      [...short, ...crossing].map(edge),
      seen.map((each) => this.#callEdge(each)),
    );
    this.#drawNodes(seen);
    this.drawing.setAttribute("aria-activedescendant", selected === undefined ? "" : nodeId(selected));
  }

  /** Draws what changed. What stays is not touched: a click is lost if its node is gone when the button comes up. */
  #drawNodes(seen) {
    const before = new Map(Array.from(this.nodes.children, (each) => [each.id, each]));
    const nodes = seen.map((place) => {
      const node = this.#node(place);
      const old = before.get(node.id);
      return old?.isEqualNode(node) ? old : node;
    });
    const kept = new Set(nodes);
    [...before.values()].filter((each) => !kept.has(each)).forEach((each) => each.remove());
    let next = this.nodes.firstChild;
    for (const node of nodes) {
      if (node === next) {
        next = next.nextSibling;
      } else {
        this.nodes.insertBefore(node, next);
      }
    }
  }

  /** The line from a task to the first checkpoint of the subgraph that it called. */
  #callEdge(place) {
    const { checkpoint } = place;
    if (checkpoint.ns === "" || checkpoint.parent !== null) {
      return null;
    }
    const caller = this.#layout.places.get(this.model.callerOf(checkpoint.ns)?.key);
    return caller === undefined ? null : edge({ from: caller, to: place, called: true });
  }

  #node(place) {
    const { checkpoint: each, column, row } = place;
    const isSelected = each.key === this.#selected;
    const parent = this.model.checkpoints.get(each.parent);
    const calls = this.model.callsOf(each);
    const classes = ["node", `source-${each.source}`];
    classes.push(isSelected && "selected", each.newest && "newest");
    return svg(
      "g",
      {
        id: nodeId(place),
        role: "treeitem",
        class: classes.filter(Boolean).join(" "),
        transform: `translate(${column * COLUMN + COLUMN / 2} ${row * ROW + MIDDLE})`,
        "aria-selected": String(isSelected),
        "aria-level": each.lane === "" ? "1" : String(1 + each.lane.split("|").length),
        "aria-posinset": String(column + 1),
        "aria-setsize": String(this.#layout.columns),
        "data-checkpoint": each.id,
      },
      // Its name for screen readers, which a mouse shows too.
      svg("title", {}, spoken(each, parent, calls)),
      svg(
        "g",
        { "aria-hidden": "true" },
        svg("rect", { class: "halo", x: -COLUMN / 2 + 4, y: -MIDDLE + 3, width: COLUMN - 8, height: ROW - 6, rx: 8 }),
        shape(each.source),
        svg("text", { class: "step", y: 4 }, each.step ?? "·"),
        svg("text", { class: "ran", y: RADIUS + 15 }, shortened(each.ran.join(", ") || (each.source ?? ""))),
        svg("text", { class: "time", y: RADIUS + 28 }, each.newest ? "newest" : since(each, parent)),
        marks(each, calls),
      ),
    );
  }

  #click(event) {
    const id = event.target.closest(".node")?.id;
    const place = id && this.#byColumn[Number(id.split("-").at(-1))];
    if (place) {
      this.tell.select(place.checkpoint.key);
    }
  }

  #press(event) {
    const place = this.#layout.places.get(this.#selected);
    if (place === undefined || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    const to = this.#target(event.key, place);
    if (event.key.toLowerCase() === "o" || event.key === " ") {
      new Set(this.model.callsOf(place.checkpoint).map((each) => each.path)).forEach((path) => this.tell.toggle(path));
    } else if (to !== undefined) {
      this.tell.select(to.checkpoint.key);
    } else if (!KEYS.has(event.key)) {
      return;
    }
    event.preventDefault();
  }

  #target(key, place) {
    const row = this.#rows[place.row];
    const { checkpoint } = place;
    switch (key) {
      case "ArrowLeft":
        return this.#layout.places.get(checkpoint.parent ?? this.model.callerOf(checkpoint.ns)?.key);
      case "ArrowRight":
        return this.#layout.places.get(this.model.childrenOf(checkpoint)[0]?.key);
      case "ArrowUp":
        return nearest(this.#rows.slice(0, place.row).reverse(), place.column);
      case "ArrowDown":
        return nearest(this.#rows.slice(place.row + 1), place.column);
      case "PageUp":
        return row[Math.max(0, row.indexOf(place) - 10)];
      case "PageDown":
        return row[Math.min(row.length - 1, row.indexOf(place) + 10)];
      case "Home":
        return this.#byColumn[0];
      case "End":
        return this.#byColumn.find((each) => each.checkpoint.newest && each.checkpoint.ns === "");
      default:
        return undefined;
    }
  }

  #show(place) {
    if (place === undefined) {
      return;
    }
    const view = this.element;
    const [left, top] = [place.column * COLUMN, place.row * ROW];
    const width = view.clientWidth - this.lanes.clientWidth;
    if (left < view.scrollLeft || left + COLUMN > view.scrollLeft + width) {
      view.scrollLeft = left - width / 2 + COLUMN / 2;
    }
    if (top < view.scrollTop || top + ROW > view.scrollTop + view.clientHeight) {
      view.scrollTop = top - view.clientHeight / 2 + ROW / 2;
    }
  }
}

const KEYS = new Set(["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "PageUp", "PageDown", "Home", "End"]);

function nodeId(place) {
  return `checkpoint-${place.column}`;
}

function nearest(rows, column) {
  const row = rows.find((each) => each.length > 0);
  const distance = (place) => Math.abs(place.column - column);
  return row?.reduce((best, each) => (distance(each) < distance(best) ? each : best));
}

function laneLine(row) {
  return svg("line", { class: "lane-line", x1: 0, x2: "100%", y1: row * ROW + 0.5, y2: row * ROW + 0.5 });
}

function edge({ from, to, called = false }) {
  const x = (place) => place.column * COLUMN + COLUMN / 2;
  const y = (place) => place.row * ROW + MIDDLE;
  const isBent = from.row !== to.row;
  const turn = x(from) + COLUMN / 2 - 8;
  const round = to.row > from.row ? 8 : -8;
  const down = `Q ${turn} ${y(from)} ${turn} ${y(from) + round} V ${y(to) - round} Q ${turn} ${y(to)} ${turn + 8} ${y(to)}`;
  const bend = `H ${turn - 8} ${down}`;
  const path = `M ${x(from)} ${y(from)} ${isBent ? bend : ""} H ${x(to)}`;
  return svg("path", { class: called ? "edge called" : isBent ? "edge fork" : "edge", d: path });
}

function shape(source) {
  const size = RADIUS - 1;
  switch (source) {
    case "input":
      return svg("rect", { class: "shape", x: -size, y: -size, width: 2 * size, height: 2 * size, rx: 4 });
    case "update":
    case "fork":
      return svg("path", {
        class: "shape",
        d: `M 0 ${-RADIUS - 2} L ${RADIUS + 2} 0 L 0 ${RADIUS + 2} L ${-RADIUS - 2} 0 Z`,
      });
    default:
      return svg("circle", { class: "shape", r: RADIUS });
  }
}

/** What happened to a checkpoint's tasks, as signs beside it: never by colour alone. */
function marks(each, calls) {
  const signs = [
    each.failed && ["failed", "!"],
    each.retried && ["retried", "↻"],
    each.waiting && ["waiting", "?"],
    each.answered && ["answered", "✓"],
    calls.length > 0 && ["calls", "+"],
    each.problem !== null && ["failed", "×"],
  ].filter(Boolean);
  return signs.map(([name, sign], position) =>
    svg(
      "g",
      { class: `mark ${name}`, transform: `translate(${RADIUS + 4 + position * 16} ${-RADIUS - 2})` },
      svg("circle", { r: 7 }),
      svg("text", { y: 3.5 }, sign),
    ),
  );
}

function shortened(text) {
  const letters = [...text];
  return letters.length > 13 ? `${letters.slice(0, 12).join("")}…` : text;
}

function since(each, parent) {
  return each.at === null || parent === undefined || parent.at === null
    ? ""
    : `+${lasted(Math.max(0, each.at - parent.at))}`;
}

/** What a screen reader says of a checkpoint. */
function spoken(each, parent, calls) {
  const elapsed = since(each, parent);
  return [
    each.step === null ? "a checkpoint" : `step ${each.step}`,
    each.source,
    each.ran.length > 0 && `made by ${each.ran.join(", ")}`,
    elapsed && `${elapsed.slice(1)} after its parent`,
    each.failed && "a task failed",
    each.retried && "a task failed and was tried again",
    each.waiting && "a human is asked",
    each.answered && "a human answered",
    calls.length > 0 && counted(calls.length, "subgraph"),
    each.newest && "newest",
    each.problem,
  ]
    .filter(Boolean)
    .join(", ");
}
