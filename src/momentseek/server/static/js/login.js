// The dialog that asks for the token, if the server needs one.

import { askWith, login, logout } from "./api.js";
import { actionButton, h, setChildren } from "./dom.js";
import { setting } from "./history.js";

let asking = null;

askWith(askForToken);

/** A button to log out, shown once a token has been entered in this browser. */
export function logoutButton() {
  const button = actionButton("Log out", logOutEverywhere, { class: "small leave" });
  const update = () => (button.hidden = !setting("entered"));
  addEventListener("entered", update);
  addEventListener("storage", () => {
    if (!button.hidden && !setting("entered")) location.reload(); // logged out in another tab
    update();
  });
  update();
  return button;
}

/** Log out and reload all tabs, so that nothing of the library stays on screen. */
async function logOutEverywhere() {
  await logout();
  setting("entered", "");
  location.reload();
}

/** Ask until the token is right; several callers share one dialog. */
function askForToken() {
  asking ??= new Promise((done) => {
    const problem = h("p", { role: "alert", class: "problem" });
    const field = h("input", { type: "password", id: "token", name: "token", autocomplete: "current-password", required: true });
    const form = h(
      "form",
      { method: "dialog" },
      h("h2", { id: "token-title" }, "Enter the token"),
      h("p", {}, "This library is shared on a network. The server printed a token when it started."),
      h("label", { for: "token" }, "Token"),
      field,
      problem,
      h("button", { class: "main" }, "Log in"),
    );
    const dialog = h("dialog", { "aria-labelledby": "token-title", class: "login" }, form);
    dialog.addEventListener("cancel", (event) => event.preventDefault());
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      setChildren(problem);
      try {
        setting("entered", (await login(field.value.trim())) ? "yes" : "");
        dispatchEvent(new Event("entered"));
      } catch (error) {
        problem.textContent = error.message;
        field.select();
        return;
      }
      finish();
    });
    const finish = () => {
      removeEventListener("storage", elsewhere);
      dialog.close();
      dialog.remove();
      asking = null;
      done();
    };
    const elsewhere = () => setting("entered") && finish(); // the token was entered in another tab
    addEventListener("storage", elsewhere);
    document.body.append(dialog);
    dialog.showModal();
  });
  return asking;
}
