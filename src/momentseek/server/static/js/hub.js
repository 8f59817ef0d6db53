// One stream of the server's jobs for all tabs of a browser: it grants a host six connections, and a stream in each
// tab would use them up. Runs as a shared worker; where a browser has none, in the tab itself.

const EVENTS = ["progress", "done", "failed"];

/** Tabs say over their ports `{wants: true}` or false, or `{gone: true}`; they all hear `{job}`, and who wants also `{lost: true}`. */
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
      // one that came back may be of a server that was started anew, and knows other jobs or none
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
