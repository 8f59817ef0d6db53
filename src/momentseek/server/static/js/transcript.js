// The transcript, or the lines on screen, following the video; a click on a line seeks to its time. In a recogniser's
// transcript the spoken word is marked, and lines can be corrected if the server allows changes.

import { h, icon, prefersReducedMotion, runOnce, setChildren } from "./dom.js";
import { clock } from "./format.js";

const SAID = { id: "transcript", title: "Transcript", region: "Lines of the transcript", by: (who) => `Transcribed automatically (${who}); words may be wrong.` };
export const WRITTEN = { id: "written", title: "On screen", region: "Lines on screen", by: (who) => `Read from the pictures automatically (${who}); letters may be wrong.` };

/** A panel of lines; `kind` says what they are, `onCorrect(cue, text)` saves a correction and reloads them. */
export function transcript(onSeek, { kind = SAID, onCorrect } = {}) {
  const list = h("ol", { class: "lines" });
  const box = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": kind.region }, list);
  const origin = h("p", { class: "heard-by", hidden: true });
  const element = h(
    "section",
    { class: `panel ${kind.id}`, "aria-labelledby": `${kind.id}-title` },
    h("h2", { id: `${kind.id}-title` }, kind.title), origin, box,
  );
  let cues = [];
  let lines = [];
  let current = -1;
  let word = null;

  /** Mark the word of the current line that is being spoken, if the times of words are known. */
  function followWord(time) {
    const at = cues[current]?.words.findLastIndex((spoken) => spoken.start <= time + 0.01) ?? -1;
    const now = at < 0 ? null : lines[current].querySelectorAll(".word")[at];
    if (now === word) return;
    word?.classList.remove("spoken");
    word = now;
    word?.classList.add("spoken");
  }

  /** A field in place of a line; Enter or Save corrects it, Escape leaves it as it was. */
  function correct(item, cue) {
    const before = [...item.children];
    const field = h("textarea", { rows: 2, maxlength: 2000, "aria-label": `What is said at ${clock(cue.start)}`, lang: cue.language });
    const cancel = () => {
      setChildren(item, before);
      item.querySelector(".correct").focus();
    };
    const save = () => runOnce(form, async () => {
      await onCorrect(cue, field.value);
      list.children[Math.min(cues.findIndex((one) => one.start >= cue.start), cues.length - 1)]?.querySelector("button")?.focus();
    });
    const form = h(
      "form",
      { class: "correction", onsubmit: (event) => (event.preventDefault(), save()) },
      field,
      h("div", {}, h("button", { type: "submit", class: "small main" }, "Save"), h("button", { type: "button", class: "small", onclick: cancel }, "Cancel")),
    );
    field.value = cue.text;
    field.addEventListener("keydown", (event) => {
      if (event.key === "Escape") cancel();
      else if (event.key === "Enter" && !event.isComposing) save();
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
    setChildren(item, form);
    field.focus();
  }

  function row(cue, line, editable) {
    const item = h("li", { class: "cue" }, line);
    if (!editable) return item;
    const label = `Correct the line at ${clock(cue.start)}`;
    item.append(h("button", { type: "button", class: "plain correct", title: label, "aria-label": label, onclick: () => correct(item, cue) }, icon("pencil")));
    return item;
  }

  return {
    element,
    set(given, heardBy, editable) {
      cues = given;
      current = -1;
      word = null;
      origin.hidden = !heardBy;
      origin.textContent = heardBy ? kind.by(heardBy) : "";
      lines = cues.map((cue) => {
        const mark = cue.edited && h("span", { class: "edited" }, "corrected");
        const words = [h("span", { class: "at" }, clock(cue.start)), h("span", { lang: cue.language }, spokenWords(cue)), mark];
        return h("button", { type: "button", class: "line", onclick: () => onSeek(cue.start) }, words);
      });
      setChildren(list, lines.map((line, at) => row(cues[at], line, editable && heardBy)));
      element.hidden = !cues.length;
    },
    /** Mark the line that is being said, and keep it visible. */
    follow(time) {
      let low = 0;
      let high = cues.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (cues[middle].start <= time + 0.01) low = middle + 1;
        else high = middle;
      }
      const now = low - 1 >= 0 && time < cues[low - 1].end ? low - 1 : -1;
      if (now === current) return followWord(time);
      lines[current]?.removeAttribute("aria-current");
      current = now;
      const line = lines[now];
      followWord(time);
      if (!line) return;
      line.setAttribute("aria-current", "true");
      if (box.contains(document.activeElement)) return;
      const top = line.offsetTop - list.offsetTop - box.clientHeight / 2 + line.clientHeight / 2;
      box.scrollTo({ top, behavior: prefersReducedMotion() ? "auto" : "smooth" });
    },
  };
}

function spokenWords(cue) {
  return cue.words.length ? cue.words.map((spoken) => h("span", { class: "word" }, spoken.text)) : cue.text;
}
