"""One run of ``vt jobs advance``: what its steps are given, and what they report."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.jobs.service import Jobs

if TYPE_CHECKING:
    from vertex_training.customjob.google.job_service import AnyJob


@dataclass(frozen=True, slots=True)
class Action:
    """What a step did, or did not do, and why."""

    step: str
    """Name of the step, like ``schedule``."""
    job: str
    """Name of the job in the stack."""
    done: str
    """What was done, in a word: ``submitted``."""
    reason: str
    """Why, or why not."""
    resource: str = ""
    """Resource name of the job in Vertex AI that it is about; empty without one."""
    slot: str = ""
    failed: bool = False
    """Whether somebody has to look: the command ends with 1."""

    @property
    def line(self) -> str:
        """All of it in a line."""
        about = f"{self.job} {self.slot}".rstrip()
        number = self.resource.rpartition("/")[2]
        return f"{self.step} {about}: {self.reason}{f' ({number})' if number else ''}"


@dataclass(frozen=True)
class Tick:
    """One run of the command, on one stack."""

    ref: StackRef
    deployment: Mapping[str, Any]
    """The deployment in the stack's state, as ``pulumi stack export`` prints it."""
    dry_run: bool = False
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    """This machine's time, for what a person reads; slots go by the store's."""
    at: datetime | None = None
    """The time that slots go by instead, in a rehearsal."""

    @functools.cached_property
    def jobs(self) -> Jobs:
        """The job service."""
        return Jobs(self.ref)

    @functools.cached_property
    def live(self) -> list[AnyJob]:
        """The stack's jobs that have not ended, newest first, each listed once for all steps.

        Raises:
            OperatorError: they cannot be listed.
        """
        return self.jobs.list(live_only=True)


#: A step: what it does, one action after the other. It may raise OperatorError and CommandError:
#: the command reports that and goes on with the next step.
Step = Callable[[Tick], Iterator[Action]]
