// Measuring the search by the judgements: with its current settings, for every localiser, and the reliability of its
// levels.

import * as api from "./api.js";
import { actionButton, announce, download, h, setChildren } from "./dom.js";
import { count, figure } from "./format.js";
import { levelReport } from "./reliability.js";
import { describeSettings, evaluationSettings } from "./settings.js";

/** Measures to choose from; the first is the default. */
export const MEASURES = [
  "NDCG@20[IoU>=0.5]", "NDCG@10[IoU>=0.5]", "NDCG@10[IoU>=0.7]", "NDCG@5[IoU>=0.3]", "R@1[IoU>=0.5]", "R@5[IoU>=0.5]", "AxIoU@10",
];

/** `search()` gives the current parameters of the search, and a link to the view that sets them. */
export function figures(search) {
  const measure = h("select", { id: "measure" }, MEASURES.map((name) => h("option", {}, name)));
  const words = h("span", { class: "setup" });
  const elsewhere = h("a", {}, "Change them in Search");
  const result = h("div", { class: "result" });
  const element = h(
    "div",
    { class: "figures" },
    h("div", { class: "field" }, h("label", { for: "measure" }, "Measure"), measure),
    h("p", {}, "Measures the search with its current settings: ", words, ". ", elsewhere),
    h("div", { class: "bar" }, actionButton("Evaluate", evaluate, { class: "main" }), actionButton("Compare localisers", localisers),
      actionButton("Check levels", levels)),
    result,
  );

  const asked = async () => ({ ...evaluationSettings(await api.status(), search().params), measure: measure.value });

  async function evaluate() {
    const given = await asked();
    const answer = await api.get("/judging/evaluation", given);
    const share = answer.judged === null ? "" : `; ${Math.round(100 * answer.judged)} % of the moments found have been judged`;
    const over = `95 % interval ${interval(answer)}, over ${count(answer.queries, "query", "queries")}${share}`;
    const keep = async () => download(await api.file("/judging/export", null, { kind: "run", ...given }));
    setChildren(
      result,
      h("p", { class: "figure" },
        h("strong", { "data-value": answer.value }, figure(answer.value)),
        h("span", {}, answer.measure),
        h("span", { class: "quiet" }, over)),
      h("p", { class: "quiet" }, "With ", describeSettings(await api.status(), given), "."),
      answer.notes.map((note) => h("p", { class: "quiet" }, note)),
      table(["Query", "Value"], answer.per_query.map((one) => [one.text, figure(one.value)]), "All queries"),
      h("div", { class: "bar" },
        actionButton("Save this run", keep, { class: "small" }),
        h("span", { class: "quiet" }, "momentseek evaluate gives the same figure for it.")),
    );
    announce(`${answer.measure}: ${figure(answer.value)}`);
  }

  async function localisers() {
    const [{ localisers: names }, given] = [await api.status(), await asked()];
    const rows = [];
    for (const name of names) {
      const answer = await api.get("/judging/evaluation", { ...given, localiser: name });
      rows.push([name, answer.value, interval(answer)]);
    }
    rows.sort((a, b) => b[1] - a[1]);
    const shown = rows.map(([name, value, range]) => [name, figure(value), range]);
    setChildren(result, table(["Localiser", given.measure, "95 % interval"], shown, "All localisers, best first"));
    announce(`The best is ${rows[0]?.[0]}`);
  }

  async function levels() {
    const { measure: _, ...given } = await asked();
    const answer = await api.get("/judging/reliability", given);
    setChildren(result, levelReport(answer, table));
    const strong = answer.every[0];
    announce(`Strong hits: ${strong.right} of ${strong.judged} are right`);
  }

  return {
    element,
    async prepare() {
      const { params, link } = search();
      words.textContent = describeSettings(await api.status(), params);
      elsewhere.setAttribute("href", link);
    },
  };
}

/** The confidence interval of a mean, as text. */
export const interval = ({ low, high }) => (typeof low === "number" ? `${figure(low)} – ${figure(high)}` : "–");

/** A table that scrolls by itself on a narrow screen. */
export function table(head, rows, caption) {
  const cell = (one, i) => (i ? h("td", {}, one) : h("th", { scope: "row" }, one));
  return h(
    "div",
    { class: "table", tabindex: "0", role: "region", "aria-label": caption },
    h(
      "table",
      {},
      h("caption", {}, caption),
      h("thead", {}, h("tr", {}, head.map((one) => h("th", { scope: "col" }, one)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, row.map(cell)))),
    ),
  );
}
