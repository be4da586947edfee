// What each step cost: a chart of bytes and write units, and the totals in dollars.

import { el, fill, svg } from "./dom.js";
import { counted, dollars, number, sized } from "./format.js";
import { fold } from "./value.js";

const WIDTH = 1000;
const HEIGHT = 120;
const BAR_WIDTH_MAX = 28;
const TABLE_ROWS = 200;

/** The cost of a namespace; `select` takes a checkpoint's id. */
export function costView(cost, selected, steps, select) {
  const { prices, totals } = cost;
  const at = prices.findIndex((each) => each.checkpoint === selected);
  const detail = el("div", { class: "step-price", role: "status" });
  const show = (position) => fill(detail, position >= 0 && priceView(prices[position], steps));
  show(at);
  const bytes = prices.map((each) => [each.bytes + each.new_bytes, each.shared_bytes]);
  const units = prices.map((each) => [each.write_units]);
  return el(
    "div",
    { class: "cost" },
    el(
      "dl",
      { class: "totals" },
      total(
        "stored",
        sized(totals.bytes),
        `${counted(totals.items, "item")}, ${counted(totals.segments, "segment")}`,
      ),
      total("written", dollars(totals.write_dollars), `${number(totals.write_units)} write units`),
      total("kept for a month", dollars(totals.month_dollars), "storage, on demand in us-east-1"),
    ),
    detail,
    totals.missing_segments > 0 &&
      el("p", { class: "problem" }, `${counted(totals.missing_segments, "segment")} missing.`),
    chart("Bytes per step: new, and shared with the parent", bytes, ["new", "shared"], sized, at, show, (each) =>
      select(prices[each].checkpoint),
    ),
    chart("Write units per step", units, ["units"], number, at, show, (each) => select(prices[each].checkpoint)),
    tableOf(prices, steps),
  );
}

function total(name, value, detail) {
  return el("div", {}, el("dt", {}, name), el("dd", {}, value, el("small", {}, detail)));
}

/** Bars, stacked; one path for each series, so that thousands of them are one element. */
function chart(title, values, series, written, at, show, select) {
  const width = Math.min(BAR_WIDTH_MAX, WIDTH / Math.max(1, values.length));
  const highest = Math.max(1, ...values.map((each) => each.reduce((sum, value) => sum + value, 0)));
  const cursor = svg("rect", {
    class: "cursor",
    width: Math.max(width, 2),
    height: HEIGHT,
    y: 0,
    visibility: "hidden",
  });
  let place = at;
  const move = (position) => {
    place = Math.min(values.length - 1, Math.max(0, position));
    cursor.setAttribute("x", String(place * width));
    cursor.setAttribute("visibility", "visible");
    drawing.setAttribute("aria-valuenow", String(place + 1));
    drawing.setAttribute(
      "aria-valuetext",
      `checkpoint ${place + 1} of ${values.length}, ${series.map((name, each) => `${written(values[place][each])} ${name}`).join(", ")}`,
    );
    show(place);
  };
  const positionOf = (event) => {
    const box = drawing.getBoundingClientRect();
    return Math.floor((((event.clientX - box.left) / box.width) * WIDTH) / width);
  };
  const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -values.length, End: values.length };
  const drawing = svg(
    "svg",
    {
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      preserveAspectRatio: "none",
      role: "slider",
      tabindex: "0",
      "aria-label": title,
      "aria-valuemin": "1",
      "aria-valuemax": String(Math.max(1, values.length)),
      "aria-valuenow": String(place + 1),
      mousemove: (event) => move(positionOf(event)),
      click: (event) => select(Math.min(values.length - 1, Math.max(0, positionOf(event)))),
      keydown: (event) => {
        if (event.key === "Enter") {
          select(place);
        } else if (Object.hasOwn(steps, event.key)) {
          event.preventDefault();
          move(place + steps[event.key]);
        }
      },
    },
    series.map((name, each) => svg("path", { class: `bars ${name}`, d: bars(values, each, width, highest) })),
    cursor,
  );
  if (at >= 0) {
    move(at);
  }
  return el(
    "figure",
    { class: "chart" },
    el(
      "figcaption",
      {},
      title,
      series.length > 1 && series.map((name) => el("span", { class: `legend ${name}` }, name)),
      el("span", { class: "highest" }, `up to ${written(highest)}`),
    ),
    drawing,
  );
}

function bars(values, series, width, highest) {
  const gap = width > 6 ? 1 : 0;
  return values
    .map((each, position) => {
      const below = each.slice(0, series).reduce((sum, value) => sum + value, 0);
      const height = (each[series] / highest) * HEIGHT;
      const top = HEIGHT - (below / highest) * HEIGHT - height;
      return `M${(position * width).toFixed(2)} ${top.toFixed(2)}h${(width - gap).toFixed(2)}v${height.toFixed(2)}h${(gap - width).toFixed(2)}z`;
    })
    .join("");
}

function priceView(price, steps) {
  return [
    el("strong", {}, nameOf(price, steps)),
    `: ${number(price.write_units)} write units (${dollars(price.write_dollars)}) for ${sized(price.bytes)} in ${counted(price.items, "item")}`,
    ` and ${sized(price.new_bytes)} in ${counted(price.new_segments, "new segment")}; `,
    `shared with its parent: ${sized(price.shared_bytes)} in ${counted(price.shared_segments, "segment")}. `,
    `Reading it takes ${number(price.read_units)} read units (${dollars(price.read_dollars)}).`,
  ];
}

function nameOf(price, steps) {
  const step = steps.get(price.checkpoint);
  return step === undefined || step === null ? price.checkpoint : `Step ${step}`;
}

function tableOf(prices, steps) {
  const newest = prices.slice(-TABLE_ROWS);
  const heads = [
    "checkpoint",
    "items",
    "new segments",
    "shared",
    "new bytes",
    "shared bytes",
    "write units",
    "dollars",
  ];
  const caption =
    prices.length > TABLE_ROWS ? `The newest ${TABLE_ROWS} of ${prices.length} checkpoints` : "All checkpoints";
  const build = () =>
    el(
      "table",
      {},
      el("caption", {}, caption),
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          heads.map((each) => el("th", { scope: "col" }, each)),
        ),
      ),
      el(
        "tbody",
        {},
        newest.map((each) => rowOf(each, steps)),
      ),
    );
  return fold("As a table", build, { class: "internal" });
}

function rowOf(price, steps) {
  const cells = [
    number(price.items),
    number(price.new_segments),
    number(price.shared_segments),
    sized(price.bytes + price.new_bytes),
    sized(price.shared_bytes),
    number(price.write_units),
    dollars(price.write_dollars),
  ];
  return el(
    "tr",
    {},
    el("th", { scope: "row" }, nameOf(price, steps)),
    cells.map((each) => el("td", {}, each)),
  );
}
