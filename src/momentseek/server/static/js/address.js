// The address holds what is shown, so that a link opens it again: #q=… · #v=7&t=3,9&q=… · #like=7:3.000-9.000 ·
// #library · #saved · #judge · #compare

import { exact } from "./format.js";

const VIEWS = ["library", "judge", "compare", "saved"];

/** Settings of a search, by their names in addresses. */
const SETTINGS = ["localiser", "fusion", "streams", "rerank"];

/** What an address's fragment asks for. */
export function parse(fragment) {
  const given = new URLSearchParams(fragment.replace(/^#/, ""));
  const view = given.has("v") ? "player" : (VIEWS.find((name) => given.has(name)) ?? "search");
  const [start, end] = (given.get("t") ?? "").split(",").map((part) => (part === "" ? NaN : Number(part)));
  const timed = start >= 0 && end > start && Number.isFinite(end);
  return {
    view,
    query: given.get("q") ?? "",
    like: given.get("like") ?? "", // the moment to find similar ones to
    picture: given.has("picture"), // a search by a picture; the address cannot hold the picture itself
    video: Number(given.get("v")) || 0,
    span: timed ? [exact(start), exact(end)] : null,
    params: given,
    // how to search; or how a moment was found, because its curve depends on that
    settings: Object.fromEntries(SETTINGS.map((name) => [name, given.get(name) ?? ""])),
  };
}

/** The address of a moment, with the settings of the search that found it unless they are the defaults. */
export function momentLink(video, span, query, settings = {}) {
  const time = span ? `&t=${exact(span[0])},${exact(span[1])}` : "";
  if (!query) return `#v=${video}${time}`;
  const how = SETTINGS.filter((name) => settings[name]).map((name) => `&${name}=${encodeURIComponent(settings[name])}`);
  return `#v=${video}${time}&q=${encodeURIComponent(query)}${how.join("")}`;
}

/** The address of a search, with the settings that are not defaults. */
export function searchLink(query, settings = {}) {
  const given = new URLSearchParams(query ? { q: query } : {});
  for (const [name, value] of Object.entries(settings)) if (value) given.set(name, value);
  return `#${given}`;
}

/** Change the address without adding to the browser's history. */
export function replace(fragment) {
  history.replaceState(history.state, "", location.pathname + fragment);
}
