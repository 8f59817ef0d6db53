// Jobs of the server, followed live; anybody may listen.

import * as api from "./api.js";
import { speak, tell, warn } from "./dom.js";
import { count } from "./format.js";

const EVERY = 3000;
const jobs = new Map();
const listeners = new Set();
let followed = null;
let asked = 0;
let timer = 0;

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
  const mine = ++asked;
  clearTimeout(timer);
  try {
    const answer = await api.get("/jobs");
    if (mine === asked) take(answer.jobs);
  } finally {
    if (mine === asked) follow();
  }
}

/** Jobs as the server tells them, all of them and in order. What is over stays over, even if an older answer comes late. */
function take(told) {
  const before = new Map(jobs);
  jobs.clear();
  for (const job of told) {
    const was = before.get(job.id);
    jobs.set(job.id, was && over(was) ? was : job);
    if (was && !over(was) && over(job)) ended(job);
  }
  for (const callback of listeners) callback(all());
}

/** One job as it is now: in its old place, or as the newest. */
function enter(job) {
  take(jobs.has(job.id) ? all().map((one) => (one.id === job.id ? job : one)) : [job, ...all()]);
}

/**
 * Listen to the job at work, and ask for the others now and then: a browser grants a host six connections, so one
 * for each waiting job would leave none for anything else.
 */
function follow() {
  const open = all().filter((job) => !over(job));
  const job = open.find((one) => one.state === "running") ?? open.at(-1); // the oldest is the next
  if (followed?.id !== job?.id) {
    followed?.events.close();
    followed = job ? { id: job.id, events: eventsOf(job.id) } : null;
  }
  clearTimeout(timer);
  if (open.length > 1) timer = setTimeout(again, EVERY);
}

const again = () => look().catch(() => {});

function eventsOf(id) {
  const events = new EventSource(api.link(`/jobs/${id}/events`));
  const hear = (event) => enter(JSON.parse(event.data));
  const end = (event) => {
    hear(event);
    follow();
  };
  events.addEventListener("progress", hear);
  events.addEventListener("done", end);
  // "failed" is the job's; "error" is the connection's, which comes back by itself
  events.addEventListener("failed", end);
  events.addEventListener("error", () => {
    if (events.readyState !== EventSource.CLOSED || followed?.events !== events) return;
    followed = null; // the server no longer knows the job: it was started anew
    clearTimeout(timer);
    timer = setTimeout(again, EVERY);
  });
  return events;
}

function ended(job) {
  const failed = job.failed.length ? `, ${count(job.failed.length, "file")} could not be added` : "";
  if (job.state === "failed") warn(job.error ?? "Adding failed.");
  else if (job.state === "cancelled") tell(`Stopped; ${count(job.added, "video")} added${failed}. Adding again goes on from there.`);
  else tell(`${count(job.added, "video")} added, ${job.unchanged} unchanged${failed}.`);
}

async function change(path, body) {
  const job = await api.change("POST", path, body);
  asked++; // an answer that is still under way does not know of this
  enter(job);
  follow();
}

async function begin(path, body) {
  await change(path, body);
  speak("Adding has begun");
}

export const add = (folder) => begin("/jobs", { folder });
export const retry = () => begin("/jobs/retry");
export const cancel = (id) => change(`/jobs/${id}/cancel`);
