"""Runs one task: executes its runnables in order, and decides whether to retry it.

Sources: google-cloud-batch 0.22.4 (``Runnable``, ``TaskSpec``, ``LifecyclePolicy``) and
doc:batch/troubleshooting#reserved-exit-codes.

==========================  ================================================================
a runnable                  what follows
==========================  ================================================================
exits with 0                the next one
exits with another code     the task has failed with the first such code; from there on only
                            those with ``alwaysRun`` run
``ignoreExitStatus``        the next one, whatever it exits with
over its time               50005, as where the task is over ``maxRunDuration``
its machine is preempted    50001: nothing else runs
cannot be made ready        50000 (125 for an image, as docker has it)
cannot be started           127 if there is no such program, else 126, as shells have it
==========================  ================================================================
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from localgcp.batch.checks import seconds
from localgcp.batch.records import OTHER, OVER_TIME, PREEMPTED
from localgcp.batch.runnables import Machine
from localgcp.errors import CommandNotFoundError, ImageError, PreparationError
from localgcp.runner import replica
from localgcp.runner.joblog import JobLog
from localgcp.system.processes import make_thread
from localgcp.system.root_directory import delete_folder

_NO_IMAGE: Final = 125
_LOOK_SECONDS: Final = 0.25


def is_retried(spec: Mapping[str, Any], code: int, retries: int) -> bool:
    """Return whether a task runs again after this exit code and number of retries.

    >>> spec = {"maxRetryCount": 2, "lifecyclePolicies": [
    ...     {"action": "RETRY_TASK", "actionCondition": {"exitCodes": [50001]}}]}
    >>> is_retried(spec, 50001, 1), is_retried(spec, 50001, 2), is_retried(spec, 1, 0)
    (True, False, False)
    """
    if retries >= int(spec.get("maxRetryCount", 0)):
        return False
    for policy in spec.get("lifecyclePolicies", []):
        listed = code in policy["actionCondition"]["exitCodes"]
        return listed == (policy["action"] == "RETRY_TASK")
    return True


@dataclass
class Attempt:
    """One attempt of a task on its machine."""

    machine: Machine
    number: int
    log: JobLog
    service: Mapping[str, str]
    """Variables that Batch sets."""
    ending: threading.Event
    """Set when the job ends: the task must end, too."""
    preempted: Callable[[float], bool]
    killed: Callable[[float], bool]
    _stop: threading.Event = field(default_factory=threading.Event)
    _code: int = 0
    _cut: bool = False
    _began: float = field(default_factory=time.monotonic)

    def run(self) -> int | None:
        """Return the exit code; None if the job ended the attempt."""
        ended = threading.Event()
        watch = make_thread(self._watch, ended)
        watch.start()
        try:
            for index, runnable in enumerate(self.machine.job.spec["runnables"]):
                if self._stop.is_set() or (self._code and not runnable.get("alwaysRun")):
                    continue
                code = self._execute(index, runnable)
                if code and not runnable.get("ignoreExitStatus"):
                    self._code = self._code or code
        finally:
            ended.set()
            watch.join()
            self.log.stamp()
            delete_folder(self.machine.folders.work.with_name("root"))
        return None if self._cut else self._code

    def _watch(self, ended: threading.Event) -> None:
        """End the current runnable when the task's time limit is over, or its machine or job has
        ended.
        """
        limit = seconds(self.machine.job.spec.get("maxRunDuration", "inf"))
        while not ended.wait(_LOOK_SECONDS):
            ran = time.monotonic() - self._began
            if self.preempted(ran):
                self._code = PREEMPTED
            elif ran > limit:
                self._code = self._code or OVER_TIME
            elif not self.ending.is_set():
                self.log.stamp()
                continue
            else:
                self._cut = True
            self._stop.set()
            return

    def _execute(self, index: int, runnable: Mapping[str, Any]) -> int:
        """Run a runnable to its end and return its exit code."""
        job, what = self.machine.job, runnable.get("displayName") or f"runnable {index}"
        name = f"vt-{job.uid}-{self.number}-{index}"
        try:
            program, launch = self.machine.prepare(index, runnable, self.service, name)
        except (PreparationError, CommandNotFoundError) as error:
            self.machine.report(f"task {self.number}, {what}: {error}")
            if isinstance(error, CommandNotFoundError):
                return error.code
            return _NO_IMAGE if isinstance(error, ImageError) else OTHER
        limit = runnable.get("timeout")
        try:
            outcome = replica.run(
                launch.argv,
                env=launch.env,
                umask=launch.umask,
                terminate=launch.terminate,
                cwd=self.machine.folders.work,
                log=self.log,
                notes=self.machine.cloud.home.children,
                cancelled=self._stop,
                timeout_seconds=seconds(limit) if limit else None,
                killed=self.killed,
                account=job.account,
            )
        except CommandNotFoundError as error:
            self.machine.report(f"task {self.number}, {what}: {error}")
            return error.code
        finally:
            program.close()
        if outcome.ending is replica.Ending.TIMED_OUT:
            return OVER_TIME
        if outcome.code and not self._stop.is_set():
            self.machine.report(f"task {self.number}, {what} exited with status {outcome.code}")
        return outcome.code
