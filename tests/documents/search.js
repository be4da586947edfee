// Asks the site's search what a reader sees: `node search.js WORKER INDEX QUERY ...` prints for each query the groups of
// addresses, a group for each page, the best first. The worker is the script that a browser runs beside the page.
const { readFileSync } = require("node:fs");

const [worker, index, ...queries] = process.argv.slice(2);
let listen, answer;
const ask = (data) => new Promise((resolve) => { answer = resolve; listen({ data }); });
globalThis.self = globalThis;
globalThis.addEventListener = (_, listener) => { listen = listener; };
globalThis.postMessage = (message) => answer(message.data);
(0, eval)(readFileSync(worker, "utf8"));

const search = async () => {
  await ask({ type: 0, data: { ...JSON.parse(readFileSync(index, "utf8")), options: { suggest: true } } });
  const found = [];
  for (const query of queries) {
    const { items } = await ask({ type: 2, data: query });
    found.push(items.map((page) => page.map((each) => each.location)));
  }
  console.log(JSON.stringify(found));
};
search();
