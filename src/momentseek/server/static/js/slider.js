// Keys of a slider along a video: arrows go by a frame, with Shift by a second, Page Up and Down to cuts and cues.

/** `value, range, frame, snaps` are functions; `set(time)` moves. */
export function sliderKeys(element, { value, range, frame, snaps, set }) {
  element.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const now = value();
    const [low, high] = range();
    const step = event.shiftKey ? 1 : frame();
    const target = {
      ArrowRight: () => now + step,
      ArrowUp: () => now + step,
      ArrowLeft: () => now - step,
      ArrowDown: () => now - step,
      PageUp: () => snaps().find((t) => t > now + 1e-3) ?? high,
      PageDown: () => snaps().findLast((t) => t < now - 1e-3) ?? low,
      Home: () => low,
      End: () => high,
    }[event.key];
    if (!target) return;
    event.preventDefault();
    event.stopPropagation();
    set(Math.min(high, Math.max(low, target())));
  });
}
