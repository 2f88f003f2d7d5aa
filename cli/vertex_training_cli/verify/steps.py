"""The steps of a run. Each takes what the product's own commands take, and keeps what it saw."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from vertex_training.catalog.resource_types import JOB
from vertex_training.customjob.google import job_service
from vertex_training.errors import CommandError, ConfigError, OperatorError, PreviewParseError
from vertex_training_cli.destroy.command import destroy_stack
from vertex_training_cli.drift import rest
from vertex_training_cli.drift.command import compare_stack
from vertex_training_cli.drift.report import as_json
from vertex_training_cli.engine.pulumi_cli import PulumiCli
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.jobs import view
from vertex_training_cli.jobs.service import Jobs
from vertex_training_cli.policy_levels import up_options
from vertex_training_cli.preflight import context, parts
from vertex_training_cli.preflight.answers import Verdict, summary
from vertex_training_cli.up.flow import bring_up
from vertex_training_cli.verify import edits
from vertex_training_cli.verify.observations import (
    Aspects,
    EventReader,
    Normalise,
    Observations,
    error_text,
    job_aspects,
    shape,
)
from vertex_training_cli.verify.refusals import Subject, stack_jobs

#: Seconds between two looks at a job, and how long one may wait for its machine.
PAUSE: Final = 1.0
QUEUE: Final = 1800.0
#: Lets ``pulumi`` take ``--event-log`` (pulumi v3.259.0, pkg/cmd/pulumi/operations).
EVENT_LOG: Final = {"PULUMI_DEBUG_COMMANDS": "true"}
#: What ends a step.
FAILURES: Final = (CommandError, ConfigError, OperatorError, PreviewParseError)
#: The jobs of step ``edit``: the one that is replaced, and the one in its place.
REPLACED: Final = "replaced"
REPLACING: Final = "replacing"


@dataclass
class Run:
    """One run: what it is about, and what was seen so far."""

    ref: StackRef
    pulumi: PulumiCli
    subject: Subject
    folder: Path
    """For files of this run, below the checkout."""
    normalise: Normalise
    log: Callable[[str], None]
    number: str = field(default_factory=lambda: format(int(time.time()), "x"))
    """In the names of edited jobs: no two runs send the same request."""
    observed: Observations = field(default_factory=dict)
    records: dict[str, Any] = field(default_factory=dict)
    """Documents as they came, by name of a file."""
    waited: float = 0.0
    """Seconds of this step in which nothing but a job went on: those are the job's."""

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[Aspects]:
        """Run a step: its result has how long it took, and the error that ended it."""
        self.log(f"step {name}")
        subjects = self.observed.setdefault(name, {})
        result = subjects.setdefault("result", {})
        began, self.waited = time.monotonic(), 0.0
        with (
            _listening(rest.LISTENERS, self._call_recorder(name)),
            _listening(job_service.RETRY_LISTENERS, self._retry_recorder(name)),
        ):
            try:
                yield result
            except (Exception, KeyboardInterrupt) as error:
                text = str(error) or type(error).__name__
                result.setdefault("errors", [error_text(text, self.normalise)])
                result["failed"] = True
                raise
            finally:
                result["seconds"] = round(time.monotonic() - began - self.waited, 1)

    def _call_recorder(self, step: str) -> Callable[[str, str, int, Any], None]:
        lock = threading.Lock()  # a preflight asks at once

        def record(method: str, url: str, status: int, document: Any) -> None:
            with lock:
                add(method, url, status, document)

        def add(method: str, url: str, status: int, document: Any) -> None:
            self.records.setdefault(f"{step}-calls", []).append([method, url, status, document])
            parts = urlsplit(url)
            address = self.normalise(f"{parts.hostname}{parts.path}")
            aspects = self.observed[step].setdefault(f"call {method} {address}", {})
            kind, found = (
                ("fields", shape(document)) if status < 400 else ("refused", {str(status)})
            )
            aspects[kind] = sorted({*aspects.get(kind, []), *found})

        return record

    def _retry_recorder(self, step: str) -> Callable[[str, Exception], None]:
        def record(method: str, error: Exception) -> None:
            lost = self.observed[step].setdefault("lost answers", {"errors": []})
            text = f"{method}: {error_text(str(error), self.normalise)}"
            lost["errors"] = sorted({*lost["errors"], text})

        return record

    def engine(
        self, step: str, result: Aspects, command: Callable[[PulumiCli, list[str]], int]
    ) -> EventReader:
        """Run an engine command that takes ``--event-log``.

        Raises:
            CommandError: it ended with another exit code than 0.
        """
        reader = EventReader(self.normalise)
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "events"
            pulumi = dataclasses.replace(self.pulumi, env={**self.pulumi.env, **EVENT_LOG})
            code = command(pulumi, ["--event-log", str(log)])
            events = (
                [json.loads(line) for line in log.open(encoding="utf-8")] if log.exists() else []
            )
        for event in events:
            reader.add(event)
        kept = [
            each for each in events if each.get("diagnosticEvent", {}).get("severity") != "debug"
        ]
        self.records.setdefault(f"{step}-events", []).extend(kept)
        result.update({key: found for key, found in reader.messages.items() if found})
        if code:
            raise CommandError(f"{step} ended with exit code {code}.")
        return reader

    def up(self, step: str, result: Aspects, *options: str) -> EventReader:
        """``vt up``. Raises CommandError."""

        def command(pulumi: PulumiCli, events: list[str]) -> int:
            arguments = ["--yes", "--skip-preview", *events, *options]
            arguments += up_options(self.ref.root, self.ref.stack, arguments, None)
            return bring_up(self.ref, pulumi, arguments, self.log, on_dead_lock=lambda: None)

        return self.engine(step, result, command)

    def job(self) -> str:
        """Name of the job that the state has. Raises CommandError."""
        found = self.pulumi.export_deployment(self.ref.stack).get("resources") or []
        names = [
            str(each["id"]) for each in found if each["type"] == JOB and not each.get("delete")
        ]
        if len(names) != 1:
            raise CommandError(f"the state has {len(names)} jobs, and not one.")
        return names[0]

    def watch(self, step: str, title: str, job: str, until: Callable[[Any], bool]) -> None:
        """Poll a job until it is where it should be. Raises CommandError, OperatorError."""
        documents = self.records.setdefault(f"job-{title}", [])
        began = time.monotonic()
        try:
            while True:
                found = Jobs(self.ref).get(job)
                if documents[-1:] != [document := view.message(found)]:
                    documents.append(document)
                if until(found):
                    return
                if time.monotonic() - began > self.subject.timeout + QUEUE:
                    raise CommandError(f"job {title} is {view.state(found)} for too long.")
                time.sleep(PAUSE)
        finally:
            self.waited += time.monotonic() - began
            if documents:
                aspects = job_aspects(documents, self.normalise)
                self.observed[step][f"job {title}"] = aspects


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
        made, unread = context.connect(run.ref)
        answers = [*unread, *parts.ask_all(made)]
        run.records["preflight"] = [dataclasses.asdict(each) for each in answers]
        subjects = run.observed["preflight"]
        for each in answers:
            subject = f"asked {each.part}: {run.normalise(each.asked)}"
            aspects = subjects.setdefault(subject, {"refused": []})
            if each.verdict is not Verdict.OK:
                aspects["refused"] = sorted({*aspects["refused"], each.verdict.value})
        run.log(f"preflight: {summary(each.verdict for each in answers)}")


def up(run: Run) -> None:
    """Make the stack."""
    with run.step("up") as result:
        for type_, aspects in run.up("up", result).resources.items():
            run.observed["up"][f"resource {type_}"] = aspects


def train(run: Run) -> None:
    """The job to its end."""
    with run.step("job"):
        run.watch("job", "first", run.job(), view.has_ended)


def up_again(run: Run) -> None:
    """A second ``up`` has nothing to change."""
    with run.step("up-again") as result:
        result["changes"] = sorted(run.up("up-again", result).changes)


def drift(run: Run) -> None:
    """Nothing differs from what is declared."""
    with contextlib.suppress(*FAILURES), run.step("drift") as result:  # the others go on
        found = compare_stack(run.ref.stack)
        run.records["drift"] = json.loads(as_json(found))
        result["outcome"] = found.outcome.name
        result["differences"] = sorted(f"{each.op} {each.type}" for each in found.differences)
        if found.errors:
            result["errors"] = [error_text(each, run.normalise) for each in found.errors]


def edit(run: Run) -> str:
    """An edit while the job runs: it is cancelled, and one job takes its place. Returns that."""
    with run.step("edit") as result:
        before = {job.name for job in stack_jobs(run.ref)}
        deployment = run.pulumi.export_deployment(run.ref.stack)
        jobs, changes = list[str](), set[str]()
        for name in (REPLACED, REPLACING):
            display = f"{run.subject.job}-{name}-{run.number}"
            file = edits.write_edit(run.ref, run.folder, run.subject.job, display, deployment)
            changes |= run.up("edit", result, "--config-file", str(file)).changes
            jobs.append(run.job())
            run.watch("edit", name, jobs[-1], _runs_or_ended)
        run.watch("edit", REPLACED, jobs[0], view.has_ended)
        result["changes"] = sorted(changes)
        result["new jobs"] = len({job.name for job in stack_jobs(run.ref)} - before)
        return jobs[-1]


def destroy(run: Run, last_job: str = "") -> None:
    """Nothing is left, and no job runs."""
    with run.step("destroy") as result:

        def command(pulumi: PulumiCli, events: list[str]) -> int:
            return destroy_stack(run.ref, pulumi, events, confirmed=lambda: True)

        run.engine("destroy", result, command)
        left = run.pulumi.export_deployment(run.ref.stack).get("resources") or []
        result["left"] = sorted(str(each["type"]) for each in left if each.get("custom"))
        result["live jobs"] = sum(not view.has_ended(job) for job in stack_jobs(run.ref))
        if last_job:
            run.watch("edit", REPLACING, last_job, view.has_ended)


def _runs_or_ended(job: Any) -> bool:
    return view.has_ended(job) or view.state(job) == "RUNNING"


#: The steps before ``edit`` and ``destroy``, in their order.
STEPS: Final[Sequence[Callable[[Run], None]]] = (preflight, up, train, up_again, drift)


def run_steps(run: Run) -> str:
    """All steps but ``destroy``; returns the last job. Raises what ends a step."""
    for each in STEPS:
        each(run)
    return edit(run)
