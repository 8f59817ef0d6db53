// What is said, or written, following the video; each line goes to its time. Words that a recogniser heard are marked
// one by one.

import { h, prefersReducedMotion, setChildren } from "./dom.js";
import { clock } from "./format.js";

const SAID = { id: "transcript", title: "Transcript", region: "Lines of the transcript", by: (who) => `Heard by a machine (${who}); words may be wrong.` };
export const WRITTEN = { id: "written", title: "On screen", region: "Lines on screen", by: (who) => `Read in the pictures by a machine (${who}); letters may be wrong.` };

/** A panel of lines; `kind` says what they are. */
export function transcript(onSeek, kind = SAID) {
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

  /** Mark the word of the present line that is being spoken, where the times of words are known. */
  function followWord(time) {
    const at = cues[current]?.words.findLastIndex((spoken) => spoken.start <= time + 0.01) ?? -1;
    const now = at < 0 ? null : lines[current].querySelectorAll(".word")[at];
    if (now === word) return;
    word?.classList.remove("spoken");
    word = now;
    word?.classList.add("spoken");
  }

  return {
    element,
    set(given, heardBy) {
      cues = given;
      current = -1;
      word = null;
      origin.hidden = !heardBy;
      origin.textContent = heardBy ? kind.by(heardBy) : "";
      lines = cues.map((cue) => {
        const words = [h("span", { class: "at" }, clock(cue.start)), h("span", { lang: cue.language }, spokenWords(cue))];
        return h("button", { type: "button", class: "line", onclick: () => onSeek(cue.start) }, words);
      });
      setChildren(list, lines.map((line) => h("li", {}, line)));
      element.hidden = !cues.length;
    },
    /** Mark the line that is being said, and keep it in sight. */
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
