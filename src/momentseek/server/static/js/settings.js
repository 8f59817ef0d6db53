// How to search: the localiser, the fusion, the re-ranking model, the encoder, and the streams.

import { h } from "./dom.js";

const STREAMS = { vision: "what is seen", speech: "what is said", text: "what is written", described: "descriptions by a model", name: "file names" };

/** No re-ranking: the value, which no folder can have as its name, and the label. */
const NONE = "";
const NO_MODEL = "none";

/** Settings with several choices: name in addresses, label, the choices, and the default. */
const CHOICES = [
  ["localiser", "Localiser", (status) => status.localisers, (status) => status.localiser],
  ["fusion", "Fusion", (status) => status.fusions, (status) => status.fusion],
  ["rerank", "Re-ranking model", (status) => reranking(status), () => NONE],
  ["encoder", "Encoder", (status) => status.encoders, (status) => status.encoders?.[0]],
];

/** The re-ranking models of the server, if it has any. */
function reranking(status) {
  return status.rerankers?.length ? [NONE, ...status.rerankers] : [];
}

/** The settings among a search's parameters that the server knows; an empty text for a default. */
export function validSettings(status, given) {
  const known = {};
  for (const [key, , names, usual] of CHOICES) {
    const value = given[key];
    known[key] = value !== usual(status) && names(status)?.includes(value) ? value : "";
  }
  const wanted = (given.streams ?? "").split(",");
  const chosen = status.streams.filter((name) => wanted.includes(name));
  known.streams = chosen.length && chosen.length < status.streams.length ? chosen.join(",") : "";
  return known;
}

/** The settings that measuring and comparing use: all but re-ranking. */
export function evaluationSettings(status, given) {
  const { rerank, ...known } = validSettings(status, given);
  return known;
}

/** The setup that is measured, in words: "localiser scenes, fusion rrf; searching what is seen and file names". */
export function describeSettings(status, given) {
  const known = evaluationSettings(status, given);
  const choices = CHOICES.filter(([key, , names]) => key !== "rerank" && names(status)?.length)
    .map(([key, label, , usual]) => `${label.toLowerCase()} ${known[key] || usual(status)}`);
  const streams = (known.streams || status.streams.join(",")).split(",").map((name) => STREAMS[name] ?? name);
  const plain = status.rerankers?.length ? "; without re-ranking" : "";
  return `${choices.join(", ")}; searching ${new Intl.ListFormat("en").format(streams)}${plain}`;
}

let number = 0;

/** Controls in a fieldset; `value()` gives what was chosen by name. Only comparing can choose another encoder, and it
 * does not re-rank. */
export function settingsControls(status, legend, { changed, initial = {}, encoders = false } = {}) {
  const id = `settings-${++number}`;
  const selects = new Map();
  const offered = CHOICES.filter(([key, , names]) => names(status)?.length > 1 && key !== (encoders ? "rerank" : "encoder"));
  const fields = offered.map(([key, label, names, usual]) => {
    const options = names(status).map((name) =>
      h("option", { value: name }, name === usual(status) ? `${name || NO_MODEL} (default)` : name));
    const select = h("select", { id: `${id}-${key}`, onchange: () => changed?.() }, options);
    selects.set(key, select);
    return h("div", { class: "field" }, h("label", { for: select.id }, label), select);
  });
  const boxes = status.streams.map((name) =>
    h("label", { class: "check" },
      h("input", { type: "checkbox", value: name, onchange: keepOne }), STREAMS[name] ?? name),
  );
  const inputs = boxes.map((box) => box.firstElementChild);

  /** Set the controls to the parameters of a search; what is missing or unknown gets its default. */
  function set(given) {
    const known = validSettings(status, given);
    for (const [key, , , usual] of CHOICES) if (selects.has(key)) selects.get(key).value = known[key] || usual(status);
    advanced.open ||= CHOICES.some(([key]) => known[key]);
    for (const box of inputs) box.checked = !known.streams || known.streams.split(",").includes(box.value);
  }

  function keepOne(event) {
    if (!inputs.some((box) => box.checked)) event.target.checked = true;
    changed?.();
  }

  const all = () => ({
    ...Object.fromEntries([...selects].map(([key, select]) => [key, select.value])),
    streams: inputs.filter((box) => box.checked).map((box) => box.value).join(","),
  });
  const advanced = h("details", { class: "advanced" }, h("summary", {}, "Advanced"), h("div", { class: "settings" }, fields));
  const element = h(
    "fieldset",
    { class: "settings" },
    h("legend", {}, legend),
    encoders ? fields : null,
    h("div", { class: "checks", role: "group", "aria-label": `${legend}: search` }, boxes),
    encoders || !fields.length ? null : advanced,
  );
  set(initial);
  return {
    element,
    set,
    /** As parameters of a search; an empty text for a default. */
    value: () => validSettings(status, all()),
    /** As one text, for comparing. */
    text: () => Object.entries(all()).map(([key, value]) => `${key}=${value}`).join(";"),
  };
}
