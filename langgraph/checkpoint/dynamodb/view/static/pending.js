// What the tasks of a checkpoint have stored: writes, questions to a human, failures; and which run next.

import { el, idOf } from "./dom.js";
import { entry, fold, valueOf } from "./value.js";

const SPECIAL = { __interrupt__: "asked a human", __resume__: "was answered", __error__: "failed" };

/** Tasks with their writes. */
export function pendingView(pending, view) {
  const writes = pending.writes.map((write, position) => ({ write, path: ["writes", position] }));
  const tasks = new Map(pending.tasks.map((each) => [each.task_id, each]));
  const ids = new Set([...tasks.keys(), ...pending.writes.map((each) => each.task_id)]);
  return el(
    "div",
    { class: "pending" },
    pending.problem && el("p", { class: "problem" }, pending.problem),
    el(
      "p",
      { class: "next" },
      pending.next.length > 0
        ? ["Runs next: ", pending.next.map((each) => el("span", { class: "chip" }, each))]
        : "Nothing runs next.",
    ),
    ids.size === 0 && el("p", { class: "empty" }, "No task has stored anything here."),
    [...ids].map((id) =>
      taskView(
        id,
        tasks.get(id),
        writes.filter(({ write }) => write.task_id === id),
        view,
      ),
    ),
  );
}

/** How a task stands, in words. */
export function standing(task) {
  if (task.waiting) {
    return ["waiting", "waits for an answer"];
  }
  if (task.error !== null) {
    return task.finished ? ["retried", "failed, was tried again and finished"] : ["failed", "failed"];
  }
  return task.finished ? ["done", "finished"] : ["open", "has not finished"];
}

function taskView(id, task, writes, view) {
  const sentView = { ...view, beyond: "is under State, in the channel __pregel_tasks." };
  const [name, words] = task === undefined ? ["done", "before the graph ran"] : standing(task);
  return el(
    "section",
    { class: "channel task", "aria-label": `Task ${task?.node ?? id}` },
    el(
      "h3",
      {},
      el("span", { class: "channel-name" }, task?.node ?? "task"),
      el("span", { class: `badge ${name}` }, words),
      idOf(id),
    ),
    task?.sent && fold(el("span", { class: "kind" }, "was sent"), () => valueOf(task.sent, [], sentView)),
    writes.map((each) => writeView(each, view)),
  );
}

function writeView({ write, path }, view) {
  const special = SPECIAL[write.channel];
  if (write.problem !== null || write.value === null) {
    return el("p", { class: "problem" }, `${write.channel}: ${write.problem}`);
  }
  if (special === undefined) {
    return entry(write.channel, write.value, path, view);
  }
  return el(
    "div",
    { class: `special ${write.channel.replaceAll("_", "")}`, "data-path": JSON.stringify(path) },
    el("span", { class: "badge" }, special),
    valueOf(write.value, path, view),
  );
}
