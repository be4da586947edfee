// A thread as far as it has been read: its lanes, and the checkpoints of those that are open.

const PAGE = 200;

/** The name of a checkpoint on the page: ids are unique within a namespace only. */
export function keyOf(ns, checkpoint) {
  return `${ns}\n${checkpoint}`;
}

/** A thread whose checkpoints come page by page. */
export class ThreadModel {
  /** Every lane by its namespace. */
  lanes = new Map();
  /** Every checkpoint that was read, by its key. */
  checkpoints = new Map();
  /** The namespaces of which everything was read, and how many pages are still to come is not known of the others. */
  whole = new Set();
  problems = [];

  constructor(source, thread) {
    this.source = source;
    this.thread = thread;
  }

  /** Reads which lanes there are, and gives what the directory says of the thread, in words. */
  async open(signal) {
    const { owner, title, problem, lanes } = await this.source.get("thread", { thread: this.thread }, signal);
    for (const lane of lanes) {
      const around = lane.parent === null ? null : this.lanes.get(lane.parent);
      this.lanes.set(lane.ns, { ...lane, path: around?.path ? `${around.path}|${lane.name}` : lane.name });
    }
    if (problem !== null) {
      this.problems.push(problem);
    }
    const shown = (node) => (node?.kind === "text" ? node.text : undefined);
    return [shown(title), shown(owner) && `owner ${owner.text}`].filter(Boolean);
  }

  /** Reads a namespace's checkpoints, the newest page first, and gives how many have come after each page. */
  async *read(ns, signal) {
    if (this.whole.has(ns)) {
      return;
    }
    const lane = this.lanes.get(ns);
    let before = null;
    do {
      const page = await this.source.get("tree", { thread: this.thread, ns, before, limit: PAGE }, signal);
      for (const row of page.rows) {
        this.#add(lane, row, page.newest);
      }
      if (page.problem !== null) {
        this.problems.push(page.problem);
      }
      before = page.before;
      yield { read: this.countOf(ns), done: before === null };
    } while (before !== null);
    this.whole.add(ns);
  }

  /** How many checkpoints of a namespace have been read. */
  countOf(ns) {
    let count = 0;
    for (const each of this.checkpoints.values()) {
      count += each.ns === ns;
    }
    return count;
  }

  /** All that was read, the oldest first: LangGraph's ids begin with their time. */
  ordered() {
    return [...this.checkpoints.values()].sort((one, other) => (one.id < other.id ? -1 : 1));
  }

  /** The namespaces of a lane: a subgraph has one for each of its calls, unless it keeps its state over all of them. */
  namespacesOf(path) {
    return [...this.lanes.values()].filter((each) => each.path === path).map((each) => each.ns);
  }

  /** The lanes that show below others: their paths, with how many calls each has. */
  paths() {
    const counts = new Map();
    for (const { path } of this.lanes.values()) {
      counts.set(path, (counts.get(path) ?? 0) + 1);
    }
    return counts;
  }

  /** The subgraphs that a checkpoint's tasks have called. */
  callsOf(checkpoint) {
    const tasks = new Set(checkpoint.tasks.map((each) => each.task_id));
    return [...this.lanes.values()].filter((each) => each.parent === checkpoint.ns && tasks.has(each.task_id));
  }

  /** The checkpoint whose task called the subgraph of a namespace, where it has been read. */
  callerOf(ns) {
    const { parent, task_id: task } = this.lanes.get(ns);
    if (parent === null || task === null) {
      return null;
    }
    const within = [...this.checkpoints.values()].filter((each) => each.ns === parent);
    return within.find((each) => each.tasks.some(({ task_id }) => task_id === task)) ?? null;
  }

  /** What was stored next to a checkpoint: its children, the oldest first. */
  childrenOf(checkpoint) {
    return this.ordered().filter((each) => each.parent === checkpoint.key);
  }

  #add(lane, row, newest) {
    const key = keyOf(lane.ns, row.checkpoint);
    this.checkpoints.set(key, {
      ...row,
      key,
      id: row.checkpoint,
      ns: lane.ns,
      lane: lane.path,
      parent: row.parent === null ? null : keyOf(lane.ns, row.parent),
      at: row.stored_at === null ? null : Date.parse(row.stored_at),
      newest: lane.ns === "" && row.checkpoint === newest,
      failed: row.tasks.some((each) => each.error !== null && !each.finished),
      retried: row.tasks.some((each) => each.error !== null && each.finished),
      waiting: row.tasks.some((each) => each.waiting),
      answered: row.tasks.some((each) => each.answered.length > 0),
    });
  }
}
