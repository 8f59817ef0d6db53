// What was asked before, kept in this browser only.

const KEY = "momentseek.queries";
const MOST = 50;

/** The newest first. */
export function past() {
  try {
    const kept = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(kept) ? kept.filter((one) => typeof one === "string") : [];
  } catch {
    return [];
  }
}

export function remember(query) {
  if (query) store([query, ...past().filter((one) => one !== query)].slice(0, MOST));
}

export function forget() {
  store([]);
}

function store(queries) {
  try {
    localStorage.setItem(KEY, JSON.stringify(queries));
  } catch {
    // a browser that keeps nothing may still search
  }
}

/** A small setting by name, such as the annotator. */
export function setting(name, value) {
  try {
    if (value !== undefined) localStorage.setItem(`momentseek.${name}`, value);
    return localStorage.getItem(`momentseek.${name}`) ?? "";
  } catch {
    return value ?? "";
  }
}
