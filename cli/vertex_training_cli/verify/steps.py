"""The steps of a run. Each calls the code of the product's own commands, and notes the answers."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from vertex_training.catalog.resource_types import JOB
from vertex_training.customjob.google import job_service
from vertex_training.errors import CommandError, ConfigError, OperatorError, PreviewParseError
from vertex_training_cli import rest
from vertex_training_cli.drift.command import compare_stack
from vertex_training_cli.engine.plan import PROVIDER
from vertex_training_cli.engine.pulumi_cli import PulumiCli
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.engine.values import redact
from vertex_training_cli.jobs import view
from vertex_training_cli.jobs.service import Jobs
from vertex_training_cli.policy_levels import up_options
from vertex_training_cli.preflight import command, context
from vertex_training_cli.preflight.answers import summary
from vertex_training_cli.up.command import bring_up
from vertex_training_cli.up.destroy import destroy_stack
from vertex_training_cli.verify import refusals
from vertex_training_cli.verify.observations import error_text, shape
from vertex_training_cli.verify.refusals import Subject, stack_jobs

#: Seconds between two polls of a job, and how long one may wait for its machine.
PAUSE: Final = 1.0
QUEUE: Final = 1800.0
#: What ends a step.
FAILURES: Final = (CommandError, ConfigError, OperatorError, PreviewParseError)
#: The jobs of step ``edit``: the one that is replaced, and the one in its place.
REPLACED: Final = "replaced"
REPLACING: Final = "replacing"


@dataclass
class Run:
    """One run: its stack, and what was observed until now."""

    ref: StackRef
    pulumi: PulumiCli
    subject: Subject
    folder: Path
    """For files of this run, below the checkout."""
    normalise: Callable[[str], str]
    log: Callable[[str], None]
    number: str = field(default_factory=lambda: format(int(time.time()), "x"))
    """In the names of edited jobs: no two runs send the same request."""
    observed: set[str] = field(default_factory=set[str])
    """Lines ``STEP | SUBJECT | FACT``."""
    is_made: bool = False
    """True if the engine may have created something."""

    def note(self, step: str, subject: str, *facts: str) -> None:
        """Keep what was observed; without facts, nothing."""
        self.observed.update(f"{step} | {self.normalise(subject)} | {fact}" for fact in facts)

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Run a step: note its calls, and the error that ends it."""
        self.log(f"step {name}")
        began, lock = time.monotonic(), threading.Lock()  # a preflight asks at once

        def call(method: str, url: str, status: int, document: Any) -> None:
            address = urlsplit(url)
            facts = sorted(shape(document)) if status < 400 else [f"refused: {status}"]
            with lock:
                self.note(name, f"call {method} {address.hostname}{address.path}", *facts)

        def lost(method: str, error: Exception) -> None:
            with lock:
                text = error_text(str(error), self.normalise)
                self.note(name, "lost answers", f"{method}: {text}")

        with _listening(rest.LISTENERS, call), _listening(job_service.RETRY_LISTENERS, lost):
            try:
                yield
            except (Exception, KeyboardInterrupt) as error:
                text = error_text(str(error) or type(error).__name__, self.normalise)
                self.note(name, "result", f"failed: {text}")
                raise
            finally:
                self.log(f"step {name}: {time.monotonic() - began:.0f} s")

    def up(self, *options: str) -> None:
        """``vt up``. Raises CommandError."""
        arguments = ["--yes", "--skip-preview", *options]
        arguments += up_options(self.ref.root, self.ref.stack, arguments, None)
        self.is_made = True
        code = bring_up(self.ref, self.pulumi, arguments, self.log, on_dead_lock=lambda: None)
        if code:
            raise CommandError(f"pulumi up ended with exit code {code}.")

    def resources(self) -> dict[str, Mapping[str, Any]]:
        """Return the resources that the state has, by URN. Raises CommandError."""
        exported = self.pulumi.export_deployment(self.ref.stack).get("resources") or []
        return {
            resource["urn"]: resource
            for resource in exported
            if resource.get("custom") and not resource.get("delete")
            and not str(resource["type"]).startswith(PROVIDER)
        }  # fmt: skip

    def job(self) -> str:
        """Return the name of the job that the state has. Raises CommandError."""
        names = [
            str(resource["id"]) for resource in self.resources().values() if resource["type"] == JOB
        ]
        if len(names) != 1:
            raise CommandError(f"the state has {len(names)} jobs, and not one.")
        return names[0]

    def watch(self, step: str, title: str, job: str, until: Callable[[Any], bool]) -> None:
        """Poll a job until a condition; note how it ended. Raises CommandError, OperatorError."""
        began = time.monotonic()
        while not until(job_message := Jobs(self.ref).get(job)):
            if time.monotonic() - began > self.subject.timeout + QUEUE:
                raise CommandError(f"job {title} is {view.state(job_message)} for too long.")
            time.sleep(PAUSE)
        if view.has_ended(job_message):
            document = view.message(job_message)
            self.note(
                step, f"job {title}", f"state {view.state(job_message)}", *sorted(shape(document))
            )
            if message := (document.get("error") or {}).get("message"):
                self.note(step, f"job {title}", error_text(message, self.normalise))


@contextlib.contextmanager
def _listening(listeners: list[Any], listener: Any) -> Iterator[None]:
    listeners.append(listener)
    try:
        yield
    finally:
        listeners.remove(listener)


def preflight(run: Run) -> None:
    """Ask what a deployment would be refused. The run goes on: it shows whether that is true."""
    with contextlib.suppress(*FAILURES), run.step("preflight"):
        clients, unread = context.connect(run.ref)
        answers = [*unread, *command.ask_all(clients)]
        for answer in answers:
            run.note("preflight", f"asked {answer.part}: {answer.asked}", answer.verdict.value)
        run.log(f"preflight: {summary(answer.verdict for answer in answers)}")


def up(run: Run) -> None:
    """Make the stack."""
    with run.step("up"):
        run.up()
        for resource in run.resources().values():
            fields = sorted(shape(redact(resource.get("outputs") or {})))
            run.note("up", f"resource {resource['type']}", "made", *fields)


def train(run: Run) -> None:
    """Wait until the job has ended."""
    with run.step("job"):
        run.watch("job", "first", run.job(), view.has_ended)


def up_again(run: Run) -> None:
    """Run ``up`` again, which has nothing to change."""
    with run.step("up-again"):
        before = run.resources()
        run.up()
        after = run.resources()
        changed = {
            str((after.get(urn) or before[urn])["type"])
            for urn in before.keys() | after.keys()
            if _content(before.get(urn)) != _content(after.get(urn))
        }
        run.note("up-again", "changed", *(sorted(changed) or ["nothing"]))


def _content(resource: Mapping[str, Any] | None) -> Any:
    """Return what of a resource only a change changes; a secret is encrypted anew each time."""
    return [redact((resource or {}).get(key)) for key in ("id", "inputs", "outputs")]


def drift(run: Run) -> None:
    """Compare the cloud with the state. The run goes on."""
    with contextlib.suppress(*FAILURES), run.step("drift"):
        drifted = compare_stack(run.ref.stack)
        run.note("drift", "outcome", drifted.outcome.name)
        run.note(
            "drift",
            "differs",
            *(f"{difference.op} {difference.type}" for difference in drifted.differences),
        )
        run.note("drift", "errors", *(error_text(error, run.normalise) for error in drifted.errors))


def edit(run: Run) -> str:
    """Edit the job while it runs: it is cancelled, and one job takes its place. Return that."""
    with run.step("edit"):
        before = {job.name for job in stack_jobs(run.ref)}
        deployment = run.pulumi.export_deployment(run.ref.stack)
        jobs = list[str]()
        for name in (REPLACED, REPLACING):
            display = f"{run.subject.job}-{name}-{run.number}"
            file = refusals.write_edit(run.ref, run.folder, run.subject.job, display, deployment)
            run.up("--config-file", str(file))
            jobs.append(run.job())
            run.watch("edit", name, jobs[-1], _runs_or_ended)
        run.watch("edit", REPLACED, jobs[0], view.has_ended)
        new = {job.name for job in stack_jobs(run.ref)} - before
        run.note("edit", "new jobs", str(len(new)))
        return jobs[-1]


def destroy(run: Run, last_job: str = "") -> None:
    """Destroy the stack: nothing is left, and no job runs."""
    with run.step("destroy"):
        code = destroy_stack(run.ref, run.pulumi, [], confirmed=lambda: True)
        if code:
            raise CommandError(f"destroy ended with exit code {code}.")
        left = sorted({str(resource["type"]) for resource in run.resources().values()})
        run.note("destroy", "left", *(left or ["nothing"]))
        live = sum(not view.has_ended(job) for job in stack_jobs(run.ref))
        run.note("destroy", "live jobs", str(live))
        if last_job:
            run.watch("edit", REPLACING, last_job, view.has_ended)


def _runs_or_ended(job: Any) -> bool:
    return view.has_ended(job) or view.state(job) == "RUNNING"


def run_steps(run: Run) -> str:
    """Run all steps but ``destroy``; return the last job. Raises what ends a step."""
    for step in (preflight, up, train, up_again, drift):
        step(run)
    return edit(run)
