// The timeline under the player: curves, shots, words, this query's moments, and the span with its two handles.

import { lane, scaleValues } from "./curve.js";
import { h, setChildren } from "./dom.js";
import { clock, exact, spokenTime } from "./format.js";
import { sliderKeys } from "./slider.js";

const SNAP_PIXELS = 8;
const ROUNDING = 0.001; // times of moments are rounded to milliseconds, so they may lie this far after the end of the video
const LANES = { vision: "Picture", speech: "Speech", text: "Writing", described: "Described" };

/** `onSeek(time)`, `onSpan(start, end, which)` while an edge moves, `onSettled()` when it rests. */
export function timeline({ onSeek, onSpan, onSettled }) {
  let video = { duration: 1, rate: 25, shots: [], cues: [] };
  let curve = null;
  let span = [0, 1];
  let time = 0;
  let from = 0;
  let to = 1;
  let snaps = [];

  const back = h("div", { class: "back", "aria-hidden": "true" });
  const inside = h("div", { class: "inside", "aria-hidden": "true" });
  const start = handle("start", "Start of the moment");
  const end = handle("end", "End of the moment");
  const playhead = h("div", { class: "playhead", role: "slider", tabindex: "0", "aria-label": "Position" });
  const area = h("div", { class: "area" }, back, inside, playhead, start, end);
  const axis = h("div", { class: "axis", "aria-hidden": "true" });
  const zoomIn = h("button", { type: "button", class: "small", onclick: () => focusOn(span, 3) }, "Zoom to moment");
  const zoomOut = h("button", { type: "button", class: "small", onclick: () => view(0, video.duration) }, "Whole video");
  const element = h("div", { class: "timeline" }, area, axis, h("div", { class: "zooms" }, zoomIn, zoomOut));

  function handle(which, label) {
    return h("div", { class: `handle ${which}`, role: "slider", tabindex: "0", "aria-label": label, "data-edge": which });
  }

  const place = (t) => `${(100 * (t - from)) / (to - from)}%`;
  const at = (event) => {
    const { left, width } = area.getBoundingClientRect();
    return from + ((to - from) * (event.clientX - left)) / width;
  };
  const frame = () => 1 / video.rate;

  /** The nearest cut or edge of a cue within a few pixels, or the time itself. */
  function snap(t) {
    const reach = (SNAP_PIXELS * (to - from)) / Math.max(1, area.clientWidth);
    const best = snaps.reduce((a, b) => (Math.abs(b - t) < Math.abs(a - t) ? b : a), Infinity);
    return Math.abs(best - t) <= reach ? best : t;
  }

  function moveEdge(which, t) {
    const shortest = Math.min(frame(), video.duration);
    if (which === "start") span = [exact(Math.min(Math.max(0, t), span[1] - shortest)), span[1]];
    else span = [span[0], exact(Math.max(Math.min(video.duration, t), span[0] + shortest))];
    placeSpan();
    onSpan(span[0], span[1], which);
  }

  for (const [which, grip] of [["start", start], ["end", end]]) {
    const index = which === "start" ? 0 : 1;
    grip.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      event.stopPropagation();
      grip.focus();
      grip.setPointerCapture(event.pointerId);
      const offset = at(event) - span[index];
      const move = (e) => moveEdge(which, e.altKey ? at(e) - offset : snap(at(e) - offset));
      drag(grip, move, onSettled);
    });
    sliderKeys(grip, {
      value: () => span[index], frame, snaps: () => snaps,
      range: () => (which === "start" ? [0, span[1] - frame()] : [span[0] + frame(), video.duration]),
      set: (t) => (moveEdge(which, t), reveal(t), onSettled()),
    });
  }
  sliderKeys(playhead, { value: () => time, frame, snaps: () => snaps, range: () => [0, video.duration], set: onSeek });
  area.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    area.setPointerCapture(event.pointerId);
    const seek = (e) => onSeek(Math.min(Math.max(0, at(e)), video.duration));
    seek(event);
    drag(area, seek, () => {});
  });

  function view(a, b) {
    from = Math.max(0, a);
    to = Math.min(video.duration, b);
    if (to - from < 1e-6) [from, to] = [0, video.duration];
    draw();
  }

  function focusOn([a, b], times) {
    const side = Math.max((times * (b - a)) / 2, 4);
    view(a - side, b + side);
  }

  /** Scroll so that a time is visible. */
  function reveal(t) {
    if (t >= from && t <= to) return;
    const half = (to - from) / 2;
    const middle = Math.min(Math.max(t, half), video.duration - half);
    view(middle - half, middle + half);
  }

  function draw() {
    const lanes = [];
    for (const [name, values] of Object.entries(curve?.streams ?? {})) {
      if (!values.length) continue;
      lanes.push(h("div", { class: "row" }, h("span", { class: "tag" }, LANES[name] ?? name), lane(name, curve.edges, scaleValues(name, values), from, to)));
    }
    setChildren(back, lanes, ticks(), blocks("words", video.cues, 400), blocks("found", curve?.spans ?? [], 50));
    placeSpan();
    placeTime();
    drawAxis();
    zoomOut.disabled = from <= 0 && to >= video.duration;
  }

  function blocks(kind, spans, most) {
    const seen = spans.filter((one) => one.end > from && one.start < to).slice(0, most);
    return h("div", { class: `blocks ${kind}` }, seen.map((one) => {
      const block = h("i", { class: one.level ?? "" });
      const a = Math.max(one.start, from);
      block.style.left = place(a);
      block.style.width = `${(100 * (Math.min(one.end, to) - a)) / (to - from)}%`;
      return block;
    }));
  }

  function ticks() {
    return video.shots.filter((t) => t > from && t < to).slice(0, 400).map((t) => {
      const tick = h("i", { class: "shot" });
      tick.style.left = place(t);
      return tick;
    });
  }

  function drawAxis() {
    const wanted = (to - from) / Math.max(2, Math.min(8, area.clientWidth / 90 || 6));
    const step = [0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600].find((one) => one >= wanted) ?? 7200;
    const marks = [];
    for (let t = Math.ceil(from / step) * step; t <= to - step * 0.25; t += step) {
      const mark = h("span", {}, clock(t, step < 1 ? 1 : 0));
      mark.style.left = place(t);
      marks.push(mark);
    }
    setChildren(axis, marks);
  }

  function placeSpan() {
    for (const [grip, value] of [[start, span[0]], [end, span[1]]]) {
      grip.style.left = place(Math.max(from, Math.min(to, value)));
      grip.classList.toggle("away", value < from - ROUNDING || value > to + ROUNDING);
      setSliderValues(grip, value, 0, video.duration);
    }
    const a = Math.max(from, Math.min(to, span[0]));
    inside.style.left = place(a);
    inside.style.width = `${(100 * (Math.max(a, Math.min(to, span[1])) - a)) / (to - from)}%`;
  }

  function placeTime() {
    playhead.style.left = place(time);
    playhead.classList.toggle("away", time < from || time > to);
    setSliderValues(playhead, time, 0, video.duration);
  }

  new ResizeObserver(drawAxis).observe(area);

  return {
    element,
    setVideo(given) {
      video = given;
      snaps = [...new Set([0, ...given.shots, ...given.cues.flatMap((cue) => [cue.start, cue.end]), given.duration].map(exact))]
        .filter((t) => t >= 0 && t <= given.duration)
        .sort((a, b) => a - b);
    },
    setCues(cues) {
      this.setVideo({ ...video, cues });
      draw();
    },
    setCurve(given) {
      curve = given;
      draw();
    },
    setSpan(a, b) {
      span = [exact(a), exact(b)];
      placeSpan();
    },
    setTime(t) {
      time = t;
      placeTime();
    },
    /** Show the whole video if it is short, otherwise the part around the moment. */
    open() {
      const long = span[1] - span[0];
      if (video.duration > 180 && long < video.duration / 20) focusOn(span, 8);
      else view(0, video.duration);
    },
    reveal,
  };
}

function setSliderValues(slider, now, low, high) {
  slider.setAttribute("aria-valuemin", low);
  slider.setAttribute("aria-valuemax", exact(high));
  slider.setAttribute("aria-valuenow", exact(now));
  slider.setAttribute("aria-valuetext", spokenTime(now));
}

function drag(element, move, done) {
  const finish = () => {
    element.removeEventListener("pointermove", move);
    element.removeEventListener("pointerup", finish);
    element.removeEventListener("pointercancel", finish);
    done();
  };
  element.addEventListener("pointermove", move);
  element.addEventListener("pointerup", finish);
  element.addEventListener("pointercancel", finish);
}
