// Recent searches, stored in this browser only.

const STORAGE_KEY = "momentseek.queries";
const MAX_QUERIES = 50;

/** Recent searches, newest first. */
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
    // without storage there is no history, but searching works
  }
}

/** Read a small setting by name, such as the annotator; store it first if a value is given. */
export function setting(name, value) {
  try {
    if (value !== undefined) localStorage.setItem(`momentseek.${name}`, value);
    return localStorage.getItem(`momentseek.${name}`) ?? "";
  } catch {
    return value ?? "";
  }
}
