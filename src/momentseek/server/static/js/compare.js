// Two setups of the search side by side: for one query, and over all judged queries.

import { parse } from "./address.js";
import * as api from "./api.js";
import { card, stopPreview } from "./card.js";
import { actionButton, announce, h, runOnce, setChildren } from "./dom.js";
import { MEASURES, interval, table } from "./figures.js";
import { count, figure } from "./format.js";
import { settingsControls } from "./settings.js";

const HITS_PER_SIDE = 12;

export function compareView(go, lastSearch) {
  const heading = h("h1", { tabindex: "-1" }, "Compare");
  const query = h("input", {
    id: "compare-q", type: "search", maxlength: 2000, autocomplete: "off", autocapitalize: "off", required: true,
    enterkeyhint: "go", placeholder: "a rocket taking off",
  });
  const measure = h("select", { id: "compare-measure" }, MEASURES.map((name) => h("option", {}, name)));
  const sides = h("div", { class: "columns" });
  const ask = h("div", { class: "field wide" }, h("label", { for: "compare-q" }, "For one query"), query);
  const form = h("form", {}, sides, h("div", { class: "inline" }, ask, h("button", { class: "main" }, "Compare")));
  const single = h("div", { class: "sides" });
  const summary = h("p", { class: "quiet" });
  const overall = h("div", { class: "result" });
  const element = h(
    "section",
    { class: "compare" },
    heading,
    h("p", { class: "lead" }, "The same query with two setups side by side, and both setups measured on all judged queries."),
    form,
    summary,
    single,
    h(
      "section",
      { class: "panel", "aria-labelledby": "all-title" },
      h("h2", { id: "all-title" }, "On all judged queries"),
      h("div", { class: "inline" },
        h("div", { class: "field" }, h("label", { for: "compare-measure" }, "Measure"), measure),
        actionButton("Compare on judged queries", compareJudged)),
      overall,
    ),
  );
  let a = null;
  let b = null;

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    runOnce(form, compareQuery);
  });

  /** Side A is set up as the search is now, side B with another localiser. */
  async function prepare() {
    const status = await api.status();
    if (a) return;
    const { settings } = parse(lastSearch());
    a = settingsControls(status, "A", { initial: settings, encoders: true });
    const other = status.localisers.find((name) => name !== (a.value().localiser || status.localiser));
    b = settingsControls(status, "B", { initial: { ...settings, localiser: other }, encoders: true });
    setChildren(sides, a.element, b.element);
  }

  async function compareQuery() {
    await prepare();
    const answer = await api.get("/compare", { a: a.text(), b: b.text(), q: query.value.trim(), k: HITS_PER_SIDE });
    summary.textContent = `${count(answer.shared, "moment")} in common. Weak matches are shown too.`;
    setChildren(single, side("A", "B", answer.a, a.value()), side("B", "A", answer.b, b.value()));
    announce(summary.textContent);
  }

  function side(name, other, { hits, note, took_seconds: took, left_out: away }, settings) {
    const items = hits.map((hit) => {
      const item = card(hit, query.value.trim(), { small: true, settings });
      item.append(h("p", { class: "moved" }, otherRank(hit, name, other)));
      return item;
    });
    const lacking = away && `${count(away, "moment")} left out because their videos are not in this library`;
    const figures = [`${count(hits.length, "moment")} in ${Math.max(1, Math.round(1000 * took))} ms`, note, lacking];
    return h(
      "section",
      { "aria-label": `Setup ${name}` },
      h("div", { class: "bar" }, h("h2", {}, name), h("span", { class: "quiet" }, figures.filter(Boolean).join("; "))),
      items.length ? h("ol", { class: "hits narrow" }, items) : h("p", { class: "quiet" }, "No moments found."),
    );
  }

  async function compareJudged() {
    await prepare();
    const answer = await api.get("/judging/compare", { a: a.text(), b: b.text(), measure: measure.value });
    const how = `A − B on ${answer.measure}, 95 % interval ${interval(answer)}, p = ${figure(answer.p)} (${answer.test}), `;
    const means = [["A", answer.a], ["B", answer.b]].map(([name, one]) => [
      `${name}: ${one.settings.replaceAll(/[;,]/g, "$& ")}`, figure(one.value), interval(one),
    ]);
    const each = answer.per_query.map((one) => [one.text, figure(one.a), figure(one.b), signed(one.difference)]);
    const wins = `A is better on ${answer.wins}, equal on ${answer.ties}, worse on ${answer.losses}`;
    setChildren(
      overall,
      h("p", { class: "figure" },
        h("strong", {}, signed(answer.difference)),
        h("span", {}, verdict(answer)),
        h("span", { class: "quiet" }, `${how}over ${count(answer.queries, "query", "queries")}`)),
      table(["Setup", "Mean", "95 % interval"], means, `Means of ${answer.measure}`),
      table(["Query", "A", "B", "A − B"], each, `All queries: ${wins}`),
    );
    announce(verdict(answer));
  }

  return {
    element,
    title: () => "Compare",
    focus: () => heading.focus({ preventScroll: true }),
    async show({ params }) {
      query.value ||= params.get("q") ?? parse(lastSearch()).query;
      await prepare();
    },
    hide: stopPreview,
  };
}

/** The rank of a moment of one side on the other side. */
function otherRank(hit, name, other) {
  if (hit.other === null) return `only in ${name}`;
  return hit.other === hit.rank ? `same rank in ${other}` : `#${hit.other} in ${other}`;
}

const signed = (value) => (value > 0 ? "+" : "") + figure(value);

function verdict({ difference, significant }) {
  if (!difference) return "No difference";
  const better = difference > 0 ? "A" : "B";
  return significant ? `${better} is better; the difference is unlikely to be chance`
    : `${better} is ahead, but the difference may be chance`;
}
