// Judge mode: one moment at a time, five levels, and what the judgements say about the search.

import * as api from "./api.js";
import { action, busy, h, put, save, speak, tell, typing } from "./dom.js";
import { figures, table } from "./figures.js";
import { setting } from "./history.js";
import { judgeStage } from "./judge-stage.js";

const EXPORTS = { "tvr-ranking": "Save as TVR-Ranking", "label-studio": "Save for Label Studio", jsonl: "Save as JSON Lines" };
const MORE = { extended: "yes", covered: "not needed", waiting: "not yet known" };

export function judgeView() {
  const heading = h("h1", { tabindex: "-1" }, "Judge");
  const name = h("input", { id: "annotator", maxlength: 64, required: true, autocomplete: "nickname", value: setting("annotator") });
  const text = h("input", { id: "judge-text", maxlength: 2000, required: true, autocomplete: "off", placeholder: "a cat looking at the camera" });
  const depth = h("input", { id: "judge-depth", type: "number", min: 1, max: 50, value: "20", required: true });
  const create = h("form", { class: "inline" }, h("div", { class: "field wide" }, h("label", { for: "judge-text" }, "New query"), text), h("div", { class: "field narrow" }, h("label", { for: "judge-depth" }, "Moments"), depth), h("button", {}, "Collect moments"));
  const list = h("ul", { class: "queries" });
  const stage = judgeStage(judge, undo, pass);
  const results = figures();
  const state = h("div", { class: "consensus" });
  const downloads = h("div", { class: "downloads", role: "group", "aria-label": "Take the judgements away" }, Object.entries(EXPORTS).map(([kind, label]) => action(label, async () => save(await api.file("/judging/export", null, { kind })), { class: "small" })));
  const element = h(
    "section",
    { class: "judge" },
    heading,
    h("p", { class: "lead" }, "Say how well each moment fits a query. Two people judge every moment; where they differ by more than one level, two more are asked."),
    h("div", { class: "columns setup" },
      h("section", { class: "panel", "aria-labelledby": "who-title" }, h("h2", { id: "who-title" }, "Who judges"), h("div", { class: "field" }, h("label", { for: "annotator" }, "Your name"), name)),
      h("section", { class: "panel", "aria-labelledby": "what-title" }, h("h2", { id: "what-title" }, "Queries"), list, create)),
    stage.element,
    h("section", { class: "panel", "aria-labelledby": "agree-title" }, h("h2", { id: "agree-title" }, "Agreement"), state, downloads),
    h("section", { class: "panel", "aria-labelledby": "figures-title" }, h("h2", { id: "figures-title" }, "How good is the search by these judgements?"), results.element),
  );
  let queries = [];
  let query = null;
  let candidate = null;
  let passed = [];

  const annotator = () => name.value.trim();
  name.addEventListener("change", () => {
    setting("annotator", annotator());
    tellQueries();
    if (query) next().catch(() => {});
  });
  create.addEventListener("submit", (event) => {
    event.preventDefault();
    busy(create, async () => {
      const made = await api.change("POST", "/judging/queries", { text: text.value.trim(), depth: Number(depth.value) });
      text.value = "";
      await refresh();
      tell(`${made.candidates} moments collected for “${made.text}”.`);
      await choose(made.id);
    });
  });

  function tellQueries() {
    put(list, queries.length
      ? queries.map((one) => {
          const mine = one.judged[annotator()] ?? 0;
          return h("li", {}, h("button", { type: "button", class: "query", "aria-pressed": String(query?.id === one.id), onclick: () => choose(one.id) },
            h("span", {}, one.text), h("span", { class: "quiet" }, `${mine} of ${one.candidates} by you`)));
        })
      : h("li", { class: "quiet" }, "None yet: write the first one."));
  }

  async function choose(id) {
    if (!annotator()) {
      name.focus();
      return tell("Say your name first: judgements are kept by it.");
    }
    query = queries.find((one) => one.id === id) ?? null;
    passed = [];
    tellQueries();
    await next();
    stage.focus();
  }

  async function next() {
    if (!query || !annotator()) return;
    const answer = await api.get(`/judging/queries/${query.id}/next`, { annotator: annotator(), skip: passed.slice(-100) });
    candidate = answer.candidate;
    stage.show(query, answer);
  }

  async function judge(relevance) {
    if (!candidate) return;
    const judged = candidate;
    candidate = null;
    try {
      await api.change("PUT", "/judging/judgements", { query: query.id, candidate: judged.id, annotator: annotator(), relevance });
    } catch (error) {
      candidate = judged;
      if (error.code !== "not_needed") throw error;
      tell(error.message);
    }
    refresh().catch(() => {}); // the tables may come later; the next moment may not
    await next();
  }

  /** Leave a moment for later, such as one that this browser cannot play. */
  async function pass() {
    if (candidate) passed.push(candidate.id);
    await next();
  }

  async function undo() {
    const taken = await api.change("DELETE", "/judging/judgements/last", undefined, { annotator: annotator() });
    query = queries.find((one) => one.id === taken.query) ?? query;
    passed = [];
    speak("Taken back");
    await Promise.all([next(), refresh()]);
  }

  async function refresh() {
    const [asked, agreed] = await Promise.all([api.get("/judging/queries"), api.get("/judging/consensus")]);
    queries = asked.queries;
    tellQueries();
    tellConsensus(agreed);
  }

  function tellConsensus({ queries: all }) {
    if (!all.length) return put(state, h("p", { class: "quiet" }, "Nothing is judged yet."));
    const rows = all.map((one) => [one.text, one.kept, one.discarded, needs(one.pairs), MORE[one.second_batch] ?? one.second_batch]);
    put(state, table(["Query", "Agreed", "Set aside", "Still needed", "Second batch"], rows, "Two annotators, then four"));
  }

  /** How many judgements are missing, by how many people each moment lacks. */
  function needs(pairs) {
    const open = pairs.filter((pair) => pair.needs && !pair.removed);
    const disputed = open.filter((pair) => pair.labels.length >= 2).length;
    if (!open.length) return "nothing";
    return `${open.length} ${open.length === 1 ? "moment" : "moments"}${disputed ? `, ${disputed} disputed` : ""}`;
  }

  function key(event) {
    if (typing(event) || !query) return;
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
