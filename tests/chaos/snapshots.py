"""Kills the process that takes a snapshot: one query, one export, one manifest for each request.

The real provider, by REST and the official client, against the BigQuery and the storage of a local
cloud. Each request dies once before and once after every call of a port, then at random moments.
The table grows between two attempts, and every other request reads it as of a time before it grew.
``python -m tests.chaos.snapshots`` is the process that forks those that are killed (see
``serving_process``).
"""

from __future__ import annotations

import os
import random
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from google.cloud import storage

from localgcp import lifecycle
from localgcp.home import Home
from localgcp.runner.gcsfuse import storage_client
from tests.chaos.arena import say_nothing
from tests.chaos.serving import Worker
from tests.chaos.serving_process import main
from tests.fixture_project import ROOT, source_path
from tests.unit.infra.snapshots.fakes import request
from tests.warehouse import Warehouse, install_engine
from vertex_training.customjob.google import intent_store, prerequisites
from vertex_training.customjob.request.job_file import canonical
from vertex_training.snapshots import google, provider
from vertex_training.snapshots import manifest as manifests
from vertex_training.snapshots.protocol import SnapshotPorts
from vertex_training.snapshots.request import MANIFEST, SnapshotRequest

#: What a process loads before it forks.
LOADED: Final = (intent_store, prerequisites)
BUCKETS: Final = ("data", "control")
TABLE: Final = "web.clicks"
#: Values that the table has at first, and those that each load adds.
FIRST, MORE = ("1", "2", "3"), ("4", "5")
SQL: Final = f"SELECT id FROM {TABLE}"
AS_OF: Final = f"{SQL} FOR SYSTEM_TIME AS OF @as_of"
#: Jobs of a request, by the ends of their ids, as far as it may have come.
STAGES: Final = ([], ["query-1"], ["export-1-1", "query-1"])
KILLS_IN_A_ROW: Final = 3


@dataclass
class Tally:
    """Results of a campaign."""

    seed: int
    kills: int = 0
    points: int = 0
    """Calls of ports at which a process died, before or after."""
    survived: int = 0
    requests: int = 0
    problems: list[str] = field(default_factory=list)


@dataclass
class Arena:
    """BigQuery, storage, and two processes that fork."""

    warehouse: Warehouse
    client: storage.Client
    workers: list[Worker]
    log: Path
    tally: Tally
    began: str
    """When the table had its first rows alone."""
    seen: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    """Manifests by request, as they were seen first."""

    def next_request(self) -> SnapshotRequest:
        """Return another request."""
        self.tally.requests += 1
        return self.requested(f"s{self.tally.requests}", "local")

    def requested(self, name: str, stack: str) -> SnapshotRequest:
        """Return a stack's request; every other request reads the table's first version."""
        moment = self.began if self.tally.requests % 2 else None
        return request(
            name=name, stack=stack, format="csv", parameters={}, as_of=moment,
            sql=AS_OF if moment else SQL,
        )  # fmt: skip

    def grow(self) -> None:
        """Start to add rows to the table, in parallel with all queries."""
        self.warehouse.send_load(TABLE, ("id", *MORE))

    def check(self, wanted: SnapshotRequest, *, done: bool) -> None:
        """Check that there is one query, one export, and a constant manifest."""
        found = _read(self.client, wanted)
        first = self.seen.setdefault(wanted.request_id, found) if found else None
        ran = self.warehouse.ran(wanted.request_id)
        stages = [id_.rpartition(f"{wanted.request_id}-")[2] for id_ in ran]
        wrong = [] if stages in STAGES else [f"ran {stages}"]
        if found != first:
            wrong.append("its manifest was written twice")
        if found:
            wrong += self._wrong_rows(wanted, manifests.parse(found[0]))
        if done and not (found and len(stages) == 2):
            wrong.append(f"not done: {stages}: {self.log.read_text()[-900:]}")
        self.tally.problems += [f"{wanted.name}: {each}" for each in wrong]

    def _wrong_rows(self, wanted: SnapshotRequest, manifest: dict[str, Any]) -> Iterator[str]:
        """Return problems of the manifest's objects and of their rows."""
        files = list(self.client.list_blobs(BUCKETS[0], prefix=f"{wanted.prefix}/export"))
        named = [each["generation"] for each in manifest["objects"]]
        if named != [str(blob.generation) for blob in files]:
            yield "its manifest names other objects than there are"
        values = [line for file in files for line in file.download_as_text().splitlines()[1:]]
        loads, rest = divmod(len(values) - len(FIRST), len(MORE))
        if rest or sorted(values) != sorted([*FIRST, *MORE * loads]):
            yield f"its rows were never those of the table: {values}"
        if manifest["rows"] != len(values) or (wanted.as_of and loads):
            yield f"{manifest['rows']} rows, as of {wanted.as_of}, in files {len(values)}"


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
    """Kill at every call up to ``points``, then at a number of random moments."""
    tally, chance = Tally(seed), random.Random(seed)
    with _arena(folder, tally) as arena:
        for call in range(1, points + 1):
            statuses = [_point(arena, call, when) for when in ("before", "after")]
            if signal.SIGKILL not in statuses:
                break
            arena.grow()
        if tally.kills >= kills:
            return tally
        began = time.monotonic()
        _round(arena, chance, 0, 0.0)
        usual = time.monotonic() - began
        while tally.kills < kills and not tally.problems:
            _round(arena, chance, KILLS_IN_A_ROW, usual)
    return tally


def race(folder: Path, seed: int, rounds: int) -> Tally:
    """Run two operators at once with the same stack file; both end, or one reports the other.

    A second team whose stack has a snapshot of the same key works beside them.
    """
    tally = Tally(seed)
    with _arena(folder, tally) as arena:
        for _ in range(rounds):
            wanted = arena.next_request()
            arena.grow()
            for worker in arena.workers:
                worker.start({"properties": _properties(wanted)})
            if all([worker.status() for worker in arena.workers]):
                tally.problems.append(f"{wanted.name}: neither was done: {arena.log.read_text()}")
            arena.check(wanted, done=True)
            theirs = arena.requested(wanted.name, "other")
            arena.workers[0].start({"properties": _properties(theirs)})
            arena.workers[0].status()
            arena.check(theirs, done=True)
    return tally


def _point(arena: Arena, call: int, when: str) -> int:
    """Kill one process at a call, run another one, and return how the first one ended."""
    wanted, worker = arena.next_request(), arena.workers[0]
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
    wanted, worker = arena.next_request(), arena.workers[0]
    given = {"properties": _properties(wanted)}
    for attempt in range(kills):
        pid = worker.start(given)
        # What one attempt began goes on in BigQuery: the next one has less to do.
        time.sleep(chance.uniform(0.0, usual / (attempt + 1)))
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        killed = worker.status() == signal.SIGKILL
        arena.tally.kills += killed
        arena.tally.survived += not killed
        arena.check(wanted, done=False)
        arena.grow()
    worker.start(given)
    worker.status()
    arena.check(wanted, done=True)


@contextmanager
def _arena(folder: Path, tally: Tally) -> Iterator[Arena]:
    install_engine()
    home = Home(folder / "home", ROOT)
    ports = lifecycle.start(home, say_nothing).ports
    env = {
        **os.environ,
        **home.environment(ports),
        "PYTHONPATH": source_path(ROOT),
        "CHAOS_LOG": str(folder / "work.log"),
    }
    client = storage_client(f"http://127.0.0.1:{ports.storage}")
    for bucket in BUCKETS:
        client.create_bucket(bucket)
    (folder / "work.log").touch()
    workers = [Worker(env, "snapshots"), Worker(env, "snapshots")]
    try:
        warehouse = Warehouse(ports, request().project)
        warehouse.make_dataset("web")
        warehouse.load(TABLE, ("id", *FIRST))
        began = datetime.now(UTC).isoformat()
        yield Arena(warehouse, client, workers, folder / "work.log", tally, began)
    finally:
        for worker in workers:
            worker.close()
        lifecycle.stop(home)


class _Deadly:
    """A port that counts calls, at one of which the process dies."""

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
    """Take the snapshot as the engine calls the provider. Return the exit code."""
    if dies_at := given.get("dies_at"):
        last, moments = 2 * dies_at[0] - (dies_at[1] == "before"), iter(range(1, 1_000_000))

        def die() -> None:
            if next(moments) == last:
                os.kill(os.getpid(), signal.SIGKILL)

        connect = google.connect

        def deadly(*arguments: Any) -> SnapshotPorts:
            made = connect(*arguments)
            deadly_ports: list[Any] = [
                _Deadly(port, die) for port in (made.warehouse, made.files, made.records)
            ]
            return SnapshotPorts(*deadly_ports)

        google.connect = deadly
    try:
        provider.SnapshotProvider().create(given["properties"])
    except Exception:
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    main(_work)
