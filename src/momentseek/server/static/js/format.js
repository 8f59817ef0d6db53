// Formatting of times and numbers.

/** 83.456 → "1:23.5"; with places = 0 → "1:23". */
export function clock(seconds, places = 1) {
  const unit = 10 ** places;
  const total = Math.round(Math.max(0, seconds) * unit);
  const whole = Math.floor(total / unit);
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor(whole / 60) % 60;
  const rest = String(whole % 60).padStart(2, "0") + (places ? "." + String(total % unit).padStart(places, "0") : "");
  return hours ? `${hours}:${String(minutes).padStart(2, "0")}:${rest}` : `${minutes}:${rest}`;
}

/** "30000/1001" → 29.97…; 25 for anything that cannot be parsed. */
export function rateOf(text) {
  const [above, below = "1"] = String(text ?? "").split("/");
  const rate = Number(above) / Number(below);
  return Number.isFinite(rate) && rate > 0 ? rate : 25;
}

/** Hours, minutes, seconds and frames (non-drop-frame timecode). */
export function timecode(seconds, rate) {
  const base = Math.max(1, Math.round(rate));
  const frames = Math.round(seconds * rate);
  const two = (n) => String(n).padStart(2, "0");
  const whole = Math.floor(frames / base);
  return `${two(Math.floor(whole / 3600))}:${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}:${two(frames % base)}`;
}

/** For screen readers: "1 minute 23.5 seconds". */
export function spokenTime(seconds) {
  const minutes = Math.floor(seconds / 60);
  const rest = Math.round((seconds - 60 * minutes) * 100) / 100;
  return (minutes ? `${minutes} minute${minutes === 1 ? "" : "s"} ` : "") + `${rest} seconds`;
}

/** 5400 → "1 h 30 min". */
export function length(seconds) {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 90 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** (1, "moment") → "1 moment". */
export const count = (n, one, many = `${one}s`) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;

/** Round to milliseconds, as times are in links. */
export const exact = (seconds) => Math.round(seconds * 1000) / 1000;

export const day = (seconds) => new Date(seconds * 1000).toLocaleDateString(undefined, { dateStyle: "medium" });

/** The value of a measure, or a dash. */
export function figure(value, places = 4) {
  return Number.isFinite(value) ? value.toFixed(places).replace("-", "−") : "–";
}
