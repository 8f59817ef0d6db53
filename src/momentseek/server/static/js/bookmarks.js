// Bookmarks: favourite moments and saved searches, stored on the server under a person's name.

import { momentLink, searchLink } from "./address.js";
import * as api from "./api.js";
import { actionButton, announce, h, menu, notify, setChildren } from "./dom.js";
import { clock, count } from "./format.js";
import { setting } from "./history.js";

/** The owner of the bookmarks: the name that is also used for judging, or "me" if none was given. */
const person = () => setting("annotator").trim() || "me";
api.whenKnown(({ user }) => user && setting("annotator", user));

const EXPORTS = { clips: "Clips (ZIP)", edl: "Edit list (EDL)", fcpxml: "Final Cut (FCPXML)", csv: "Table (CSV)", json: "Everything (JSON)" };

let bookmarks = { favourites: [], searches: [] };
let owner = null;
const listeners = new Set();

function update(found) {
  bookmarks = found;
  owner = found.person;
  for (const callback of listeners) callback();
}

/** Load the bookmarks, once per person. */
async function load() {
  if (owner !== person()) update(await api.get("/shelf", { person: person() }));
}

const sameMoment = (moment) => bookmarks.favourites.find((one) => one.moment === moment);

/** A button that saves a moment or removes it; `moment()` and `query()` are called when it is shown and pressed. */
export function keepButton(moment, query) {
  const button = actionButton("Keep", toggle, { class: "small plain keep", "aria-pressed": "false" });

  function show() {
    const kept = Boolean(sameMoment(moment()));
    button.setAttribute("aria-pressed", String(kept));
    button.textContent = kept ? "★ Kept" : "☆ Keep";
  }

  function hear() {
    if (button.isConnected) show();
    else listeners.delete(hear); // its card is gone
  }

  async function toggle() {
    const kept = sameMoment(moment());
    if (kept) update(await api.change("DELETE", `/shelf/favourites/${kept.id}`, undefined, { person: person() }));
    else update(await api.change("PUT", "/shelf/favourites", { person: person(), moment: moment(), query: query() }));
    announce(kept ? "No longer kept" : "Kept under Saved");
  }

  listeners.add(hear);
  button.addEventListener("moment", show);
  show();
  load().catch(() => {});
  return button;
}

/** A button that saves a search with its settings. */
export function saveSearchButton(query, settings) {
  return actionButton("Save search", async () => {
    const given = new URLSearchParams(searchLink("", settings).slice(1));
    update(await api.change("PUT", "/shelf/searches", { person: person(), query, settings: String(given) }));
    notify("Search saved. You can find it under Saved.");
  }, { class: "small" });
}

/** If people have their own tokens, show the token's owner in a name field and make it read-only. */
export async function fixName(field) {
  const { user } = await api.status();
  if (!user) return;
  setting("annotator", user);
  field.value = user;
  field.readOnly = true;
}

export function savedView() {
  const heading = h("h1", { tabindex: "-1" }, "Saved");
  const name = h("input", { id: "shelf-person", maxlength: 64, autocomplete: "nickname" });
  fixName(name).catch(() => {});
  const searches = h("ul", { class: "saved-searches" });
  const moments = h("ol", { class: "hits" });
  const tagList = h("ul", { class: "chips", "aria-label": "Show only moments with a tag" });
  const exports = h("div", { class: "bar" });
  let tag = "";
  const element = h(
    "section",
    { class: "saved" },
    heading,
    h("p", { class: "lead" }, "Your saved moments and searches. They are stored on the server under your name, not only in this browser."),
    h("div", { class: "inline" },
      h("div", { class: "field" }, h("label", { for: "shelf-person" }, "Your name"), name),
      exports),
    h("h2", {}, "Searches"), searches, h("h2", {}, "Moments"), tagList, moments,
  );
  name.addEventListener("change", () => {
    setting("annotator", name.value.trim());
    load().catch((error) => notify(error.message));
  });

  function showAll() {
    setChildren(searches, bookmarks.searches.length ? bookmarks.searches.map(searchItem) : h("li", { class: "quiet" }, "No searches yet: press Save search above results."));
    const tags = [...new Set(bookmarks.favourites.flatMap((one) => one.tags))].sort();
    if (!tags.includes(tag)) tag = "";
    setChildren(tagList, tags.map((one) => h("li", {}, h("button", { type: "button", class: "small", "aria-pressed": String(one === tag), onclick: () => ((tag = one === tag ? "" : one), showAll()) }, one))));
    const link = (kind) => api.link("/shelf/export", { person: person(), kind, tag });
    setChildren(exports, menu("Export", Object.entries(EXPORTS).map(([kind, label]) => h("a", { href: link(kind), download: "" }, label))));
    const shown = bookmarks.favourites.filter((one) => !tag || one.tags.includes(tag));
    setChildren(moments, shown.length ? shown.map(momentItem) : h("li", { class: "quiet none" }, "No moments yet: press Keep below one."));
  }

  const drop = (kind, id, what) => async () => {
    update(await api.change("DELETE", `/shelf/${kind}/${id}`, undefined, { person: person() }));
    announce(`${what} removed`);
    heading.focus({ preventScroll: true });
  };

  function searchItem(one) {
    const link = searchLink(one.query, Object.fromEntries(new URLSearchParams(one.settings)));
    return h("li", { class: "bar" },
      h("a", { href: link }, one.query), one.settings && h("span", { class: "quiet" }, one.settings),
      actionButton("Remove", drop("searches", one.id, one.query), { class: "small", "aria-label": `Remove the search ${one.query}` }));
  }

  function momentItem(one) {
    const when = `${clock(one.start)} – ${clock(one.end)}`;
    const facts = h("span", { class: "facts" }, h("span", { class: "name" }, one.name), h("span", { class: "when" }, when),
      one.query && h("span", { class: "quiet" }, one.query));
    const told = h("div", { class: "told" }, one.note && h("p", {}, one.note), one.tags.length > 0 && h("p", { class: "quiet" }, one.tags.join(", ")), noteForm(one, when));
    const remove = actionButton("Remove", drop("favourites", one.id, one.name), { class: "small", "aria-label": `Remove ${one.name}, ${when}` });
    if (one.video_id === null) {
      return h("li", { class: "hit" }, h("div", { class: "moment" }, facts), h("p", { class: "acts" }, h("span", { class: "problem" }, "The video is not in the library now."), remove), told);
    }
    const image = h("img", { src: one.thumbnail, alt: "", loading: "lazy", onerror: (e) => e.target.remove() });
    return h("li", { class: "hit" },
      h("a", { class: "moment", href: momentLink(one.video_id, [one.start, one.end], one.query) }, h("span", { class: "picture" }, image), facts),
      h("p", { class: "acts" }, h("a", { href: `#like=${one.moment}` }, "More like this"), remove), told);
  }

  function noteForm(one, when) {
    const name = `${one.name}, ${when}`;
    const note = h("textarea", { rows: 2, maxlength: 2000, "aria-label": `Note on ${name}` });
    note.value = one.note;
    const tags = h("input", { maxlength: 400, placeholder: "tags, separated by commas", "aria-label": `Tags of ${name}`, value: one.tags.join(", ") });
    const save = async () => {
      const given = tags.value.split(",").map((part) => part.trim()).filter(Boolean);
      update(await api.change("PUT", `/shelf/favourites/${one.id}`, { person: person(), note: note.value.trim(), tags: given }));
      announce("Note saved");
      heading.focus({ preventScroll: true });
    };
    return h("details", {}, h("summary", {}, "Note and tags"),
      h("div", { class: "field" }, note, tags, actionButton("Save", save, { class: "small main" })));
  }

  listeners.add(showAll);
  return {
    element,
    title: () => `Saved: ${count(bookmarks.favourites.length, "moment")}`,
    focus: () => heading.focus({ preventScroll: true }),
    async show() {
      name.value = person() === "me" ? "" : person();
      owner = null; // others may have changed it
      await load();
    },
    hide() {},
  };
}
