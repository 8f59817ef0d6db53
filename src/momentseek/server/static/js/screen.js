// The video itself: opens at a span, loops it, steps by frames.

import { h, prefersReducedMotion } from "./dom.js";
import { previewOf } from "./preview.js";

const NUDGE_SECONDS = 0.001;
const CANNOT_PLAY = "This browser cannot play the video.";

/* * A video element that loops a span; `changed()` is called when it moves, plays or stops. If the browser cannot play the
 * file, a preview takes its place; `explain(text)` gets the reason, or "" when all is well. Without `explain` there is no preview.
 */
export function screen(changed, props = {}, explain = null) {
  const video = h("video", { playsinline: true, preload: "auto", tabindex: "-1", ...props });
  let span = null;
  let looping = true;
  let rate = 25;
  let was = 0;
  let asked = null;
  let begin = null;
  let making = null;
  let soundOnly = false;

  /** Loop only if playback crosses the end from inside: somebody who seeks elsewhere stays there. */
  function watch(now) {
    if (looping && span && !video.paused && !video.seeking) {
      // when the last frame inside is shown, so that the next scene never flashes up
      const last = Math.max(span[1] - 1.05 / rate, span[0] + 0.5 / rate);
      if (now >= last && was < last && was >= span[0] - 1 / rate) {
        was = span[0];
        video.currentTime = span[0] + NUDGE_SECONDS;
        return;
      }
    }
    was = now;
  }

  function each(_, { mediaTime }) {
    watch(mediaTime);
    changed();
    video.requestVideoFrameCallback(each);
  }
  if (video.requestVideoFrameCallback) video.requestVideoFrameCallback(each);
  video.addEventListener("timeupdate", () => (watch(video.currentTime), changed()));
  video.addEventListener("seeked", () => (was = video.currentTime));
  video.addEventListener("ended", () => looping && span && (seek(span[0]), video.play().catch(() => {})));
  for (const name of ["play", "pause", "seeked", "volumechange", "loadedmetadata"]) video.addEventListener(name, changed);

  video.addEventListener("loadedmetadata", () => {
    if (!video.videoWidth && !soundOnly) return usePreview(); // only sound: the browser cannot decode the pictures
    explain?.("");
    begin?.();
    begin = null;
  });
  video.addEventListener("error", () => {
    const interrupted = video.error?.code <= MediaError.MEDIA_ERR_NETWORK;
    if (video.getAttribute("src") && !interrupted) usePreview();
  });

  /** Play the server's preview instead, once it is ready. */
  async function usePreview() {
    if (making || !explain) return;
    if (video.getAttribute("src") !== asked) return explain(CANNOT_PLAY); // the preview does not play either
    making = new AbortController();
    const { signal } = making;
    try {
      const preview = await previewOf(asked, explain, signal);
      begin ??= start;
      video.src = preview;
      video.load();
    } catch (error) {
      if (!signal.aborted) explain(`${CANNOT_PLAY} ${error.message}`);
    }
    if (!signal.aborted) making = null;
  }

  function leave() {
    making?.abort();
    making = null;
    asked = begin = null;
    explain?.("");
  }

  function start() {
    seek(span ? span[0] : 0);
    if (!prefersReducedMotion()) play();
  }

  /** Seek to slightly after the time, so that rounding never shows the frame before. */
  function seek(t) {
    const last = Number.isFinite(video.duration) ? video.duration : Infinity;
    video.currentTime = Math.max(0, Math.min(t + NUDGE_SECONDS, last));
  }

  /** Play; muted if the browser allows no sound before the first click. */
  async function play() {
    try {
      await video.play();
    } catch (error) {
      if (error.name !== "NotAllowedError" || video.muted) return;
      video.muted = true;
      video.play().catch(() => {});
    }
  }

  return {
    video,
    seek,
    play,
    /** Show a file at a span; plays if the browser and the person allow. */
    open(source, given, framesPerSecond, sound = false) {
      soundOnly = sound; // a recording, which has no pictures to wait for
      span = given;
      rate = framesPerSecond;
      if (asked === source && video.readyState >= 1) return start();
      leave();
      asked = source;
      begin = start;
      video.src = source;
      video.load();
    },
    setSpan(a, b) {
      span = [a, b];
    },
    loop(on) {
      looping = on;
    },
    toggle() {
      if (video.paused) video.play().catch(() => {});
      else video.pause();
    },
    /** The number of the frame shown. */
    frame: () => Math.floor(video.currentTime * rate + 0.05),
    /** Step by a number of frames, to the middle of the frame. */
    step(frames) {
      video.pause();
      const target = Math.max(0, Math.floor(video.currentTime * rate + 0.05) + frames);
      video.currentTime = Math.min((target + 0.5) / rate, video.duration || Infinity);
    },
    close() {
      span = null;
      leave();
      video.pause();
      video.removeAttribute("src");
      video.load();
    },
  };
}
