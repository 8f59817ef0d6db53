// How far annotators agree: one row for each query, and the judgements to take away.

import * as api from "./api.js";
import { action, h, put, save } from "./dom.js";
import { table } from "./figures.js";
import { count } from "./format.js";

const EXPORTS = { "tvr-ranking": "Save as TVR-Ranking", "label-studio": "Save for Label Studio", jsonl: "Save as JSON Lines" };
const MORE = { extended: "yes", covered: "not needed", waiting: "not yet known" };
const HEAD = ["Query", "Agreed", "Set aside", "Still needed", "Second batch"];

export function agreement() {
  const state = h("div", { class: "consensus" });
  const keep = (kind) => async () => save(await api.file("/judging/export", null, { kind }));
  const buttons = Object.entries(EXPORTS).map(([kind, label]) => action(label, keep(kind), { class: "small" }));
  const element = h(
    "section",
    { class: "panel", "aria-labelledby": "agree-title" },
    h("h2", { id: "agree-title" }, "Agreement"),
    state,
    h("div", { class: "downloads", role: "group", "aria-label": "Take the judgements away" }, buttons),
  );
  return {
    element,
    tell(queries) {
      if (!queries.length) put(state, h("p", { class: "quiet" }, "Nothing is judged yet."));
      else put(state, table(HEAD, queries.map(row), "Two annotators, then four"));
    },
  };
}

function row({ text, kept, discarded, open, disputed, second_batch: more }) {
  const needed = open ? `${count(open, "moment")}${disputed ? `, ${disputed} disputed` : ""}` : "nothing";
  return [text, kept, discarded, needed, MORE[more] ?? more];
}
