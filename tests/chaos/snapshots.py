"""Kills of the process that takes a snapshot: one query, one export, one manifest a request.

The real provider, by REST and the official client, against a BigQuery over HTTP and the storage
emulator. Each request dies once before and once after every call of a port, then at random moments;
the tables change all the time. ``python -m tests.chaos.snapshots`` is the process that forks those
that are killed (see ``serving_process``).
"""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from google.cloud import storage

from localgcp.faults.proxy import StorageFront
from localgcp.faults.table import FaultTable
from localgcp.home import Home
from localgcp.runner.gcsfuse import storage_client
from localgcp.storage import StorageEmulator
from tests.chaos.serving import Worker
from tests.chaos.serving_process import main
from tests.fixture_project import ROOT, source_path
from tests.unit.infra.snapshots.fakes import Cloud, Process, request
from tests.unit.localcloud.conftest import free_port
from vertex_training.customjob.google import intent_store, prerequisites
from vertex_training.customjob.request.job_file import canonical
from vertex_training.snapshots import google, provider
from vertex_training.snapshots import manifest as manifests
from vertex_training.snapshots.protocol import Ports
from vertex_training.snapshots.request import MANIFEST, SnapshotRequest

#: What a process loads before it forks.
LOADED: Final = (intent_store, prerequisites)
BUCKETS: Final = ("data", "control")
SECONDS_OF_A_JOB: Final = 0.15
KILLS_IN_A_ROW: Final = 3


@dataclass
class Tally:
    """What a campaign came to."""

    seed: int
    kills: int = 0
    points: int = 0
    """Calls of ports at which a process died, before or after."""
    survived: int = 0
    requests: int = 0
    problems: list[str] = field(default_factory=list)


class HttpBigQuery(Cloud):
    """The BigQuery of the unit tests, over HTTP; its exports are objects of the emulator."""

    def __init__(self, client: storage.Client) -> None:
        super().__init__()
        self.now, self.takes = time.time(), SECONDS_OF_A_JOB
        self._bucket, self._lock = client.bucket(BUCKETS[0]), threading.Lock()
        self._process = Process(self, request())

    def put(self, name: str, content: bytes) -> int:
        blob = self._bucket.blob(name)
        blob.upload_from_string(content)
        return int(blob.generation or 0)

    def answer(self, path: str, body: Any) -> tuple[int, Any]:
        """Status and document of one call."""
        with self._lock:
            self.tick(time.time() - self.now)
            self.changed_at = self.now
            parts = path.partition("?")[0].split("/")
            if body is not None:
                found = self._process.insert(body["jobReference"]["jobId"], body["configuration"])
                return (200, found) if found else (409, {"error": {"message": "already exists"}})
            if parts[-2] == "jobs":
                found = self._process.job(parts[-1])
            else:
                found = self._process.table(
                    {"projectId": parts[4], "datasetId": parts[6], "tableId": parts[8]}
                )
            return (200, found) if found else (404, {"error": {"message": "not found"}})


def _handler(bigquery: HttpBigQuery) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _answer(self, body: Any = None) -> None:
            status, found = bigquery.answer(self.path, body)
            text = json.dumps(found).encode()
            with suppress(OSError):  # who asked was killed
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    return Handler


@dataclass
class Arena:
    """BigQuery, the emulator, and two processes that fork."""

    bigquery: HttpBigQuery
    client: storage.Client
    workers: list[Worker]
    log: Path
    tally: Tally
    seen: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    """Manifests by request, as they were seen first."""

    def check(self, wanted: SnapshotRequest, *, done: bool) -> None:
        """One query, one export, and a manifest that never changes."""
        found = _read(self.client, wanted)
        first = self.seen.setdefault(wanted.request_id, found) if found else None
        sent = [i for i, _ in self.bigquery.sent if wanted.request_id in i]
        stages = [id_.rpartition(f"{wanted.request_id}-")[2] for id_ in sent]
        wrong = [f"sent {stages}"] if stages != ["query-1", "export-1-1"][: len(stages)] else []
        if found != first:
            wrong.append("its manifest was written twice")
        if found:
            files = self.client.list_blobs(BUCKETS[0], prefix=f"{wanted.prefix}/export")
            there = {str(blob.generation) for blob in files}
            named = {each["generation"] for each in manifests.parse(found[0])["objects"]}
            wrong += ["its manifest names other objects than there are"] if named != there else []
        if done and not (found and len(stages) == 2):
            wrong.append(f"not done: {stages}: {self.log.read_text()[-900:]}")
        self.tally.problems += [f"{wanted.name}: {each}" for each in wrong]


def _read(client: storage.Client, wanted: SnapshotRequest) -> tuple[bytes, int] | None:
    blob = client.bucket(BUCKETS[0]).get_blob(f"{wanted.prefix}/{MANIFEST}")
    return (blob.download_as_bytes(), int(blob.generation or 0)) if blob else None


def _properties(wanted: SnapshotRequest) -> dict[str, Any]:
    content = {
        "sql": wanted.sql, "parameters": dict(wanted.parameters), "asOf": wanted.as_of,
        "location": wanted.location, "format": wanted.format,
    }  # fmt: skip
    return {
        "snapshot": {
            key: getattr(wanted, key) for key in ("project", "stack", "name", "run", "bucket")
        },
        "requestId": wanted.request_id,
        "request": canonical(content),
        "options": {
            "controlBucket": BUCKETS[1], "maxBytesBilled": str(wanted.max_bytes_billed),
        },
    }  # fmt: skip


def run(folder: Path, kills: int, seed: int, points: int = 1_000) -> Tally:
    """Die at every call, up to ``points``; then at so many random moments."""
    tally, chance = Tally(seed), random.Random(seed)
    with _arena(folder, tally) as arena:
        for call in range(1, points + 1):
            statuses = [_point(arena, call, when) for when in ("before", "after")]
            if signal.SIGKILL not in statuses:
                break
        began = time.monotonic()
        _round(arena, chance, 0, 0.0)
        usual = time.monotonic() - began
        while tally.kills < kills and not tally.problems:
            _round(arena, chance, KILLS_IN_A_ROW, usual)
    return tally


def race(folder: Path, seed: int, rounds: int) -> Tally:
    """Two operators at once with the same stack file; both end, or one says that the other works.

    A second team whose stack has a snapshot of the same key works beside them.
    """
    tally = Tally(seed)
    with _arena(folder, tally) as arena:
        for _ in range(rounds):
            wanted = _next(arena)
            for worker in arena.workers:
                worker.start({"properties": _properties(wanted)})
            if all([worker.status() for worker in arena.workers]):
                tally.problems.append(f"{wanted.name}: neither was done: {arena.log.read_text()}")
            arena.check(wanted, done=True)
            theirs = request(name=wanted.name, stack="other")
            arena.workers[0].start({"properties": _properties(theirs)})
            arena.workers[0].status()
            arena.check(theirs, done=True)
    return tally


def _next(arena: Arena) -> SnapshotRequest:
    arena.tally.requests += 1
    return request(name=f"s{arena.tally.requests}")


def _point(arena: Arena, call: int, when: str) -> int:
    """A process that dies at one call, and one that goes on; how the first one ended."""
    wanted, worker = _next(arena), arena.workers[0]
    given = {"properties": _properties(wanted)}
    worker.start({**given, "dies_at": [call, when]})
    status = worker.status()
    arena.tally.kills += status == signal.SIGKILL
    arena.tally.points += status == signal.SIGKILL
    arena.check(wanted, done=False)
    worker.start(given)
    worker.status()
    arena.check(wanted, done=True)
    return status


def _round(arena: Arena, chance: random.Random, kills: int, usual: float) -> None:
    wanted, worker = _next(arena), arena.workers[0]
    given = {"properties": _properties(wanted)}
    for _ in range(kills):
        pid = worker.start(given)
        time.sleep(chance.uniform(0.0, usual))
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        killed = worker.status() == signal.SIGKILL
        arena.tally.kills += killed
        arena.tally.survived += not killed
        arena.check(wanted, done=False)
    worker.start(given)
    worker.status()
    arena.check(wanted, done=True)


@contextmanager
def _arena(folder: Path, tally: Tally) -> Iterator[Arena]:
    home = Home(folder / "home", ROOT)
    home.create()
    front = StorageFront(
        StorageEmulator(home.storage, home.storage_log, home.children),
        FaultTable(home.faults), free_port,
    )  # fmt: skip
    front.start(free_port())
    client = storage_client(front.url)
    for bucket in BUCKETS:
        client.create_bucket(bucket)
    bigquery = HttpBigQuery(client)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(bigquery))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    env = {
        **os.environ,
        intent_store.EMULATOR: front.url,
        google.EMULATOR: f"http://127.0.0.1:{server.server_port}",
        "PYTHONPATH": source_path(ROOT),
        "CHAOS_LOG": str(folder / "work.log"),
    }
    (folder / "work.log").touch()
    workers = [Worker(env, "snapshots"), Worker(env, "snapshots")]
    try:
        yield Arena(bigquery, client, workers, folder / "work.log", tally)
    finally:
        for worker in workers:
            worker.close()
        server.shutdown()
        front.stop()


class _Deadly:
    """A port whose calls count, and one of which is the process's last."""

    def __init__(self, port: Any, die: Callable[[], None]) -> None:
        self._port, self._die = port, die

    def __getattr__(self, name: str) -> Any:
        def call(*given: Any) -> Any:
            self._die()
            answer = getattr(self._port, name)(*given)
            self._die()
            return answer

        return call


def _work(given: dict[str, Any]) -> int:
    """Take the snapshot, as the engine calls the provider. Returns the exit code."""
    if dies_at := given.get("dies_at"):
        last, moments = 2 * dies_at[0] - (dies_at[1] == "before"), iter(range(1, 1_000_000))

        def die() -> None:
            if next(moments) == last:
                os.kill(os.getpid(), signal.SIGKILL)

        connect = google.connect

        def deadly(*arguments: Any) -> Ports:
            made = connect(*arguments)
            deadly_ports: list[Any] = [
                _Deadly(port, die) for port in (made.warehouse, made.files, made.records)
            ]
            return Ports(*deadly_ports)

        google.connect = deadly
    try:
        provider.SnapshotProvider().create(given["properties"])
    except Exception:
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    main(_work)
