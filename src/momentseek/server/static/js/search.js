// The search view: the box, hints, history, and the moments in rank order.

import { searchLink } from "./address.js";
import * as api from "./api.js";
import { card, stopPreview } from "./card.js";
import { announce, h, menu, setChildren, warn } from "./dom.js";
import { missingModels } from "./encoders.js";
import { count } from "./format.js";
import { folderChooser } from "./folders.js";
import { HINTS, hintFor } from "./hints.js";
import { forget, recentQueries, remember } from "./history.js";
import { pictureText } from "./picture.js";
import { settingsControls } from "./settings.js";
import { saveSearchButton } from "./bookmarks.js";

const PAGE_SIZE = 20;
const MAX_OFFSET = 500; // the server refuses larger offsets
const MAX_HIDDEN = 20;
const EXPORTS = {
  csv: "Table (CSV)", edl: "Edit list (EDL)", fcpxml: "Final Cut (FCPXML)", srt: "Subtitles (SRT)", html: "Web page (HTML)", json: "JSON",
};

/** The view; `show` searches unless the same search is shown already. */
export function searchView(go) {
  const box = h("input", {
    type: "search", id: "q", name: "q", list: "past", maxlength: 2000, autocomplete: "off", autocapitalize: "off",
    spellcheck: "false", enterkeyhint: "search", placeholder: "a dog on the beach", "aria-describedby": "hint",
  });
  const list = h("datalist", { id: "past" });
  const hint = h("p", { id: "hint", class: "hint" });
  const form = h(
    "form",
    { role: "search", class: "ask" },
    h("label", { for: "q", class: "unseen" }, "Describe a moment"), box, h("button", { class: "main" }, "Search"), list,
  );
  const options = h("details", { class: "options" }, h("summary", {}, "Options"));
  const help = searchTips((text) => {
    box.value = box.value.trim() ? `${box.value.trimEnd()} ${text}` : text;
    box.focus();
    showHint();
  });
  const chosenPicture = h("input", { type: "file", accept: "image/*", id: "picture", class: "unseen", onchange: searchPicture });
  const pictureButton = h("label", { for: "picture", class: "button small by-picture" }, "Search by a picture");
  const before = h("div", { class: "past" });
  const chooser = folderChooser();
  const first = h("section", { class: "panel", hidden: true, "aria-labelledby": "first-title" },
    h("h2", { id: "first-title" }, "Choose a folder of videos to start with"), chooser.element);
  const summary = h("p", { class: "summary" });
  const results = h("ol", { class: "hits" });
  const after = h("div", { class: "after" });
  const heading = h("h1", { class: "big", tabindex: "-1" }, "Find a moment");
  const library = h("p", { class: "lead" });
  const absent = h("div", { class: "absent" });
  const element = h(
    "section",
    { class: "search" },
    h("div", { class: "hero" }, heading, library, absent),
    first, form, hint, h("div", { class: "helps" }, help, options, chosenPicture, pictureButton), before, summary, results, after,
  );

  let settings = null;
  let group = null;
  let picture = null; // the picture of the last search by picture
  let asked = null;
  let pending = new AbortController();

  async function prepare() {
    const status = await api.status();
    if (settings) return;
    settings = settingsControls(status, "How to search", { changed: searchAgain });
    group = h("input", { type: "checkbox", onchange: searchAgain });
    options.append(settings.element, h("label", { class: "check" }, group, "One moment per video"));
    showLibrary(status.library);
  }

  /** Set the controls to the settings in the address, and to the defaults for the rest. */
  function choose(params) {
    settings.set(Object.fromEntries(params));
    group.checked = params.get("group") === "video";
    if (Object.values(chosen()).some(Boolean)) options.open = true;
  }

  function showLibrary(held) {
    library.textContent = held.videos
      ? `${count(held.videos, "video")}, ${lengthOf(held.seconds)}. Describe what happens, or what is said.`
      : "The library is empty. Videos that you add stay where they are, and you can search each one as soon as it is indexed.";
    if (!held.videos && first.hidden) chooser.show().catch((error) => warn(error.message));
    if (held.videos && !first.hidden) box.focus({ preventScroll: true });
    first.hidden = held.videos > 0;
    if (!held.videos) api.get("/encoders").then((answer) => setChildren(absent, missingModels(answer))).catch(() => {});
    else setChildren(absent, []);
  }

  const chosen = () => ({ ...settings?.value(), group: group?.checked ? "video" : "" });

  const searchAgain = () => go(searchLink(box.value.trim(), chosen()));

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (matchMedia("(pointer: coarse)").matches) box.blur(); // the on-screen keyboard would hide the results
    const fragment = searchLink(box.value.trim(), chosen());
    if (fragment === location.hash) run(box.value.trim());
    else go(fragment);
  });
  const showHint = () => (hint.textContent = hintFor(box.value, box.selectionStart ?? box.value.length));
  for (const name of ["input", "keyup", "click"]) box.addEventListener(name, showHint);
  results.addEventListener("keydown", walk);

  function walk(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || !event.target.matches("a.moment")) return;
    const links = [...results.querySelectorAll("a.moment")];
    const next = links[links.indexOf(event.target) + step];
    if (next) {
      event.preventDefault();
      next.focus();
    }
  }

  function showRecent() {
    const queries = recentQueries();
    setChildren(list, queries.map((one) => h("option", { value: one })));
    const shown = asked?.query || asked?.like || asked?.picture ? [] : queries.slice(0, 8);
    setChildren(before, shown.length && [
      h("h2", {}, "Recent searches"),
      h("ul", { class: "chips" }, shown.map((one) => h("li", {}, h("a", { href: searchLink(one) }, one)))),
      h("button", { type: "button", class: "plain", onclick: () => (forget(), showRecent(), box.focus()) }, "Clear history"),
    ]);
  }

  /** Search by a picture instead of words. It is scaled down here, and the server does not keep it. */
  async function searchPicture() {
    const [file] = chosenPicture.files;
    if (!file) return;
    try {
      picture = { text: await pictureText(file), name: file.name };
    } catch {
      return warn("The browser cannot read this file as a picture.");
    } finally {
      chosenPicture.value = "";
    }
    box.value = "";
    if (location.hash === "#picture") await run("", false, { picture });
    else go("#picture");
  }

  /** `example` is `{like}` or `{picture}`, to search by an example instead of words. */
  async function run(query, all = false, example = {}) {
    pending.abort();
    pending = new AbortController();
    stopPreview();
    const { group, localiser } = chosen();
    const how = example.like || example.picture ? { moment: example.like, group, localiser } : { q: query, ...chosen() };
    asked = { query, ...example, params: { k: PAGE_SIZE, ...how, all: all || "" } };
    const asks = Boolean(query || example.like || example.picture);
    element.classList.toggle("found", asks);
    if (!asks) {
      clear();
      element.removeAttribute("aria-busy");
    }
    showRecent();
    if (asks) await page(0, pending.signal);
  }

  function clear() {
    for (const part of [results, after, summary]) setChildren(part);
  }

  async function page(offset, signal) {
    const mine = asked;
    element.setAttribute("aria-busy", "true");
    try {
      const answer = await ask(mine, offset, signal);
      if (mine === asked) showAnswer(answer, offset);
    } catch (error) {
      if (error.name === "AbortError" || mine !== asked) return;
      if (!offset) clear();
      setChildren(summary, h("span", { class: "problem", role: "alert" }, error.message));
    } finally {
      if (mine === asked) element.removeAttribute("aria-busy");
    }
  }

  function ask({ like, picture: shown, params }, offset, signal) {
    if (like) return api.get("/search/like", { ...params, offset }, signal);
    if (!shown) return api.get("/search", { ...params, offset }, signal);
    const { k, group, localiser, all } = params;
    const more = { ...(group && { group }), ...(localiser && { localiser }), all: Boolean(all) };
    return api.change("POST", "/search/picture", { picture: shown.text, k, offset, ...more });
  }

  /** A prefix that names the example, for a search without words. */
  const example = () => (asked.like ? "More like this: " : asked.picture ? `Like ${asked.picture.name}: ` : "");

  function showAnswer(answer, offset) {
    remember(asked.query);
    setChildren(list, recentQueries().map((one) => h("option", { value: one })));
    const cards = answer.hits.map((hit) => card(hit, asked.query, { settings: asked.params }));
    if (!offset) clear(); // until now the old moments stayed, dimmed
    results.append(...cards);
    const shown = results.children.length;
    const found = `${count(shown, "moment")}${answer.more ? " so far" : ""}`;
    const nothing = answer.note ? "" : answer.hidden ? "No confident match" : "No moments found";
    const time = `${Math.max(1, Math.round(1000 * answer.took_seconds))} ms`;
    const words = shown ? `${found} in ${time}${shown > 1 ? ", best match first" : ""}` : nothing;
    const tools = asked.query && [saveSearchButton(asked.query, chosen()), shown > 0 && exports()];
    const note = answer.note && answer.note[0].toUpperCase() + answer.note.slice(1);
    setChildren(summary, h("span", { title: recognised(answer.understood) }, example() + words), note && h("span", { class: "note" }, note), tools);
    announce(`${shown ? found : words || note}${answer.hidden ? `, ${weaker(answer.hidden)} hidden` : ""}`);
    setChildren(
      after,
      answer.hidden > 0 && h("button", { type: "button", onclick: showWeaker }, `Show ${weaker(answer.hidden)}`),
      answer.more && shown <= MAX_OFFSET && h("button", { type: "button", onclick: () => page(shown, pending.signal) }, "More moments"),
      !shown && !answer.hidden && h("p", { class: "empty" }, "Try fewer or different words, or see the search tips below the search box."),
    );
    if (offset) cards[0]?.querySelector("a").focus();
  }

  async function showWeaker() {
    const shown = results.children.length;
    await run(asked.query, true, { like: asked.like, picture: asked.picture });
    results.children[Math.min(shown, results.children.length - 1)]?.querySelector("a").focus();
  }

  function exports() {
    const { all, ...params } = asked.params;
    const links = Object.entries(EXPORTS).map(([kind, name]) =>
      h("a", { href: api.link("/export", { ...params, all, kind }), download: "" }, name),
    );
    return menu("Export results", links);
  }

  return {
    element,
    title: () => asked?.query || (asked?.like ? "More like this" : asked?.picture ? asked.picture.name : "Search"),
    focus: ({ query }) => (query || matchMedia("(pointer: coarse)").matches ? heading : box).focus({ preventScroll: true }),
    async show({ query, params, like, picture: byPicture }) {
      if (asked?.query !== query) box.value = query; // before any await, so that what somebody types meanwhile stays
      showHint();
      await prepare();
      choose(params);
      if (like) return asked?.like === like ? undefined : run("", false, { like });
      if (byPicture && picture) return asked?.picture === picture ? undefined : run("", false, { picture });
      const key = JSON.stringify({ k: PAGE_SIZE, q: query, ...chosen(), all: "" });
      const same = asked && !asked.like && !asked.picture && JSON.stringify({ ...asked.params, all: "" }) === key;
      if (!same || !query) await run(query);
      return undefined;
    },
    hide: stopPreview,
    async refresh() {
      showLibrary((await api.status(true)).library);
    },
    findBox: () => (box.focus(), box.select()),
  };
}

/** The server counts weak moments up to a limit. */
const weaker = (hidden) => (hidden < MAX_HIDDEN ? count(hidden, "weaker result") : `${MAX_HIDDEN} or more weaker results`);

/** What the image encoders recognised in a query, in the words of `search --explain`. */
function recognised(understood) {
  if (!understood?.encoders.length) return null;
  const kinds = ["labels", "words", "guessed", "unknown"].filter((kind) => understood[kind].length);
  const named = kinds.map((kind) => `${kind} ${understood[kind].join(", ")}`).join("; ");
  return `recognised by ${understood.encoders.join(", ")}: ${named || "nothing"}`;
}

function lengthOf(seconds) {
  return seconds < 5400 ? count(Math.max(1, Math.round(seconds / 60)), "minute") : `${(seconds / 3600).toFixed(1)} hours`;
}

function searchTips(insert) {
  const rows = HINTS.map(([example, meaning]) => {
    const label = `Add ${example} to the query: ${meaning}`;
    const button = h("button", { type: "button", class: "example", "aria-label": label, onclick: () => insert(example) }, example);
    return h("li", {}, button, h("span", {}, meaning));
  });
  return h("details", { class: "language" }, h("summary", {}, "Search tips"), h("ul", {}, rows));
}
