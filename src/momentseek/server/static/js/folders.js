// Choosing a folder to add; the server lists folders one level at a time.

import * as api from "./api.js";
import { actionButton, announce, h, setChildren } from "./dom.js";
import { count } from "./format.js";
import * as jobs from "./jobs.js";

export function folderChooser() {
  const path = h("p", { class: "path" });
  const list = h("ul", { class: "folders" });
  const element = h("div", { class: "chooser" }, path, list);

  const many = (folder) => `${folder.complete ? "" : "at least "}${count(folder.videos, "video")}`;

  function row(folder) {
    return h(
      "li",
      {},
      actionButton(folder.name, () => open(folder.id), { class: "plain folder", "aria-label": `Open ${folder.name}, ${many(folder)}` }),
      h("span", { class: "quiet" }, many(folder)),
      actionButton("Add", () => jobs.add(folder.id), { class: "small", disabled: !folder.videos, "aria-label": `Add ${folder.name}` }),
    );
  }

  async function open(id) {
    const folder = await api.get(`/folders/${id}`);
    const up = actionButton("Up", () => (folder.parent ? open(folder.parent) : roots()), { class: "small" });
    const whole = actionButton("Add this folder", () => jobs.add(folder.id), { class: "small main", disabled: !folder.videos });
    setChildren(path, up, h("strong", {}, folder.name), h("span", { class: "quiet" }, many(folder)), whole);
    setChildren(list, folder.folders.length ? folder.folders.map(row) : h("li", { class: "quiet" }, "No subfolders."));
    up.focus();
    announce(`${folder.name}, ${count(folder.folders.length, "subfolder")}`);
  }

  async function roots() {
    const { folders } = await api.get("/folders");
    setChildren(path);
    const none = "There is no folder to add from. Start the server with one: momentseek serve --folder FOLDER.";
    setChildren(list, folders.length ? folders.map(row) : h("li", { class: "quiet" }, none));
  }

  return { element, show: roots };
}
