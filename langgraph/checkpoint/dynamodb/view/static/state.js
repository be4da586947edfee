// What a checkpoint holds, channel by channel.

import { el } from "./dom.js";
import { counted, sized } from "./format.js";
import { fold, isConversation, kindOf, valueOf } from "./value.js";

/** Channels that take up more are closed at first, unless they are a conversation. */
const OPEN_BYTES = 300_000;
/** How many of the largest channels the first line names. */
const LARGEST = 8;

/** The channels of a checkpoint and its metadata. */
export function stateView(state, view) {
  const own = ordered(state.channels.filter((each) => !isInternal(each.name)));
  const internal = state.channels.filter((each) => isInternal(each.name));
  const total = state.channels.reduce((sum, each) => sum + bytesOf(each), 0);
  return el(
    "div",
    { class: "state" },
    summary(own, total),
    own.map((each) => channelView(each, total, view)),
    own.length === 0 && el("p", { class: "empty" }, "No channel of the graph has a value here."),
    internal.length > 0 &&
      fold(
        `LangGraph's own channels (${internal.length})`,
        () => internal.map((each) => channelView(each, total, view)),
        {
          class: "internal",
        },
      ),
    fold("Metadata", () => valueOf(state.metadata, ["metadata"], view), { class: "internal" }),
  );
}

/** Whether a channel is LangGraph's, and no part of the graph's own state. */
export function isInternal(name) {
  return name.startsWith("__") || name.startsWith("branch:") || name.startsWith("join:");
}

/** Conversations come first, since most people look for those, then what is new here. */
function ordered(channels) {
  const rank = ({ node, changed }) => (node !== null && isConversation(node) ? 0 : changed ? 1 : 2);
  return [...channels].sort((one, other) => rank(one) - rank(other));
}

function summary(channels, total) {
  const largest = [...channels].sort((one, other) => bytesOf(other) - bytesOf(one)).slice(0, LARGEST);
  const parts = largest.map((each) => `${each.name} ${sized(bytesOf(each))}`);
  return el(
    "p",
    { class: "state-summary" },
    `${counted(channels.length, "channel")}, ${sized(total)}`,
    parts.length > 0 && `: ${parts.join(", ")}${channels.length > LARGEST ? "…" : ""}`,
  );
}

function channelView(channel, total, view) {
  const path = ["values", channel.name];
  const meter = el("meter", {
    min: "0",
    max: String(Math.max(1, total)),
    value: String(bytesOf(channel)),
    "aria-label": `Share of ${channel.name} in all bytes`,
  });
  const label = [
    el("span", { class: "channel-name" }, channel.name),
    el("span", { class: "kind" }, channel.node === null ? "unreadable" : kindOf(channel.node)),
    channel.changed && el("span", { class: "badge changed" }, "changed here"),
    el(
      "span",
      { class: "size" },
      sized(bytesOf(channel)),
      channel.segments > 0 && `, ${counted(channel.segments, "segment")}`,
    ),
    meter,
  ];
  const build = () =>
    channel.node === null ? el("p", { class: "problem" }, channel.problem) : contentOfChannel(channel.node, path, view);
  return el(
    "section",
    { class: "channel", "aria-label": `Channel ${channel.name}`, "data-path": JSON.stringify(path), tabindex: "-1" },
    fold(label, build, { open: isOpen(channel) }),
  );
}

function bytesOf({ node }) {
  return node === null ? 0 : node.bytes;
}

function isOpen(channel) {
  return bytesOf(channel) < OPEN_BYTES || isConversation(channel.node);
}

function contentOfChannel(node, path, view) {
  const isPlain = ["text", "number", "boolean", "null", "bytes", "message"].includes(node.kind);
  return isPlain ? el("div", { class: "leaf" }, valueOf(node, path, view)) : valueOf(node, path, view);
}
