"""Starts, checks, drains and ends the containers of DeployedModels, and forwards requests.

A container is healthy while ``GET`` of its health route returns 200 within 10 s; after three more
failures it gets no requests (doc:predictions/custom-container-requirements). Load scales nothing.
"""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from localgcp.apis.server import failed_precondition
from localgcp.errors import (
    ContainerDownError,
    JobCancelledError,
    NoAnswerError,
    ServerStoppingError,
    StandInError,
)
from localgcp.home import Home
from localgcp.runner import environment, replica
from localgcp.runner.environment import Folders
from localgcp.runner.hosts import Replica as Member
from localgcp.runner.preparation import Preparation
from localgcp.runner.programs import CloudHost, Program
from localgcp.runner.replica import Launch
from localgcp.serving.checks import replicas
from localgcp.serving.records import COPY
from localgcp.system.processes import make_thread
from localgcp.system.root_directory import delete_folder, make_folder
from localgcp.vertex.collections import Body
from localgcp.vertex.job_logs import JobLog
from localgcp.vertex.records import JobRecord, JobState

#: Host at which the containers listen.
HOST: Final = "127.0.0.1"


@dataclass(frozen=True)
class Timing:
    """Durations in seconds; tests use shorter durations than the service."""

    health: float = 10.0
    """Interval of a container's health checks, and time limit of each check."""
    tries: int = 3
    """Number of health checks after the first failed check."""
    startup: float = 0.1
    """Interval of the checks of a container that has not been healthy since its start."""
    restart: float = 2.0
    """Delay before an ended container is restarted."""
    drain: float = 60.0
    """Time limit of requests in progress before a container is ended."""


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes


class Replica:
    """A container process of a deployment, with a port."""

    def __init__(self, deployment: Deployment, index: int) -> None:
        self._deployment, self._index = deployment, index
        self._timing = deployment.host.timing
        base = deployment.folder / str(index)
        self._folders = Folders(work=base / "work", tmp=base / "tmp", gcs=base / "gcs")
        for folder in (self._folders.work, self._folders.tmp, self._folders.gcs):
            make_folder(folder)
        place = (deployment.host.cloud.home, deployment.endpoint, deployment.deployed["id"])
        self.log = JobLog(log_path(*place, index))
        self.port = 0
        self.healthy = False
        self.failure = ""
        """The reason why the container does not run, if it ended or could not be started."""
        self._runs = False
        """True while the container's process runs; else the port may be another program's."""
        self.busy = 0
        """Number of requests in progress."""
        self.stopped = threading.Event()
        self._threads = [make_thread(self._run), make_thread(self._watch)]

    def start(self) -> None:
        """Start the process; ``healthy`` becomes true after a health check."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End the process and wait for its end; a second call has no effect."""
        self.healthy = False
        self.stopped.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join()

    def _run(self) -> None:
        while not self.stopped.is_set():
            self.failure = self._run_once()
            self._runs = self.healthy = False
            if not self.stopped.is_set():
                self.log.append(self.failure)
                self.stopped.wait(self._timing.restart)

    def _run_once(self) -> str:
        deployment = self._deployment
        try:
            port = deployment.host.choose_port()
            with closing(self._program()) as program:
                launch = self._launch(program, port)
                self.port, self._runs = port, True
                outcome = replica.run(
                    launch,
                    cwd=self._folders.work,
                    log=self.log,
                    notes=deployment.host.cloud.home.children,
                    cancelled=self.stopped,
                    account=deployment.deployed.get("serviceAccount", ""),
                )
        except JobCancelledError:
            return "stopped"
        except (StandInError, OSError, ValueError) as error:
            return f"cannot start the container: {error}"
        ended_by = replica.signal_name(outcome.code)
        return f"the container ended with exit code {outcome.code} {ended_by}".rstrip()

    def _program(self) -> Program:
        deployment, pool = self._deployment, {"containerSpec": self._deployment.container}
        project, region, _ = deployment.endpoint.split("/")[1::2]
        name = deployment.deployed.get("displayName", "")
        request = {"displayName": name, "jobSpec": {"workerPoolSpecs": [pool]}}
        preparation = Preparation(
            JobRecord.new(project, region, request, JobState.RUNNING),
            deployment.host.cloud,
            folder=self._folders.work.parent,
            tmp=self._folders.tmp,
            log=self.log,
            own_mount=False,
            cancelled=self.stopped,
        )
        return preparation.program(Member(0, self._index, pool), self._folders, alone=False)

    def _launch(self, program: Program, port: int) -> Launch:
        service = self._deployment.variables(port)
        user = environment.user_variables(self._deployment.container, service, program.gcs)
        service |= environment.api_variables(self._deployment.host.cloud.api_url)
        return program.launch(service, user)

    def _watch(self) -> None:
        failed, seen = 0, 0
        timing = self._timing
        while not self.stopped.wait(timing.health if seen == self.port else timing.startup):
            was, port = self.healthy, self.port
            if self._is_well():
                failed, seen, self.failure = 0, port, ""
                self.healthy = self._runs and not self.stopped.is_set()
            else:
                failed += 1
                self.healthy = was and self._runs and failed <= timing.tries
            if was is not self.healthy and not self.stopped.is_set():
                unhealthy = "unhealthy: the replica receives no requests"
                self.log.append("healthy" if self.healthy else unhealthy)
            self.log.stamp()

    def _is_well(self) -> bool:
        if not self._runs:
            return False
        with suppress(ContainerDownError, NoAnswerError):
            route = self._deployment.health_route
            answer = self.ask("GET", route, seconds=self._timing.health)
            return self._runs and answer.status == 200
        return False

    def ask(self, verb: str, route: str, body: bytes = b"", *, seconds: float) -> Answer:
        """Send a request and return the answer. Raises ContainerDownError or NoAnswerError."""
        connection = http.client.HTTPConnection(HOST, self.port, timeout=seconds)
        headers = {"Content-Type": "application/json"} if body else {}
        try:
            try:
                connection.connect()
            except OSError as error:
                raise ContainerDownError(str(error)) from None
            connection.request(verb, route, body, headers)
            response = connection.getresponse()
            return Answer(response.status, response.read())
        except (http.client.HTTPException, OSError) as error:
            raise NoAnswerError(f"{type(error).__name__} {error}".rstrip()) from None
        finally:
            connection.close()


#: Seconds within which a container must be healthy, unless the model sets another limit.
_DEPLOYMENT_TIMEOUT: Final = 1800.0
_POLL_SECONDS: Final = 0.05
_LOGS: Final = "Model server logs can be found at"


@dataclass(frozen=True)
class Host:
    """Services of the local cloud that containers of models use."""

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
        self.closed = False
        """True if the model is undeployed and accepts no more requests."""

    @property
    def predict_route(self) -> str:
        """The path at which the model's containers accept predictions."""
        return self._route("predictRoute", ":predict")

    @property
    def health_route(self) -> str:
        """The path of the health checks."""
        return self._route("healthRoute")

    @property
    def container(self) -> Body:
        """The ``containerSpec`` of the model's version."""
        return self.version["containerSpec"]

    def _route(self, field: str, suffix: str = "") -> str:
        default = f"/v1/endpoints/{self.endpoint.rpartition('/')[2]}"
        default += f"/deployedModels/{self.deployed['id']}{suffix}"
        return self.container.get(field) or default

    def scale(self, count: int) -> None:
        """Start missing replicas; end surplus replicas after their requests."""
        with self._changed:
            spare = self._replicas[count:]
            for index in range(len(self._replicas), count):
                self._replicas.append(Replica(self, index))
                self._replicas[-1].start()
        self._end(spare)

    def wait_healthy(self, stopping: threading.Event) -> None:
        """Wait until all replicas are healthy. Raises ApiError if they are not in time."""
        text = self.container.get("deploymentTimeout")
        seconds = float(text.removesuffix("s")) if text else _DEPLOYMENT_TIMEOUT
        deadline = time.monotonic() + seconds
        while not all(replica.healthy for replica in self._replicas[:]):
            if stopping.is_set():
                return
            for running in self._replicas[:]:
                if running.failure:
                    what = f"Model server exited unexpectedly: {running.failure}."
                    raise failed_precondition(f"{what} {_LOGS} {running.log.path}.")
            if time.monotonic() > deadline:
                what = "Model server never became ready. Please validate that your model file or"
                logs = f"{_LOGS} {self._replicas[0].log.path}."
                raise failed_precondition(f"{what} container configuration are valid. {logs}")
            stopping.wait(_POLL_SECONDS)

    @contextmanager
    def replica(self) -> Iterator[Replica | None]:
        """Yield the healthy replica with the fewest requests, or None without a healthy replica."""
        with self._changed:
            healthy = [one for one in self._replicas if one.healthy and not self.closed]
            least_busy = min(healthy, key=lambda one: one.busy, default=None)
            if least_busy is not None:
                least_busy.busy += 1
        if least_busy is None:
            yield None
            return
        try:
            yield least_busy
        finally:
            with self._changed:
                least_busy.busy -= 1
                self._changed.notify_all()

    def close(self, *, drain: bool) -> None:
        """Refuse new requests and end all replicas; ``drain`` first waits for running requests."""
        with self._changed:
            self.closed = True
        self._end(self._replicas[:], drain=drain)
        delete_folder(self.folder)

    def _end(self, spare: list[Replica], *, drain: bool = True) -> None:
        with self._changed:
            self._replicas = [replica for replica in self._replicas if replica not in spare]
            if drain:
                seconds = self.host.timing.drain
                self._changed.wait_for(lambda: not any(r.busy for r in spare), seconds)
        for surplus in spare:
            surplus.stopped.set()  # ends all replicas at the same time, which may take seconds
        for surplus in spare:
            surplus.stop()

    def variables(self, port: int) -> dict[str, str]:
        """Return the variables that the service sets for a container at a port."""
        machine = self.deployed["dedicatedResources"]["machineSpec"]
        return {
            "AIP_HTTP_PORT": str(port),
            "AIP_HEALTH_ROUTE": self.health_route,
            "AIP_PREDICT_ROUTE": self.predict_route,
            "AIP_STORAGE_URI": self.version.get(COPY, ""),
            "AIP_ENDPOINT_ID": self.endpoint.rpartition("/")[2],
            "AIP_DEPLOYED_MODEL_ID": self.deployed["id"],
            "AIP_MACHINE_TYPE": machine["machineType"],
            "AIP_ACCELERATOR_TYPE": machine.get("acceleratorType", ""),
            "AIP_PROJECT_NUMBER": self.endpoint.split("/")[1],
            "AIP_FRAMEWORK": "CUSTOM_CONTAINER",
            "AIP_MODE": "PREDICTION",
            # The service has no such variable. Other users may have access to this machine's ports.
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
        with self._lock:
            return self._found.get((endpoint, id_))

    def start(self, endpoint: str, deployed: Body, version: Body) -> Deployment:
        """Start the containers of a DeployedModel."""
        made = Deployment(self.host, endpoint, deployed, version)
        with self._lock:
            if self._stopped:
                raise ServerStoppingError
            self._found[endpoint, deployed["id"]] = made
        made.scale(replicas(deployed["dedicatedResources"]))
        return made

    def end(self, endpoint: str, id_: str, *, drain: bool = True) -> None:
        deployment = self.get(endpoint, id_)
        if deployment is not None:
            deployment.close(drain=drain)  # ``stop`` may close the deployment at the same time
            with self._lock:
                self._found.pop((endpoint, id_), None)

    def stop(self) -> None:
        with self._lock:
            self._stopped, keys = True, list(self._found)
        threads = [make_thread(partial(self.end, *key, drain=False)) for key in keys]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def log_path(home: Home, endpoint: str, id_: str, index: int) -> Path:
    """Return the log path of a replica; the log remains after the replica's end."""
    number = endpoint.rpartition("/")[2]
    return home.serving / "logs" / number / f"{id_}-{index}.log"
