"""One container of a DeployedModel: its process, health checks and predictions.

As documented (doc:predictions/custom-container-requirements): healthy while ``GET`` of its health
route is answered with 200 within 10 s; after three more failures, 10 s apart, it gets no requests
until it is healthy again. One that ends is started again. It runs on the host's network, so the
port it is given is a free one.
"""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from localgcp.errors import ContainerDownError, JobCancelledError, NoAnswerError, StandInError
from localgcp.runner import replica
from localgcp.runner.joblog import JobLog
from localgcp.runner.programs import Launch
from localgcp.system.processes import make_thread

#: Host at which the containers listen.
HOST: Final = "127.0.0.1"


@dataclass(frozen=True)
class Timing:
    """Durations in seconds; tests use shorter durations than the service."""

    health: float = 10.0
    """Between two health checks of a container, and for the answer to a check."""
    tries: int = 3
    """Number of health checks after the first failed check."""
    startup: float = 0.1
    """Between two checks of a container that has not been healthy since its start."""
    restart: float = 2.0
    """Before the restart of an ended container."""
    drain: float = 60.0
    """For answers in progress, before a container is ended."""


@dataclass(frozen=True)
class Answer:
    """A container's answer."""

    status: int
    body: bytes


class Replica:
    """A container process with a port."""

    def __init__(
        self,
        launch: Callable[[int], AbstractContextManager[Launch]],
        choose_port: Callable[[], int],
        *,
        health_route: str,
        work: Path,
        log: JobLog,
        notes: Path,
        account: str,
        timing: Timing,
    ) -> None:
        """``launch`` returns the process to start at a port, or raises StandInError."""
        self._launch, self._choose_port, self._health_route = launch, choose_port, health_route
        self._work, self.log, self._notes, self._account = work, log, notes, account
        self._timing = timing
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
        """End the process and wait for its end. Repeatable."""
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
        """Run the container to its end; return the reason of the end."""
        try:
            port = self._choose_port()
            with self._launch(port) as made:
                self.port, self._runs = port, True
                outcome = replica.run(
                    made.argv,
                    env=made.env,
                    cwd=self._work,
                    log=self.log,
                    notes=self._notes,
                    cancelled=self.stopped,
                    umask=made.umask,
                    terminate=made.terminate,
                    account=self._account,
                )
        except JobCancelledError:
            return "stopped"
        except (StandInError, OSError, ValueError) as error:
            return f"cannot start the container: {error}"
        ended_by = replica.signal_name(outcome.code)
        return f"the container ended with exit code {outcome.code} {ended_by}".rstrip()

    def _watch(self) -> None:
        failed, seen = 0, 0
        while not self.stopped.wait(
            self._timing.health if seen == self.port else self._timing.startup
        ):
            was, port = self.healthy, self.port
            if self._is_well():
                failed, seen, self.failure = 0, port, ""
                self.healthy = self._runs and not self.stopped.is_set()
            else:
                failed += 1
                self.healthy = was and self._runs and failed <= self._timing.tries
            if was is not self.healthy and not self.stopped.is_set():
                self.log.append(
                    "healthy" if self.healthy else ("unhealthy: the replica receives no requests")
                )
            self.log.stamp()

    def _is_well(self) -> bool:
        if not self._runs:
            return False
        with suppress(ContainerDownError, NoAnswerError):
            answer = self.ask("GET", self._health_route, seconds=self._timing.health)
            return self._runs and answer.status == 200
        return False

    def ask(self, verb: str, route: str, body: bytes = b"", *, seconds: float) -> Answer:
        """Send a request; return the container's answer. Raises ContainerDownError or
        NoAnswerError.
        """
        connection = http.client.HTTPConnection(HOST, self.port, timeout=seconds)
        try:
            try:
                connection.connect()
            except OSError as error:
                raise ContainerDownError(str(error)) from None
            connection.request(
                verb, route, body, {"Content-Type": "application/json"} if body else {}
            )
            got = connection.getresponse()
            return Answer(got.status, got.read())
        except (http.client.HTTPException, OSError) as error:
            raise NoAnswerError(f"{type(error).__name__} {error}".rstrip()) from None
        finally:
            connection.close()
