"""Waits for long operations. An operation outlives the process that began it. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from vertex_training.customjob.protocol.ports import ProcessEnvironment
from vertex_training.customjob.protocol.waiting import PollBackoff, format_duration
from vertex_training.errors import OperatorError
from vertex_training.serving.protocol.ports import Operations, OperationSnapshot


@dataclass(frozen=True, slots=True)
class OperationWait:
    """Time limits of one operation, and the receiver of its progress."""

    environment: ProcessEnvironment = ProcessEnvironment()
    backoff: PollBackoff = PollBackoff()
    longest: float = 7_800.0
    """Seconds. A container may take two hours to start (``deploymentTimeout``)."""
    doubt: float = 90.0
    """Seconds to look for the result of a call whose answer was lost."""
    report: Callable[[str], None] = lambda _: None


def wait_for_operation(
    operations: Operations, name: str, what: str, wait: OperationWait
) -> OperationSnapshot:
    """The operation once it has ended, whatever its end was.

    Raises:
        OperatorError: it runs for longer than ``OperationWait.longest``, and goes on.
    """
    clock = wait.environment.monotonic
    began = heard = clock()
    pause = wait.backoff.initial
    while not (found := operations.operation(name)).done:
        now = clock()
        if now - began > wait.longest:
            raise OperatorError(
                f"{what}: the operation has not ended after {format_duration(now - began)}, and "
                f"goes on: {name}. Run `pulumi up` again to wait for it."
            )
        if now - heard >= wait.backoff.heartbeat:
            wait.report(f"{what}: not done after {format_duration(now - began)}")
            heard = now
        wait.environment.sleep(pause)
        pause = min(pause * 1.5, wait.backoff.maximum)
    return found


def wait_until_idle(operations: Operations, resource: str, what: str, wait: OperationWait) -> None:
    """Return when no operation of anybody runs on a model or an endpoint.

    Raises:
        OperatorError: one runs for too long.
    """
    for name in operations.running(resource):
        wait.report(f"{what}: waits for an operation that runs already, {name}")
        wait_for_operation(operations, name, what, wait)
