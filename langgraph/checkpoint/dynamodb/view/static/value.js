// A stored value as text that folds. What is large is shown piece by piece, and what the document left out is asked for.

import { el, fill, readable } from "./dom.js";
import { counted, sized } from "./format.js";

/** How many characters of a text are shown at first, and at each further step. */
const CHARACTERS = 2_000;
const MORE_CHARACTERS = 100_000;
/** Containers that take up less are open from the beginning. */
const OPEN_BYTES = 2_000;

const builders = new WeakMap();

/** Something that folds: what is in it is built when it is first opened. */
export function fold(summary, build, { open = false, ...attributes } = {}) {
  const details = el("details", attributes, el("summary", {}, summary));
  builders.set(details, build);
  details.addEventListener("toggle", () => details.open && unfold(details));
  if (open) {
    unfold(details);
  }
  return details;
}

/** Opens something that folds, with what is in it. */
function unfold(details) {
  const build = builders.get(details);
  if (build !== undefined) {
    builders.delete(details);
    details.append(el("div", { class: "folded" }, build()));
  }
  details.open = true;
}

/** What a value is, in a word or two. */
export function kindOf(node) {
  switch (node.kind) {
    case "list":
      return counted(node.length, isConversation(node) ? "message" : "item");
    case "object":
      return `${node.length === 1 ? "1 entry" : `${node.length} entries`}`;
    case "instance":
      return node.type.split(".").at(-1);
    case "message":
      return `${node.role} message`;
    case "masked":
      return node.type;
    default:
      return node.kind;
  }
}

/** Whether a value is a list of messages. */
export function isConversation(node) {
  return node.kind === "list" && node.items?.length > 0 && node.items.every((each) => each.kind === "message");
}

/**
 * An entry: its name and its value.
 *
 * The view has `part(path, start)`, which reads more of a value that was cut, or `beyond`, which says where that is where
 * it cannot be read; and `message(node, path)` and `conversation(node, path)`, which show messages.
 */
export function entry(key, node, path, view) {
  const name = key === null ? null : el("span", { class: "key" }, key);
  const element = el("div", { class: "entry", "data-path": JSON.stringify(path) });
  const label = [name, el("span", { class: "kind" }, `${kindOf(node)}, ${sized(node.bytes)}`)];
  if (isContainer(node) && node.kind !== "message") {
    element.append(fold(label, () => valueOf(node, path, view), { open: node.bytes < OPEN_BYTES }));
  } else {
    const value = valueOf(node, path, view);
    element.append(el("div", { class: "leaf" }, name, " ", value));
  }
  return element;
}

/** A value without a name. */
export function valueOf(node, path, view) {
  switch (node.kind) {
    case "text":
      return textOf(node, path, view);
    case "bytes":
      return fold(`${sized(node.length)} of bytes, in base 64`, () => textOf(node, path, view));
    case "message":
      return view.message(node, path);
    case "list":
      return isConversation(node) ? view.conversation(node, path) : contentOf(node, path, view);
    case "masked":
      return el("span", { class: "kind" }, `${node.type}, ${sized(node.bytes)}, masked`);
    case "null":
      return el("span", { class: "scalar" }, "null");
    case "boolean":
    case "number":
      return el("span", { class: "scalar" }, node.text);
    default:
      return contentOf(node, path, view);
  }
}

function isContainer(node) {
  return (
    ["list", "object", "message"].includes(node.kind) ||
    (node.kind === "instance" && (node.value === undefined || isContainer(node.value)))
  );
}

function contentOf(node, path, view) {
  if (node.kind === "instance") {
    return el(
      "div",
      {},
      el("p", { class: "class" }, node.type),
      node.value === undefined ? deeper(path, view) : valueOf(node.value, path, view),
    );
  }
  if (node.length === 0) {
    return el("p", { class: "empty" }, "empty");
  }
  const element = el("div", { class: "entries" });
  const add = (part) => {
    const items = (part.items ?? []).map((each, at) => [String(part.start + at), each, [...path, part.start + at]]);
    const entries = (part.entries ?? []).map(({ key, node: each }) => [key, each, [...path, key]]);
    element.append(...[...items, ...entries].map((each) => entry(...each, view)));
  };
  add(node);
  return el("div", {}, element, more(node, path, view, add));
}

/** What lies so deep that the document has nothing of it. */
function deeper(path, view) {
  const place = el("div", { class: "more" });
  const read = async () => fill(place, valueOf(await view.part(path, 0), path, view));
  return fill(place, view.beyond === null ? asking("Show it", read) : beyond("It", view));
}

/** A button that asks for more, and waits for it. */
export function asking(text, read) {
  const press = async ({ currentTarget: button }) => {
    button.disabled = true;
    try {
      await read();
    } finally {
      button.disabled = false;
    }
  };
  return el("button", { type: "button", click: press }, text);
}

function beyond(what, view) {
  return el("p", { class: "left-out" }, `${what} ${view.beyond}`);
}

/** The button for the rest of a list or an object, or what is to be said where there is no rest to be had. */
export function more(node, path, view, add) {
  const end = node.end ?? 0;
  const rest = node.length - end;
  if (!node.cut || rest <= 0) {
    return null;
  }
  const left = rest.toLocaleString("en-US");
  const place = el("div", { class: "more" });
  const read = async () => {
    const part = await view.part(path, end);
    add(part);
    fill(place, more(part, path, view, add));
  };
  return fill(place, view.beyond === null ? asking(`Show more (${left} left)`, read) : beyond(`${left} more`, view));
}

/** A text: its beginning, and buttons that go on, first with what is here and then with what the server has. */
export function textOf(node, path, view) {
  if (node.length <= CHARACTERS && !node.cut) {
    return el("span", { class: "text" }, node.text === "" ? el("em", {}, "empty text") : node.text);
  }
  // It scrolls by itself, so the keyboard has to reach it.
  const element = el("div", {
    class: "text long",
    tabindex: "0",
    role: "group",
    "aria-label": `A text of ${sized(node.bytes)}`,
  });
  const place = el("div", { class: "more" });
  let [here, shown, read] = [node.text, 0, node.end];
  const show = (characters) => {
    // A pair of surrogates is one character, which stays whole.
    const end = /[\ud800-\udbff]/.test(here[shown + characters - 1] ?? "")
      ? shown + characters + 1
      : shown + characters;
    element.append(el("span", {}, here.slice(shown, end)));
    shown = Math.min(end, here.length);
    const isLeft = shown < here.length || read < node.length;
    const isHere = shown < here.length || view.beyond === null;
    fill(
      place,
      isLeft && (isHere ? asking(`Show more (${sized(node.bytes)} in all)`, goOn) : beyond("The rest", view)),
    );
  };
  const goOn = async () => {
    if (shown >= here.length) {
      const part = await view.part(path, read);
      [here, shown, read] = [part.text, 0, part.end];
    }
    show(MORE_CHARACTERS);
  };
  show(CHARACTERS);
  return el("div", {}, element, place);
}

/** Shows what a path leads to, or as much of the way as there is, and gives the element. */
export function reveal(root, path) {
  let found = null;
  for (let length = 2; length <= path.length; length += 1) {
    const sought = readable(JSON.stringify(path.slice(0, length)));
    const element = root.querySelector(`[data-path="${CSS.escape(sought)}"]`);
    if (element === null) {
      continue;
    }
    for (
      let around = element.closest("details:not([open])");
      around;
      around = around.parentElement.closest("details:not([open])")
    ) {
      unfold(around);
    }
    const own = element.matches("details") ? element : element.querySelector(":scope > details");
    if (own !== null && length < path.length) {
      unfold(own);
    }
    found = element;
  }
  return found;
}
