// Where a moment is watched and judged: the film on one side, the five levels with their guideline on the other.

import * as api from "./api.js";
import { action, busy, h, icon, put, speak } from "./dom.js";
import { screen } from "./screen.js";

/** `judge(level)`, `undo()` and `pass()` do the work. */
export function judgeStage(judge, undo, pass) {
  const shown = screen(moved, { class: "film", onclick: () => shown.toggle() });
  const title = h("h2", { tabindex: "-1" });
  const progress = h("progress", { max: 1, "aria-label": "Judged" });
  const left = h("p", { class: "quiet" });
  const levels = h("ol", { class: "levels" });
  const instructions = h("p", {});
  const example = h("p", { class: "quiet" });
  const back = action("Undo", undo, { class: "small", title: "Key U" });
  const over = action("Pass over", pass, { class: "small" });
  const missing = h("p", { class: "problem", hidden: true }, "This browser cannot play the video; pass over it, or judge in another one.");
  const done = h("p", { class: "empty", hidden: true });
  const frame = h("div", { class: "frame" }, shown.video);
  const play = h("button", { type: "button", class: "small", onclick: () => shown.toggle() }, icon("play"), "Play");
  const guide = h("div", { class: "guide" }, instructions, levels, h("details", {}, h("summary", {}, "An example"), example));
  const work = h(
    "div",
    { class: "work" },
    h("div", { class: "watch" }, frame, missing, h("div", { class: "bar" }, play, h("span", { class: "push" }), over, back)),
    guide,
  );
  const element = h(
    "section",
    { class: "panel judging", hidden: true, "aria-label": "Judging" },
    title, h("div", { class: "bar" }, progress, left), work, done,
  );
  const buttons = new Map();

  function moved() {
    const label = shown.video.paused ? "Play" : "Pause";
    if (play.textContent !== label) put(play, icon(label.toLowerCase()), label);
  }

  shown.video.addEventListener("error", () => shown.video.getAttribute("src") && (missing.hidden = false));

  return {
    element,
    async prepare() {
      const guideline = buttons.size ? null : await api.get("/judging/guideline");
      if (buttons.size) return;
      instructions.textContent = guideline.instructions ?? "";
      example.textContent = guideline.example ?? "";
      for (const level of [...guideline.levels].sort((a, b) => b.value - a.value)) {
        const meaning = h("span", { class: "meaning", id: `level-${level.value}` }, level.meaning);
        const said = h("span", {}, h("strong", {}, level.name), meaning);
        const button = h("button", { type: "button", class: "level-button" }, h("kbd", {}, level.value), said);
        button.addEventListener("click", () => busy(levels, () => judge(level.value)));
        buttons.set(level.value, button);
        levels.append(h("li", {}, button));
      }
    },
    show(query, { candidate, done: judged, total: all, left: remaining, note }) {
      element.hidden = false;
      element.dataset.candidate = candidate?.id ?? "";
      title.textContent = query.text;
      progress.value = all ? judged / all : 1;
      left.textContent = `${judged} judged by you, ${remaining} left${note ? `; ${note}` : ""}`;
      missing.hidden = true;
      for (const part of [frame, play, over, guide]) part.hidden = !candidate;
      done.hidden = Boolean(candidate);
      if (candidate) {
        shown.loop(true);
        shown.open(candidate.media, [candidate.start, candidate.end], 25);
        speak(`Moment ${judged + 1} of ${all}`);
      } else {
        shown.close();
        done.textContent = remaining
          ? "Only moments that you passed over are left. Choose the query again to see them."
          : "Nothing is left for you in this query. Choose another one above, or write a new one.";
        speak(done.textContent);
      }
    },
    press: (level) => buttons.get(level)?.click(),
    pressUndo: () => back.click(),
    toggle: () => shown.toggle(),
    focus() {
      title.focus({ preventScroll: true });
      element.scrollIntoView({ block: "start", behavior: "instant" });
    },
    close() {
      shown.close();
      element.hidden = true;
    },
  };
}
