// Messages as the conversation that they are: who said what, which tools were called, and what those returned.

import { el, fill } from "./dom.js";
import { entry, fold, more, textOf, valueOf } from "./value.js";

const ROLES = { human: "human", ai: "model", tool: "tool", system: "system" };
const tokens = new Intl.NumberFormat("en-US");

/** A list of messages. A result stands beneath the call that it answers. */
export function conversation(node, path, view) {
  const list = el("ol", { class: "conversation" });
  const total = el("p", { class: "usage-total" });
  const messages = [];
  const show = (part) => {
    messages.push(...part.items.map((message, at) => ({ message, path: [...path, part.start + at] })));
    const results = resultsOf(messages);
    const folded = new Set(results.values());
    const own = messages.filter((each) => !folded.has(each));
    fill(
      list,
      own.map((each) => el("li", {}, messageCard(each.message, each.path, view, results))),
    );
    fill(total, usageOf(messages.map(({ message }) => message)));
  };
  show(node);
  return el("div", {}, total, list, more(node, path, view, show));
}

/** One message; `results` has the messages that answer its calls, by their ids. */
export function messageCard(message, path, view, results = new Map()) {
  const role = ROLES[message.role] ?? message.role;
  return el(
    "article",
    { class: `message role-${ROLES[message.role] ?? "other"}`, "data-path": JSON.stringify(path), tabindex: "-1" },
    el(
      "header",
      {},
      el("span", { class: "role" }, role),
      message.name && el("span", { class: "speaker" }, message.name),
      message.status === "error" && el("span", { class: "badge failed" }, "error"),
      el("span", { class: "place" }, `#${path.at(-1)}`),
      usage(message),
    ),
    contentOfMessage(message, path, view),
    (message.calls ?? []).map((call, at) => toolCall(call, [...path, "tool_calls", at], view, results.get(call.id))),
    others(message, path, view),
  );
}

function contentOfMessage(message, path, view) {
  const { content } = message;
  const place = [...path, "content"];
  if (content === undefined) {
    return null;
  }
  if (content.kind === "list" && content.items?.every((each) => textBlock(each) !== null) && !content.cut) {
    const blocks = content.items.map((each, at) => el("p", {}, textOf(textBlock(each), [...place, at, "text"], view)));
    return el("div", { class: "said", "data-path": JSON.stringify(place) }, blocks);
  }
  if (content.kind === "text" && content.length === 0) {
    return null;
  }
  return el("div", { class: "said", "data-path": JSON.stringify(place) }, valueOf(content, place, view));
}

/** The text of a content block that has nothing but text. */
function textBlock(block) {
  const entries = block.entries ?? [];
  const text = entries.find(({ key }) => key === "text")?.node;
  return entries.every(({ key }) => key === "text" || key === "type") && text?.kind === "text" ? text : null;
}

function toolCall(call, path, view, result) {
  const summary = [
    el("span", { class: "call-sign", "aria-hidden": "true" }, "→"),
    el("span", { class: "call" }, call.name),
    el("span", { class: "kind" }, result === undefined ? "no result yet" : "arguments and result"),
  ];
  const build = () => [
    entry("arguments", call.args, [...path, "args"], view),
    result && messageCard(result.message, result.path, view),
  ];
  return fold(summary, build, {
    class: "tool-call",
    "data-path": JSON.stringify(path),
    open: result !== undefined && isShort(result.message),
  });
}

function isShort(message) {
  return message.bytes < 600;
}

function resultsOf(messages) {
  const calls = new Set(messages.flatMap(({ message }) => message.calls ?? []).map((call) => call.id));
  const answers = messages.filter(({ message }) => message.result_of && calls.has(message.result_of));
  return new Map(answers.map((each) => [each.message.result_of, each]));
}

function others(message, path, view) {
  const entries = message.entries ?? [];
  if (entries.length === 0) {
    return null;
  }
  const build = () => entries.map(({ key, node }) => entry(key, node, [...path, key], view));
  return fold(el("span", { class: "kind" }, `other fields (${entries.length})`), build, { class: "others" });
}

function usage(message) {
  const { input = null, output = null } = message.usage ?? {};
  return input === null && output === null
    ? null
    : el("span", { class: "usage" }, `${spent(input)} tokens in, ${spent(output)} out`);
}

/** The tokens of messages together, in words; null if no model said any. */
export function usageOf(messages, where = "") {
  const all = messages.map(({ usage: used }) => used).filter((each) => each?.input ?? each?.output);
  const sum = (field) => all.reduce((total, each) => total + Number(each[field] ?? 0), 0);
  return all.length === 0
    ? null
    : `${spent(sum("input"))} tokens read and ${spent(sum("output"))} written by models${where && ` ${where}`}, as they say.`;
}

function spent(count) {
  return count === null ? "?" : tokens.format(count);
}
