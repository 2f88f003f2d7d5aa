"""``vt jobs advance``, for a timer: submit due jobs, stop idle jobs and report late jobs.

Steps read the stack's state and the cloud, but no files of the checkout. A step may run twice at
the same time, and may be killed at any time. To add a step, add a function to ``STEPS``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final

import typer

from vertex_training.catalog.costs import DEFAULT_TIMEOUT
from vertex_training.catalog.resource_types import SCHEDULE
from vertex_training.customjob.google.job_service import AnyJob
from vertex_training.customjob.protocol.idle import IdleFinding, goes_on
from vertex_training.customjob.protocol.ports import IDLE_STOP, LADDER
from vertex_training.customjob.protocol.waiting import format_duration
from vertex_training.errors import CommandError, OperatorError
from vertex_training.schedules import slots
from vertex_training.schedules.deployed import DeployedSchedule, deployed_schedules
from vertex_training.schedules.provider import connect
from vertex_training.schedules.slots import Outcome
from vertex_training_cli.console import json_document, plain, print_line
from vertex_training_cli.engine import stacks
from vertex_training_cli.engine.plan import WITH_REQUEST
from vertex_training_cli.engine.pulumi_cli import PulumiCli
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.engine.values import redact
from vertex_training_cli.jobs import view
from vertex_training_cli.jobs.deployed import inputs_in, inputs_of
from vertex_training_cli.jobs.service import Jobs
from vertex_training_cli.options import Format, FormatOption, SelectedStack

#: Time after which a job that waits for machines is reported.
PENDING: Final = timedelta(hours=2)
#: Time after a job's timeout at which the job is reported if it has not ended.
GRACE: Final = timedelta(minutes=30)
_WAITING: Final = ("QUEUED", "PENDING")


@dataclass(frozen=True, slots=True)
class Action:
    """The result of a step with its reason."""

    step: str
    """Name of the step, like ``schedule``."""
    job: str
    """Name of the job in the stack."""
    done: str
    """The result in one word, like ``submitted``."""
    reason: str
    """The reason for the result."""
    resource: str = ""
    """Resource name of the job in Vertex AI; empty if there is none."""
    slot: str = ""
    failed: bool = False
    """True if an operator has to act. The exit code of the command is then 1."""

    @property
    def line(self) -> str:
        """Return the action as one line."""
        about = f"{self.job} {self.slot}".rstrip()
        number = self.resource.rpartition("/")[2]
        return f"{self.step} {about}: {self.reason}{f' ({number})' if number else ''}"


@dataclass(frozen=True)
class Tick:
    """One run of the command on one stack."""

    ref: StackRef
    deployment: Mapping[str, Any]
    """The deployment in the stack's state, as ``pulumi stack export`` prints it."""
    dry_run: bool = False
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    """This machine's time, for messages. Slots use the time of the object store."""
    at: datetime | None = None
    """Time for slots in a rehearsal, instead of the object store's time."""

    @functools.cached_property
    def jobs(self) -> Jobs:
        """Return the job service."""
        return Jobs(self.ref)

    @functools.cached_property
    def live(self) -> list[AnyJob]:
        """Return the stack's live jobs, newest first. All steps use the same list."""
        return self.jobs.list(live_only=True)


#: A step of the command. The step yields each action after its completion. If the step raises
#: OperatorError or CommandError, the command reports the error and runs the next step.
Step = Callable[[Tick], Iterator[Action]]


def submit_due(tick: Tick) -> Iterator[Action]:
    """Submit the jobs that are due by their schedule. A failed schedule stops no others."""
    for schedule in deployed_schedules(tick.deployment, SCHEDULE):
        for outcome in _outcomes(tick, schedule):
            done, reason = outcome.done, redact(outcome.reason)
            yield Action(
                "schedule", schedule.job, done, reason, outcome.job, outcome.slot, done == "failed"
            )


def _outcomes(tick: Tick, schedule: DeployedSchedule) -> Iterator[Outcome]:
    try:
        ports = connect(schedule)
        # Reading the store's time writes an object, so a dry run uses this machine's time.
        moment = tick.at or (tick.now if tick.dry_run else None)
        now = moment.timestamp() if moment else ports.intents.now()
        yield from slots.advance(schedule, ports, now, dry_run=tick.dry_run)
    except OperatorError as error:
        yield Outcome("failed", "", str(error))


def climb_ladders(tick: Tick) -> Iterator[Action]:
    """Submit the next rung of each ladder whose job got no machines."""
    for inputs in inputs_in(tick.deployment):
        if not (inputs.get("options") or {}).get(LADDER):
            continue
        job = str(inputs["submission"]["job"])
        try:
            yield from _climb(inputs, job, dry_run=tick.dry_run)
        except OperatorError as error:
            yield Action("ladder", job, "failed", redact(str(error)), failed=True)


def _climb(inputs: Mapping[str, Any], job: str, *, dry_run: bool) -> Iterator[Action]:
    from vertex_training.customjob.provider import ladder_of  # loads Pulumi

    ladder = ladder_of(inputs)
    before = ladder.current()
    if before is None or (before.job is None and before.request.rung == 1):
        return  # Another request holds the turn, or `up` submits the first rung.
    name = before.job.name if before.job else ""
    if left := ladder.exhausted():
        yield Action("ladder", job, "ended", f"no rung is left on the ladder: {redact(left)}", name)
        return
    if before.job is not None and not before.job.out_of_stock:
        return
    reason = redact(before.job.reason) if before.job else "its submission was interrupted"
    if dry_run:
        yield Action("ladder", job, "due", f"{before}: {reason}; the next rung is due")
        return
    rung = ladder.climb()
    if rung and rung.moved and rung.job:
        yield Action("ladder", job, "submitted", f"{reason}; continues on {rung}", rung.job.name)


def stop_idle(tick: Tick) -> Iterator[Action]:
    """Cancel idle jobs with an ``idleStop``, and report jobs whose use is unknown."""
    deployed = list(inputs_in(tick.deployment, WITH_REQUEST))
    if not any((inputs.get("options") or {}).get(IDLE_STOP) for inputs in deployed):
        return
    for job in tick.live:
        if inputs := inputs_of(job, deployed):
            try:
                yield from _stop_idle(inputs, job, dry_run=tick.dry_run)
            except OperatorError as error:
                text = redact(goes_on(error))
                yield Action("idle", view.title(job), "failed", text, job.name, failed=True)


def _stop_idle(inputs: Mapping[str, Any], job: AnyJob, *, dry_run: bool) -> Iterator[Action]:
    from vertex_training.customjob.provider import idle_stop_of  # loads Pulumi

    stop, title = idle_stop_of(inputs), view.title(job)
    stopped = stop.jobs.get(job.name) if stop else None
    if stop is None or stopped is None:
        return
    verdict = stop.look(stopped)
    if verdict.finding is IdleFinding.UNPROVEN:
        yield Action("idle", title, "unproven", verdict.goes_on, job.name)
    elif verdict.finding is IdleFinding.IDLE and dry_run:
        text = f"{verdict.why}; the next run without --dry-run cancels the job"
        yield Action("idle", title, "due", text, job.name)
    elif reason := stop.stop(stopped, verdict):
        yield Action("idle", title, "cancelled", f"{reason}: cancelled", job.name)


def report_late(tick: Tick) -> Iterator[Action]:
    """Yield each job that waits long in a queue or runs longer than its timeout."""
    for job in tick.live:
        if text := _late(job, tick.now):
            yield Action("late", view.title(job), "late", text, job.name)


def _late(job: AnyJob, now: datetime) -> str:
    created: Any = job.create_time
    started: Any = job.start_time
    state = view.state(job)
    if state in _WAITING and created and now - created > PENDING:
        return f"{state} for {format_duration((now - created).total_seconds())}"
    timeout: Any = view.spec_of(job).scheduling.timeout or timedelta(seconds=DEFAULT_TIMEOUT)
    if started and not view.is_tuning(job) and now - started > timeout + GRACE:
        running, limit = ((now - started).total_seconds(), timeout.total_seconds())
        limits = f"longer than the job's timeout of {format_duration(limit)}"
        return f"{state} for {format_duration(running)}, {limits}"
    return ""


#: All steps, in order.
STEPS: Final[Sequence[Step]] = (submit_due, climb_ladders, stop_idle, report_late)


def advance(
    stack: SelectedStack = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print due actions.")] = False,
    at: Annotated[
        str,
        typer.Option(
            metavar="TIME", help="Use this time instead of now, such as 2026-11-30T06:00Z."
        ),
    ] = "",
    format_: FormatOption = Format.TEXT,
) -> None:
    """Submit jobs of due slots and ladder rungs, stop idle jobs, and report late jobs.

    Run the command by a timer. The command reads the deployed state, not the files of this
    checkout. Concurrent runs are safe: each slot is submitted once. --at works only in the local
    cloud and with --dry-run.

    Exit code: 0 done, 1 a submission was refused or its result is unknown.
    """
    ref = stacks.find(stack)
    try:
        moment = datetime.fromisoformat(at) if at else None
    except ValueError:
        raise typer.BadParameter(f"{at!r} is not a time", param_hint="--at") from None
    if moment and not moment.tzinfo:
        moment = moment.replace(tzinfo=UTC)
    if moment and not (dry_run or ref.is_local):
        raise typer.BadParameter(
            "--at without --dry-run works only in the local cloud: schedules use Google's clock",
            param_hint="--at",
        )
    pulumi = PulumiCli(ref.root, ref.running_environment())
    ref.connect_clients()  # This call changes the environment that PulumiCli reads.
    deployment = pulumi.export_deployment(ref.stack)
    planned = list[Action]()
    for action in actions(Tick(ref, deployment, dry_run, at=moment)):
        planned.append(action)
        if format_ is Format.TEXT:
            print(plain(action.line), flush=True)
    if format_ is Format.JSON:
        print(json_document([asdict(action) for action in planned]))
    elif not planned:
        print_line(f"vt: stack {ref.stack} has no due schedules or rungs, and no late jobs")
    if any(action.failed for action in planned):
        raise typer.Exit(1)


def actions(tick: Tick, steps: Sequence[Step] = STEPS) -> Iterator[Action]:
    """Yield the actions of all steps. If a step fails, report the error and run the next step."""
    for step in steps:
        try:
            yield from step(tick)
        except (OperatorError, CommandError) as error:
            name = step.__name__.replace("_", " ")
            yield Action(name, "", "failed", redact(str(error)), failed=True)
