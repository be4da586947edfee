/**
 * LangGraph.js's own tests of checkpointers, and the example's agent.
 *
 * `LANGGRAPH_GATEWAY_URL` is the address of a gateway that accepts everybody, on a table without threads. Without it,
 * the tests start the one of this project, with an engine on this machine.
 */

import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

import { HumanMessage } from "@langchain/core/messages";
import { Command } from "@langchain/langgraph";
import { deltaChannelHistoryTests, validate } from "@langchain/langgraph-checkpoint-validation";

import { compile } from "./agent.js";
import { GatewaySaver } from "./gateway-saver.js";

const START_MS = 120_000;
const PROJECT = fileURLToPath(new URL("../..", import.meta.url));

let address = process.env.LANGGRAPH_GATEWAY_URL;
let gateway;

function startGateway() {
  gateway = spawn(process.env.MAKE ?? "make", ["gateway"], { cwd: PROJECT, stdio: ["ignore", "inherit", "pipe"] });
  return new Promise((resolve, reject) => {
    let printed = "";
    // It goes on reading, since the gateway could not print any more otherwise.
    gateway.stderr.setEncoding("utf8").on("data", (text) => {
      printed += text;
      address = /^serving table .+ at (.+)$/m.exec(printed)?.[1];
      if (address !== undefined) resolve();
    });
    gateway.on("error", reject);
    gateway.on("exit", () => reject(new Error(`the gateway ended:\n${printed}`)));
  });
}

/** Removes its threads at the end: a checkpointer of the tests has to find nothing of the one before. */
class TemporarySaver extends GatewaySaver {
  #threads = new Set();

  put(config, ...rest) {
    this.#threads.add(config.configurable?.thread_id);
    return super.put(config, ...rest);
  }

  async removeThreads() {
    this.#threads.delete(undefined);
    for (const threadId of this.#threads) await this.deleteThread(threadId);
  }
}

const initializer = {
  checkpointerName: "GatewaySaver",
  beforeAllTimeout: START_MS,
  beforeAll: () => address ?? startGateway(),
  afterAll: () => gateway?.kill(),
  createCheckpointer: () => new TemporarySaver(address),
  destroyCheckpointer: (saver) => saver.removeThreads(),
};

validate(initializer);
deltaChannelHistoryTests(initializer);

describe("an agent", () => {
  it("asks a human, and resumes with another checkpointer", async () => {
    const config = { configurable: { thread_id: "trip" } };
    const first = new TemporarySaver(address);
    const asked = await compile(first).invoke({ messages: [new HumanMessage("Where to?")] }, config);
    expect(asked.__interrupt__.map(({ value }) => value)).toEqual(["Book Lisbon?"]);

    const second = new GatewaySaver(address);
    const agent = compile(second);
    const { messages } = await agent.invoke(new Command({ resume: "yes" }), config);
    expect(messages.map((each) => [each.getType(), each.text])).toEqual([
      ["human", "Where to?"],
      ["ai", "Lisbon is warm."],
      ["tool", "booked"],
    ]);

    const history = [];
    for await (const state of agent.getStateHistory(config)) history.push(state);
    expect(history.map(({ metadata }) => metadata.step)).toEqual([2, 1, 0, -1]);
    await first.removeThreads();
    expect(await second.getTuple(config)).toBeUndefined();
  });
});
