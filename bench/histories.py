"""Clients add, remove, judge and search while machines are killed, stopped and cut off; was anything lost or invented?

    python bench/histories.py [--seeds 1 2 3] [--seconds 60] [--cluster]

Each machine is a network namespace (bench/wires.py): an object store, a PostgreSQL, a server, and two machines that
add and remove videos of a library in two shards in that store; with ``--cluster`` also the head of a Ray cluster and
two nodes, on which one machine adds and the server searches. One client judges and two search through the server. All
the time something is killed (SIGKILL) and started again, stopped (SIGSTOP) for seconds or for longer than a lease
lasts, or its cable is cut. What everybody was told is checked by bench/history.py, then a new machine reads what is
there. Exit code 1 if an acknowledged change was lost, a search showed what was never there or lacked what was without
saying so, `verify` finds a fault, or anything ended in a traceback.

Needs to be root, iproute2, Debian's PostgreSQL, and with ``--cluster`` some 4 GB of memory.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
import urllib.error
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from history import Change, History, Look, check_end, check_log, check_looks
from services import POSTGRES, RAY, Service, postgres_service, s3_environment, s3_service
from wires import Wires, can_make_namespaces

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "library"))
LIGHT = ROOT / "tests" / "library" / "light.py"
LIBRARY, BUCKET, TOKEN = "s3://films/lib", "films", "0123456789abcdef"
FILMS = 5
"""Films of each machine that adds."""
FRESH_SECONDS = 12.0
"""How old an unmarked answer may be: a replica looks for changes every ten seconds."""
STORE, DATABASE, SERVER, FIRST, SECOND, HEAD, NODES = 0, 1, 2, 3, 4, 5, (6, 7)
ANSWER_SECONDS = 40.0
"""How long a client waits for an answer of the server."""
SHORT, LONG = (1.0, 6.0), (33.0, 38.0)
"""Seconds for which something is stopped or cut off; the long ones outlast a lease."""


def serve_agent(on: str | None) -> None:
    """What runs on a machine that adds: one change per line of JSON, and one answer each."""
    from momentseek.api.library import open_store
    from momentseek.cluster.adding import add_on
    from momentseek.cluster.shard_writer import WriterSettings
    from momentseek.core.errors import MomentseekError
    from momentseek.library.location import library_folder

    if on is None:
        import light

        light.install()
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            if asked["there"] and on is not None:
                folder = library_folder(LIBRARY)
                report = add_on(
                    on, folder, [asked["film"]], WriterSettings(), recursive=False, exclude=(), gpus=0.0,
                    tell=lambda _: None,
                )  # fmt: skip
                answer = {"ok": report.added + report.unchanged == 1, "said": str(report)}
            else:
                with open_store(LIBRARY, wait=20.0) as store:
                    store.options = type(store.options)(transcriber=None)
                    if asked["there"]:
                        report = store.add([asked["film"]])
                        answer = {"ok": report.added + report.unchanged == 1, "said": str(report)}
                    else:
                        store.remove(Path(asked["film"]))
                        answer = {"ok": True}
        except MomentseekError as e:
            answer = {"ok": False, "said": str(e)}
        except Exception:
            answer = {"ok": False, "said": traceback.format_exc(), "fault": True}
        print(json.dumps(answer), flush=True)


class Scene:
    """The machines of one history, their clients, and what these saw."""

    def __init__(self, seed: int, place: Path, wires: Wires, cluster: bool) -> None:
        self.dice = random.Random(seed)
        self.place, self.wires, self.cluster = place, wires, cluster
        self.begun = time.monotonic()
        self.halt = threading.Event()
        self.changes: list[Change] = []
        self.looks: list[Look] = []
        self.faults: list[str] = []
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.films = [self._make_films(number) for number in (FIRST, SECOND)]
        store = s3_service(wires, STORE, place, BUCKET)
        database = postgres_service(wires, DATABASE, place, "films")
        self.database = f"postgresql://momentseek@{database.address}/films?sslmode=disable"
        os.environ |= s3_environment(store.address) | {"MOMENTSEEK_CACHE": str(place / "here")}
        os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled", "MOMENTSEEK_INSECURE_CLUSTER": "1"}
        self.services = {"store": store, "database": database}
        head = f"{wires.address(HEAD)}:6379" if cluster else None
        if head:
            self.services |= {one.name: one for one in self._ray(head)}
        program = [sys.executable, str(LIGHT)] if head is None else [sys.executable, "-m", "momentseek"]
        words = ["serve", "--library", LIBRARY, "--host", wires.address(SERVER), "--port", "8765", "--token", TOKEN]
        words += ["--database", self.database, *(["--on", head, "--insecure"] if head else [])]
        cache = {"MOMENTSEEK_CACHE": str(place / "server")}
        self.services["server"] = Service(
            "server", wires, SERVER, [*program, *words], folder=place, port=8765, env=cache
        )
        for name, machine, on in (("first", FIRST, head), ("second", SECOND, None)):
            agent = [sys.executable, __file__, "--agent", *([on] if on else [])]
            cache = {"MOMENTSEEK_CACHE": str(place / name)}
            self.services[name] = Service(name, wires, machine, agent, folder=place, env=cache, pipes=True)
        self.api = f"http://{self.services['server'].address}/api/v1"

    def _ray(self, head: str) -> list[Service]:
        health = {f"RAY_health_check_{key}": value for key, value in
                  {"period_ms": "1000", "timeout_ms": "3000", "failure_threshold": "3"}.items()}  # fmt: skip
        common = ["--object-store-memory", "80000000", "--block", "--temp-dir"]
        found = []
        for machine in (HEAD, *NODES):
            own, name = self.place / f"ray-{machine}", "head" if machine == HEAD else f"node-{machine}"
            where = ["--node-ip-address", self.wires.address(machine)]
            first = ["--head", "--port", "6379", "--num-cpus", "0", "--include-dashboard=false"]
            asked = first if machine == HEAD else ["--address", head, "--num-cpus", "1"]
            env = {**health, "MOMENTSEEK_CACHE": str(self.place / name), "RAY_gcs_rpc_server_reconnect_timeout_s": "20"}
            words = [RAY, "start", *asked, *where, *common, str(own)]
            port = 6379 if machine == HEAD else None
            found.append(Service(name, self.wires, machine, words, folder=self.place, port=port, env=env))
        return found

    def _make_films(self, machine: int) -> list[Path]:
        from cluster_kills import make_videos

        folder = self.place / f"films-{machine}"
        folder.mkdir()
        make_videos(folder, FILMS, seed=machine)
        return [film.rename(folder / f"{machine}-{film.name}") for film in sorted(folder.iterdir())]

    def now(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self.begun

    def start(self) -> None:
        """Start all machines and make the library."""
        from momentseek.cluster.shards.making import make_elsewhere, make_shards

        threading.Thread(target=self.supervise, daemon=True).start()
        for name in ("store", "database", *(["head"] if self.cluster else [])):
            self.services[name].wait_for(300)
        encoder = None if self.cluster else "colours"
        make_elsewhere(LIBRARY, lambda into: make_shards(into, 2, **({"encoder": encoder} if encoder else {})))
        for service in self.services.values():
            service.start()
        for name, films in (("first", self.films[0]), ("second", self.films[1])):
            self.change(name, films[0], True, self._ask_agent)
        self.services["server"].wait_for(300)

    # What clients do

    def change(self, name: str, film: Path, there: bool, ask: Callable[[str, Path, bool], Any]) -> None:
        """Add or remove a film, and note the answer."""
        begun = self.now()
        answer = ask(name, film, there)
        outcome = "ok" if answer is not None and answer["ok"] else "unknown"
        said = "" if answer is None else str(answer.get("said", ""))
        if answer is not None and answer.get("fault"):
            self.wrong.append(f"{name}: {said}")
        self.changes.append(Change(("video", film.name), there, begun, self.now(), outcome, said))
        verb = "add" if there else "remove"
        self.counts[f"{verb}: {'acknowledged' if outcome == 'ok' else 'refused' if answer else 'no answer'}"] += 1

    def _ask_agent(self, name: str, film: Path, there: bool) -> Any:
        service = self.services[name]
        service.start()
        process = service.process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps({"film": str(film), "there": there}).encode() + b"\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())
        except (OSError, ValueError):
            process.wait()
            return None

    def write(self, name: str, films: list[Path], seed: int) -> None:
        """Add and remove a machine's films until told to stop."""
        dice = random.Random(seed)
        there = {film: film == films[0] for film in films}
        while not self.halt.is_set():
            film = dice.choice(films)
            there[film] = not there[film] or dice.random() < 0.2
            self.change(name, film, there[film], self._ask_agent)
            self.halt.wait(dice.uniform(0.0, 0.6))

    def ask_server(self, method: str, path: str, body: Any = None, allowed: Sequence[int] = ()) -> tuple[int, Any]:
        """An answer of the server; status 0 if there was none. Only 503 and what is allowed may refuse."""
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.api}{path}", data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as e:
            text = e.read().decode(errors="replace")
            if e.code not in (503, *allowed):
                self.wrong.append(f"the server answered {e.code} to {method} {path}: {text[:300]}")
            return e.code, text
        except (OSError, ValueError):
            return 0, None

    def search(self) -> None:
        """Search for everything until told to stop."""
        while not self.halt.is_set():
            begun = self.now()
            asked = urllib.parse.urlencode({"q": "red", "k": 100, "all": "true", "group": "video"})
            status, found = self.ask_server("GET", f"/search?{asked}")
            if status == 200:
                marked = not found["complete"]
                names = frozenset(hit["name"] for hit in found["hits"])
                self.looks.append(Look(names, begun, self.now(), marked))
            kind = {200: "marked as incomplete or old" if status == 200 and marked else "whole", 0: "no answer"}
            self.counts[f"search: {kind.get(status, f'refused ({status})')}"] += 1
            self.halt.wait(0.4)

    def judge(self, seed: int) -> None:
        """Judge moments until told to stop."""
        dice, candidates = random.Random(seed), []
        query = 0
        while not self.halt.is_set():
            if not query:
                status, made = self.ask_server("POST", "/judging/queries", {"text": "red", "depth": 10}, (409,))
                if status == 409:
                    status, made = self.ask_server("GET", "/judging/queries")
                    made = made["queries"][0] if status == 200 and made["queries"] else None
                if status in (200, 201) and made:
                    query, candidates = int(made["id"]), list(range(1, int(made["candidates"]) + 1))
            elif candidates:
                who, which, level = dice.choice(("ann", "bob")), dice.choice(candidates), dice.randrange(5)
                begun = self.now()
                body = {"query": query, "candidate": which, "annotator": who, "relevance": level}
                status, _ = self.ask_server("PUT", "/judging/judgements", body)
                if not 400 <= status < 500:
                    outcome = "ok" if status == 200 else "unknown"
                    self.changes.append(Change(("judgement", which, who), level, begun, self.now(), outcome))
                kind = {200: "acknowledged", 0: "no answer"}.get(status, f"refused ({status})")
                self.counts[f"judge: {kind}"] += 1
            self.halt.wait(dice.uniform(0.05, 0.3))

    # What happens to them

    def hurt(self) -> None:
        """Do one thing after another to a machine, or to two at a time."""
        names = sorted(self.services)
        while not self.halt.wait(self.dice.uniform(0.5, 3.0)):
            act = self.dice.choice(("kill", "stop", "cut"))
            victims = self.dice.sample(names, 1 if self.dice.random() < 0.75 else 2)
            seconds = self.dice.uniform(*(LONG if self.dice.random() < 0.12 and act != "kill" else SHORT))
            for name in victims:
                self.counts[f"{act}: {name.partition('-')[0]}"] += 1
                self.faults.append(f"{self.now():.1f} s: {act} {name} for {seconds:.1f} s")
                getattr(self.services[name], act)()
            self.halt.wait(seconds)
            for name in victims:
                self.mend(name, act)

    def mend(self, name: str, act: str) -> None:
        """Undo what was done to a machine."""
        {"kill": self.services[name].start, "stop": self.services[name].resume, "cut": self.services[name].join}[act]()

    def supervise(self) -> None:
        """Start services again that ended by themselves."""
        while not self.halt.wait(1.0):
            for service in self.services.values():
                gone = service.process is not None and service.process.poll() is not None
                if service.wanted and gone and service.name not in ("first", "second"):
                    self.counts[f"ended by itself: {service.name.partition('-')[0]}"] += 1
                    service.start()

    def play(self, seconds: float) -> None:
        """Let all of it happen for a while."""
        seeds = [self.dice.randrange(1 << 30) for _ in range(3)]
        work: list[Callable[[], None]] = [
            lambda: self.write("first", self.films[0], seeds[0]), lambda: self.write("second", self.films[1], seeds[1]),
            self.search, self.search, lambda: self.judge(seeds[2]), self.hurt,
        ]  # fmt: skip
        threads = [threading.Thread(target=self._noting_faults, args=(one,), daemon=True) for one in work]
        for thread in threads:
            thread.start()
        self.halt.wait(seconds)
        self.halt.set()
        for thread in threads[2:]:
            thread.join(60)
        for name, service in self.services.items():  # the last changes end, with everything whole
            self.mend(name, "stop")
            self.mend(name, "cut")
            service.start()
        for thread in threads[:2]:
            thread.join(240)
            if thread.is_alive():
                self.wrong.append("a change did not end within four minutes after everything was whole again")

    def _noting_faults(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception:
            self.wrong.append(f"a fault of the program itself: {traceback.format_exc()}")

    # What is left

    def check(self) -> None:
        """Read everything from a new machine, and compare it with what everybody was told."""
        from momentseek.api.library import open_store
        from momentseek.core.errors import MomentseekError
        from momentseek.server.database import DatabaseLocation
        from momentseek.server.judging.store import JudgementStore

        self.services["store"].wait_for()
        self.services["database"].wait_for()
        os.environ["MOMENTSEEK_CACHE"] = str(self.place / "new")
        with open_store(LIBRARY, wait=60.0) as store:
            videos = [video.name for video in store.videos()]
            self.wrong += [f"verify: {problem}" for problem in store.verify().problems]
        log: dict[Any, list[Any]] = {}
        last: dict[Any, Any] = {}
        for _ in range(60):  # PostgreSQL listens before it has recovered
            try:
                with JudgementStore(DatabaseLocation(self.place, self.database)) as judged:
                    for row, _ in judged.history():
                        log.setdefault(("judgement", row.candidate, row.annotator), []).append(row.relevance)
                    last = {("judgement", row.candidate, row.annotator): row.relevance for row in judged.judgements()}
                break
            except MomentseekError:
                time.sleep(1.0)
        history = History(self.changes, lingering=self.cluster)
        self.wrong += [f"{name} is there twice" for name, times in Counter(videos).items() if times > 1]
        self.wrong += check_end(history, set(videos), last) + check_log(self.changes, log)
        self.wrong += check_looks(history, self.looks, FRESH_SECONDS)
        for name in ("server", "first", "second"):
            text = self.services[name].log.read_text(errors="replace")
            if "Traceback (most recent call last)" in text:
                self.wrong.append(f"{name} left a traceback: …{text[-1500:]}")


def run_history(seed: int, seconds: float, cluster: bool, keep: bool) -> Scene:
    """One history; what it saw."""
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ms-", ignore_cleanup_errors=True)))
        place.chmod(0o755)
        wires = stack.enter_context(Wires(8 if cluster else 5))
        scene = Scene(seed, place, wires, cluster)
        try:
            scene.start()
            scene.play(seconds)
            scene.check()
        finally:
            for service in scene.services.values():
                service.kill()
            if keep and scene.wrong:
                shutil.copytree(
                    place, f"/tmp/history-{seed}", ignore=shutil.ignore_patterns("sockets"), dirs_exist_ok=True
                )
                seen = [*scene.changes, *scene.looks, *scene.faults]
                Path(f"/tmp/history-{seed}/history.txt").write_text("\n".join(map(str, seen)))
    return scene


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--seconds", type=float, default=60.0, help="how long things are done and fail")
    parser.add_argument("--cluster", action="store_true", help="with a Ray cluster")
    parser.add_argument("--keep", action="store_true", help="keep the logs of a history with something wrong in /tmp")
    parser.add_argument("--agent", nargs="?", const="", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.agent is not None:
        serve_agent(given.agent or None)
        return
    if not can_make_namespaces():
        sys.exit("network namespaces cannot be made here: be root, and have iproute2")
    if not POSTGRES:
        sys.exit("PostgreSQL is not installed (apt-get install postgresql)")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that nothing is left behind
    if not given.cluster:
        import light

        light.install()
    total: Counter[str] = Counter()
    wrong = 0
    for seed in given.seeds:
        scene = run_history(seed, given.seconds, given.cluster, given.keep)
        total += scene.counts
        wrong += bool(scene.wrong)
        print(f"seed {seed}: {len(scene.wrong)} wrong; {dict(sorted(scene.counts.items()))}", flush=True)
        for one in scene.wrong[:20]:
            print(f"  {one}", flush=True)
    for what, times in sorted(total.items()):
        print(f"{times:6,}  {what}")
    print(f"{len(given.seeds)} histories of {given.seconds:g} s, {wrong} with something wrong")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
