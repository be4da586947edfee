/** Preloaded by node, writes each request that stores something to the file of LANGGRAPH_RECORDING, as a line of JSON. */

import { appendFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";

const send = globalThis.fetch;

globalThis.fetch = (url, options) => {
  const [, operation] = /\/checkpoints\/(put|put-writes)$/.exec(url) ?? [];
  if (operation !== undefined) {
    const { body, headers } = options;
    const request = JSON.parse(headers["Content-Encoding"] === "gzip" ? gunzipSync(body) : body);
    appendFileSync(process.env.LANGGRAPH_RECORDING, `${JSON.stringify({ operation, request })}\n`);
  }
  return send(url, options);
};
