// How far annotators agree: one row for each query, and buttons that export the judgements.

import * as api from "./api.js";
import { actionButton, download, h, setChildren } from "./dom.js";
import { table } from "./figures.js";
import { count } from "./format.js";

const EXPORTS = { "tvr-ranking": "Save as TVR-Ranking", "label-studio": "Save for Label Studio", jsonl: "Save as JSON Lines" };
const SECOND_BATCH = { extended: "yes", covered: "not needed", waiting: "not yet known" };
const CAPTIONS = { one: "Judged by one annotator alone", two: "Agreement of two, then four annotators" };
const HEAD = ["Query", "Agreed", "Discarded", "Need annotators", "Second batch"];

export function agreement() {
  const state = h("div", { class: "consensus" });
  const keep = (kind) => async () => download(await api.file("/judging/export", null, { kind }));
  const buttons = Object.entries(EXPORTS).map(([kind, label]) => actionButton(label, keep(kind), { class: "small" }));
  const element = h(
    "section",
    { class: "panel", "aria-labelledby": "agree-title" },
    h("h2", { id: "agree-title" }, "Agreement"),
    state,
    h("div", { class: "downloads", role: "group", "aria-label": "Export the judgements" }, buttons),
  );
  let rule = "two";
  return {
    element,
    /** Whether one annotator is enough, or two must agree. */
    setRule(given) {
      rule = given;
    },
    update(queries) {
      if (!queries.length) setChildren(state, h("p", { class: "quiet" }, "Nothing has been judged yet."));
      else setChildren(state, table(HEAD, queries.map(row), CAPTIONS[rule]));
    },
  };
}

function row({ text, kept, discarded, open, disputed, second_batch: batch }) {
  const needed = open ? `${count(open, "moment")}${disputed ? `, ${disputed} disputed` : ""}` : "none";
  return [text, kept, discarded, needed, SECOND_BATCH[batch] ?? batch];
}
