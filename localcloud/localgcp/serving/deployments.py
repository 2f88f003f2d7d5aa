"""Containers of DeployedModels: starts, checks, drains and ends them, and forwards requests.

There are as many replicas as ``minReplicaCount`` says: nothing is scaled by load.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from localgcp.apis.refusals import failed_precondition
from localgcp.errors import ServerStoppingError
from localgcp.home import Home
from localgcp.runner import environment
from localgcp.runner.environment import Folders
from localgcp.runner.gang.cluster import Replica as Member
from localgcp.runner.joblog import JobLog
from localgcp.runner.preparation import Preparation
from localgcp.runner.programs import CloudHost, Launch
from localgcp.serving.checks import replicas
from localgcp.serving.records import COPY
from localgcp.serving.replicas import HOST, Replica, Timing
from localgcp.system.processes import make_thread
from localgcp.system.root_directory import delete_folder, make_folder
from localgcp.vertex.collections import Body
from localgcp.vertex.records import JobRecord, JobState

#: Seconds within which a container must be healthy, unless the model sets another limit.
_DEPLOYMENT_TIMEOUT: Final = 1800.0
_POLL_SECONDS: Final = 0.05
_LOGS: Final = "Model server logs can be found at"


@dataclass(frozen=True)
class Host:
    """The local cloud's services that containers use."""

    cloud: CloudHost
    choose_port: Callable[[], int]
    timing: Timing = field(default_factory=Timing)


class Deployment:
    """One DeployedModel with its replicas."""

    def __init__(self, host: Host, endpoint: str, deployed: Body, version: Body) -> None:
        """``deployed`` and ``version`` are in the API's JSON form."""
        self.host, self.endpoint, self.deployed, self.version = host, endpoint, deployed, version
        number = endpoint.rpartition("/")[2]
        self.folder = host.cloud.home.serving / f"{number}-{deployed['id']}"
        self._replicas: list[Replica] = []
        self._changed = threading.Condition()
        self._closed = False

    @property
    def predict_route(self) -> str:
        """The path at which the model's containers accept predictions."""
        return self._route("predictRoute", ":predict")

    def _route(self, field: str, suffix: str = "") -> str:
        default = f"/v1/endpoints/{self.endpoint.rpartition('/')[2]}"
        default += f"/deployedModels/{self.deployed['id']}{suffix}"
        return self.version["containerSpec"].get(field) or default

    def scale(self, count: int) -> None:
        """Start missing replicas; drain and end surplus replicas."""
        with self._changed:
            spare = self._replicas[count:]
            for index in range(len(self._replicas), count):
                self._replicas.append(self._replica(index))
                self._replicas[-1].start()
        self._end(spare)

    def wait_healthy(self, wanted: int, stopping: threading.Event) -> None:
        """Return when ``wanted`` replicas are healthy.

        Raises ApiError if one of them ends before, or if it takes too long.
        """
        text = self.version["containerSpec"].get("deploymentTimeout")
        seconds = float(text.removesuffix("s")) if text else _DEPLOYMENT_TIMEOUT
        deadline = time.monotonic() + seconds
        while self.available < wanted and not stopping.is_set():
            for replica in self._replicas[:]:
                if replica.failure:
                    what = f"Model server exited unexpectedly: {replica.failure}."
                    raise failed_precondition(f"{what} {_LOGS} {replica.log.path}.")
            if time.monotonic() > deadline:
                what = "Model server never became ready. Please validate that your model file or"
                logs = f"{_LOGS} {self._replicas[0].log.path}."
                raise failed_precondition(f"{what} container configuration are valid. {logs}")
            stopping.wait(_POLL_SECONDS)

    @property
    def available(self) -> int:
        """Return the number of healthy replicas."""
        return sum(replica.healthy for replica in self._replicas[:])

    @contextmanager
    def replica(self) -> Iterator[Replica | None]:
        """Reserve the healthy replica with the fewest requests; None if no replica is healthy."""
        with self._changed:
            able = [
                candidate for candidate in self._replicas if candidate.healthy and not self._closed
            ]
            least_busy = min(able, key=lambda candidate: candidate.busy, default=None)
            if least_busy is not None:
                least_busy.busy += 1
        try:
            yield least_busy
        finally:
            if least_busy is not None:
                with self._changed:
                    least_busy.busy -= 1
                    self._changed.notify_all()

    @property
    def closed(self) -> bool:
        """Return whether the model is undeployed and accepts no more requests."""
        return self._closed

    def close(self, *, drain: bool) -> None:
        """Refuse new requests and end all replicas; ``drain`` first waits for answers."""
        with self._changed:
            self._closed = True
        self._end(self._replicas[:], drain=drain)
        delete_folder(self.folder)

    def _end(self, spare: list[Replica], *, drain: bool = True) -> None:
        with self._changed:
            self._replicas = [replica for replica in self._replicas if replica not in spare]
            if drain:
                self._changed.wait_for(
                    lambda: not any(replica.busy for replica in spare), self.host.timing.drain
                )
        for replica in spare:
            replica.stopped.set()  # all at once: each may take seconds
        for replica in spare:
            replica.stop()

    def _replica(self, index: int) -> Replica:
        base = self.folder / str(index)
        folders = Folders(work=base / "work", tmp=base / "tmp", gcs=base / "gcs")
        for folder in (folders.work, folders.tmp, folders.gcs):
            make_folder(folder)
        log = JobLog(log_path(self.host.cloud.home, self.endpoint, self.deployed["id"], index))
        stopped = threading.Event()

        @contextmanager
        def launch(port: int) -> Iterator[Launch]:
            preparation = self._preparation(folders, log, stopped)
            member = Member(0, index, {"containerSpec": self.version["containerSpec"]})
            program = preparation.program(member, folders, alone=False)
            service = self._variables(port)
            user = environment.user_variables(member.task, service, program.gcs)
            service |= environment.api_variables(self.host.cloud.api_url)
            with closing(program):
                yield program.launch(service, user)

        made = Replica(
            launch,
            self.host.choose_port,
            health_route=self._route("healthRoute"),
            work=folders.work,
            log=log,
            notes=self.host.cloud.home.children,
            account=self.deployed.get("serviceAccount", ""),
            timing=self.host.timing,
        )
        made.stopped = stopped
        return made

    def _preparation(self, folders: Folders, log: JobLog, stopped: threading.Event) -> Preparation:
        container = self.version["containerSpec"]
        project, region, _ = self.endpoint.split("/")[1::2]
        spec = {"workerPoolSpecs": [{"containerSpec": container}]}
        request = {"displayName": self.deployed.get("displayName", ""), "jobSpec": spec}
        record = JobRecord.new(project, region, request, JobState.RUNNING)
        return Preparation(
            record,
            self.host.cloud,
            folder=folders.work.parent,
            tmp=folders.tmp,
            log=log,
            own_mount=False,
            cancelled=stopped,
        )

    def _variables(self, port: int) -> dict[str, str]:
        """Return the service's variables (doc:predictions/custom-container-requirements)."""
        machine = self.deployed["dedicatedResources"]["machineSpec"]
        return {
            "AIP_HTTP_PORT": str(port),
            "AIP_HEALTH_ROUTE": self._route("healthRoute"),
            "AIP_PREDICT_ROUTE": self.predict_route,
            "AIP_STORAGE_URI": self.version.get(COPY, ""),
            "AIP_ENDPOINT_ID": self.endpoint.rpartition("/")[2],
            "AIP_DEPLOYED_MODEL_ID": self.deployed["id"],
            "AIP_MACHINE_TYPE": machine["machineType"],
            "AIP_ACCELERATOR_TYPE": machine.get("acceleratorType", ""),
            "AIP_PROJECT_NUMBER": self.endpoint.split("/")[1],
            "AIP_FRAMEWORK": "CUSTOM_CONTAINER",
            "AIP_MODE": "PREDICTION",
            # No variable of the service: its machines are not reached by others, this one may be.
            "VERTEX_JOB_HOST": HOST,
        }


class Deployments:
    """All DeployedModels of one server with containers."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self._lock = threading.Lock()
        self._found: dict[tuple[str, str], Deployment] = {}
        self._stopped = False

    def get(self, endpoint: str, id_: str) -> Deployment | None:
        """Return the containers of a DeployedModel, or None."""
        with self._lock:
            return self._found.get((endpoint, id_))

    def start(self, endpoint: str, deployed: Body, version: Body) -> Deployment:
        """Start the containers of a DeployedModel; requests may be sent to the model at once."""
        made = Deployment(self.host, endpoint, deployed, version)
        with self._lock:
            if self._stopped:
                raise ServerStoppingError
            self._found[endpoint, deployed["id"]] = made
        made.scale(replicas(deployed["dedicatedResources"]))
        return made

    def end(self, endpoint: str, id_: str, *, drain: bool = True) -> None:
        """End the containers of a DeployedModel, if it has containers."""
        deployment = self.get(endpoint, id_)
        if deployment is not None:
            deployment.close(drain=drain)  # ``stop`` ends it, too, should that come in between
            with self._lock:
                self._found.pop((endpoint, id_), None)

    def stop(self) -> None:
        """End all containers."""
        with self._lock:
            self._stopped, keys = True, list(self._found)
        ends = [make_thread(partial(self.end, *thread, drain=False)) for thread in keys]
        for thread in ends:
            thread.start()
        for thread in ends:
            thread.join()


def log_path(home: Home, endpoint: str, id_: str, index: int) -> Path:
    """Return the log path of a replica of a DeployedModel; the log remains after the
    replica's end.
    """
    number = endpoint.rpartition("/")[2]
    return home.serving / "logs" / number / f"{id_}-{index}.log"
