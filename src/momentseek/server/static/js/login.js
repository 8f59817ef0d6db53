// The dialog that asks for the token, when the server is open to others.

import { enter } from "./api.js";
import { h, put } from "./dom.js";

let asking = null;

/** Ask until the token is right; several callers share one dialog. */
export function askForToken() {
  asking ??= new Promise((done) => {
    const problem = h("p", { role: "alert", class: "problem" });
    const field = h("input", { type: "password", id: "token", name: "token", autocomplete: "current-password", required: true });
    const form = h(
      "form",
      { method: "dialog" },
      h("h2", { id: "token-title" }, "Enter the token"),
      h("p", {}, "This library is shared on a network. The server printed a token when it was started."),
      h("label", { for: "token" }, "Token"),
      field,
      problem,
      h("button", { class: "main" }, "Enter"),
    );
    const dialog = h("dialog", { "aria-labelledby": "token-title", class: "login" }, form);
    dialog.addEventListener("cancel", (event) => event.preventDefault());
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      put(problem);
      try {
        await enter(field.value.trim());
      } catch (error) {
        problem.textContent = error.message;
        field.select();
        return;
      }
      dialog.close();
      dialog.remove();
      asking = null;
      done();
    });
    document.body.append(dialog);
    dialog.showModal();
  });
  return asking;
}
