"""Training jobs: one resource for each entry of ``jobs`` and ``tuning``."""

import dataclasses
import functools
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NotRequired, Optional, Unpack, overload

import pulumi
from pulumi import Input, Output
from pydantic.alias_generators import to_camel

from vertex_training.catalog import costs
from vertex_training.components import ordering
from vertex_training.components.arguments import KEYWORDS, Arguments, Opts, set_outputs
from vertex_training.components.ordering import Scope, component_dependencies, program_labels
from vertex_training.components.sections import JobFields, LimitsArgs
from vertex_training.customjob.kinds import BATCH_JOB, CUSTOM_JOB, TUNING_JOB, JobKind
from vertex_training.customjob.protocol.waiting import Wait, WaitPorts, wait_for_job
from vertex_training.customjob.provider import idle_stop_of, ladder_of
from vertex_training.customjob.request import job_file
from vertex_training.customjob.request.job_file import (
    JobFile,
    JobRequest,
    RungOverrides,
    Submission,
)
from vertex_training.customjob.resource import CustomJob, HyperparameterTuningJob
from vertex_training.customjob.rules.context import FILE_ONLY
from vertex_training.engine import HOSTED, MESSAGE_SHOWN
from vertex_training.errors import Location, OperatorError, Problem, dotted
from vertex_training.plan.facts import job_limits
from vertex_training.schedules.provider import JobSchedule
from vertex_training.settings.model import JobOptions, Settings
from vertex_training.settings.reader import STAND_INS
from vertex_training.settings.section import Key, Section
from vertex_training.stack import Stack
from vertex_training.stack_rules import files
from vertex_training.stack_rules import jobs as job_rules

if TYPE_CHECKING:
    from vertex_training.customjob.google.backends import BackendJobs

#: Kind of job -> resource.
RESOURCES: Final[Mapping[JobKind, type[CustomJob]]] = {
    CUSTOM_JOB: CustomJob,
    BATCH_JOB: CustomJob,
    TUNING_JOB: HyperparameterTuningJob,
}


class Training(pulumi.ComponentResource):
    """Jobs and tuning jobs of a stack. ``pulumi up`` waits for jobs that set ``wait``."""

    jobs: dict[str, CustomJob]
    schedules: dict[str, JobSchedule]
    """Schedules, by key of the job."""
    reached: Output[bool]
    """True if all jobs with ``wait`` reached their state; known after all waits."""

    def __init__(
        self,
        scope: Scope,
        settings: Settings,
        requests: Mapping[str, JobRequest],
        *,
        control_bucket: Input[str],
        records: str = "",
        is_known: bool = True,
        after: ordering.Resources,
    ) -> None:
        """Declare the jobs of ``requests``, by key of ``settings``. ``records`` is a folder.

        ``is_known`` is False in a preview with placeholders in the requests. The component depends
        on ``after`` and jobs depend on the component, so that the state has the long list of
        dependencies once and not once per job (decision 13).
        """
        opts = pulumi.ResourceOptions.merge(scope.opts, pulumi.ResourceOptions(depends_on=after))
        super().__init__("vertextraining:training:Training", scope.name, None, opts)
        self._submitter = ordering.submitter_of(self)
        dependencies = component_dependencies(after)
        jobs = settings.submitted
        labels = _labels(settings, requests)
        options = pulumi.ResourceOptions(parent=self, depends_on=dependencies)
        self.schedules = {
            key: JobSchedule(
                f"{scope.name}-{key}-schedule",
                request=requests[key],
                schedule=schedule,
                labels=labels[key],
                control_bucket=control_bucket,
                options=jobs[key].passed,
                impersonate=self._submitter,
                records=records,
                opts=options,
            )
            for key, schedule in settings.schedules.items()
        }
        self.jobs = {
            key: RESOURCES[request.kind](
                f"{scope.name}-{key}",
                request=request,
                labels=labels[key],
                control_bucket=control_bucket,
                options=settings.passed_options(key),
                impersonate=self._submitter,
                records=records,
                is_known=is_known,
                opts=options,
            )
            for key, request in requests.items()
            if key not in self.schedules
        }
        self.register_outputs({})
        self.reached = self._reached(requests, jobs)

    def _reached(
        self, requests: Mapping[str, JobRequest], jobs: Mapping[str, JobOptions]
    ) -> Output[bool]:
        """Wait in parallel for all jobs with ``wait``, so that ``up`` fails if any such job fails.

        Not in an ``after_create`` hook, which would keep the engine's step open: an interrupt would
        have no effect, a kill would leave a pending operation, and the next ``up`` would succeed
        although the job has failed (docs/adr).
        """
        waiting = {} if pulumi.runtime.is_dry_run() else requests
        outcomes = [
            self._outcome(
                self.jobs[key],
                Wait(key, request.submission.run, wait, jobs[key].deadline_seconds),
                request,
            )
            for key, request in waiting.items()
            if (wait := jobs[key].wait)
        ]
        # Wait until all jobs are submitted: the end of the program would also end declarations.
        submitted = [job.name for job in self.jobs.values()] if outcomes else []
        everything = pulumi.Output.all(*outcomes, *submitted)
        reached = everything.apply(lambda all_: all(all_[: len(outcomes)]))
        if not HOSTED.get():  # end the program without a traceback: the reason was logged
            reached.apply(lambda all_: None if all_ else sys.exit(MESSAGE_SHOWN))
        return reached

    def _outcome(self, job: CustomJob, wanted: Wait, request: JobRequest) -> Output[bool]:
        """Wait for one job; log the reason and return False if it misses its ``wait`` state."""

        async def reached(known: Sequence[Any]) -> bool:
            name, inputs = known
            say = functools.partial(pulumi.log.info, resource=job)
            ports = _wait_ports(request, inputs, self._submitter, say)
            try:
                await wait_for_job(wanted, name, ports)
            except OperatorError as error:
                pulumi.log.error(str(error))
                return False
            return True

        return pulumi.Output.all(job.name, job.inputs).apply(reached)


def _labels(settings: Settings, requests: Mapping[str, JobRequest]) -> dict[str, dict[str, str]]:
    program = program_labels() if pulumi.get_stack() != settings.stack else {}
    return {
        key: {**settings.labels_of(settings.team_at(request.account)), **program}
        for key, request in requests.items()
    }


def _wait_ports(
    request: JobRequest, inputs: Mapping[str, Any], account: str, say: Callable[[str], None]
) -> WaitPorts:
    """Return the I/O functions of a wait, which import Google's clients on first use."""
    project, region, kind = request.submission.project, request.submission.region, request.kind

    @functools.cache
    def service() -> "BackendJobs":
        from vertex_training.customjob.google import backends

        return backends.connect(project, region, kind, account)

    def tail(name: str, count: int) -> list[str]:
        from vertex_training.customjob.google import logs

        reader = logs.connect(project, account)
        ids = service().log_ids(name)
        return [line.text for id_ in ids for line in reader.tail(id_, count)]

    return WaitPorts(
        lambda name: service().get(name),
        tail,
        say,
        connect_ladder=lambda: ladder_of(inputs) if request.ladder else None,
        connect_idle_stop=functools.partial(idle_stop_of, inputs),
    )


def log_tuning_costs(requests: Mapping[str, JobRequest]) -> None:
    """Log maximum cost, hourly cost and quota of each tuning job."""
    for key, request in sorted(requests.items()):
        if request.kind is TUNING_JOB:
            cost = request.cost
            pulumi.log.info(
                f"Tuning job {key} costs at most {cost}: {costs.usd(cost.hourly)} an hour with "
                f"{cost.parallel} parallel trials, which require {cost.parallel} times the quota "
                "of one trial."
            )


def schedule_outputs(made: JobSchedule, request: JobRequest) -> dict[str, Input[str]]:
    """Return the stack's outputs for a job with a schedule."""
    return {
        "since": made.since,
        "requestDigest": request.digest,
        "artifacts": request.output_directory,
        "costsAtMost": str(request.cost),
    }


def job_outputs(job: CustomJob, request: JobRequest) -> dict[str, Input[str]]:
    """Return a job's outputs. A preview shows those that do not depend on its creation."""
    return {
        "name": job.name,
        "state": job.state,
        "requestId": job.once_known(request.request_id),
        "requestDigest": job.once_known(request.digest),
        "artifacts": job.once_known(request.output_directory),
        "costsAtMost": str(request.cost),
        "console": job.console_url,
        "logs": job.log_url,
    }


#: Arguments of the component: options of a job in a stack file, and keys of a stack file.
FIELDS: Final = tuple(JobFields.__annotations__)
SETTINGS: Final = ("project", "region", "labels", "limits")
#: https://docs.cloud.google.com/storage/docs/buckets#naming
_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]")
#: Characters to escape in JSON that is read as YAML.
_ESCAPED: Final = re.compile("[\x7f-\uffff]")
#: Output of the component -> name in the outputs of a stack.
OUTPUTS: Final = {"job_name": "name"} | {
    name: to_camel(name)
    for name in ("state", "request_id", "artifacts", "costs_at_most", "console", "logs")
}


class TrainingJobArgs(JobFields):
    """Arguments of :class:`TrainingJob`."""

    project: NotRequired[Input[str]]
    """Id of the job's project; default: project of the gcp provider."""
    region: NotRequired[Input[str]]
    """Region of the job; default: region of the gcp provider."""
    control_bucket: Input[str]
    """Name of the bucket for records: ``TrainingBuckets.control``. May be unknown in a preview."""
    spec: NotRequired[Input[Mapping[str, Any]]]
    """Request in the form of the REST API: a CustomJob, only its ``jobSpec``, or a
    HyperparameterTuningJob. An ``imageUri`` may be unknown in a preview; ``up`` then checks the
    image."""
    file: NotRequired[Input[str]]
    """Path of a file with the request, relative to the program's folder; replaces ``spec``."""
    environment: NotRequired[Input[str]]
    """Name of the environment, part of the job's identity; default: the Pulumi stack's name."""
    base_name: NotRequired[Input[str]]
    """Name of the job in its environment, part of its identity; default: the component's name."""
    labels: NotRequired[Input[Mapping[str, Input[str]]]]
    """Labels of the job. A change of labels does not submit the job again."""
    limits: NotRequired[Input[LimitsArgs]]
    """Limits on the use and cost of the job."""


class _Options(Section):
    """Options of one job by name; the name is checked like a key of a stack file."""

    stack: str
    jobs: dict[Key, JobOptions]


class TrainingJob(pulumi.ComponentResource):
    """A training or tuning job on Vertex AI. The component checks it and submits it exactly once.

    The rules of job files (``vt check --rules``) apply to ``spec``. ``${job.name}``, ``${job.run}``
    and ``${job.requestId}`` are replaced by the job's values. An equal request is never submitted
    twice; increment ``run`` to submit it again. Vertex AI must be enabled.

    Example::

        job = TrainingJob(
            "titanic",
            {
                "project": "local-training",
                "region": "us-central1",
                "control_bucket": buckets.control,
                "spec": {
                    "workerPoolSpecs": [
                        {
                            "machineSpec": {"machineType": "n1-standard-4"},
                            "replicaCount": 1,
                            "containerSpec": {
                                "imageUri": "python:3.11",
                                "command": ["python", "-c", "print('trained')"],
                            },
                        }
                    ],
                    "serviceAccount": account.email,
                    "scheduling": {"timeout": "600s"},
                },
            },
        )
        pulumi.export("job", job.job_name)
    """

    job_name: Output[str]
    """Full name of the job: ``projects/NUMBER/locations/REGION/customJobs/ID``."""
    state: Output[str]
    """State at the last update. ``pulumi refresh`` updates it."""
    request_id: Output[str]
    """Id of the request, which is also a label of the job. Known in a preview."""
    artifacts: Output[str]
    """URI of the output directory; empty without an output directory. Known in a preview."""
    costs_at_most: Output[str]
    """Maximum cost of the job as text. Known in a preview."""
    cost_usd_at_most: Output[Optional[float]]  # noqa: UP045 - as Pulumi's host reads it
    """Maximum cost of the job in USD; null if a machine has no known price."""
    console: Output[str]
    """URL of the job in the console, or the command that prints a local job."""
    logs: Output[str]
    """URL of the job's log in the console, or the command that prints a local log."""

    @overload
    def __init__(self, name: str, /, args: TrainingJobArgs, opts: Opts = None) -> None: ...
    @overload
    def __init__(
        self, name: str, /, *, opts: Opts = None, **given: Unpack[TrainingJobArgs]
    ) -> None: ...
    def __init__(
        self, name: str, /, args: TrainingJobArgs = KEYWORDS, opts: Opts = None, **keywords: Any
    ) -> None:
        """Check the request and declare the job. Raises ArgumentsError with every mistake."""
        arguments = Arguments(f"TrainingJob '{name}'", opts)
        given = arguments.named(args, keywords, TrainingJobArgs.__annotations__)
        environment, key = arguments.environment(given), arguments.base_name(given, name)
        options = _options(key, given, environment, arguments)
        bucket = _control_bucket(given, arguments)
        stack = arguments.stack_or_none(arguments.section(Settings, given, SETTINGS), environment)
        settings = stack.settings if stack else Settings.model_validate(STAND_INS)
        settings = settings.model_copy(update={"jobs": {key: options}})
        submission = Submission(settings.project, settings.region, environment, key, options.run)
        arguments.add(ordering.identity_problems(opts))
        # Components accept only full names of reservations.
        for index, rung in enumerate(options.ladder):
            arguments.add(job_rules.unknown_reservation(rung, {}, ("ladder", index)))
        rungs = job_rules.rungs(options.ladder, {}, {})
        kind = BATCH_JOB if options.backend == BATCH_JOB.backend else None
        request = _request(given, submission, stack, arguments, rungs, kind, options.passed)
        arguments.claim(jobs=[submission])
        super().__init__("vertex-training:index:TrainingJob", name, arguments.inputs, opts)
        training = Training(
            Scope(name, self),
            settings,
            {key: request},
            control_bucket=bucket,
            records=f"environments/{environment}/",
            is_known=not arguments.stood_in,
            after=arguments.prerequisites(),
        )
        job_values = job_outputs(training.jobs[key], request)
        values: dict[str, Any] = {
            own: Output.from_input(job_values[name]) for own, name in OUTPUTS.items()
        }
        cost = request.cost.worst_case
        values["cost_usd_at_most"] = cost if cost is None else round(cost, 4)
        set_outputs(self, values)


def _control_bucket(values: Mapping[str, Any], arguments: Arguments) -> Input[str]:
    bucket = values.get("control_bucket")
    if bucket is None:
        hint = "pass TrainingBuckets.control"
        what = "this required argument is missing"
        arguments.add([Problem(what, hint=hint, path=("controlBucket",))])
        return ""
    known = arguments.known(bucket, ("control_bucket",))
    if known is None:
        return bucket
    if isinstance(known, str) and _BUCKET.fullmatch(known):
        return known
    hint = "pass TrainingBuckets.control, without gs://"
    what = "the value must be the name of a bucket"
    arguments.add([Problem(what, str(known), hint, ("controlBucket",))])
    return ""


def _options(
    name: str, values: Mapping[str, Any], environment: str, arguments: Arguments
) -> JobOptions:
    values = arguments.section(JobOptions, values, FIELDS, at=("jobs", name))
    parsed = arguments.parse(_Options, {"stack": environment, "jobs": {name: values}})
    return parsed.jobs[name] if parsed else JobOptions()


def _request(
    values: Mapping[str, Any],
    submission: Submission,
    stack: Stack | None,
    arguments: Arguments,
    rungs: tuple[RungOverrides, ...],
    kind: JobKind | None,
    options: Mapping[str, Any],
) -> JobRequest:
    document, result, file = _document(values, arguments), None, ""
    if document is not None:
        data, file = document
        context = dataclasses.replace(FILE_ONLY, region=submission.region)
        if stack:
            context = dataclasses.replace(context, limits=job_limits(stack.settings))
        one = JobFile(data, file or "spec", submission, kind, rungs, options=options)
        result = job_file.check_ladder(one, {}, context)
        arguments.problems += [_placed(problem, file) for problem in result.errors]
        if stack:
            arguments.add(stack.exceeded_limits({submission.job: result}))
    arguments.check()
    assert result is not None  # a missing document is a problem, which `check` raises
    assert result.request is not None  # so is a missing request
    for warning in result.warnings:
        pulumi.log.warn(f"{arguments.component}: {_placed(warning, file)}")
    for path in arguments.stood_in:
        what = (
            "the image is unknown in this preview; `up` checks it, and submits a job if it changed"
        )
        pulumi.log.warn(f"{arguments.component}: {dotted(path)}: {what}.")
    return result.request


def _document(values: Mapping[str, Any], arguments: Arguments) -> tuple[bytes, str] | None:
    if ("file" in values) == ("spec" in values):
        arguments.problems.append(Problem("pass either spec or file", path=("spec",)))
        return None
    before = len(arguments.problems)
    if "spec" in values:
        arguments.inputs["spec"] = spec = arguments.plain(values["spec"], ("spec",))
        # Rules of requests would report an unknown value as missing.
        return None if len(arguments.problems) > before else (_as_yaml(spec), "")
    arguments.inputs["file"] = name = str(arguments.plain(values["file"], ("file",)))
    arguments.problems += files.file_problems(("file",), name, Path.cwd())
    return None if len(arguments.problems) > before else (Path(name).read_bytes(), name)


def _as_yaml(spec: Any) -> bytes:
    """Return ``spec`` as JSON that is also YAML, which has no surrogate pairs."""
    text = json.dumps(spec, ensure_ascii=False)
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", text).encode()


def _placed(problem: Problem, file: str) -> Problem:
    """Set the path of a problem in ``spec``. A problem in a file is unchanged."""
    if file:
        return problem
    return dataclasses.replace(problem, location=Location(), path=("spec", *problem.path))
