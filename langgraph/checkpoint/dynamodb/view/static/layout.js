// Where each checkpoint of the tree goes: a column by its time, a row by its branch, and a lane by its subgraph.

/**
 * Lays checkpoints out.
 *
 * Checkpoints come oldest first and have `key`, `parent` (a key, or null) and `lane`, which is one of `paths`: names of
 * subgraphs, joined by "|". A lane that is not `open` takes one row and no columns, and hides the lanes within it.
 */
export function layOut(checkpoints, paths, open) {
  const lanes = lanesOf(checkpoints, paths, open);
  const shown = checkpoints.filter((each) => lanes.get(each.lane)?.open);
  const places = new Map(shown.map((each, column) => [each.key, { checkpoint: each, column, row: 0 }]));
  let row = 0;
  for (const lane of lanes.values()) {
    lane.row = row;
    lane.rows = lane.open ? placeBranches(lane.checkpoints, places, row) : 1;
    row += lane.rows;
  }
  return { lanes: [...lanes.values()], places, columns: shown.length, rows: row, long: longEdges(places) };
}

/** The lanes that can be seen, each after the one that it is within. */
function lanesOf(checkpoints, paths, open) {
  const seen = paths.filter((path) => isSeen(path, open));
  seen.sort((one, other) => (nested(one) < nested(other) ? -1 : 1));
  const lanes = new Map(seen.map((path) => [path, { path, open: path === "" || open.has(path), checkpoints: [] }]));
  for (const each of checkpoints) {
    lanes.get(each.lane)?.checkpoints.push(each);
  }
  return lanes;
}

/** A lane sorts right behind the one around it. */
function nested(path) {
  return path.replaceAll("|", "\u0000");
}

function isSeen(path, open) {
  const names = path.split("|");
  return names.slice(1).every((_, depth) => open.has(names.slice(0, depth + 1).join("|")));
}

/** Gives each branch the first row in which nothing else is at its time, and returns how many rows that takes. */
function placeBranches(checkpoints, places, first) {
  const rows = [];
  for (const branch of branchesOf(checkpoints, places)) {
    let row = rows.findIndex((end) => end < branch.start);
    row = row < 0 ? rows.length : row;
    rows[row] = places.get(branch.checkpoints.at(-1).key).column;
    for (const each of branch.checkpoints) {
      places.get(each.key).row = first + row;
    }
  }
  return Math.max(1, rows.length);
}

/** The oldest child goes on with its parent's branch; every other one begins a branch of its own. */
function branchesOf(checkpoints, places) {
  const branches = new Map();
  const found = [];
  for (const each of checkpoints) {
    const parent = each.parent && branches.get(each.parent);
    if (parent && parent.checkpoints.at(-1).key === each.parent) {
      parent.checkpoints.push(each);
      branches.set(each.key, parent);
      continue;
    }
    const from = parent ? places.get(each.parent) : places.get(each.key);
    const branch = { start: from.column, checkpoints: [each] };
    branches.set(each.key, branch);
    found.push(branch);
  }
  return found;
}

/** Edges whose ends are not side by side: they are looked for by themselves, since they cross what is scrolled to. */
function longEdges(places) {
  const edges = [];
  for (const place of places.values()) {
    const parent = places.get(place.checkpoint.parent);
    if (parent && (place.column - parent.column > 1 || place.row !== parent.row)) {
      edges.push({ from: parent, to: place });
    }
  }
  return edges;
}
