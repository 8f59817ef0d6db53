// A preview, made by the server, of a video that this browser cannot play.

import * as api from "./api.js";

const SECONDS_BETWEEN_QUESTIONS = 1;

/** The address of a video's preview, once it is made; `show(text)` says how far it is. Whoever aborts has left. */
export async function previewOf(media, show, signal) {
  const path = media.replace(/^\/api\/v1/, "").replace(/\/media$/, "/preview");
  show("This browser cannot play the video as it is. A preview is being made …");
  for (;;) {
    const { state, progress, error, preview } = await api.change("POST", path);
    signal.throwIfAborted();
    if (state === "ready") return preview;
    if (state === "failed") throw new Error(error);
    const how = state === "waiting" ? "waits for its turn" : `is being made: ${Math.floor(100 * progress)} %`;
    show(`This browser cannot play the video as it is. A preview ${how}`);
    await new Promise((resolve) => setTimeout(resolve, 1000 * SECONDS_BETWEEN_QUESTIONS));
    signal.throwIfAborted();
  }
}
