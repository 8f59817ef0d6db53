// What was asked before, kept in this browser only.

const STORAGE_KEY = "momentseek.queries";
const MAX_QUERIES = 50;

/** The newest first. */
export function recentQueries() {
  try {
    const stored = JSON.parse(localStorage.getItem(STORAGE_KEY) ?? "[]");
    return Array.isArray(stored) ? stored.filter((one) => typeof one === "string") : [];
  } catch {
    return [];
  }
}

export function remember(query) {
  if (query) store([query, ...recentQueries().filter((one) => one !== query)].slice(0, MAX_QUERIES));
}

export function forget() {
  store([]);
}

function store(queries) {
  try {
    localStorage.setItem(STORAGE_KEY, JSON.stringify(queries));
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
