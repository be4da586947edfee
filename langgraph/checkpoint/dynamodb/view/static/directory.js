// The list of threads: newest activity first, of an owner or of all, page by page.

import { el, fill } from "./dom.js";
import { counted, moment } from "./format.js";
import { asking } from "./value.js";

const STATUSES = { idle: "done", waiting: "waiting", failed: "failed" };
const CHOICES = { "": "any", waiting: "waiting for a human", failed: "failed", idle: "idle" };

/** The list; `place` has the `owner` and the `title` to begin with, and `searched(place)` hears of others. */
export function directoryView(source, place, open, searched) {
  const results = el("div", { "aria-live": "polite" });
  const inputs = { owner: input("owner", place.owner), title: input("title", place.title), status: choice(place.status) };
  const show = () => {
    const wanted = Object.fromEntries(
      Object.entries(inputs)
        .map(([name, field]) => [name, field.value.trim()])
        .filter(([, text]) => text !== ""),
    );
    searched(wanted);
    return list(source, wanted, open, results);
  };
  const submit = (event) => {
    event.preventDefault();
    show();
  };
  show();
  return el(
    "section",
    { "aria-label": "Threads" },
    el(
      "form",
      { class: "finder-forms", submit },
      field("Owner", inputs.owner),
      field("Status", inputs.status),
      field("Text in the title", inputs.title, el("button", { type: "submit" }, "Search")),
    ),
    results,
  );
}

function input(name, value = "") {
  return el("input", { id: `list-${name}`, name, type: "text", value, autocomplete: "off", spellcheck: "false" });
}

function choice(chosen = "") {
  const options = Object.entries(CHOICES);
  return el(
    "select",
    { id: "list-status", name: "status" },
    options.map(([value, text]) => el("option", { value, selected: value === chosen }, text)),
  );
}

function field(label, control, ...others) {
  return el(
    "div",
    {},
    el("label", { for: control.id }, label),
    el("span", { class: "field" }, control, ...others),
  );
}

/** Shows the first page of a list, and a button for each further one. */
async function list(source, wanted, open, place) {
  const rows = el("ul", { class: "threads" });
  const said = el("p", { class: "listed", role: "status" }, "Reading the directory…");
  const more = el("div", { class: "more" });
  fill(place, rows, more, said);
  let lookedAt = 0;
  const read = async (before) => {
    const page = await source.get("directory", { ...wanted, before });
    lookedAt += page.looked_at;
    rows.append(...page.threads.map((each) => row(each, open)));
    fill(said, summaryOf(rows.children.length, lookedAt, wanted, page.before === null));
    fill(more, page.before !== null && asking("Older threads", () => read(page.before)));
  };
  try {
    await read(undefined);
  } catch (error) {
    fill(place, el("p", { class: "problem", role: "alert" }, error.message));
  }
}

function row({ thread, owner, title, last_active, status, step, problem }, open) {
  return el(
    "li",
    {},
    el(
      "button",
      { type: "button", class: "thread", click: () => open(thread) },
      el(
        "span",
        { class: "thread-name" },
        el("span", {}, title ?? thread),
        status !== null && el("span", { class: `badge ${STATUSES[status]}` }, status),
      ),
      el(
        "small",
        {},
        [
          title !== null && thread,
          owner !== null && `owner ${owner}`,
          step !== null && `step ${step}`,
          last_active !== null && `active ${moment(last_active)}`,
          problem,
        ]
          .filter(Boolean)
          .join(" · "),
      ),
    ),
  );
}

/** What was found, and what was not looked at. */
function summaryOf(found, lookedAt, { owner, title, status }, isWhole) {
  const of = owner === undefined ? "all threads of the last 30 days" : `threads of ${owner}`;
  const shown =
    title === undefined && status === undefined
      ? `${counted(found, "thread")}, newest activity first, of ${of}.`
      : `${counted(found, "thread")} with this ${[title && "title", status && "status"].filter(Boolean).join(" and ")}, among the newest ${counted(lookedAt, "thread")} of ${of}.`;
  const rest = isWhole ? " There are no older ones in the directory." : "";
  return `${shown}${rest} Threads that are not in the directory are not looked at.`;
}
