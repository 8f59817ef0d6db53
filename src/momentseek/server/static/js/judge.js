// Judge mode: rate one moment at a time on five levels, and measure the search with the judgements.

import { parse } from "./address.js";
import { agreement } from "./agreement.js";
import * as api from "./api.js";
import { fixName } from "./bookmarks.js";
import { announce, h, isTyping, notify, runOnce, setChildren } from "./dom.js";
import { figures } from "./figures.js";
import { setting } from "./history.js";
import { judgeStage } from "./judge-stage.js";

const LEAD = "Rate how well each moment matches a query. The judgements measure how good the search is.";
const RULES = {
  auto: ["Automatic", "one while only one person judges, two as soon as a second person does"],
  one: ["One", "every judgement counts by itself"],
  two: ["Two", "TVR-Ranking's rule: two must agree; if they differ by more than one level, two more people judge"],
};

export function judgeView(go, lastSearch) {
  const heading = h("h1", { tabindex: "-1" }, "Judge");
  const name = h("input", { id: "annotator", maxlength: 64, required: true, autocomplete: "nickname", value: setting("annotator") });
  fixName(name).catch(() => {});
  const text = h("input", {
    id: "judge-text", maxlength: 2000, required: true, autocomplete: "off", autocapitalize: "off",
    placeholder: "a cat looking at the camera",
  });
  const depth = h("input", { id: "judge-depth", type: "number", min: 1, max: 50, value: "20", required: true });
  const create = h(
    "form",
    { class: "inline" },
    h("div", { class: "field wide" }, h("label", { for: "judge-text" }, "New query"), text),
    h("div", { class: "field narrow" }, h("label", { for: "judge-depth" }, "Moments"), depth),
    h("button", {}, "Collect moments"),
  );
  const collecting = h("div", { class: "bar collecting", hidden: true },
    h("progress", { "aria-label": "Collecting moments" }), h("span", {}));
  const rules = h("fieldset", { class: "rules" }, h("legend", {}, "Annotators for each moment"),
    Object.entries(RULES).map(([setting, [label, meaning]]) => h("label", { class: "check" },
      h("input", { type: "radio", name: "rule", value: setting, onchange: () => runOnce(rules, () => chooseRule(setting)) }),
      h("span", {}, `${label}: ${meaning}`))));
  const list = h("ul", { class: "queries" });
  const stage = judgeStage(judge, undo, skip);
  const agreementPanel = agreement();
  const results = figures(() => ({ params: parse(lastSearch()).settings, link: lastSearch() || "#" }));
  const element = h(
    "section",
    { class: "judge" },
    heading,
    h("p", { class: "lead" }, LEAD),
    h("div", { class: "columns setup" },
      panel("who", "Annotator", h("div", { class: "field" }, h("label", { for: "annotator" }, "Your name"), name), rules),
      panel("what", "Queries", create, collecting, list)), // the form stays where it is when the list grows
    stage.element,
    agreementPanel.element,
    panel("figures", "How good is the search?", results.element),
  );
  let queries = null; // until the server has answered
  let query = null;
  let candidate = null;
  let skipped = [];
  let turns = 0;
  let refreshes = 0;

  function panel(id, title, ...content) {
    return h("section", { class: "panel", "aria-labelledby": `${id}-title` }, h("h2", { id: `${id}-title` }, title), content);
  }

  const annotator = () => name.value.trim();
  name.addEventListener("change", () => {
    setting("annotator", annotator());
    showQueries();
    if (query) next().catch(() => {});
  });
  create.addEventListener("submit", (event) => {
    event.preventDefault();
    runOnce(create, async () => {
      showCollecting(`Collecting moments for “${text.value.trim()}”: several kinds of search run one after the other.`);
      const created = await api
        .change("POST", "/judging/queries", { text: text.value.trim(), depth: Number(depth.value) })
        .finally(() => showCollecting(""));
      text.value = "";
      await refresh();
      notify(`${created.candidates} moments collected for “${created.text}”.`);
      await choose(created.id);
    });
  });

  /** Show that moments are being collected; an empty text hides it. */
  function showCollecting(words) {
    collecting.hidden = !words;
    collecting.lastElementChild.textContent = words;
    if (words) announce(words);
  }

  async function chooseRule(setting) {
    refreshes += 1; // ignore answers that were requested before this choice
    try {
      showRule(await api.change("PUT", "/judging/rule", { setting }));
      skipped = [];
    } finally {
      await refresh();
    }
    if (query) await next();
  }

  function showRule({ setting }) {
    for (const box of rules.querySelectorAll("input")) box.checked = box.value === setting;
  }

  function showQueries() {
    if (!queries) return;
    const focused = list.contains(document.activeElement) ? document.activeElement.dataset.id : null;
    setChildren(list, queries.length ? queries.map(queryItem) : h("li", { class: "quiet" }, "No queries yet: add the first one."));
    if (focused) list.querySelector(`[data-id="${focused}"]`)?.focus();
    agreementPanel.update(queries);
  }

  function queryItem(one) {
    const mine = one.judged[annotator()] ?? 0;
    return h("li", {}, h(
      "button",
      {
        type: "button", class: "query", "data-id": one.id, "aria-pressed": String(query?.id === one.id),
        onclick: () => runOnce(list, () => choose(one.id)),
      },
      h("span", {}, one.text),
      h("span", { class: "quiet" }, `${mine} of ${one.candidates} judged by you`),
    ));
  }

  async function choose(id) {
    if (!annotator()) {
      name.focus();
      return notify("Enter your name first: judgements are saved under it.");
    }
    query = queries.find((one) => one.id === id) ?? null;
    skipped = [];
    showQueries();
    await next();
    stage.focus();
  }

  async function next() {
    if (!query || !annotator()) return;
    const turn = ++turns;
    const answer = await api.get(`/judging/queries/${query.id}/next`, { annotator: annotator(), skip: skipped.slice(-100) });
    if (turn !== turns) return; // a later request is under way
    candidate = answer.candidate;
    stage.show(query, answer);
  }

  async function judge(relevance) {
    if (!candidate) return;
    const judged = candidate;
    candidate = null;
    try {
      const judgement = { query: query.id, candidate: judged.id, annotator: annotator(), relevance };
      updateQuery(await api.change("PUT", "/judging/judgements", judgement));
    } catch (error) {
      candidate = judged;
      if (error.code !== "not_needed") throw error;
      notify(error.message);
      refresh().catch(() => {}); // in the background: the next moment must not wait for the tables
    }
    await next();
  }

  /** Update the one query whose new state comes with the answer to a judgement. */
  function updateQuery({ state }) {
    queries = queries.map((one) => (one.id === state.id ? state : one));
    showQueries();
  }

  /** Leave a moment for later, such as one that this browser cannot play. */
  async function skip() {
    if (candidate) skipped.push(candidate.id);
    await next();
  }

  async function undo() {
    const undone = await api.change("DELETE", "/judging/judgements/last", undefined, { annotator: annotator() });
    query = queries.find((one) => one.id === undone.query) ?? query;
    skipped = [];
    announce("Undone");
    updateQuery(undone);
    await next();
  }

  async function refresh() {
    const turn = ++refreshes;
    const [listed, rule] = await Promise.all([api.get("/judging/queries"), api.get("/judging/rule")]);
    if (turn !== refreshes) return; // a later request is under way
    queries = listed.queries;
    agreementPanel.setRule(rule.rule);
    showRule(rule);
    showQueries();
  }

  function key(event) {
    if (isTyping(event) || !query) return;
    if (candidate && /^[0-4]$/.test(event.key)) stage.press(Number(event.key));
    else if (event.key === "u") stage.pressUndo();
    else if (event.key === " " && !event.target.closest("button, a, summary")) (event.preventDefault(), stage.toggle());
  }

  return {
    element,
    title: () => "Judge",
    focus: () => heading.focus({ preventScroll: true }),
    async show() {
      document.addEventListener("keydown", key);
      await Promise.all([refresh(), stage.prepare(), results.prepare()]);
    },
    hide() {
      document.removeEventListener("keydown", key);
      stage.close();
      query = candidate = null;
    },
  };
}
