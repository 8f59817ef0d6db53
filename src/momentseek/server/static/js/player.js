// The player: a moment, why it was found, handles to adjust its start and end, and exports.

import { momentLink, parse, replace, searchLink } from "./address.js";
import * as api from "./api.js";
import { keepButton } from "./bookmarks.js";
import { level } from "./card.js";
import { actionButton, announce, copy, download, h, icon, isTyping, notify, setChildren, warn } from "./dom.js";
import { clock, exact, rateOf, timecode } from "./format.js";
import { dated } from "./library.js";
import { screen } from "./screen.js";
import { timeline } from "./timeline.js";
import { transcript, WRITTEN } from "./transcript.js";

const SHORTCUTS = `Space plays and pauses. Comma and full stop step by one frame. I and O set the start and the end at the
  current frame. L turns looping on and off. Escape goes back. On a handle, the arrow keys move by one frame, with Shift
  by one second; Page Up and Page Down jump to cuts and cues. Hold Alt while dragging to turn off snapping.`;

const BACK_TEXTS = { library: "Back to the library", compare: "Back to the comparison" };

export function playerView(go, lastSearch, origin) {
  let video = null;
  let span = [0, 1];
  let query = "";
  let settings = {};
  let looping = true;
  let rate = 25;
  let waiting = 0;
  let turn = 0;
  let editable = false;

  const shown = screen(updateControls, { class: "film", onclick: () => shown.toggle() }, explain);
  const film = shown.video;
  const line = timeline({ onSeek: seek, onSpan: moveEdge, onSettled: saveAddress });
  const words = transcript(seek, { onCorrect: correct });
  const written = transcript(seek, { kind: WRITTEN });
  const title = h("h1", { tabindex: "-1" });
  const back = h("a", { class: "backlink", href: "#" }, "Back to the results");
  const position = h("span", { class: "position", role: "timer", "aria-live": "off", "aria-label": "Position" });
  const edges = h("p", { class: "edges" });
  const origins = h("p", { class: "quiet" });
  const others = h("ol", { class: "others" });
  const othersPanel = h(
    "section",
    { class: "panel", "aria-labelledby": "others-title" },
    h("h2", { id: "others-title" }, "Matches in this video"), others,
  );
  const missing = h("p", { class: "problem", hidden: true });

  const play = tool("play", "Play", () => shown.toggle());
  const sound = tool("sound", "Mute", () => (film.muted = !film.muted));
  const loop = tool("loop", "Loop the moment", () => setLoop(!looping));
  const full = tool("full", "Full screen", () => film.requestFullscreen?.().catch(() => {}));
  const transport = h(
    "div",
    { class: "transport", role: "group", "aria-label": "Playback" },
    tool("back", "One frame back (comma)", () => shown.step(-1)), play, tool("next", "One frame forward (full stop)", () => shown.step(1)),
    loop, sound, full, position,
    h("span", { class: "push" }),
    h("button", { type: "button", class: "small", onclick: () => mark("start"), title: "Shortcut: I" }, "Set start"),
    h("button", { type: "button", class: "small", onclick: () => mark("end"), title: "Shortcut: O" }, "Set end"),
  );
  const moment = () => `${video?.id}:${span[0].toFixed(3)}-${span[1].toFixed(3)}`;
  const keep = keepButton(moment, () => query);
  const exportButtons = h(
    "div",
    { class: "exports", role: "group", "aria-label": "Export this moment" },
    actionButton("Cut clip", cut, { class: "main" }),
    actionButton("EDL", () => exportAs("edl")),
    actionButton("FCPXML", () => exportAs("fcpxml")),
    keep,
    h("button", { type: "button", onclick: () => go(`#like=${moment()}`) }, "More like this"),
    h("button", { type: "button", onclick: () => copy(link(), "Link") }, "Copy link"),
    h("button", { type: "button", onclick: () => copy(codes().join(" "), "Timecode") }, "Copy timecode"),
  );
  const keys = h(
    "details",
    { class: "keys" },
    h("summary", {}, "Keyboard shortcuts"),
    h("p", {}, SHORTCUTS),
  );
  const stage = h("div", { class: "stage" }, h("div", { class: "frame" }, film), missing, transport, line.element, exportButtons, keys);
  const side = h("aside", { class: "side", "aria-label": "More about this video" }, othersPanel, words.element, written.element);
  const lost = h("p", { class: "problem lost", role: "alert", hidden: true });
  const element = h("section", { class: "player" }, h("div", { class: "head" }, back, title, edges, origins, lost), stage, side);

  function tool(name, label, work) {
    return h("button", { type: "button", class: "tool", "aria-label": label, title: label, onclick: work }, icon(name));
  }

  /** Show why the video does not play; an empty text hides it. */
  function explain(text) {
    missing.textContent = text;
    missing.hidden = !text;
  }

  function updateControls() {
    const now = film.currentTime;
    line.setTime(now);
    words.follow(now);
    written.follow(now);
    position.textContent = `${clock(now, 2)} / ${clock(video?.duration ?? 0, 0)}`;
    setButton(play, film.paused ? "play" : "pause", film.paused ? "Play" : "Pause");
    setButton(sound, film.muted ? "silent" : "sound", film.muted ? "Unmute" : "Mute");
  }

  function setButton(button, name, label) {
    if (button.getAttribute("aria-label") === label) return;
    button.setAttribute("aria-label", label);
    button.title = label;
    setChildren(button, icon(name));
  }

  function setLoop(on) {
    looping = on;
    shown.loop(on);
    loop.setAttribute("aria-pressed", String(on));
  }

  function seek(time) {
    shown.seek(time);
    line.setTime(time);
    line.reveal(time);
  }

  function moveEdge(start, end, which) {
    span = [start, end];
    shown.setSpan(start, end);
    showEdges();
    film.pause();
    shown.seek(which === "start" ? start : Math.max(start, end - 1 / rate));
  }

  /** Update the address after a handle was moved, so that a reload or a copied link shows the same moment. */
  function saveAddress() {
    clearTimeout(waiting);
    waiting = setTimeout(() => replace(momentLink(video.id, span, query, settings)), 100);
  }

  function mark(which) {
    const frame = shown.frame();
    const time = exact(which === "start" ? frame / rate : (frame + 1) / rate);
    if (which === "start" && time >= span[1]) return warn("The start must be before the end.");
    if (which === "end" && time <= span[0]) return warn("The end must be after the start.");
    setSpan(which === "start" ? [time, span[1]] : [span[0], Math.min(time, video.duration)]);
    saveAddress();
    announce(`${which} set`);
  }

  function setSpan([start, end]) {
    span = [exact(start), Math.min(exact(end), exact(video.duration))];
    shown.setSpan(...span);
    line.setSpan(...span);
    showEdges();
  }

  function showEdges() {
    keep.dispatchEvent(new Event("moment"));
    setChildren(
      edges,
      h("span", { class: "when" }, `${clock(span[0], 2)} – ${clock(span[1], 2)}`),
      h("span", { class: "long" }, `${(span[1] - span[0]).toFixed(2)} s`),
      h("span", { class: "code" }, codes().join(" – ")),
    );
    for (const one of others.querySelectorAll("button")) {
      const same = one.dataset.span === String(span);
      if (same) one.setAttribute("aria-current", "true");
      else one.removeAttribute("aria-current");
    }
  }

  const codes = () => span.map((time) => timecode(time, rate));
  const link = () => location.origin + location.pathname + momentLink(video.id, span, query, settings);

  async function cut() {
    const clip = await api.file(`/videos/${video.id}/clip`, { start: span[0], end: span[1], exact: true });
    download(clip);
    notify(`Clip saved: ${clip.name}`);
  }

  async function exportAs(kind) {
    const hit = { video_id: video.id, start: span[0], end: span[1], title: (query || video.name).slice(0, 500) };
    const list = await api.file("/export", { kind, title: hit.title, hits: [hit] });
    download(list);
    notify(`Saved: ${list.name}`);
  }

  function showOthers(spans) {
    setChildren(others, spans.map((one) => {
      const times = [exact(one.start), exact(one.end)];
      const button = h(
        "button",
        { type: "button", class: "other", "data-span": String(times), onclick: () => jump(times) },
        h("span", { class: "when" }, `${clock(one.start)} – ${clock(one.end)}`),
        level(one.level),
      );
      return h("li", {}, button);
    }));
    othersPanel.hidden = !spans.length;
    showEdges();
  }

  function jump(times) {
    setSpan(times);
    line.reveal(times[0]);
    shown.seek(times[0]);
    shown.play();
    saveAddress();
  }

  const commands = {
    " ": () => shown.toggle(),
    k: () => shown.toggle(),
    ",": () => shown.step(-1),
    ".": () => shown.step(1),
    i: () => mark("start"),
    o: () => mark("end"),
    l: () => setLoop(!looping),
    Escape: () => go(back.getAttribute("href")),
  };

  let ready = false; // until a video is loaded, only going back works
  function key(event) {
    if (isTyping(event) || document.querySelector("dialog[open]")) return;
    const onControl = event.target.closest("button, a, summary, select, input");
    if (onControl && [" ", "Enter"].includes(event.key)) return;
    const command = commands[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!command || (!ready && event.key !== "Escape")) return;
    event.preventDefault();
    command();
  }

  /** Show an error instead of a video, and hide everything that belongs to the video before. */
  function showLost(reason) {
    clearTimeout(waiting);
    video = null;
    shown.close();
    document.removeEventListener("keydown", key);
    title.textContent = "No video";
    lost.textContent = reason;
    hideStage(true);
  }

  function hideStage(on) {
    lost.hidden = !on;
    for (const part of [stage, side, edges, origins]) part.hidden = on;
  }

  function updateBackLink() {
    const results = parse(lastSearch()).query === query ? lastSearch() || "#" : searchLink(query, settings);
    back.href = origin() in BACK_TEXTS ? `#${origin()}` : results;
    back.textContent = BACK_TEXTS[origin()] ?? (query ? "Back to the results" : "Search");
  }

  async function load(id, mine) {
    if (video?.id === id) return;
    const asked = ["", "/cues", "/lines"].map((part) => api.get(`/videos/${id}${part}`));
    const [details, said, read, { changes }] = await Promise.all([...asked, api.status()]);
    if (mine !== turn) return;
    editable = changes;
    video = details;
    rate = rateOf(video.rate);
    film.poster = video.width ? "" : video.thumbnail;
    title.textContent = video.name;
    origins.textContent = [dated(video), video.place && `at ${video.place.map((one) => one.toFixed(4)).join(", ")}`].filter(Boolean).join(" ");
    words.set(said.cues, said.heard_by, editable);
    written.set(read.lines.map((one) => ({ ...one, words: [] })), read.read_by);
    line.setVideo({ duration: video.duration, rate, shots: video.shots, cues: said.cues });
  }

  async function correct(cue, text) {
    const { id } = video;
    const said = await api.change("PUT", `/videos/${id}/cues`, { start: cue.start, end: cue.end, was: cue.text, text });
    notify("Corrected");
    if (video?.id !== id) return;
    words.set(said.cues, said.heard_by, editable);
    line.setCues(said.cues);
  }

  async function loadCurve(mine) {
    const { rerank, ...how } = settings; // the curve is that of the search, also for a re-ranked moment
    const curve = query ? await api.get(`/videos/${video.id}/curve`, { q: query, ...how }) : null;
    if (mine !== turn) return null;
    line.setCurve(curve);
    showOthers(curve?.spans ?? []);
    return curve;
  }

  return {
    element,
    title: () => video?.name ?? "Player",
    focus: () => title.focus({ preventScroll: true }),
    async show(asked) {
      const mine = ++turn;
      const alike = query === asked.query && String(Object.values(settings)) === String(Object.values(asked.settings));
      const same = video?.id === asked.video && alike && film.getAttribute("src");
      if (same && asked.span && String(asked.span) === String(span)) return;
      query = asked.query;
      settings = asked.settings;
      updateBackLink();
      setChildren(others);
      ready = false;
      document.addEventListener("keydown", key);
      try {
        await load(asked.video, mine);
      } catch (error) {
        if (mine === turn) showLost(error.message);
        return;
      }
      if (mine !== turn) return;
      hideStage(false);
      missing.hidden = true;
      ready = true;
      const whole = [0, exact(video.duration)];
      setSpan(asked.span && asked.span[0] < video.duration ? asked.span : whole);
      setLoop(Boolean(asked.span));
      line.setCurve(null);
      line.open();
      shown.open(video.media, span, rate, !video.width);
      updateControls();
      const curve = await loadCurve(mine).catch((error) => warn(error.message));
      if (mine === turn && !asked.span && curve?.spans.length) jump([curve.spans[0].start, curve.spans[0].end]);
    },
    hide() {
      turn++;
      document.removeEventListener("keydown", key);
      shown.close();
    },
  };
}
