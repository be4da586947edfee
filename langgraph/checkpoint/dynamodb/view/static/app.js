// The page as a whole: which thread it shows is in the fragment of its address, so that going back works.

import { el, fill } from "./dom.js";
import { Source } from "./source.js";
import { ThreadPage } from "./thread.js";
import { threadsView } from "./threads.js";

/** The parts of the page that are always there. */
const parts = Object.fromEntries(
  ["title", "search", "main", "status", "skip"].map((id) => [id, document.getElementById(id)]),
);
let page = null;

async function begin() {
  const source = new Source(document.getElementById("data"));
  document.getElementById("home").hidden = source.isFile;
  const start = await source.get("start");
  document.title = `${start.thread ?? start.table} - langgraph-dynamodb`;
  const show = () => showPlace(source, start, placeOf(location.hash));
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

/** Where a fragment leads: a checkpoint of a thread, or the list of threads with a search. */
function placeOf(fragment) {
  return Object.fromEntries(new URLSearchParams(fragment.slice(1)));
}

function fragmentOf(place) {
  return `#${new URLSearchParams(place)}`;
}

async function showPlace(source, start, place) {
  const thread = place.thread ?? (place.find === undefined ? start.thread : null);
  page?.close();
  page = null;
  say("");
  parts.search.hidden = thread === null || source.isFile;
  fill(parts.title, thread === null ? start.table : [el("span", { class: "kind" }, `${start.table} / `), thread]);
  document.title = `${thread ?? start.table} - langgraph-dynamodb`;
  if (thread === null) {
    const open = (id) => (location.hash = fragmentOf({ thread: id }));
    const searched = (wanted) => history.replaceState(null, "", fragmentOf({ find: "", ...wanted }));
    fill(parts.main, threadsView(source, start, place, open, searched));
    return;
  }
  const moved = (to) => history.replaceState(null, "", fragmentOf({ thread, ...to }));
  const described = (about) => parts.title.append(...about.map((each) => el("span", { class: "about" }, each)));
  page = new ThreadPage(source, thread, start.table, { progress: say, moved, described });
  const mine = page;
  fill(parts.main, page.element);
  try {
    await page.open(place);
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

window.addEventListener("unhandledrejection", (event) => {
  event.preventDefault();
  if (event.reason?.name !== "AbortError") {
    say(event.reason?.message ?? String(event.reason));
  }
});

begin().catch((error) => fill(parts.main, el("p", { class: "problem", role: "alert" }, error.message)));
