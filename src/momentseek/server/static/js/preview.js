// A preview, made by the server, of a video that this browser cannot play.

import * as api from "./api.js";

const SECONDS_BETWEEN_QUESTIONS = 1;

/** Request a preview and return its address once it is ready; `show(text)` reports progress, `signal` aborts. */
export async function previewOf(media, show, signal) {
  const path = media.replace(/^\/api\/v1/, "").replace(/\/media$/, "/preview");
  show("This browser cannot play the video file. Making a preview …");
  for (;;) {
    const { state, progress, error, preview } = await api.change("POST", path);
    signal.throwIfAborted();
    if (state === "ready") return preview;
    if (state === "failed") throw new Error(error);
    const how = state === "waiting" ? "The preview is waiting for its turn." : `Making a preview: ${Math.floor(100 * progress)} %`;
    show(`This browser cannot play the video file. ${how}`);
    await new Promise((resolve) => setTimeout(resolve, 1000 * SECONDS_BETWEEN_QUESTIONS));
    signal.throwIfAborted();
  }
}
