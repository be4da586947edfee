// Blame and search without a server, out of the changes that an exported file has of each checkpoint.

/** Follows a value back to the checkpoint whose changes have it; gives one `Blame` for each step of the way. */
export async function* blameOffline(source, { thread, ns, checkpoint, path }) {
  const rows = await rowsOf(source, thread, ns);
  let [at, sought, looked] = [checkpoint, JSON.parse(path), 0];
  if (sought[0] !== "values") {
    yield { origin: originOf(rows, ns, at, sought, null), cursor: null, looked_at: 1, of: 1 };
    return;
  }
  while (at !== null && rows.has(at)) {
    const { channels } = await source.get("changes", { thread, ns, checkpoint: at });
    looked += 1;
    const change = channels
      .flatMap((each) => each.changes)
      .find((each) => each.path !== null && meets(each.path, sought));
    if (change !== undefined && change.kind !== "moved") {
      yield { origin: originOf(rows, ns, at, sought, change), cursor: null, looked_at: looked, of: rows.size };
      return;
    }
    if (change !== undefined) {
      sought = [...change.before_path, ...sought.slice(change.path.length)];
    }
    at = rows.get(at).parent;
    yield { origin: null, cursor: at, looked_at: looked, of: rows.size };
  }
}

/** Looks for a text in what each checkpoint changed, oldest first, and gives one `Search` for each; case does not matter. */
export async function* searchOffline(source, { thread, text }) {
  const sought = new RegExp(text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, "\\$&"), "iu");
  const { lanes } = await source.get("thread", { thread });
  const all = [];
  for (const { ns } of lanes) {
    all.push(...[...(await rowsOf(source, thread, ns)).values()].map((row) => ({ ns, row })));
  }
  all.sort((one, other) => (one.row.checkpoint < other.row.checkpoint ? -1 : 1));
  for (const [position, { ns, row }] of all.entries()) {
    const hits = await hitsIn(source, thread, ns, row, sought);
    const isLast = position === all.length - 1;
    yield { text, hits, cursor: isLast ? null : row.checkpoint, looked_at: position + 1, of: all.length };
  }
}

async function rowsOf(source, thread, ns) {
  const { rows } = await source.get("tree", { thread, ns });
  return new Map(rows.map((each) => [each.checkpoint, each]));
}

/** Whether one of two paths leads to, or into, what the other one does. */
function meets(one, other) {
  const length = Math.min(one.length, other.length);
  return one.slice(0, length).every((step, depth) => step === other[depth]);
}

function originOf(rows, ns, checkpoint, path, change) {
  const row = rows.get(checkpoint);
  const writers = (rows.get(row.parent)?.tasks ?? []).filter((each) => each.writes.includes(path[1]));
  return {
    ns,
    checkpoint,
    parent: row.parent,
    path,
    step: row.step,
    source: row.source,
    stored_at: row.stored_at,
    tasks: writers.map(({ task_id, node }) => ({ task_id, node, wrote_it: false })),
    before: change?.before ?? null,
  };
}

async function hitsIn(source, thread, ns, row, sought) {
  const asked = { thread, ns, checkpoint: row.checkpoint };
  const { channels } = await source.get("changes", asked);
  const { writes } = await source.get("pending", asked);
  const places = channels
    .flatMap((each) => each.changes)
    .map(({ path, before, after }) => ({ path, before, after, node: null }));
  places.push(
    ...writes.map(({ value, node }, position) => ({ path: ["writes", position], before: null, after: value, node })),
  );
  return places
    .filter(({ path, after }) => path !== null && after !== null)
    .flatMap(({ path, before, after, node }) => {
      const had = new Set(before === null ? [] : [...textsOf(before, [])].map((each) => each.text));
      return [...textsOf(after, path)]
        .filter((each) => sought.test(each.text) && !had.has(each.text))
        .map((each) => hitOf(ns, row, each, sought, node));
    });
}

const EXCERPT = 60;

function hitOf(ns, row, { path, text: found }, sought, node) {
  const { index: position, 0: text } = sought.exec(found);
  const start = Math.max(0, position - EXCERPT);
  return {
    ns,
    checkpoint: row.checkpoint,
    step: row.step,
    stored_at: row.stored_at,
    path,
    node,
    excerpt: found.slice(start, position + text.length + EXCERPT),
    at: position - start,
  };
}

/** Every text in a value, keys of entries among them, and every number; with the path that leads to each. */
function* textsOf(node, path) {
  if (node.kind === "text" || node.kind === "number") {
    yield { path, text: node.text };
  } else if (node.kind === "instance") {
    yield* textsOf(node.value ?? { kind: "null" }, path);
  }
  for (const [position, item] of (node.items ?? []).entries()) {
    yield* textsOf(item, [...path, position + (node.start ?? 0)]);
  }
  for (const { key, node: entry } of node.entries ?? []) {
    yield { path: [...path, key], text: key };
    yield* textsOf(entry, [...path, key]);
  }
  if (node.kind === "message") {
    yield* textsOf(node.content ?? { kind: "null" }, [...path, "content"]);
    for (const [position, call] of (node.calls ?? []).entries()) {
      yield* textsOf(call.args, [...path, "tool_calls", position, "args"]);
    }
  }
}
