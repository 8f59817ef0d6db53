// Requests to the server: JSON in and out, one kind of error, and the token when the server asks for it.

const API = "/api/v1";
let askForToken = null;

/** Set the function that asks the user for the token; a refused request is then sent again. */
export function askWith(ask) {
  askForToken = ask;
}

/** An error that the server answered, with its message. */
export class ApiError extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

async function send(path, options = {}) {
  let answer;
  try {
    answer = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "unreachable", "The server does not respond. Is momentseek serve still running?");
  }
  if (answer.ok) return answer;
  const body = await answer.json().catch(() => null);
  const problem = body?.error ?? { code: "unknown", message: `the server answered with status ${answer.status}` };
  if (answer.status === 401 && path !== "/login") {
    await askForToken();
    return send(path, options);
  }
  const message = problem.message.charAt(0).toUpperCase() + problem.message.slice(1);
  throw new ApiError(answer.status, problem.code, message);
}

function address(path, params) {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(params ?? {})) {
    for (const one of [value].flat()) if (one !== null && one !== undefined && one !== "") given.append(name, one);
  }
  const query = String(given);
  return `${API}${path}${query ? `?${query}` : ""}`;
}

function withBody(method, body) {
  return { method, headers: { "Content-Type": "application/json" }, body: JSON.stringify(body ?? {}) };
}

/** GET as JSON. */
export const get = async (path, params, signal) => (await send(address(path, params), { signal })).json();

/** POST, PUT or DELETE with JSON, as JSON. */
export const change = async (method, path, body, params) => (await send(address(path, params), withBody(method, body))).json();

/** POST JSON, or GET with parameters; returns a file: its bytes and its name. */
export async function file(path, body, params) {
  const answer = await send(address(path, params), body ? withBody("POST", body) : {});
  return { blob: await answer.blob(), name: nameOf(answer.headers.get("Content-Disposition")) };
}

function nameOf(disposition) {
  const encoded = /filename\*=UTF-8''([^;]+)/i.exec(disposition ?? "");
  if (encoded) return decodeURIComponent(encoded[1]);
  return /filename="([^"]+)"/.exec(disposition ?? "")?.[1] ?? "moment";
}

/** The address of a file that the browser itself fetches. */
export const link = address;

/** Log in with the token; the server sets a session cookie. Returns whether a token was needed at all. */
export const login = async (token) => (await (await send("/login", withBody("POST", { token }))).json()).needed;

/** End the session and delete its cookie. */
export const logout = () => send("/logout", withBody("POST"));

let cachedStatus = null;
const waiting = [];

/** Register a callback that gets the status each time it has been loaded. */
export const whenKnown = (call) => waiting.push(call);

/** The status of the server: its library, and the choices for a search; loaded once. */
export function status(again = false) {
  if (!cachedStatus || again) {
    cachedStatus = get("/status");
    cachedStatus.then((found) => waiting.forEach((call) => call(found)), () => (cachedStatus = null));
  }
  return cachedStatus;
}
