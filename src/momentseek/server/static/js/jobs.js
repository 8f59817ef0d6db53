// The server's jobs, with live updates for listeners.

import * as api from "./api.js";
import { announce, notify, warn } from "./dom.js";
import { count } from "./format.js";
import { stream } from "./stream.js";

const RETRY_MS = 3000;
const jobs = new Map();
const listeners = new Set();
const events = stream(onMessage);
let asked = 0;
let refreshing = false;
let timer = 0;

/** Call back with all jobs, the newest first, now and whenever one changes. */
export function listen(callback) {
  listeners.add(callback);
  callback(all());
  return () => listeners.delete(callback);
}

const all = () => [...jobs.values()];
export const isOver = (job) => ["done", "failed", "cancelled"].includes(job.state);

/** Load the list of jobs, and follow those that are not over. */
export async function refresh() {
  const mine = ++asked;
  clearTimeout(timer);
  refreshing = true;
  try {
    const answer = await api.get("/jobs");
    if (mine === asked) setJobs(answer.jobs);
  } finally {
    if (mine === asked) {
      refreshing = false;
      follow();
    }
  }
}

/** Replace all jobs by the server's list. A job that is over stays over, even if an older answer arrives late. */
function setJobs(listed) {
  const before = new Map(jobs);
  jobs.clear();
  for (const job of listed) {
    const was = before.get(job.id);
    jobs.set(job.id, was && isOver(was) ? was : job);
    if (was && !isOver(was) && isOver(job)) reportEnd(job);
  }
  for (const callback of listeners) callback(all());
}

/** Replace one job in its place, or add it as the newest. */
function updateJob(job) {
  setJobs(jobs.has(job.id) ? all().map((one) => (one.id === job.id ? job : one)) : [job, ...all()]);
}

/** Subscribe to events while a job is running and this tab is visible. */
function follow() {
  events.want(!document.hidden && all().some((job) => !isOver(job)));
}

const refreshQuietly = () => refresh().catch(() => {});

function onMessage({ job, lost }) {
  if (job && jobs.has(job.id)) {
    updateJob(job);
    follow();
  } else if (job) {
    if (!refreshing) refreshQuietly(); // another tab began it
  } else if (lost && !document.hidden) {
    clearTimeout(timer);
    timer = setTimeout(refreshQuietly, RETRY_MS); // the server may have been restarted, or need the token
  }
}

document.addEventListener("visibilitychange", () => (document.hidden ? follow() : refreshQuietly()));
addEventListener("pageshow", (event) => event.persisted && refreshQuietly());

function reportEnd(job) {
  const failed = job.failed.length ? `, ${count(job.failed.length, "file")} could not be added` : "";
  if (job.state === "failed") warn(job.error ?? `${verb(job)} failed.`);
  else if (job.kind === "download") notify(job.state === "done" ? `Downloaded: ${job.folder}.` : "Stopped; a new download continues from there.");
  else if (job.kind === "reencode" && job.state === "done") notify(`All videos are encoded with ${job.folder}${failed}.`);
  else if (job.state === "cancelled") notify(`Stopped; ${count(job.added, "video")} added${failed}. Add the folder again to continue.`);
  else notify(`${count(job.added, "video")} added, ${job.unchanged} unchanged${failed}.`);
}

async function change(path, body) {
  const job = await api.change("POST", path, body);
  asked++; // ignore a list that was requested before this change
  refreshing = false;
  updateJob(job);
  follow();
}

async function start(path, body) {
  await change(path, body);
  announce("Started");
}

/** The number of the file that a job is working on: "3 of 12". */
export const place = ({ files_done: done, files_total: total }) => (total ? `${Math.min(done + 1, total)} of ${total}` : "");

/** What a job is doing, in a word. */
export const verb = ({ kind }) => ({ download: "Downloading", reencode: "Encoding" })[kind] ?? "Adding";

export const downloadEncoder = (encoder) => start("/encoders/download", { encoder });
export const useEncoder = (encoder) => start("/encoders/use", { encoder });
export const add = (folder) => start("/jobs", { folder });
export const retry = () => start("/jobs/retry");
export const cancel = (id) => change(`/jobs/${id}/cancel`);
