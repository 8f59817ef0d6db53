// The library view: what is in it, adding a folder with live progress, and what failed.

import { momentLink } from "./address.js";
import * as api from "./api.js";
import { actionButton, announce, h, runOnce, setChildren } from "./dom.js";
import { clock, count, day, length } from "./format.js";
import { folderChooser } from "./folders.js";
import { encoderPanel } from "./encoders.js";
import * as jobs from "./jobs.js";

const PAGE_SIZE = 60;
const MAX_ENDED_SHOWN = 5;

export function libraryView() {
  const heading = h("h1", { tabindex: "-1" }, "Library");
  const facts = h("dl", { class: "tiles" });
  const advanced = h("dl", { class: "tiles" });
  const note = h("p", { class: "quiet" });
  const chooser = folderChooser();
  const work = h("ul", { class: "jobs" });
  const failed = h("ul", { class: "failures" });
  const failures = h(
    "section",
    { class: "panel", hidden: true, "aria-labelledby": "failures-title" },
    h("h2", { id: "failures-title" }, "Could not be added"), failed, actionButton("Try again", () => jobs.retry()),
  );
  const encoders = encoderPanel();
  const filter = h("input", { type: "search", id: "filter", maxlength: 200, placeholder: "part of a name", autocomplete: "off" });
  const videos = h("ul", { class: "videos" });
  const more = h("button", { type: "button", onclick: () => runOnce(more, () => list(videos.children.length)) }, "More videos");
  const total = h("p", { class: "quiet" });
  const element = h(
    "section",
    { class: "library" },
    heading,
    facts,
    h("div", { class: "columns" },
      h("section", { class: "panel", "aria-labelledby": "add-title" }, h("h2", { id: "add-title" }, "Add a folder"), chooser.element),
      h("section", { class: "panel", "aria-labelledby": "work-title" }, h("h2", { id: "work-title" }, "In progress"), work)),
    encoders.element,
    failures,
    h("div", { class: "bar" }, h("h2", {}, "Videos"), h("label", { for: "filter", class: "unseen" }, "Filter by name"), filter, total),
    videos,
    more,
    h("details", { class: "advanced" }, h("summary", {}, "Advanced"), advanced, note),
  );
  let generation = null;
  let changes = false;
  let waiting = 0;
  let open = 0;

  filter.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => list(0).then(() => announce(total.textContent)), 200);
  });

  async function list(offset) {
    const answer = await api.get("/videos", { offset, limit: PAGE_SIZE, name: filter.value });
    const items = answer.videos.map(item);
    if (offset) videos.append(...items);
    else setChildren(videos, items);
    total.textContent = count(answer.total, "video");
    more.hidden = videos.children.length >= answer.total;
  }

  function item(video) {
    const state = video.available ? (video.cues ? count(video.cues, "line said", "lines said") : "no subtitles or transcript") : "file not available";
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
        h("span", { class: video.available ? "quiet" : "problem" }, `${video.width ? `${video.width}×${video.height}` : "sound only"}, ${state}, ${dated(video)}`),
      ),
      video.notes.map((one) => h("p", { class: "quiet odd" }, one)),
      h("p", { class: "acts" },
        h("a", { class: "button small", href: momentLink(video.id), "aria-label": `Open ${video.name}` }, "Open"),
        changes && actionButton("Remove", () => remove(video), { class: "small plain", "aria-label": `Remove ${video.name}` })),
    );
  }

  async function remove(video) {
    if (!confirm(`Remove ${video.name} from the library? The file itself is not deleted.`)) return;
    await api.change("DELETE", `/videos/${video.id}`);
    announce(`${video.name} removed`);
    await refresh();
    heading.focus({ preventScroll: true });
  }

  async function refresh() {
    const [status, failureList] = await Promise.all([api.status(true), api.get("/failures")]);
    const held = status.library;
    changes = status.changes;
    encoders.show(held).catch(() => {});
    const many = (n) => n.toLocaleString("en");
    setChildren(
      facts,
      tile("Videos", many(held.videos)), tile("Length", length(held.seconds)), tile("Lines said", many(held.cues)),
      held.read ? tile("Lines on screen", many(held.lines)) : null,
      held.second_encoder ? tile(`Seen by ${held.second_encoder}`, `${many(held.seen)} of ${count(held.seen + held.unseen, "video")}`) : null,
    );
    setChildren(
      advanced,
      tile("Clips", many(held.clips)), tile("Encoder", held.encoder.name), status.shards?.length ? tile("Shards", shards(status.shards)) : null,
    );
    note.textContent = held.encoder.note ? `The encoder ${held.encoder.note}.` : "";
    setChildren(failed, failureList.failures.map((one) => {
      const tries = `${count(one.tries, "attempt")}, last on ${day(one.at)}`;
      return h("li", {}, h("strong", {}, one.name), h("span", {}, one.reason), h("span", { class: "quiet" }, tries));
    }));
    failures.hidden = !failureList.failures.length;
    if (generation !== held.generation) {
      generation = held.generation;
      await list(0);
    }
  }

  /** The number of shards, and how many of them do not answer. */
  function shards(all) {
    const away = all.filter((one) => !one.answering).length;
    return away ? `${all.length}, ${away} not answering` : `${all.length}`;
  }

  const tile = (name, value) => h("div", {}, h("dt", {}, name), h("dd", {}, value));

  const rows = new Map();

  /** Update rows in place, so that a button keeps its focus and can be clicked. */
  function showJobs(all) {
    const [left, over] = [all.filter((job) => !jobs.isOver(job)), all.filter(jobs.isOver)];
    const shown = [...left.reverse(), ...over.slice(0, MAX_ENDED_SHOWN)]; // open jobs in the order in which they run, then the newest that ended
    for (const [id, row] of rows) if (!shown.some((job) => job.id === id)) (row.element.remove(), rows.delete(id));
    for (const job of shown) {
      if (!rows.has(job.id)) rows.set(job.id, jobRow(job));
      rows.get(job.id).update(job);
    }
    const elements = shown.map((job) => rows.get(job.id).element);
    if (!shown.length) setChildren(work, h("li", { class: "quiet" }, "Nothing is being added."));
    else if (elements.length !== work.children.length || elements.some((one, i) => one !== work.children[i])) setChildren(work, elements);
    if (left.length < open && element.isConnected && !element.hidden) refresh().catch(() => {});
    open = left.length;
  }

  return {
    element,
    title: () => "Library",
    focus: () => heading.focus({ preventScroll: true }),
    async show() {
      jobs.listen(showJobs);
      await Promise.all([refresh(), chooser.show(), jobs.refresh()]);
    },
    hide() {},
  };
}

/** The date that after: and before: use, and whether it is that of the recording or of the file. */
export const dated = ({ recorded, mtime }) => (recorded === null ? `file of ${day(mtime)}` : `recorded ${day(recorded)}`);

function outcomeText({ kind, error, added, unchanged, failed }) {
  if (kind === "download") return error ?? "";
  return error ?? `${added} added, ${unchanged} unchanged${failed.length ? `, ${failed.length} could not be added` : ""}`;
}

function progressText(job) {
  const { kind, fraction, file, rate, seconds_left: left } = job;
  if (kind === "download") return `${Math.round(100 * fraction)} %`;
  const parts = [jobs.place(job), file, rate && `${Math.round(rate)}× real time`, left && `${length(left)} left`];
  return parts.filter(Boolean).join(", ");
}

const STATES = { waiting: "waiting", done: "done", failed: "failed", cancelled: "stopped" };

function jobRow(first) {
  const name = first.kind === "retry" ? "Retrying failed files" : first.folder;
  const bar = h("progress", { max: 1, "aria-label": `Progress of ${name}` });
  const state = h("span", { class: "quiet" });
  const detail = h("p", { class: "quiet" });
  const bad = h("ul", { class: "failures" });
  let stopping = false;
  const stop = actionButton("Stop", cancel, { class: "small", "aria-label": `Stop ${name}` });

  /** Cancel the job, which stops at its next frame; that may take a moment. */
  async function cancel() {
    await jobs.cancel(first.id);
    stopping = true;
    state.textContent = "stopping…";
    stop.disabled = true;
  }

  const element = h("li", { class: "job" }, h("div", { class: "bar" }, h("strong", {}, name), state, stop), bar, detail, bad);
  return {
    element,
    update(job) {
      const done = jobs.isOver(job);
      bar.value = job.fraction;
      bar.hidden = done;
      stop.hidden = done;
      state.textContent = STATES[job.state] ?? (stopping ? "stopping…" : jobs.verb(job).toLowerCase());
      detail.textContent = done ? outcomeText(job) : progressText(job);
      // after the end of the job, they are in the list of all failures
      setChildren(bad, !done && job.failed.map((one) => h("li", {}, h("strong", {}, one.name), h("span", {}, one.reason))));
    },
  };
}
