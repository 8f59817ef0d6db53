// The panel in which a moment is judged: the video on one side, the five levels with their guideline on the other.

import * as api from "./api.js";
import { actionButton, announce, h, icon, runOnce, setChildren } from "./dom.js";
import { screen } from "./screen.js";

/** `judge(level)`, `undo()` and `skip()` do the work. */
export function judgeStage(judge, undo, skip) {
  const shown = screen(updateButton, { class: "film", onclick: () => shown.toggle() }, explain);
  const title = h("h2", { tabindex: "-1" });
  const progress = h("progress", { max: 1, "aria-label": "Judged" });
  const left = h("p", { class: "quiet" });
  const levels = h("ol", { class: "levels" });
  const instructions = h("p", {});
  const example = h("p", { class: "quiet" });
  const back = actionButton("Undo", undo, { class: "small", title: "Shortcut: U" });
  const skipButton = actionButton("Skip", skip, { class: "small" });
  const missing = h("p", { class: "problem", hidden: true });
  const done = h("p", { class: "empty", hidden: true });
  const frame = h("div", { class: "frame" }, shown.video);
  const play = h("button", { type: "button", class: "small", onclick: () => shown.toggle() }, icon("play"), "Play");
  const guide = h("div", { class: "guide" }, instructions, levels, h("details", {}, h("summary", {}, "Example"), example));
  const work = h(
    "div",
    { class: "work" },
    h("div", { class: "watch" }, frame, missing, h("div", { class: "bar" }, play, h("span", { class: "push" }), skipButton, back)),
    guide,
  );
  const element = h(
    "section",
    { class: "panel judging", hidden: true, "aria-label": "Judging" },
    title, h("div", { class: "bar" }, progress, left), work, done,
  );
  const buttons = new Map();

  function updateButton() {
    const label = shown.video.paused ? "Play" : "Pause";
    if (play.textContent !== label) setChildren(play, icon(label.toLowerCase()), label);
  }

  /** Show why the video does not play; an empty text hides it. */
  function explain(text) {
    missing.textContent = text;
    missing.hidden = !text;
  }

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
        button.addEventListener("click", () => runOnce(levels, () => judge(level.value)));
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
      for (const part of [frame, play, skipButton, guide]) part.hidden = !candidate;
      done.hidden = Boolean(candidate);
      if (candidate) {
        shown.loop(true);
        shown.open(candidate.media, [candidate.start, candidate.end], 25);
        announce(`Moment ${judged + 1} of ${all}`);
      } else {
        shown.close();
        done.textContent = remaining
          ? "Only moments that you skipped are left. Choose the query again to see them."
          : "Nothing is left for you to judge in this query. Choose another one above, or add a new one.";
        announce(done.textContent);
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
