// Two settings side by side: for one query, and over all judged queries.

import * as api from "./api.js";
import { card, stopPreview } from "./card.js";
import { action, busy, h, put, speak } from "./dom.js";
import { table } from "./figures.js";
import { count, figure } from "./format.js";
import { settingsOf } from "./settings.js";

export function compareView() {
  const heading = h("h1", { tabindex: "-1" }, "Compare");
  const query = h("input", { id: "compare-q", type: "search", maxlength: 2000, autocomplete: "off", required: true, placeholder: "a rocket taking off" });
  const sides = h("div", { class: "columns" });
  const form = h("form", {}, sides, h("div", { class: "inline" }, h("div", { class: "field wide" }, h("label", { for: "compare-q" }, "For one query"), query), h("button", { class: "main" }, "Compare")));
  const single = h("div", { class: "columns found" });
  const summary = h("p", { class: "quiet" });
  const overall = h("div", { class: "result" });
  const element = h(
    "section",
    { class: "compare" },
    heading,
    h("p", { class: "lead" }, "The same query under two settings, and both over everything that was judged."),
    form,
    summary,
    single,
    h("section", { class: "panel", "aria-labelledby": "all-title" }, h("h2", { id: "all-title" }, "Over all judged queries"), action("Compare on the judgements", judged), overall),
  );
  let a = null;
  let b = null;

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    busy(form, one);
  });

  async function one() {
    const answer = await api.get("/compare", { a: a.text(), b: b.text(), q: query.value.trim() });
    put(single, side("A", answer.a.hits ?? answer.a), side("B", answer.b.hits ?? answer.b));
  }

  function side(name, hits) {
    return h("section", { "aria-label": `Setting ${name}` }, h("h2", {}, name), h("ol", { class: "hits narrow" }, hits.map((hit) => card(hit, query.value.trim(), true))));
  }

  async function judged() {
    const answer = await api.get("/judging/compare", { a: a.text(), b: b.text() });
    put(overall, h("pre", {}, JSON.stringify(answer, null, 1)));
  }

  return {
    element,
    title: () => "Compare",
    focus: () => heading.focus({ preventScroll: true }),
    async show({ params }) {
      if (a) return;
      const status = await api.status();
      const other = status.localisers.find((name) => name !== status.localiser);
      a = settingsOf(status, "A", null);
      b = settingsOf(status, "B", null, { localiser: other });
      put(sides, a.element, b.element);
      if (params.get("q")) query.value = params.get("q");
    },
    hide: stopPreview,
  };
}
