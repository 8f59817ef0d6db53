// Drawing a query's score along a video: one lane per stream.

import { s } from "./dom.js";

const VIEW_WIDTH = 1000;
const VIEW_HEIGHT = 100;

/** The outline of a step curve between two times, with at most one step per column; values from 0 to 1. */
export function outline(edges, values, from, to, columns = 500) {
  const x = (time) => (VIEW_WIDTH * (time - from)) / (to - from);
  const first = Math.max(0, edges.findIndex((edge) => edge > from) - 1);
  const steps = [];
  let last = -1;
  for (let i = first; i < values.length && edges[i] < to; i++) {
    const column = Math.floor((columns * (edges[i] - from)) / (to - from));
    if (column === last) steps.at(-1).value = Math.max(steps.at(-1).value, values[i]);
    else steps.push({ start: edges[i], value: values[i] });
    steps.at(-1).end = edges[i + 1];
    last = column;
  }
  if (!steps.length) return "";
  const y = (value) => (VIEW_HEIGHT * (1 - value)).toFixed(1);
  const points = steps.map((step) => `L${x(step.start).toFixed(1)} ${y(step.value)}L${x(step.end).toFixed(1)} ${y(step.value)}`);
  return `M${x(steps[0].start).toFixed(1)} ${VIEW_HEIGHT}${points.join("")}L${x(steps.at(-1).end).toFixed(1)} ${VIEW_HEIGHT}Z`;
}

/** Scale values to 0–1: shares stay as they are, scores are scaled between the video's lowest and highest. */
export function scaleValues(name, values) {
  if (["speech", "text", "described"].includes(name)) return values.map((value) => Math.min(1, Math.max(0, value)));
  const low = Math.min(...values);
  const high = Math.max(...values);
  const range = high - low;
  return values.map((value) => (range > 1e-9 ? 0.04 + (0.96 * (value - low)) / range : 0.5));
}

/** Draw a lane. */
export function lane(name, edges, values, from, to) {
  return s(
    "svg",
    { viewBox: `0 0 ${VIEW_WIDTH} ${VIEW_HEIGHT}`, preserveAspectRatio: "none", class: `lane ${name}`, "aria-hidden": "true" },
    s("path", { d: outline(edges, values, from, to) }),
  );
}
