// The page: one view at a time, chosen by the address.

import { parse } from "./address.js";
import { compareView } from "./compare.js";
import { announce, dismissWarning, h, isTyping, menu, warn } from "./dom.js";
import * as jobs from "./jobs.js";
import { judgeView } from "./judge.js";
import { libraryView } from "./library.js";
import { logoutButton } from "./login.js";
import { playerView } from "./player.js";
import { searchView } from "./search.js";
import { savedView } from "./bookmarks.js";

const main = document.getElementById("main");
const makers = { search: searchView, player: playerView, library: libraryView, judge: judgeView, compare: compareView, saved: savedView };
const LAB = [["judge", "Judge"], ["compare", "Compare"]];
const lab = menu("Lab", LAB.map(([name, label]) => h("a", { href: `#${name}`, "data-view": name }, label)));
const views = {};
const scrolls = {};
let current = null;
let lastSearch = "";
let origin = null; // the view from which the player was opened

/** Navigate to an address of the page, as a link does. */
function go(fragment) {
  location.hash = fragment;
}

function viewOf(name) {
  if (!views[name]) {
    views[name] = makers[name](go, () => lastSearch, () => origin);
    views[name].element.hidden = true;
    main.append(views[name].element);
  }
  return views[name];
}

async function show() {
  const asked = parse(location.hash);
  const view = viewOf(asked.view);
  const before = current;
  current = asked.view;
  if (asked.view === "search") lastSearch = location.hash;
  if (asked.view === "player" && before !== "player") origin = before;
  if (before !== asked.view) {
    if (before) {
      scrolls[before] = scrollY;
      views[before].hide();
      views[before].element.hidden = true;
    }
    view.element.hidden = false;
    dismissWarning();
    lab.classList.toggle("here", LAB.some(([name]) => name === asked.view));
    for (const link of document.querySelectorAll("nav a")) {
      const here = link.dataset.view === (asked.view === "player" ? "search" : asked.view);
      if (here) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
      // from another view, the link returns to the last search
      if (link.dataset.view === "search") link.href = asked.view === "search" ? "#" : lastSearch || "#";
    }
  }
  const shown = view.show(asked);
  if (before !== asked.view) arrive(before, asked, view);
  try {
    await shown;
  } catch (error) {
    if (error.name !== "AbortError") warn(error.message);
  }
  if (current !== asked.view) return;
  document.title = `${view.title()} · Momentseek`;
  if (before && before !== asked.view) announce(view.title());
}

/** Set scroll position and focus: back on the result that was opened, or at the beginning of the view. */
function arrive(before, asked, view) {
  const returning = before === "player" && asked.view === origin;
  scrollTo(0, returning ? (scrolls[origin] ?? 0) : 0);
  const from = returning && opened && view.element.querySelector(`a[href="${CSS.escape(opened)}"]`);
  if (from) from.focus({ preventScroll: true });
  else view.focus(asked);
}

let opened = "";
main.addEventListener("click", (event) => {
  const link = event.target.closest("a.moment, a.video");
  if (link) opened = link.getAttribute("href");
});

document.querySelector("nav").append(lab);
document.querySelector("header").append(logoutButton());
document.getElementById("skip").addEventListener("click", () => main.focus());
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || isTyping(event)) return;
  event.preventDefault();
  if (current !== "search") go(lastSearch || "#");
  setTimeout(() => views.search?.findBox(), 50);
});

const working = document.getElementById("working");
let open = 0;
jobs.listen((all) => {
  const left = all.filter((job) => !jobs.isOver(job));
  working.hidden = !left.length;
  if (left.length) {
    const job = left.at(-1);
    const text = [jobs.verb(job), jobs.place(job)].filter(Boolean).join(" ");
    if (working.textContent !== text) working.textContent = text;
  }
  if (left.length < open) views.search?.refresh().catch(() => {});
  open = left.length;
});

addEventListener("hashchange", show);
history.scrollRestoration = "manual";
show();
jobs.refresh().catch(() => {});
