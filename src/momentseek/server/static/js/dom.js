// Making elements. Text is always text, never markup, so nothing a file is called can become part of the page.

const SVG = "http://www.w3.org/2000/svg";

/** Create an element: h("p", {class: "note", onclick: f}, "text", otherElement). Null and false are left out. */
export function h(tag, props, ...children) {
  return fill(document.createElement(tag), props, children);
}

/** Create an SVG element, like `h`. */
export function s(tag, props, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element && ["value", "checked", "muted", "open", "disabled", "hidden"].includes(name)) element[name] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

const ICONS = {
  play: "M7 4.5v15l12-7.5z",
  pause: "M7 5h3.5v14H7zM13.5 5H17v14h-3.5z",
  back: "M17 5v14l-9-7zM5 5h2.2v14H5z",
  next: "M7 5v14l9-7zM16.8 5H19v14h-2.2z",
  loop:
    "M7 7h8.5a3.5 3.5 0 0 1 3.5 3.5V12h-2v-1.5A1.5 1.5 0 0 0 15.5 9H7v3L2.5 8 7 4z" +
    "M17 17H8.5a3.5 3.5 0 0 1-3.5-3.5V12h2v1.5a1.5 1.5 0 0 0 1.5 1.5H17v-3l4.5 4-4.5 4z",
  sound: "M4 9v6h4l5 4V5L8 9zM15.5 8.5a5 5 0 0 1 0 7l1.4 1.4a7 7 0 0 0 0-9.8z",
  silent:
    "M4 9v6h4l5 4V5L8 9z" +
    "M15 10.4l1.4-1.4 1.9 1.9L20.2 9l1.4 1.4-1.9 1.9 1.9 1.9-1.4 1.4-1.9-1.9-1.9 1.9L15 14.2l1.9-1.9z",
  full: "M4 4h6v2H6v4H4zM14 4h6v6h-2V6h-4zM4 14h2v4h4v2H4zM18 14h2v6h-6v-2h4z",
  pencil: "M4 20v-3.8L15.2 5 19 8.8 7.8 20zM16.3 3.9l1.3-1.3a1.5 1.5 0 0 1 2.1 0l1.7 1.7a1.5 1.5 0 0 1 0 2.1l-1.3 1.3z",
  close: "M6.4 5 12 10.6 17.6 5 19 6.4 13.4 12 19 17.6 17.6 19 12 13.4 6.4 19 5 17.6 10.6 12 5 6.4z",
};

/** An icon for a button; the button also needs a label. */
export function icon(name) {
  return s("svg", { viewBox: "0 0 24 24", class: "icon", "aria-hidden": "true" }, s("path", { d: ICONS[name] }));
}

/** Replace everything in an element. */
export function setChildren(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter(Boolean));
}

/** Whether the user prefers reduced motion. */
export const prefersReducedMotion = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/** Whether a key press is typing into a field, or has a modifier, and so is not one of our shortcuts. */
export function isTyping(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return true;
  const target = event.target;
  return target.isContentEditable || target.matches("select, textarea, input:not([type=checkbox], [type=radio], [type=range])");
}

/** A drop-down menu; Escape, a choice, or moving the focus elsewhere closes it. */
export function menu(label, items) {
  const summary = h("summary", {}, label);
  const element = h("details", { class: "menu" }, summary, h("ul", {}, items.map((one) => h("li", {}, one))));
  const close = () => (element.open = false);
  element.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !element.open) return;
    event.stopPropagation();
    close();
    summary.focus();
  });
  element.addEventListener("click", (event) => event.target.closest("a") && close());
  element.addEventListener("focusout", ({ relatedTarget }) => relatedTarget && !element.contains(relatedTarget) && close());
  element.addEventListener("toggle", () => {
    const outside = (event) => element.contains(event.target) || close();
    if (element.open) document.addEventListener("pointerdown", outside, { capture: true, once: true });
  });
  return element;
}

const timers = new WeakMap();

function showNotice(place, text) {
  const box = document.getElementById(place);
  clearTimeout(timers.get(box));
  const dismiss = h("button", { type: "button", class: "plain", "aria-label": "Dismiss", onclick: () => setChildren(box) }, icon("close"));
  setChildren(box, h("p", {}, text, dismiss));
  timers.set(box, setTimeout(() => setChildren(box), place === "urgent" ? 12000 : 4000));
}

/** Show a message that something worked. */
export const notify = (text) => showNotice("polite", text);

/** Show a message that something failed. */
export const warn = (text) => showNotice("urgent", text);

/** Remove the warning of another view. */
export const dismissWarning = () => setChildren(document.getElementById("urgent"));

/** Announce a change to screen readers. */
export function announce(text) {
  document.getElementById("spoken").textContent = text;
}

/** Save bytes as a file. */
export function download({ blob, name }) {
  const url = URL.createObjectURL(blob);
  const link = h("a", { href: url, download: name, hidden: true });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 60000);
}

/** Copy a text. Browsers offer the clipboard API only to local and HTTPS pages, so there is a fallback. */
export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const field = h("textarea", { class: "unseen", "aria-hidden": "true" });
    field.value = text;
    const before = document.activeElement;
    document.body.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    before?.focus?.();
    if (!done) return warn(`The browser did not allow copying. ${what}: ${text}`);
  }
  notify(`${what} copied: ${text}`);
}

/** A button that is busy until its work is done, and shows a warning if that fails. */
export function actionButton(label, work, props = {}) {
  const button = h("button", { type: "button", ...props }, label);
  button.addEventListener("click", () => runOnce(button, work));
  return button;
}

/** Run something once at a time for a button or form. */
export async function runOnce(element, work) {
  if (element.getAttribute("aria-busy") === "true") return;
  element.setAttribute("aria-busy", "true");
  try {
    await work();
  } catch (error) {
    if (error.name !== "AbortError") warn(error.message);
  } finally {
    element.removeAttribute("aria-busy");
  }
}
