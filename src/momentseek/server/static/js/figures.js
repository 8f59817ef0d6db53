// What judgements say about the search: one measure for the settings chosen, or for every localiser.

import * as api from "./api.js";
import { action, h, put, save, speak } from "./dom.js";
import { count, figure } from "./format.js";
import { settingsOf } from "./settings.js";

/** Measures to choose from; the first is the usual one. */
export const MEASURES = ["NDCG@20[IoU>=0.5]", "NDCG@10[IoU>=0.5]", "NDCG@10[IoU>=0.7]", "NDCG@5[IoU>=0.3]", "R@1[IoU>=0.5]", "R@5[IoU>=0.5]", "AxIoU@10"];

export function figures() {
  const measure = h("select", { id: "measure" }, MEASURES.map((name) => h("option", {}, name)));
  const chosen = h("div", { class: "chosen" });
  const result = h("div", { class: "result" });
  let settings = null;
  const element = h(
    "div",
    { class: "figures" },
    h("div", { class: "field" }, h("label", { for: "measure" }, "Measure"), measure),
    chosen,
    h("div", { class: "bar" }, action("Evaluate", evaluate, { class: "main" }), action("Compare localisers", localisers)),
    result,
  );

  const asked = (localiser = settings.localiser()) => ({ localiser, streams: settings.streams().join(","), measure: measure.value });

  async function evaluate() {
    const given = asked();
    const answer = await api.get("/judging/evaluation", given);
    const share = answer.judged === null ? "" : `; ${Math.round(100 * answer.judged)} % of the moments found were judged`;
    put(
      result,
      h("p", { class: "figure" }, h("strong", { "data-value": answer.value }, figure(answer.value)), h("span", {}, answer.measure), h("span", { class: "quiet" }, `95 % interval ${interval(answer)}, over ${count(answer.queries, "query", "queries")}${share}`)),
      answer.notes.map((note) => h("p", { class: "quiet" }, note)),
      table(["Query", "Value"], answer.per_query.map((one) => [one.text, figure(one.value)]), "Every query"),
      h("div", { class: "bar" }, action("Save this run", async () => save(await api.file("/judging/export", null, { kind: "run", ...given })), { class: "small" }), h("span", { class: "quiet" }, "momentseek evaluate gives the same figure for it.")),
    );
    speak(`${answer.measure}: ${figure(answer.value)}`);
  }

  async function localisers() {
    const { localisers: names } = await api.status();
    const rows = [];
    for (const name of names) {
      const answer = await api.get("/judging/evaluation", asked(name));
      rows.push([name, answer.value, interval(answer)]);
    }
    rows.sort((a, b) => b[1] - a[1]);
    put(result, table(["Localiser", measure.value, "95 % interval"], rows.map(([name, value, range]) => [name, figure(value), range]), "Every localiser, the best first"));
    speak(`The best is ${rows[0]?.[0]}`);
  }

  return {
    element,
    async prepare() {
      const status = await api.status();
      if (settings) return;
      settings = settingsOf(status, "Search settings");
      put(chosen, settings.element);
    },
  };
}

/** From where to where a mean may lie. */
export const interval = ({ low, high }) => (typeof low === "number" ? `${figure(low)} – ${figure(high)}` : "–");

/** A table that scrolls by itself on a narrow screen. */
export function table(head, rows, caption) {
  return h(
    "div",
    { class: "table", tabindex: "0", role: "region", "aria-label": caption },
    h("table", {}, h("caption", {}, caption), h("thead", {}, h("tr", {}, head.map((one) => h("th", { scope: "col" }, one)))), h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell, i) => h(i ? "td" : "th", i ? {} : { scope: "row" }, cell)))))),
  );
}
