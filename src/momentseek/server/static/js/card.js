// One result: a link to its moment, with a picture that plays silently on hover or focus.

import { momentLink } from "./address.js";
import { h, prefersReducedMotion } from "./dom.js";
import { clock, rateOf } from "./format.js";
import { screen } from "./screen.js";
import { keepButton } from "./bookmarks.js";

const PREVIEW_DELAY_MS = 250;
const LEVELS = { strong: "Strong match", fair: "Fair match", weak: "Not sure" };
const STREAM_WORDS = { vision: "seen", speech: "said", text: "written", described: "described", sound: "heard", name: "named", rerank: "re-ranked" }; // the words of the command line

/** A text with the matched ranges marked. Ranges count Unicode characters, not JavaScript's UTF-16 units. */
export function highlight(text, ranges) {
  const letters = Array.from(text);
  const parts = [];
  let at = 0;
  for (const [start, end] of ranges ?? []) {
    parts.push(letters.slice(at, start).join(""), h("mark", {}, letters.slice(start, end).join("")));
    at = end;
  }
  return [...parts, letters.slice(at).join("")];
}

/** The confidence of a hit: dots and words. */
export function level(name) {
  return h("span", { class: `level ${name}` }, h("span", { class: "dots", "aria-hidden": "true" }, h("i"), h("i"), h("i")), LEVELS[name] ?? name);
}

/** A list item for a hit of a query with settings. */
export function card(hit, query, { small = false, settings = {} } = {}) {
  const span = [hit.start, hit.end];
  const boxes = h("span", { class: "boxes", "aria-hidden": "true" });
  const picture = h(
    "span",
    { class: "picture" },
    h("img", { src: hit.thumbnail, alt: "", loading: "lazy", decoding: "async", onerror: (e) => e.target.remove(), onload: (e) => drawBoxes(boxes, e.target, foundLines(hit)) }),
    boxes,
    h("span", { class: "long" }, `${(hit.end - hit.start).toFixed(1)} s`),
  );
  const link = h(
    "a",
    { class: "moment", href: momentLink(hit.video_id, span, query, settings) },
    picture,
    h(
      "span",
      { class: "facts" },
      h("span", { class: "name" }, h("b", { class: "rank" }, hit.rank), " ", hit.name),
      h("span", { class: "when" }, `${clock(hit.start)} – ${clock(hit.end)}`),
      h("span", { class: "signs" }, level(hit.level), small ? null : h("span", { class: "why" }, why(hit.streams))),
    ),
  );
  previewOnHover(link, picture, hit);
  return h(
    "li",
    { class: "hit" },
    link,
    small ? null : saidCues(hit),
    small ? null : writtenLines(hit),
    small ? null : describedScenes(hit),
    small ? null : heardSounds(hit),
    small ? null : h("p", { class: "acts" },
      h("a", { href: `#like=${hit.moment}`, "aria-label": `More like this: ${hit.name}, ${clock(hit.start)}` }, "More like this"),
      keepButton(() => hit.moment, () => query)),
    !small && hit.also.length ? h("p", { class: "also" }, `Identical files: ${hit.also.join(", ")}`) : null,
  );
}

function why(streams) {
  return Object.entries(streams)
    .sort(([, a], [, b]) => a.rank - b.rank)
    .map(([name, one]) => `${STREAM_WORDS[name] ?? name} #${one.rank}`)
    .join(", ");
}

function saidCues(hit) {
  const shown = hit.said.filter((cue) => cue.marks.length || cue.meaning);
  const cues = (shown.length ? shown : hit.said).slice(0, 3);
  if (!cues.length) return null;
  return h("blockquote", { class: "said" }, cues.map((cue) => h("p", {}, highlight(cue.text, cue.marks), cue.meaning && !cue.marks.length ? h("span", { class: "quiet" }, " (by meaning)") : null)));
}

/** The lines on screen that match, those visible in the hit's picture first. */
function foundLines(hit) {
  if (!hit.streams.text) return [];
  const away = (line) => (line.start <= hit.peak && hit.peak <= line.end ? 0 : 1);
  return hit.written.filter((line) => line.marks.length).sort((a, b) => away(a) - away(b)).slice(0, 3);
}

function writtenLines(hit) {
  const lines = foundLines(hit);
  if (!lines.length) return null;
  return h("div", { class: "written" }, h("span", { class: "quiet" }, "Written (read by a machine): "), lines.map((line) => h("p", {}, highlight(line.text, line.marks))));
}

/** The sounds of a hit that was found by sound, those of the query first. */
function heardSounds(hit) {
  const labels = hit.streams.sound ? [...new Set(hit.heard.map((one) => one.label))].slice(0, 3) : [];
  return labels.length ? h("div", { class: "written" }, h("span", { class: "quiet" }, "Heard: "), labels.join(", ")) : null;
}

/** A model's descriptions of the scenes, for a hit that was found by them; labelled, because nobody said them. */
function describedScenes(hit) {
  const scenes = hit.streams.described ? hit.described.filter((one) => one.marks.length).slice(0, 3) : [];
  if (!scenes.length) return null;
  return h("div", { class: "written" }, h("span", { class: "quiet" }, `Described by a model (${scenes[0].described_by}): `), scenes.map((one) => h("p", {}, highlight(one.text, one.marks))));
}

/** Draw boxes around lines in a picture that is letterboxed in its frame. */
function drawBoxes(over, image, lines) {
  const ratio = image.naturalWidth / image.naturalHeight / (image.clientWidth / image.clientHeight || 16 / 9);
  const across = Math.min(1, ratio);
  const down = Math.min(1, 1 / ratio);
  const share = (value, filled) => (1 - filled) / 2 + value * filled;
  over.replaceChildren(...lines.map(({ box: [left, top, width, height] }) => {
    const frame = h("i");
    frame.style.left = `${100 * share(left, across)}%`;
    frame.style.top = `${100 * share(top, down)}%`;
    frame.style.width = `${100 * width * across}%`;
    frame.style.height = `${100 * height * down}%`;
    return frame;
  }));
}

let stop = () => {};

/** Play a moment in its picture on hover or focus; one at a time. */
function previewOnHover(link, picture, hit) {
  let waiting = 0;
  const begin = () => {
    clearTimeout(waiting);
    if (!prefersReducedMotion()) waiting = setTimeout(() => startPreview(picture, hit), PREVIEW_DELAY_MS);
  };
  const end = () => {
    if (link.matches(":hover") || link === document.activeElement) return;
    clearTimeout(waiting);
    if (picture.querySelector("video")) stop();
  };
  link.addEventListener("pointerenter", begin);
  link.addEventListener("focus", begin);
  link.addEventListener("pointerleave", end);
  link.addEventListener("blur", end);
  link.addEventListener("click", () => (clearTimeout(waiting), stop()));
}

function startPreview(picture, hit) {
  if (picture.querySelector("video")) return;
  stop();
  const shown = screen(() => {}, { muted: true, "aria-hidden": "true", disablepictureinpicture: true });
  shown.video.addEventListener("playing", () => shown.video.classList.add("on"), { once: true });
  shown.open(hit.media, [hit.start, hit.end], rateOf(hit.rate));
  picture.append(shown.video);
  stop = () => {
    shown.close();
    shown.video.remove();
    stop = () => {};
  };
}

/** Stop the picture that is playing, when the view is left. */
export const stopPreview = () => stop();
