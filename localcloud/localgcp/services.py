"""All services of the server except object storage."""

from __future__ import annotations

import threading
from functools import partial
from typing import Final

from localgcp.alerting import Alerting
from localgcp.apis.server import serve
from localgcp.batch.service import Batch, BatchService
from localgcp.bigquery.service import BigQuery
from localgcp.cloudbuild.service import CloudBuild
from localgcp.containers.front import RegistryFront
from localgcp.containers.host import ContainerHost
from localgcp.containers.registry import Registry, find_program
from localgcp.faults.calls import CallFaults
from localgcp.faults.table import FaultTable
from localgcp.home import Home, Ports
from localgcp.home.servers import choose_port, listen
from localgcp.inventory.store import Store
from localgcp.reads.projects import ProjectService
from localgcp.reads.secretmanager import SecretService
from localgcp.reads.serving import Reads
from localgcp.runner.job import JobHost, LocalScheduler
from localgcp.runner.programs import CloudHost
from localgcp.serving.deployments import Host
from localgcp.serving.endpoints import EndpointService
from localgcp.serving.models import ModelService
from localgcp.serving.service import PredictionService, Serving
from localgcp.storage.proxy import StorageFront
from localgcp.tuning.service import Tuning, TuningService
from localgcp.vertex.collections import ResourceTable
from localgcp.vertex.log_entries import LogService
from localgcp.vertex.records import JobRecord, JobTable
from localgcp.vertex.service import JobService, PipelineService, TensorboardService

#: Services over gRPC.
SERVICES: Final = (
    *(JobService, TuningService, PipelineService, TensorboardService, ProjectService, LogService),
    *(SecretService, CloudBuild, BatchService, ModelService, EndpointService, PredictionService),
)


class Services:
    """All services except storage. If ``start`` fails, the registry may still run."""

    def __init__(
        self, home: Home, storage: StorageFront, before: Ports | None, stopping: threading.Event
    ) -> None:
        # ``before`` has the ports of the previous server.
        self._home, self._storage, self._stopping = home, storage, stopping
        self._faults, self._store = FaultTable(home.faults), Store(home.database)
        self._jobs, self._tuning = JobTable(home.database), Tuning(home)
        # The scheduler needs the port before the server is ready.
        self._listener = listen(before.vertex if before else 0, "vertex")
        self._url = "http://{}:{}/".format(*self._listener.getsockname())
        port = before.registry if before else 0

        def find_registry() -> Registry | None:
            if (program := find_program()) is None:
                return None
            return Registry(program, home.registry, home.registry_log, home.children)

        free_port = partial(choose_port, port, "registry")
        self.registry = RegistryFront(find_registry, self._store, free_port)

    def start(self) -> int:
        """Start all services, resume an earlier server's jobs, and return the port of the APIs."""
        home, store, jobs, tuning = self._home, self._store, self._jobs, self._tuning
        faults, storage = self._faults, self._storage.url
        self.registry.start()
        if not self.registry.port:
            print("no container registry: run `make containers` to install a registry")
        self.containers = containers = ContainerHost(home, self.registry.port)
        containers.start()
        cloud = CloudHost(home, store, containers, storage, self._url)
        host = JobHost(cloud, jobs, faults, tuning.trial_id)
        scheduler = LocalScheduler(jobs, host.make_run, is_trial=tuning.is_trial)
        scheduler.start()
        images = self.registry
        builds = CloudBuild(home, store, storage, lambda: home.image_environment(images.port))
        service = JobService(store, jobs, scheduler, containers.refusal)
        bigquery = BigQuery(home, store, faults, storage)
        bigquery.jobs.start()
        reads = Reads(store, faults, self._stopping, bigquery)
        self._storage.policies = reads.answer
        models = Host(cloud, lambda: choose_port(0, "a model"))
        serving = Serving(service, ResourceTable(home.database), models, faults)
        batch = Batch(cloud, faults)
        batch.scheduler.start()
        logs = LogService(home, store, jobs, builds.entries() | batch.entries(), tuning)
        apis = [
            service,
            tuning.start(service),
            PipelineService(service),
            TensorboardService(service),
            ProjectService(store, reads.answer),
            logs,
            SecretService(home, store),
            *(builds, batch.service, *serving.services),
        ]
        hooks = [CallFaults(faults, jobs, self._stopping, tuning.table)]
        self._server = serve(apis, self._listener, hooks, home.sockets, reads.answer)
        containers.wait_ready()
        serving.start()

        def all_jobs() -> list[JobRecord]:
            return [*jobs.list(), *tuning.table.list()]

        alerting = Alerting(home, store, all_jobs, tuning.is_trial, logs.matching)
        alerting.start()
        ended_in_order = (serving, tuning, scheduler, batch.scheduler, builds, bigquery.jobs)
        self._parts = (*ended_in_order, alerting)
        return self._server.port

    def stop(self) -> None:
        """Stop accepting calls, then end all running work."""
        self._server.stop(1.0).wait()
        for part in self._parts:
            part.stop()
