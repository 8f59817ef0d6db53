// The library view: what is in it, adding a folder with live progress, and what failed.

import { momentLink } from "./address.js";
import * as api from "./api.js";
import { action, busy, h, put, speak } from "./dom.js";
import { clock, count, day, length } from "./format.js";
import { folderChooser } from "./folders.js";
import * as jobs from "./jobs.js";

const PAGE = 60;
const ENDED = 5;

export function libraryView() {
  const heading = h("h1", { tabindex: "-1" }, "Library");
  const facts = h("dl", { class: "tiles" });
  const note = h("p", { class: "quiet" });
  const chooser = folderChooser();
  const work = h("ul", { class: "jobs" });
  const failed = h("ul", { class: "failures" });
  const failures = h(
    "section",
    { class: "panel", hidden: true, "aria-labelledby": "failures-title" },
    h("h2", { id: "failures-title" }, "Could not be added"), failed, action("Try these again", () => jobs.retry()),
  );
  const filter = h("input", { type: "search", id: "filter", maxlength: 200, placeholder: "part of a name", autocomplete: "off" });
  const videos = h("ul", { class: "videos" });
  const more = h("button", { type: "button", onclick: () => busy(more, () => list(videos.children.length)) }, "More videos");
  const total = h("p", { class: "quiet" });
  const element = h(
    "section",
    { class: "library" },
    heading,
    facts,
    note,
    h("div", { class: "columns" },
      h("section", { class: "panel", "aria-labelledby": "add-title" }, h("h2", { id: "add-title" }, "Add a folder"), chooser.element),
      h("section", { class: "panel", "aria-labelledby": "work-title" }, h("h2", { id: "work-title" }, "Being added"), work)),
    failures,
    h("div", { class: "bar" }, h("h2", {}, "Videos"), h("label", { for: "filter", class: "unseen" }, "Filter by name"), filter, total),
    videos,
    more,
  );
  let generation = null;
  let waiting = 0;
  let open = 0;

  filter.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => list(0).then(() => speak(total.textContent)), 200);
  });

  async function list(offset) {
    const answer = await api.get("/videos", { offset, limit: PAGE, name: filter.value });
    const items = answer.videos.map(item);
    if (offset) videos.append(...items);
    else put(videos, items);
    total.textContent = count(answer.total, "video");
    more.hidden = videos.children.length >= answer.total;
  }

  function item(video) {
    const state = video.available ? (video.cues ? count(video.cues, "cue") : "no words") : "file is away";
    return h(
      "li",
      {},
      h(
        "a",
        { class: "video", href: momentLink(video.id) },
        h("span", { class: "picture" },
          h("img", { src: video.thumbnail, alt: "", loading: "lazy", onerror: (e) => e.target.remove() }),
          h("span", { class: "long" }, clock(video.duration, 0))),
        h("span", { class: "name" }, video.name),
        h("span", { class: video.available ? "quiet" : "problem" }, `${video.width}×${video.height}, ${state}, ${day(video.added)}`),
      ),
      video.notes.map((one) => h("p", { class: "quiet odd" }, one)),
    );
  }

  async function refresh() {
    const [status, failing] = await Promise.all([api.status(true), api.get("/failures")]);
    const told = status.library;
    const many = (n) => n.toLocaleString("en");
    put(
      facts,
      tile("Videos", many(told.videos)), tile("Length", length(told.seconds)), tile("Clips", many(told.clips)),
      tile("Cues", many(told.cues)), tile("Encoder", told.encoder.name),
    );
    note.textContent = told.encoder.note ? `The encoder ${told.encoder.note.replaceAll("`", "")}.` : "";
    put(failed, failing.failures.map((one) => {
      const tries = `${count(one.tries, "try", "tries")}, last ${day(one.at)}`;
      return h("li", {}, h("strong", {}, one.name), h("span", {}, one.reason), h("span", { class: "quiet" }, tries));
    }));
    failures.hidden = !failing.failures.length;
    if (generation !== told.generation) {
      generation = told.generation;
      await list(0);
    }
  }

  const tile = (name, value) => h("div", {}, h("dt", {}, name), h("dd", {}, value));

  const rows = new Map();

  /** Rows are kept and only their figures change, so that a button under the finger or the focus stays. */
  function tellJobs(all) {
    const [left, over] = [all.filter((job) => !jobs.over(job)), all.filter(jobs.over)];
    const shown = [...left.reverse(), ...over.slice(0, ENDED)]; // in the order of the work, then the newest that ended
    for (const [id, row] of rows) if (!shown.some((job) => job.id === id)) (row.element.remove(), rows.delete(id));
    for (const job of shown) {
      if (!rows.has(job.id)) rows.set(job.id, jobRow(job));
      rows.get(job.id).tell(job);
    }
    const elements = shown.map((job) => rows.get(job.id).element);
    if (!shown.length) put(work, h("li", { class: "quiet" }, "Nothing now."));
    else if (elements.length !== work.children.length || elements.some((one, i) => one !== work.children[i])) put(work, elements);
    if (left.length < open && element.isConnected && !element.hidden) refresh().catch(() => {});
    open = left.length;
  }

  return {
    element,
    title: () => "Library",
    focus: () => heading.focus({ preventScroll: true }),
    async show() {
      jobs.listen(tellJobs);
      await Promise.all([refresh(), chooser.show(), jobs.look()]);
    },
    hide() {},
  };
}

function outcome({ error, added, unchanged, failed }) {
  return error ?? `${added} added, ${unchanged} unchanged${failed.length ? `, ${failed.length} could not be added` : ""}`;
}

function doing({ files_done: done, files_total: total, file, rate, seconds_left: left }) {
  const parts = [`${done} of ${total}`, file, rate && `${Math.round(rate)}× real time`, left && `${length(left)} left`];
  return parts.filter(Boolean).join(", ");
}

const STATES = { waiting: "waiting", running: "adding", done: "done", failed: "failed", cancelled: "stopped" };

function jobRow(first) {
  const name = first.kind === "retry" ? "Trying failures again" : first.folder;
  const bar = h("progress", { max: 1, "aria-label": `Progress of ${name}` });
  const state = h("span", { class: "quiet" });
  const detail = h("p", { class: "quiet" });
  const bad = h("ul", { class: "failures" });
  const stop = action("Stop", () => jobs.cancel(first.id), { class: "small", "aria-label": `Stop ${name}` });
  const element = h("li", { class: "job" }, h("div", { class: "bar" }, h("strong", {}, name), state, stop), bar, detail, bad);
  return {
    element,
    tell(job) {
      const done = jobs.over(job);
      bar.value = job.fraction;
      bar.hidden = done;
      stop.hidden = done;
      state.textContent = STATES[job.state];
      detail.textContent = done ? outcome(job) : doing(job);
      // when it is over, they stand among all failures
      put(bad, !done && job.failed.map((one) => h("li", {}, h("strong", {}, one.name), h("span", {}, one.reason))));
    },
  };
}
