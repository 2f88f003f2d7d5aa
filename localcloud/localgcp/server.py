"""The local cloud's one server process: object storage, the job service and the runner.

``python -m localgcp.server --home DIR --repo DIR`` runs until SIGTERM. Its lock
file is held as long as it lives, and ``server.json`` is there while it is ready.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import secrets
import signal
import socket
import sys
import threading
import time
import traceback
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from localgcp.access.callers import can_check
from localgcp.containers.registry import Registry, find_program
from localgcp.errors import LocalCloudError
from localgcp.faults.proxy import StorageFront
from localgcp.faults.table import FaultTable
from localgcp.home import PRIVATE_UMASK, Home, open_private
from localgcp.home.server_info import ServerInfo
from localgcp.inventory.store import Store
from localgcp.storage.emulator import StorageEmulator
from localgcp.system import processes
from localgcp.system.folders import delete_folder

if TYPE_CHECKING:
    from localgcp.alerting.evaluation import Alerting
    from localgcp.batch.service import Batch
    from localgcp.bigquery.service import BigQuery
    from localgcp.containers.front import RegistryFront
    from localgcp.containers.host import ContainerHost
    from localgcp.inventory.store import Store
    from localgcp.reads.serving import Reads
    from localgcp.runner.scheduler import LocalScheduler
    from localgcp.serving.service import Serving
    from localgcp.tuning.service import Tuning
    from localgcp.vertex.log_entries import LogService
    from localgcp.vertex.records import JobTable
    from localgcp.vertex.service import JobService

_LOCK_SECONDS: Final = 3.0
#: Below the ports of outgoing connections (Linux: from 32768, others from 49152), and below those
#: at which replicas of a job meet (torch: 29500; ``vertex_job``: above it).
_LOWEST_PORT: Final = 20_000
_PORTS: Final = 9_000
_ATTEMPTS: Final = 20
_WATCH_SECONDS: Final = 0.5
_STOP_GRACE_SECONDS: Final = 1.0


def listen(wanted: int, service: str) -> socket.socket:
    """Listen at ``wanted`` (0: none) if it is free, so that open shells go on; else at any port.

    Chosen are ports that no system gives to outgoing connections: one that is kept for the next
    start must not be another program's by then. Raises LocalCloudError if there is none.
    """
    chosen = (_LOWEST_PORT + secrets.randbelow(_PORTS) for _ in range(_ATTEMPTS))
    for port in (*((wanted,) if wanted else ()), *chosen, 0):
        try:
            return socket.create_server(("127.0.0.1", port))
        except OSError:
            if port == wanted:
                print(f"port {port} of {service} is taken by another program; choosing another")
    raise LocalCloudError(f"no free port on 127.0.0.1 for {service}.")


def choose_port(wanted: int, service: str) -> int:
    """A port as ``listen`` finds it, for a server that opens it itself, and at once."""
    with listen(wanted, service) as listener:
        return listener.getsockname()[1]


def run(home: Home) -> None:
    """Serve until SIGTERM or SIGINT. Raises LocalCloudError if the server cannot start."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    lock = _lock(home)
    # First of all: a command that finds the lock held would take the dead server's id for ours.
    before = ServerInfo.read(home.server_file)
    home.server_file.unlink(missing_ok=True)
    for child in processes.end_orphaned_children(home.children):
        print(f"ended process {child.pid} ({child.role}), left behind by a killed server")
    for folder in (home.jobs, home.batch, home.serving, home.bigquery):
        processes.end_below(folder)
    for sockets in home.sockets.glob("vertex-*"):
        delete_folder(sockets)
    faults = FaultTable(home.faults)
    faults.forget_held()
    emulator = StorageEmulator(home.storage, home.storage_log, home.children, private=True)
    storage = StorageFront(emulator, faults, lambda: choose_port(0, "storage"))
    try:
        storage.start(choose_port(before.storage_port if before else 0, "storage"))
        _serve(home, storage, faults, before, lock, stop)
        print("stopped")
    finally:
        storage.stop()
        lock.close()


def _serve(
    home: Home,
    storage: StorageFront,
    faults: FaultTable,
    before: ServerInfo | None,
    lock: IO[Any],
    stop: threading.Event,
) -> None:
    # Google's library takes more than a second to import: only here, and after storage began.
    from localgcp.apis.server import serve
    from localgcp.cloudbuild.service import CloudBuild
    from localgcp.experiments.metadata import MetadataService
    from localgcp.experiments.records import ExperimentTable
    from localgcp.experiments.tensorboards import TensorboardService
    from localgcp.faults.calls import CallFaults
    from localgcp.reads.projects import ProjectService
    from localgcp.reads.secretmanager import SecretService
    from localgcp.reads.serving import Reads
    from localgcp.tuning.service import Tuning
    from localgcp.vertex.log_entries import LogService
    from localgcp.vertex.pipelines import PipelineService, PipelineTable
    from localgcp.vertex.records import JobTable
    from localgcp.vertex.service import JobService

    store, jobs, tuning = Store(home.database), JobTable(home.database), Tuning(home)
    # Held from here on: the scheduler knows the port seconds before it is served.
    listener = listen(before.vertex_port if before else 0, "vertex")
    registry = _registry(home, store, before.registry_port if before else 0)
    try:
        containers = _containers(home, registry)
        scheduler = _scheduler(home, storage, faults, store, jobs, containers, tuning, listener)
        scheduler.start()
        builds = CloudBuild(home, store, storage.url, lambda: home.image_environment(registry.port))
        service = JobService(store, jobs, scheduler, containers.refusal)
        reads = Reads(store, faults, stop, bigquery := _bigquery(home, store, faults, storage))
        serving = _serving(home, storage, faults, service, containers, listener)
        batch = _batch(home, store, containers, faults, storage, listener, reads)
        apis = [
            service,
            tuning.start(service),
            PipelineService(service, PipelineTable(home.database)),
            MetadataService(service, ExperimentTable(home.database)),
            TensorboardService(service, ExperimentTable(home.database)),
            ProjectService(store, reads.answer),
            logs := LogService(home, store, jobs, builds.entries() | batch.entries(), tuning),
            SecretService(home, store),
            *(builds, batch.service, *serving.services),
        ]
        hooks = [CallFaults(faults, jobs, stop, tuning.table)]
        server = serve(apis, listener, hooks, home.sockets, reads.answer)
        containers.wait_ready()
        serving.start()
        alerting = _alerting(home, store, jobs, tuning, logs)
        _live(home, storage, registry, containers, server.port, lock, stop)
        server.stop(_STOP_GRACE_SECONDS).wait()
        for part in (serving, tuning, scheduler, batch.scheduler, builds, bigquery.jobs, alerting):
            part.stop()
    finally:
        registry.stop()


def _alerting(
    home: Home, store: Store, jobs: JobTable, tuning: Tuning, logs: LogService
) -> Alerting:
    """What looks at jobs that ended, those of an earlier server among them."""
    from localgcp.alerting.evaluation import Alerting

    found = Alerting(
        home,
        store,
        lambda: [*jobs.list(), *tuning.table.list()],
        tuning.is_trial,
        logs.matching,
    )
    found.start()
    return found


def _containers(home: Home, registry: RegistryFront) -> ContainerHost:
    """The registry started, and what runs containers, without those of a killed server."""
    from localgcp.containers.host import ContainerHost

    registry.start()
    if not registry.port:
        print("no container registry: `make containers` installs one")
    containers = ContainerHost(home, registry.port)
    containers.start()
    return containers


def _registry(home: Home, store: Store, port: int) -> RegistryFront:
    """The container registry; it serves nothing while its program is not installed."""
    from localgcp.containers.front import RegistryFront

    def find() -> Registry | None:
        program = find_program()
        if program is None:
            return None
        return Registry(program, home.registry, home.registry_log, home.children)

    return RegistryFront(find, store, lambda: choose_port(port, "registry"))


def _bigquery(home: Home, store: Store, faults: FaultTable, storage: StorageFront) -> BigQuery:
    """BigQuery, which goes on with the jobs of an earlier server."""
    from localgcp.bigquery.service import BigQuery

    found = BigQuery(home, store, faults, storage.url)
    found.jobs.start()
    return found


def _batch(
    home: Home,
    store: Store,
    containers: ContainerHost,
    faults: FaultTable,
    storage: StorageFront,
    listener: socket.socket,
    reads: Reads,
) -> Batch:
    """Batch, which goes on with the jobs of an earlier server."""
    from localgcp.batch.service import Batch

    url = _api_url(listener)
    found = Batch(home, store, containers, faults, storage.url, url, reads.answer)
    found.scheduler.start()
    return found


def _serving(
    home: Home,
    storage: StorageFront,
    faults: FaultTable,
    jobs: JobService,
    containers: ContainerHost,
    listener: socket.socket,
) -> Serving:
    """Models and endpoints; their containers do not run yet."""
    from localgcp.experiments.records import ExperimentTable
    from localgcp.serving.deployments import Host
    from localgcp.serving.service import Serving

    url = _api_url(listener)
    host = Host(home, containers, storage.url, url, lambda: choose_port(0, "a model"))
    return Serving(jobs, ExperimentTable(home.database), host, faults)


def _api_url(listener: socket.socket) -> str:
    return "http://{}:{}/".format(*listener.getsockname())


def _scheduler(
    home: Home,
    storage: StorageFront,
    faults: FaultTable,
    store: Store,
    jobs: JobTable,
    containers: ContainerHost,
    tuning: Tuning,
    listener: socket.socket,
) -> LocalScheduler:
    from localgcp.faults.jobs import JobFaults
    from localgcp.runner.job import JobRun
    from localgcp.runner.scheduler import LocalScheduler

    api_url = _api_url(listener)

    def make_run(
        job_id: str, cancelled: threading.Event, stopping: threading.Event
    ) -> JobRun | None:
        record = jobs.get(job_id)
        return record and JobRun(
            record,
            home=home,
            store=store,
            jobs=jobs,
            storage_url=storage.url,
            api_url=api_url,
            faults=JobFaults(faults),
            containers=containers,
            cancelled=cancelled,
            stopping=stopping,
            trial=tuning.trial_id(job_id),
        )

    return LocalScheduler(jobs, make_run, is_trial=tuning.is_trial)


def _live(
    home: Home,
    storage: StorageFront,
    registry: RegistryFront,
    containers: ContainerHost,
    port: int,
    lock: IO[Any],
    stop: threading.Event,
) -> None:
    """Be found, and look after storage and registry, until the end."""
    started = time.strftime("%Y-%m-%dT%H:%M:%S%z")
    warnings = _warnings(storage)
    info = ServerInfo(os.getpid(), port, storage.port, started, registry.port, warnings)
    info.write(home.server_file)
    print(f"ready: vertex 127.0.0.1:{port}, storage {storage.url}")
    while not stop.wait(_WATCH_SECONDS) and _is_ours(lock, home):
        if ServerInfo.read(home.server_file) != info:
            info.write(home.server_file)  # damaged by hand: only this process knows its contents
        storage.reconcile()
        registry.reconcile()
        containers.reconcile(registry.port)
        info = replace(info, registry_port=registry.port)
    if _is_ours(lock, home):
        home.server_file.unlink(missing_ok=True)


def _warnings(storage: StorageFront) -> tuple[str, ...]:
    """What keeps other users out elsewhere and cannot be done on this system."""
    found: list[str] = []
    if not can_check():
        found.append("this system does not report who owns a connection: other users get in")
    if storage.refusal:
        found.append(
            "the storage emulator is within reach of this machine's other users: "
            f"it gets no network of its own ({storage.refusal})"
        )
    return tuple(found)


def _lock(home: Home) -> IO[Any]:
    """Hold the server lock. Raises LocalCloudError if another server does."""
    lock = open_private(home.server_lock, "a")
    deadline = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock
        except BlockingIOError:
            # A command that asks whether a server runs holds the lock for an instant.
            if time.monotonic() > deadline:
                raise LocalCloudError(f"another server already runs in {home.root}.") from None
            time.sleep(0.02)


def _is_ours(lock: IO[Any], home: Home) -> bool:
    """Whether this server's lock is still in the folder.

    If not, the folder was removed (``rm -rf``, ``git clean``) with all state.

    Nobody could find this server any more, and another may already run in a folder of that name.
    """
    try:
        return os.path.samestat(os.fstat(lock.fileno()), home.server_lock.stat())
    except FileNotFoundError:
        return False


def main() -> int:
    """Exit code 1 and a line ``error: …`` if the server cannot start."""
    parser = argparse.ArgumentParser(prog="python -m localgcp.server")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--repo", type=Path, required=True)
    options = parser.parse_args()
    os.umask(PRIVATE_UMASK)
    sys.stdout.reconfigure(line_buffering=True)  # pyright: ignore[reportAttributeAccessIssue]
    try:
        run(Home(options.home, options.repo))
    except LocalCloudError as error:
        print(f"error: {error}")
        return 1
    except Exception as error:
        traceback.print_exc()
        print(f"error: {type(error).__name__}: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
