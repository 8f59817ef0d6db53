// This tab's end of the stream of jobs that all tabs share.

import * as api from "./api.js";
import { hub } from "./hub.js";

/** Calls `heard({job})` or `heard({lost})`; `want(true)` subscribes to the stream, `want(false)` unsubscribes. */
export function stream(heard) {
  let port = null;
  let wants = false;

  function use(given) {
    port = given;
    port.onmessage = ({ data }) => heard(data);
    if (wants) port.postMessage({ wants });
  }

  /** Without a shared worker, the tab opens its own stream. */
  function alone() {
    const { port1, port2 } = new MessageChannel();
    hub(api.link("/jobs/events")).connect(port1);
    use(port2);
  }

  try {
    const worker = new SharedWorker(new URL("hub.js", import.meta.url), { type: "module" });
    worker.addEventListener("error", alone);
    use(worker.port);
  } catch {
    alone();
  }
  addEventListener("pagehide", () => port.postMessage({ gone: true }));

  return {
    want(given) {
      wants = given;
      port.postMessage({ wants });
    },
  };
}
