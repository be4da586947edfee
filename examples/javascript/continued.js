/**
 * The agents of tests/support/continued.py: `node continued.js ADDRESS` reads what one is to do as a line of JSON, does
 * it, and prints what came of it.
 */

import { createInterface } from "node:readline";

import { AIMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { Annotation, Command, MessagesAnnotation, START, Send, StateGraph, interrupt } from "@langchain/langgraph";

import { GatewaySaver } from "./gateway-saver.js";

const checkpointer = new GatewaySaver(process.argv[2]);
const ran = [];

/** A node that notes that it ran. */
function noted(name, update) {
  return [name, (state) => {
    ran.push(name);
    return update(state);
  }];
}

const Log = Annotation.Root({ log: Annotation({ reducer: (log, more) => [...log, ...more], default: () => [] }) });
const asking = (what) => noted(what, () => ({ log: [`${what}: ${interrupt(`Which ${what}?`)}`] }));
const parallel = new StateGraph(Log)
  .addNode(...asking("flight"))
  .addNode(...asking("hotel"))
  .addNode(...noted("weather", () => ({ log: ["weather: warm"] })))
  .addNode(...noted("book", () => ({ log: ["booked"] })))
  .addEdge(START, "flight")
  .addEdge(START, "hotel")
  .addEdge(START, "weather")
  .addEdge(["flight", "hotel", "weather"], "book");

function plan({ messages }) {
  const call = { id: "call-1", name: "book", args: { city: messages.at(-1).text } };
  return { messages: [new AIMessage({ id: undefined, content: "Booking.", tool_calls: [call] })] };
}

function book({ messages }) {
  const [{ id, args }] = messages.at(-1).tool_calls;
  return { messages: [new ToolMessage({ content: `booked ${args.city}`, tool_call_id: id })] };
}

const fork = new StateGraph(MessagesAnnotation)
  .addNode(...noted("plan", plan))
  .addNode(...noted("book", book))
  .addEdge(START, "plan")
  .addEdge("plan", "book");

const booking = new StateGraph(Annotation.Root({ ...Log.spec, city: Annotation() }))
  .addNode(...noted("look", ({ city }) => ({ log: [`looked at ${city}`] })))
  .addNode(...noted("ask", ({ city }) => ({ log: [`${city}: ${interrupt(`Book ${city}?`)}`] })))
  .addEdge(START, "look")
  .addEdge("look", "ask");
const send = new StateGraph(Log)
  .addNode(...noted("plan", () => ({ log: ["planned"] })))
  .addNode("book", booking.compile())
  .addEdge(START, "plan")
  .addConditionalEdges("plan", () => [new Send("book", { city: "Lisbon", log: [] })], ["book"]);

const copy = new StateGraph(Annotation.Root({ value: Annotation(), copy: Annotation() }))
  .addNode(...noted("copies", ({ value }) => ({ copy: value })))
  .addEdge(START, "copies");

const agents = { parallel, fork, send, copy };
const inputs = {
  start: (text) => ({ messages: [new HumanMessage(text ?? "")], log: [] }),
  "go on": () => null,
  resume: (answers) => new Command({ resume: answers }),
};

async function done({ agent, action, given, checkpoint_id }) {
  const graph = agents[agent].compile({ checkpointer });
  const config = { configurable: { thread_id: agent, checkpoint_id }, durability: "sync" };
  if (action === "history") {
    const history = [];
    for await (const each of graph.getStateHistory(config)) history.push(each);
    return history.map((each) => [each.config.configurable.checkpoint_id, each.next, each.metadata.source]);
  }
  if (action === "update") return (await graph.updateState(config, inputs.start(given))).configurable.checkpoint_id;
  ran.length = 0;
  const { __interrupt__: asked = [], log, messages = [] } = await graph.invoke(inputs[action](given), config);
  const said = log ?? messages.map(({ text }) => text);
  return { ran: ran.sort(), asked: asked.map(({ value, id }) => [value, id]), said };
}

for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await done(JSON.parse(line))));
}
