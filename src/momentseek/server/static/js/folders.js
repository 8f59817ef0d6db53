// Choosing a folder to add: folders are named by the server, one level at a time.

import * as api from "./api.js";
import { action, h, put, speak } from "./dom.js";
import { count } from "./format.js";
import * as jobs from "./jobs.js";

export function folderChooser() {
  const path = h("p", { class: "path" });
  const list = h("ul", { class: "folders" });
  const element = h("div", { class: "chooser" }, path, list);

  const many = (folder) => `${folder.complete ? "" : "more than "}${count(folder.videos, "video")}`;

  function row(folder) {
    return h(
      "li",
      {},
      action(folder.name, () => open(folder.id), { class: "plain folder", "aria-label": `Open ${folder.name}, ${many(folder)}` }),
      h("span", { class: "quiet" }, many(folder)),
      action("Add", () => jobs.add(folder.id), { class: "small", disabled: !folder.videos, "aria-label": `Add ${folder.name}` }),
    );
  }

  async function open(id) {
    const folder = await api.get(`/folders/${id}`);
    const up = action("Up", () => (folder.parent ? open(folder.parent) : roots()), { class: "small" });
    const whole = action("Add all of it", () => jobs.add(folder.id), { class: "small main", disabled: !folder.videos });
    put(path, up, h("strong", {}, folder.name), h("span", { class: "quiet" }, many(folder)), whole);
    put(list, folder.folders.length ? folder.folders.map(row) : h("li", { class: "quiet" }, "No folders in this one."));
    up.focus();
    speak(`${folder.name}, ${count(folder.folders.length, "folder")} in it`);
  }

  async function roots() {
    const { folders } = await api.get("/folders");
    put(path);
    const none = "No folder may be added from here. Start the server with momentseek serve --folder DIR.";
    put(list, folders.length ? folders.map(row) : h("li", { class: "quiet" }, none));
  }

  return { element, show: roots };
}
