// One stream of the server's jobs for all tabs of a browser. A browser opens at most six connections to a host, and one
// stream per tab would use them up. Runs as a shared worker, or in the tab itself if the browser has none.

const EVENTS = ["progress", "done", "failed"];

/** Tabs send `{wants: true}`, `{wants: false}` or `{gone: true}`. All of them get `{job}`; those that want the stream also get `{lost: true}`. */
export function hub(address, open = (at) => new EventSource(at)) {
  const ports = new Map();
  let events = null;

  function broadcast(message, everybody = true) {
    for (const [port, wants] of ports) if (wants || everybody) port.postMessage(message);
  }

  function openOrClose() {
    const wanted = [...ports.values()].some(Boolean);
    if (!wanted) {
      events?.close();
      events = null;
    } else if (!events) {
      let before = false;
      events = open(address);
      // after a reconnection the server may have been restarted, with other jobs or none
      events.addEventListener("open", () => (before ? broadcast({ lost: true }, false) : (before = true)));
      for (const name of EVENTS) events.addEventListener(name, ({ data }) => broadcast({ job: JSON.parse(data) }));
      // a connection that breaks comes back by itself; one that is refused does not
      events.addEventListener("error", ({ target }) => {
        if (target.readyState !== EventSource.CLOSED || target !== events) return;
        events = null;
        broadcast({ lost: true }, false);
      });
    }
  }

  return {
    connect(port) {
      port.onmessage = ({ data }) => {
        if (data.gone) ports.delete(port);
        else ports.set(port, data.wants);
        openOrClose();
      };
    },
  };
}

if (globalThis.SharedWorkerGlobalScope) {
  const all = hub("/api/v1/jobs/events");
  globalThis.onconnect = ({ ports: [port] }) => all.connect(port);
}
