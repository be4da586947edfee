// A checkpoint in short: which step it is, what made it, what its tasks came to, and where it stands in the tree.

import { el, idOf } from "./dom.js";
import { counted, lasted, moment, sized } from "./format.js";
import { standing } from "./pending.js";
import { isInternal } from "./state.js";
import { fold, valueOf } from "./value.js";

/** The summary; `tell` has `select(key)`, `tab(name)` and `toggle(path)`. */
export function summaryView(checkpoint, model, view, tell) {
  const parent = model.checkpoints.get(checkpoint.parent);
  const children = model.childrenOf(checkpoint);
  const caller = checkpoint.ns === "" ? null : model.callerOf(checkpoint.ns);
  const calls = model.callsOf(checkpoint);
  return [
    el("h2", {}, checkpoint.step === null ? "Checkpoint" : `Step ${checkpoint.step}`),
    el(
      "p",
      { class: "badges" },
      checkpoint.source && el("span", { class: "badge" }, checkpoint.source),
      checkpoint.newest && el("span", { class: "badge newest" }, "newest"),
      checkpoint.waiting && el("span", { class: "badge waiting" }, "a human is asked"),
      checkpoint.failed && el("span", { class: "badge failed" }, "failed"),
      checkpoint.retried && el("span", { class: "badge retried" }, "failed, tried again"),
    ),
    checkpoint.problem && el("p", { class: "problem" }, checkpoint.problem),
    el(
      "dl",
      { class: "facts" },
      fact("made by", chips(checkpoint.ran)),
      fact("stored", [moment(checkpoint.stored_at), since(checkpoint, parent)]),
      fact("changed", channels(checkpoint, tell)),
      fact("runs next", chips(checkpoint.next)),
      fact(
        "subgraphs",
        [...new Map(calls.map((lane) => [lane.path, lane.name]))].map(([path, name]) =>
          button(name, () => tell.toggle(path)),
        ),
      ),
      fact("parent", parent && button(nameOf(parent), () => tell.select(parent.key))),
      fact("called by", caller && button(nameOf(caller), () => tell.select(caller.key))),
      fact(
        children.length > 1 ? "forks into" : "child",
        children.length > 0 && children.map((each) => button(nameOf(each), () => tell.select(each.key))),
      ),
      fact("expires", checkpoint.expires_at && moment(checkpoint.expires_at)),
      fact("own items", `${counted(checkpoint.items, "item")}, ${sized(checkpoint.bytes)}`),
      fact("run", checkpoint.run && idOf(checkpoint.run)),
      fact("id", idOf(checkpoint.id)),
      fact("thread", idOf(model.thread)),
    ),
    checkpoint.tasks.length > 0 && el("h3", {}, "Tasks"),
    el(
      "ul",
      { class: "tasks" },
      checkpoint.tasks.map((task) => taskView(task, view)),
    ),
  ];
}

function fact(name, value) {
  return value && value.length !== 0 ? el("div", {}, el("dt", {}, name), el("dd", {}, value)) : null;
}

function chips(names) {
  return names.map((each) => el("span", { class: "chip" }, each));
}

function channels(checkpoint, tell) {
  const names = checkpoint.changed.filter((each) => !isInternal(each));
  return names.map((each) => button(each, () => tell.tab("changes")));
}

function button(text, act) {
  return el("button", { type: "button", class: "chip", click: act }, text);
}

function since(checkpoint, parent) {
  const isKnown = checkpoint.at !== null && parent !== undefined && parent.at !== null;
  return isKnown && el("small", {}, `${lasted(Math.max(0, checkpoint.at - parent.at))} after its parent`);
}

function nameOf(checkpoint) {
  return `${checkpoint.step === null ? checkpoint.id : `step ${checkpoint.step}`}${checkpoint.ran.length > 0 ? `, ${checkpoint.ran.join(", ")}` : ""}`;
}

function taskView(task, view) {
  const [name, words] = standing(task);
  const plain = { ...view, beyond: "is under Pending." };
  const told = (word, nodes) =>
    nodes.map((each) =>
      el("div", { class: "told" }, el("span", { class: "kind" }, word), valueOf(each, ["writes"], plain)),
    );
  return el(
    "li",
    {},
    el("span", { class: "task-name" }, task.node ?? "task"),
    el("span", { class: `badge ${name}` }, words),
    task.sent && fold(el("span", { class: "kind" }, "was sent"), () => valueOf(task.sent, ["values"], plain)),
    told("asked", task.asked),
    told("answered", task.answered),
    task.error !== null && told("failed with", [task.error]),
  );
}
