// What is another in a checkpoint than in its parent.

import { el, fill } from "./dom.js";
import { counted, sized } from "./format.js";
import { usageOf } from "./messages.js";
import { isInternal } from "./state.js";
import { fold, valueOf } from "./value.js";

/** Longer texts are shown whole beside each other and not compared character by character. */
const COMPARED_CHARACTERS = 20_000;
const CONTEXT = 80;

/** The changes; `earlier` shows values of the parent. */
export function changesView(changes, earlier, view) {
  const own = changes.channels.filter((each) => !isInternal(each.channel));
  const internal = changes.channels.filter((each) => isInternal(each.channel));
  return el(
    "div",
    { class: "changes" },
    changes.parent === null && el("p", {}, "Its parent is not there, so all of it is new."),
    el("p", { class: "usage-total" }, usageOf(newMessages(changes), "in this step")),
    own.length === 0 && el("p", { class: "empty" }, "No channel of the graph differs."),
    own.map((each) => channelChanges(each, earlier, view)),
    internal.length > 0 &&
      fold(
        `LangGraph's own channels (${internal.length})`,
        () => internal.map((each) => channelChanges(each, earlier, view)),
        {
          class: "internal",
        },
      ),
    changes.unchanged.length > 0 &&
      el(
        "p",
        { class: "unchanged" },
        `Unchanged: ${changes.unchanged.filter((each) => !isInternal(each)).join(", ") || "LangGraph's own channels"}`,
      ),
  );
}

/** The messages that a step added. */
function newMessages(changes) {
  const added = changes.channels.flatMap((each) => each.changes).filter(({ kind }) => kind === "added");
  const nodes = added.flatMap(({ after }) => (after.kind === "list" ? after.items : [after]));
  return nodes.filter(({ kind }) => kind === "message");
}

function channelChanges(channel, earlier, view) {
  const sizes = [channel.before_bytes, channel.after_bytes].map((bytes) => (bytes === null ? "nothing" : sized(bytes)));
  return el(
    "section",
    { class: "channel", "aria-label": `Changes of ${channel.channel}` },
    el(
      "h3",
      {},
      el("span", { class: "channel-name" }, channel.channel),
      el("span", { class: `badge ${channel.kind}` }, channel.kind),
      el("span", { class: "size" }, `${sizes[0]} → ${sizes[1]}`),
    ),
    channel.problem && el("p", { class: "problem" }, channel.problem),
    channel.changes.map((each) => changeView(each, earlier, view)),
    channel.more > 0 && el("p", { class: "left-out" }, `${counted(channel.more, "further change")} not shown.`),
  );
}

function changeView(change, earlier, view) {
  const path = change.path ?? change.before_path;
  const place = path.slice(2).join(" › ");
  const [before, after] = isTextual(change)
    ? compared(change)
    : [side(change.before, change.before_path, earlier), side(change.after, change.path, view)];
  return el(
    "div",
    { class: `change ${change.kind}` },
    el(
      "div",
      { class: "change-place" },
      el("span", { class: "kind" }, place ? change.kind : "the whole channel"),
      place && el("span", { class: "key" }, place),
    ),
    before && el("div", { class: "side before" }, el("span", { class: "sign", "aria-label": "before" }, "−"), before),
    after && el("div", { class: "side after" }, el("span", { class: "sign", "aria-label": "after" }, "+"), after),
  );
}

function side(node, path, view) {
  return node === null ? null : el("div", { class: "side-value" }, valueOf(node, path, view));
}

function isTextual({ before, after }) {
  const isWhole = (node) => node?.kind === "text" && !node.cut && node.length <= COMPARED_CHARACTERS;
  return isWhole(before) && isWhole(after);
}

/** Two texts with what they have in common shortened, and what differs marked. */
function compared({ before, after }) {
  const [one, other] = [before.text, after.text];
  let start = 0;
  while (start < Math.min(one.length, other.length) && one[start] === other[start]) {
    start += 1;
  }
  let end = 0;
  while (end < Math.min(one.length, other.length) - start && one.at(-1 - end) === other.at(-1 - end)) {
    end += 1;
  }
  return [marked("del", one, start, end), marked("ins", other, start, end)];
}

function marked(name, text, start, end) {
  const from = Math.max(0, start - CONTEXT);
  const to = Math.min(text.length, text.length - end + CONTEXT);
  const element = el("div", { class: "side-value text" });
  const middle = text.slice(start, text.length - end);
  return fill(
    element,
    from > 0 && "…",
    text.slice(from, start),
    middle && el(name, {}, middle),
    text.slice(text.length - end, to),
    to < text.length && "…",
  );
}
