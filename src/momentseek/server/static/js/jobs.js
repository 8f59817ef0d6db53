// Jobs of the server, followed live; anybody may listen.

import * as api from "./api.js";
import { speak, tell, warn } from "./dom.js";
import { count } from "./format.js";
import { stream } from "./stream.js";

const EVERY = 3000;
const jobs = new Map();
const listeners = new Set();
const events = stream(hear);
let asked = 0;
let looking = false;
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
  looking = true;
  try {
    const answer = await api.get("/jobs");
    if (mine === asked) take(answer.jobs);
  } finally {
    if (mine === asked) {
      looking = false;
      follow();
    }
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

/** Hear of every change while something is at work and this tab can be seen. */
function follow() {
  events.want(!document.hidden && all().some((job) => !over(job)));
}

const again = () => look().catch(() => {});

function hear({ job, lost }) {
  if (job && jobs.has(job.id)) {
    enter(job);
    follow();
  } else if (job) {
    if (!looking) again(); // another tab began it
  } else if (lost && !document.hidden) {
    clearTimeout(timer);
    timer = setTimeout(again, EVERY); // the server may have been started anew, or want the token
  }
}

document.addEventListener("visibilitychange", () => (document.hidden ? follow() : again()));
addEventListener("pageshow", (event) => event.persisted && again());

function ended(job) {
  const failed = job.failed.length ? `, ${count(job.failed.length, "file")} could not be added` : "";
  if (job.state === "failed") warn(job.error ?? "Adding failed.");
  else if (job.state === "cancelled") tell(`Stopped; ${count(job.added, "video")} added${failed}. Adding again goes on from there.`);
  else tell(`${count(job.added, "video")} added, ${job.unchanged} unchanged${failed}.`);
}

async function change(path, body) {
  const job = await api.change("POST", path, body);
  asked++; // an answer that is still under way does not know of this
  looking = false;
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
