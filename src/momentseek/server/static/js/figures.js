// What judgements say about the search: one measure for the settings chosen, or for every localiser.

import * as api from "./api.js";
import { action, h, put, speak } from "./dom.js";
import { figure } from "./format.js";
import { settingsOf } from "./settings.js";

const MEASURES = ["NDCG@20[IoU>=0.5]", "NDCG@10[IoU>=0.5]", "NDCG@10[IoU>=0.7]", "NDCG@5[IoU>=0.3]", "R@1[IoU>=0.5]", "R@5[IoU>=0.5]", "AxIoU@10"];

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

  const ask = (localiser, streams) => api.get("/judging/evaluation", { localiser, streams: streams.join(","), measure: measure.value });
  const interval = (answer) => (typeof answer.low === "number" ? `${figure(answer.low)} – ${figure(answer.high)}` : "–");

  async function evaluate() {
    const answer = await ask(settings.localiser(), settings.streams());
    put(
      result,
      h("p", { class: "figure" }, h("strong", { "data-value": answer.value }, figure(answer.value)), h("span", {}, answer.measure ?? measure.value), h("span", { class: "quiet" }, `95 % interval ${interval(answer)}, over ${answer.queries} judged queries`)),
      answer.per_query?.length && table(["Query", "Value"], answer.per_query.map((one) => [one.text ?? one.query, figure(one.value)]), "Every query"),
    );
    speak(`${answer.measure ?? measure.value}: ${figure(answer.value)}`);
  }

  async function localisers() {
    const { localisers: names } = await api.status();
    const rows = [];
    for (const name of names) {
      const answer = await ask(name, settings.streams());
      rows.push([name, answer.value, interval(answer)]);
    }
    rows.sort((a, b) => b[1] - a[1]);
    put(result, table(["Localiser", measure.value, "95 % interval"], rows.map(([name, value, range]) => [name, figure(value), range]), "Every localiser, the best first"));
    speak(`The best is ${rows[0]?.[0]}`);
  }

  return {
    element,
    async prepare() {
      if (settings) return;
      settings = settingsOf(await api.status(), "Search settings");
      put(chosen, settings.element);
    },
  };
}

/** A table that scrolls by itself on a narrow screen. */
export function table(head, rows, caption) {
  return h(
    "div",
    { class: "table", tabindex: "0", role: "region", "aria-label": caption },
    h("table", {}, h("caption", {}, caption), h("thead", {}, h("tr", {}, head.map((one) => h("th", { scope: "col" }, one)))), h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell, i) => h(i ? "td" : "th", i ? {} : { scope: "row" }, cell)))))),
  );
}
