// Reliability of the levels: how often a strong, a fair and a weak hit is right, by the judgements.

import { h, s } from "./dom.js";
import { count, figure } from "./format.js";

const WIDTH = 320;
const ROW = 28;
const LEFT = 60;

/** A bar chart with a row for each level: the share of right hits, and its confidence interval. */
export function levelChart(rows, title) {
  const x = (share) => LEFT + share * (WIDTH - LEFT - 8);
  const height = rows.length * ROW + 18;
  const rules = [0, 0.5, 1].map((share) => [
    s("line", { class: "rule", x1: x(share), x2: x(share), y1: 0, y2: height - 16 }),
    s("text", { x: x(share), y: height - 3, "text-anchor": "middle" }, `${100 * share} %`),
  ]);
  const bars = rows.map(({ level, share, low, high }, at) => {
    const y = at * ROW + ROW / 2;
    return [
      s("text", { x: LEFT - 8, y: y + 4, "text-anchor": "end" }, level),
      share !== null && s("rect", { class: "bar", x: x(0), y: y - 8, width: x(share) - x(0), height: 16 }),
      share !== null && s("path", { class: "whisker", d: `M${x(low)} ${y}H${x(high)}M${x(low)} ${y - 5}v10M${x(high)} ${y - 5}v10` }),
    ];
  });
  const words = rows.map(({ level, right, judged }) => `${level}: ${right} of ${judged}`).join(", ");
  return s("svg", { class: "reliability", viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": `${title}. ${words}` }, rules, bars);
}

/** The server's report about levels, as charts and a table. */
export function levelReport(answer, table) {
  const kinds = [["first", "First hits"], ["every", "The first ten hits of each query"]];
  const rows = kinds.flatMap(([kind, title]) =>
    answer[kind].map(({ level, right, judged, share, low, high }) => [
      `${title}: ${level}`, `${right} of ${judged}`, share === null ? "–" : figure(share), `${figure(low)} – ${figure(high)}`,
    ]));
  return [
    h("p", {}, "How often hits of a level are right, with 95 % intervals. A hit is right if its moment has relevance 3 or 4."),
    kinds.map(([kind, title]) => h("figure", {}, h("figcaption", {}, title), levelChart(answer[kind], title))),
    table(["Hits", "Right", "Share", "95 % interval"], rows, "Right hits by level"),
    answer.unjudged > 0 && h("p", { class: "quiet" }, `${count(answer.unjudged, "hit")} on moments that nobody has judged do not count.`),
    answer.notes.map((note) => h("p", { class: "quiet" }, note)),
  ];
}
