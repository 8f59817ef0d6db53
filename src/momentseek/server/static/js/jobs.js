// Jobs of the server, followed live; anybody may listen.

import * as api from "./api.js";
import { speak, tell, warn } from "./dom.js";
import { count } from "./format.js";

const jobs = new Map();
const followed = new Map();
const listeners = new Set();

/** Call back with all jobs, the newest first, now and whenever one changes. */
export function listen(callback) {
  listeners.add(callback);
  callback(all());
  return () => listeners.delete(callback);
}

const all = () => [...jobs.values()];
export const over = (job) => ["done", "failed", "cancelled"].includes(job.state);

/** Ask what the server is doing, and follow what is not over. */
export async function look() {
  const answer = await api.get("/jobs");
  jobs.clear();
  for (const job of answer.jobs) jobs.set(job.id, job);
  changed();
  for (const job of answer.jobs) if (!over(job)) follow(job.id);
}

function changed() {
  for (const callback of listeners) callback(all());
}

function enter(job) {
  const old = all();
  if (!jobs.has(job.id)) {
    jobs.clear();
    for (const one of [job, ...old]) jobs.set(one.id, one);
  } else jobs.set(job.id, job);
  changed();
}

function follow(id) {
  if (followed.has(id)) return;
  const events = new EventSource(api.link(`/jobs/${id}/events`));
  followed.set(id, events);
  const take = (event) => enter(JSON.parse(event.data));
  const end = (event) => {
    events.close();
    followed.delete(id);
    take(event);
    ended(JSON.parse(event.data));
  };
  events.addEventListener("progress", take);
  events.addEventListener("done", end);
  // "failed" is the job's; "error" is the connection's, which comes back by itself
  events.addEventListener("failed", end);
  events.addEventListener("error", () => {
    if (events.readyState !== EventSource.CLOSED) return;
    followed.delete(id); // the server no longer knows the job: it was started anew
    look().catch(() => {});
  });
}

function ended(job) {
  const failed = job.failed.length ? `, ${count(job.failed.length, "file")} could not be added` : "";
  if (job.state === "failed") warn(job.error ?? "Adding failed.");
  else if (job.state === "cancelled") tell(`Stopped; ${count(job.added, "video")} added${failed}. Adding again goes on from there.`);
  else tell(`${count(job.added, "video")} added, ${job.unchanged} unchanged${failed}.`);
}

async function begin(path, body) {
  const job = await api.change("POST", path, body);
  enter(job);
  follow(job.id);
  speak("Adding has begun");
}

export const add = (folder) => begin("/jobs", { folder });
export const retry = () => begin("/jobs/retry");
export const cancel = async (id) => enter(await api.change("POST", `/jobs/${id}/cancel`));
