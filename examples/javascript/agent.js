/**
 * An agent that asks a human, and resumes in another process: `node agent.js ADDRESS start trip-1`, then
 * `node agent.js ADDRESS yes trip-1`.
 */

import { pathToFileURL } from "node:url";

import { AIMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { Command, MessagesAnnotation, START, Send, StateGraph, interrupt } from "@langchain/langgraph";

import { GatewaySaver } from "./gateway-saver.js";

/** Without a model, to keep the example free of accounts. */
function plan() {
  const call = { id: "call-1", name: "book", args: { city: "Lisbon" } };
  return { messages: [new AIMessage({ content: "Lisbon is warm.", tool_calls: [call] })] };
}

/** One task for each call. */
function toBook({ messages }) {
  return messages.at(-1).tool_calls.map((call) => new Send("book", call));
}

function book({ id, args }) {
  const answer = interrupt(`Book ${args.city}?`);
  return { messages: [new ToolMessage({ content: answer === "yes" ? "booked" : "not booked", tool_call_id: id })] };
}

/** The graph, with a checkpointer. */
export function compile(checkpointer) {
  return new StateGraph(MessagesAnnotation)
    .addNode("plan", plan)
    .addNode("book", book)
    .addEdge(START, "plan")
    .addConditionalEdges("plan", toBook, ["book"])
    .compile({ checkpointer });
}

async function main(address, action, threadId) {
  const agent = compile(new GatewaySaver(address, { token: process.env.LANGGRAPH_GATEWAY_TOKEN }));
  const input = action === "start" ? { messages: [new HumanMessage("Where to?")] } : new Command({ resume: action });
  // Each step is stored before the next one begins.
  const state = await agent.invoke(input, { configurable: { thread_id: threadId }, durability: "sync" });
  for (const { value } of state.__interrupt__ ?? []) console.log(`asks: ${value}`);
  for (const message of state.messages) console.log(`${message.getType()}: ${message.text}`);
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) await main(...process.argv.slice(2));
