// The page as a whole: which thread it shows is in the fragment of its address, so that going back works.

import { el, fill } from "./dom.js";
import { counted, moment, sized } from "./format.js";
import { memoriesView } from "./memories.js";
import { openSource } from "./source.js";
import { ThreadPage } from "./thread.js";
import { Recent, threadsView } from "./threads.js";

/** The parts of the page that are always there. */
const parts = Object.fromEntries(
  ["title", "search", "main", "status", "notice", "home", "memories", "skip"].map((id) => [id, document.getElementById(id)]),
);
let page = null;

async function begin() {
  const source = openSource();
  const start = await source.get("start");
  const recent = new Recent(start.table);
  document.title = `${start.thread ?? start.table} - langgraph-dynamodb`;
  if (source.exported !== null) {
    fill(parts.notice, noticeOf(source.exported));
    parts.notice.hidden = false;
    parts.home.hidden = true;
    parts.memories.hidden = true;
  }
  const show = () => showPlace(source, start, recent, placeOf(location.hash));
  window.addEventListener("hashchange", show);
  parts.search.addEventListener("submit", (event) => {
    event.preventDefault();
    const text = new FormData(parts.search).get("text");
    if (page !== null && text) {
      page.findings.search(text);
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !event.target.closest("input, select, textarea") && !parts.search.hidden) {
      event.preventDefault();
      parts.search.elements.text.focus();
    }
  });
  parts.skip.addEventListener("click", (event) => {
    // The fragment of the address says what is shown, so it may not be the main element's.
    event.preventDefault();
    parts.main.focus();
  });
  await show();
}

/** Where a fragment leads: a checkpoint of a thread, the list of threads with a search, or memories by their labels. */
function placeOf(fragment) {
  return Object.fromEntries(new URLSearchParams(fragment.slice(1)));
}

/** The labels in a fragment, which a person may have written; of what is no list, none. */
function labelsOf(text) {
  try {
    const labels = JSON.parse(text);
    return Array.isArray(labels) ? labels.map(String) : [];
  } catch {
    return [];
  }
}

function fragmentOf(place) {
  return `#${new URLSearchParams(place)}`;
}

async function showPlace(source, start, recent, place) {
  const isElsewhere = place.find !== undefined || place.memories !== undefined;
  const thread = place.thread ?? (isElsewhere ? null : start.thread);
  page?.close();
  page = null;
  say("");
  parts.search.hidden = thread === null;
  fill(parts.title, thread === null ? start.table : [el("span", { class: "kind" }, `${start.table} / `), thread]);
  document.title = `${thread ?? start.table} - langgraph-dynamodb`;
  if (thread === null && place.memories !== undefined) {
    const go = (labels) => (location.hash = fragmentOf({ memories: JSON.stringify(labels) }));
    fill(parts.main, memoriesView(source, start.table, labelsOf(place.memories), go));
    return;
  }
  if (thread === null) {
    const open = (id) => (location.hash = fragmentOf({ thread: id }));
    const searched = (wanted) => history.replaceState(null, "", fragmentOf({ find: "", ...wanted }));
    fill(parts.main, threadsView(source, start, recent, place, open, searched));
    return;
  }
  const moved = (to) => history.replaceState(null, "", fragmentOf({ thread, ...to }));
  const described = (about) => parts.title.append(...about.map((each) => el("span", { class: "about" }, each)));
  page = new ThreadPage(source, thread, { progress: say, moved, described });
  const mine = page;
  fill(parts.main, page.element);
  try {
    await page.open(place);
    recent.add(thread);
  } catch (error) {
    if (mine === page && page.hasBegun) {
      say(error.message);
    } else if (mine === page) {
      fill(parts.main, el("p", { class: "problem", role: "alert" }, error.message));
    }
  }
}

function say(text) {
  fill(parts.status, text);
  parts.status.hidden = text === "";
}

/** What an exported file says of itself. */
function noticeOf({ madeAt, masks, cutBytes }) {
  const done = masks.map(({ rule, action, times }) =>
    el("li", {}, el("code", {}, rule), `: ${action} ${counted(times, "time")}`),
  );
  return [
    `Exported ${moment(madeAt)}. It needs no server and asks for nothing. `,
    `Texts and bytes longer than ${sized(cutBytes)} are cut. `,
    masks.length === 0
      ? "Nothing was masked or left out."
      : el(
          "details",
          {},
          el("summary", {}, `Masked or left out by ${counted(masks.length, "rule")}`),
          el("ul", {}, done),
        ),
  ];
}

window.addEventListener("unhandledrejection", (event) => {
  event.preventDefault();
  if (event.reason?.name !== "AbortError") {
    say(event.reason?.message ?? String(event.reason));
  }
});

begin().catch((error) => fill(parts.main, el("p", { class: "problem", role: "alert" }, error.message)));
