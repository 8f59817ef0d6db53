// Controls for how to search: what bounds a moment, and which streams are looked at.

import { h } from "./dom.js";

const STREAMS = { vision: "what is seen", speech: "what is said", name: "file names" };
let number = 0;

/** Controls in a fieldset; `value()` gives {localiser, streams} with usual choices left out. */
export function settingsOf(status, legend, changed, initial = {}) {
  const id = `settings-${++number}`;
  const localiser = h(
    "select",
    { id, onchange: () => changed?.() },
    status.localisers.map((name) => h("option", { value: name }, name === status.localiser ? `${name} (usual)` : name)),
  );
  const boxes = status.streams.map((name) =>
    h("label", { class: "check" }, h("input", { type: "checkbox", value: name, onchange: (e) => keepOne(e) }), STREAMS[name] ?? name),
  );
  const inputs = boxes.map((box) => box.firstElementChild);
  /** Choose as parameters of a search say; what they leave out or nobody knows is as usual. */
  function set(given) {
    localiser.value = status.localisers.includes(given.localiser) ? given.localiser : status.localiser;
    const wanted = (given.streams ?? "").split(",");
    const known = status.streams.some((name) => wanted.includes(name));
    for (const box of inputs) box.checked = !known || wanted.includes(box.value);
  }
  set(initial);
  function keepOne(event) {
    if (!inputs.some((box) => box.checked)) event.target.checked = true;
    changed?.();
  }
  const element = h(
    "fieldset",
    { class: "settings" },
    h("legend", {}, legend),
    h("div", { class: "field" }, h("label", { for: id }, "Bounds found by"), localiser),
    h("div", { class: "checks", role: "group", "aria-label": `${legend}: look at` }, boxes),
  );
  const streams = () => inputs.filter((box) => box.checked).map((box) => box.value);
  return {
    element,
    localiser: () => localiser.value,
    streams,
    set,
    /** As parameters of a search; nothing for what is usual. */
    value: () => ({
      localiser: localiser.value === status.localiser ? "" : localiser.value,
      streams: streams().length === inputs.length ? "" : streams().join(","),
    }),
    /** As one text, for comparing. */
    text: () => `localiser=${localiser.value};streams=${streams().join(",")}`,
  };
}
