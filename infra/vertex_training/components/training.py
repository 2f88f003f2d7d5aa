"""The training jobs: one resource for each entry of ``jobs`` and ``tuning`` in the stack file."""

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

#: The resource of each kind of job.
RESOURCES: Final[Mapping[JobKind, type[CustomJob]]] = {
    CUSTOM_JOB: CustomJob,
    BATCH_JOB: CustomJob,
    TUNING_JOB: HyperparameterTuningJob,
}


class Training(pulumi.ComponentResource):
    """All jobs and tuning jobs of a stack, and the waits for those that ask for one."""

    jobs: dict[str, CustomJob]
    schedules: dict[str, JobSchedule]
    """Of jobs that ``up`` does not submit."""
    reached: Output[bool]
    """True if all jobs with ``wait`` reached their state; known when they did or did not."""

    def __init__(
        self,
        scope: Scope,
        settings: Settings,
        requests: Mapping[str, JobRequest],
        *,
        control_bucket: Input[str],
        records: str = "",
        is_known: bool = True,
        after: Sequence[pulumi.Resource],
    ) -> None:
        """``requests`` are by the keys of ``settings``. ``records`` is their folder in the bucket.

        ``is_known``: False in a preview where something stands in for a part of the requests.
        ``after``: everything a job may need; all of it is there first.

        The component waits for it and jobs wait for the component, so that the long list of what
        all that is stands in the state once and not once a job (decision 13).
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
        """Wait where a job asks for it, all at once, so that ``up`` fails if one is not there.

        Not in an ``after_create`` hook: the engine then holds the step open, so an interrupt is
        not obeyed before the hook ends, a kill leaves a pending operation, and the next ``up``,
        which creates nothing, would be green although the job has failed (docs/adr).
        """
        waiting = {} if pulumi.runtime.is_dry_run() else requests
        outcomes = [
            self._outcome(self.jobs[key], _wanted(key, jobs[key], request), request)
            for key, request in waiting.items()
            if jobs[key].wait
        ]
        # Not before every job was submitted: to end the program ends what it still declares.
        submitted = [job.name for job in self.jobs.values()] if outcomes else []
        everything = pulumi.Output.all(*outcomes, *submitted)
        reached = everything.apply(lambda all_: all(all_[: len(outcomes)]))
        if not HOSTED.get():
            reached.apply(_end_unless)
        return reached

    def _outcome(self, job: CustomJob, wanted: Wait, request: JobRequest) -> Output[bool]:
        """Return whether the job reached its state; the reason for a failure has been shown.

        At the program, which fails; at the job, the engine would call its creation failed.
        """

        async def reached(known: Sequence[Any]) -> bool:
            name, inputs = known
            say = functools.partial(pulumi.log.info, resource=job)
            idles = functools.partial(idle_stop_of, inputs)
            ports = dataclasses.replace(
                _wait_ports(request, self._submitter, say), connect_idle_stop=idles
            )
            if request.ladder:
                connect = functools.partial(ladder_of, inputs)
                ports = dataclasses.replace(ports, connect_ladder=connect)
            try:
                await wait_for_job(wanted, name, ports)
            except OperatorError as error:
                pulumi.log.error(str(error))
                return False
            return True

        return pulumi.Output.all(job.name, job.inputs).apply(reached)


def _labels(settings: Settings, requests: Mapping[str, JobRequest]) -> dict[str, dict[str, str]]:
    """The stack's labels of each job, by its team."""
    program = program_labels() if pulumi.get_stack() != settings.stack else {}
    return {
        key: {**settings.labels_of(settings.team_at(request.account)), **program}
        for key, request in requests.items()
    }


def _wanted(key: str, job: JobOptions, request: JobRequest) -> Wait:
    return Wait(key, request.submission.run, job.wait or "succeeded", job.deadline_seconds)


def _wait_ports(request: JobRequest, account: str, say: Callable[[str], None]) -> WaitPorts:
    """The I/O of a wait: the official clients, loaded in its threads when first needed."""
    project, region, kind = request.submission.project, request.submission.region, request.kind

    @functools.cache
    def service() -> "BackendJobs":
        from vertex_training.customjob.google import backends

        return backends.connect(project, region, kind, account)

    def tail(name: str, count: int) -> list[str]:
        from vertex_training.customjob.google import logs

        found = logs.connect(project, account)
        ids = service().log_ids(name)
        return [line.text for id_ in ids for line in found.tail(id_, count)]

    return WaitPorts(lambda name: service().get(name), tail, say)


def _end_unless(reached: bool) -> None:
    """End the program, the errors being shown; one raised here would add a traceback."""
    if not reached:
        sys.exit(MESSAGE_SHOWN)


def log_tuning_costs(requests: Mapping[str, JobRequest]) -> None:
    """Log each tuning job's worst case, its burn rate and the quota that it needs."""
    for key, request in sorted(requests.items()):
        if request.kind is TUNING_JOB:
            cost = request.cost
            pulumi.log.info(
                f"tuning job {key}: at most {cost}; {costs.usd(cost.hourly)} an hour while "
                f"{cost.parallel} trials run, which takes quota for {cost.parallel} times its "
                "machines"
            )


def schedule_outputs(made: JobSchedule, request: JobRequest) -> dict[str, Input[str]]:
    """The outputs of a job with a schedule; its folder is that of each slot."""
    return {
        "since": made.since,
        "requestDigest": request.digest,
        "artifacts": request.output_directory,
        "costsAtMost": str(request.cost),
    }


def job_outputs(job: CustomJob, request: JobRequest) -> dict[str, Input[str]]:
    """The outputs of a job. Values that do not depend on its creation are known at preview."""
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


#: Arguments that are options of a job in a stack file, fields of the file itself, and others.
FIELDS: Final = tuple(JobFields.__annotations__)
SETTINGS: Final = ("project", "region", "labels", "limits")
OTHERS: Final = ("environment", "base_name", "file", "spec", "control_bucket")
#: https://docs.cloud.google.com/storage/docs/buckets#naming
_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]")
#: Characters that are escaped in JSON for a reader of YAML.
_ESCAPED: Final = re.compile("[\x7f-\uffff]")
#: Output -> its name among the outputs of a stack.
OUTPUTS: Final = {
    "job_name": "name",
    "state": "state",
    "request_id": "requestId",
    "artifacts": "artifacts",
    "costs_at_most": "costsAtMost",
    "console": "console",
    "logs": "logs",
}


class TrainingJobArgs(JobFields):
    """Arguments of :class:`TrainingJob`."""

    project: NotRequired[Input[str]]
    """Id of the project of the job. The provider's without it."""
    region: NotRequired[Input[str]]
    """Region that the job runs in. The provider's without it."""
    control_bucket: Input[str]
    """Name of the bucket for records: ``TrainingBuckets.control``. May be unknown in a preview."""
    spec: NotRequired[Input[Mapping[str, Any]]]
    """The request, as REST spells it: a CustomJob, its ``jobSpec`` alone, or a
    HyperparameterTuningJob. An ``imageUri`` may be unknown in a preview: all else is judged then,
    and the image in the ``up``."""
    file: NotRequired[Input[str]]
    """A file with the request, below the folder of the program; in place of ``spec``."""
    environment: NotRequired[Input[str]]
    """Part of the job's name and identity. The Pulumi stack's name without it."""
    base_name: NotRequired[Input[str]]
    """The job's name in its environment, part of its identity. The component's own name without
    it."""
    labels: NotRequired[Input[Mapping[str, Input[str]]]]
    """Labels of the job; a change of them submits nothing."""
    limits: NotRequired[Input[LimitsArgs]]
    """Limits on the use and cost of the job."""


class _Options(Section):
    """The options of one job by its name, which is checked like a key of a stack file."""

    stack: str
    jobs: dict[Key, JobOptions]


class TrainingJob(pulumi.ComponentResource):
    """A training job or a tuning job on Vertex AI, checked before and submitted once.

    The rules of job files (``vt check --rules``) hold for ``spec``; ``${job.name}``, ``${job.run}``
    and ``${job.requestId}`` stand for the job's own. An equal request is never submitted twice: a
    higher ``run`` submits it again. Vertex AI must be enabled.

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
    """``projects/NUMBER/locations/REGION/customJobs/ID``."""
    state: Output[str]
    """State as last read. ``pulumi refresh`` reads it again."""
    request_id: Output[str]
    """Identity of the request, a label of the job; known in a preview."""
    artifacts: Output[str]
    """Its output directory, a gs:// URI; empty if it has none. Known in a preview."""
    costs_at_most: Output[str]
    """The most that it can cost, in words. Known in a preview."""
    cost_usd_at_most: Output[Optional[float]]  # noqa: UP045 - as Pulumi's host reads it
    """The same as a number of USD; none where a machine has no known price."""
    console: Output[str]
    """URL of the job in the console, or the command that shows a local job."""
    logs: Output[str]
    """URL of the job's log in the console, or the command that shows a local one."""

    @overload
    def __init__(self, name: str, /, args: TrainingJobArgs, opts: Opts = None) -> None: ...
    @overload
    def __init__(
        self, name: str, /, *, opts: Opts = None, **given: Unpack[TrainingJobArgs]
    ) -> None: ...
    def __init__(
        self, name: str, /, args: TrainingJobArgs = KEYWORDS, opts: Opts = None, **keywords: Any
    ) -> None:
        """Check the request and declare the job.

        Raises:
            ArgumentsError: with every mistake; nothing was declared.
        """
        arguments = Arguments(f"TrainingJob '{name}'", opts)
        given = arguments.named(args, keywords, (*FIELDS, *SETTINGS, *OTHERS))
        environment, key = arguments.environment(given), arguments.base_name(given, name)
        options = _options(key, given, environment, arguments)
        bucket = _control_bucket(given, arguments)
        stack = arguments.stack_or_none(arguments.section(Settings, given, SETTINGS), environment)
        settings = stack.settings if stack else Settings.model_validate(STAND_INS)
        settings = settings.model_copy(update={"jobs": {key: options}})
        submission = Submission(settings.project, settings.region, environment, key, options.run)
        arguments.add(ordering.identity_problems(opts))
        rungs = _rungs(options, arguments)
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
        found = job_outputs(training.jobs[key], request)
        values: dict[str, Any] = {
            own: Output.from_input(found[name]) for own, name in OUTPUTS.items()
        }
        cost = request.cost.worst_case
        values["cost_usd_at_most"] = cost if cost is None else round(cost, 4)
        set_outputs(self, values)


def _control_bucket(values: Mapping[str, Any], arguments: Arguments) -> Input[str]:
    """The bucket for records: its name, or an output where that is not known yet."""
    bucket = values.get("control_bucket")
    if bucket is None:
        hint = "give the bucket of TrainingBuckets.control"
        arguments.add([Problem("missing", hint=hint, path=("controlBucket",))])
        return ""
    known = arguments.known(bucket, ("control_bucket",))
    if known is None:
        return bucket
    if isinstance(known, str) and _BUCKET.fullmatch(known):
        return known
    hint = "the name alone, without gs://: TrainingBuckets.control"
    arguments.add([Problem("must be the name of a bucket", str(known), hint, ("controlBucket",))])
    return ""


def _options(
    name: str, values: Mapping[str, Any], environment: str, arguments: Arguments
) -> JobOptions:
    """Return the options of the job; defaults if they are wrong, since the problems are raised."""
    values = arguments.section(JobOptions, values, FIELDS, at=("jobs", name))
    found = arguments.parse(_Options, {"stack": environment, "jobs": {name: values}})
    return found.jobs[name] if found else JobOptions()


def _rungs(options: JobOptions, arguments: Arguments) -> tuple[RungOverrides, ...]:
    """The rungs after the request. A component names reservations in full."""
    for index, rung in enumerate(options.ladder):
        arguments.add(job_rules.unknown_reservation(rung, {}, ("ladder", index)))
    return job_rules.rungs(options.ladder, {}, {})


def _request(
    values: Mapping[str, Any],
    submission: Submission,
    stack: Stack | None,
    arguments: Arguments,
    rungs: tuple[RungOverrides, ...],
    kind: JobKind | None,
    options: Mapping[str, Any],
) -> JobRequest:
    """The request of the job, with all rules of job files; ``kind`` None takes what it is.

    Raises:
        ArgumentsError: with every mistake in the arguments and in the request.
    """
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
    assert result is not None  # without a document there is a problem
    assert result.request is not None  # and without a request as well
    for warning in result.warnings:
        pulumi.log.warn(f"{arguments.component}: {_placed(warning, file)}")
    for path in arguments.stood_in:
        what = "not known yet: `up` judges the image, and submits the job anew if it is another"
        pulumi.log.warn(f"{arguments.component}: {dotted(path)}: {what}.")
    return result.request


def _document(values: Mapping[str, Any], arguments: Arguments) -> tuple[bytes, str] | None:
    """The request as a file, and the file's name, empty for ``spec``; None with a problem."""
    if ("file" in values) == ("spec" in values):
        arguments.problems.append(Problem("give either spec or file", path=("spec",)))
        return None
    before = len(arguments.problems)
    if "spec" in values:
        arguments.inputs["spec"] = spec = arguments.plain(values["spec"], ("spec",))
        # An unknown value is reported as such, and not as missing by the rules of requests.
        return None if len(arguments.problems) > before else (_as_yaml(spec), "")
    arguments.inputs["file"] = name = str(arguments.plain(values["file"], ("file",)))
    arguments.problems += files.file_problems(("file",), name, Path.cwd())
    return None if len(arguments.problems) > before else (Path(name).read_bytes(), name)


def _as_yaml(spec: Any) -> bytes:
    """``spec`` as JSON that is YAML: of a character beyond 16 bits, YAML has no pair of escapes."""
    text = json.dumps(spec, ensure_ascii=False)
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode()


def _placed(problem: Problem, file: str) -> Problem:
    """A problem in ``spec`` at the path of the property; one in a file has its line."""
    if file:
        return problem
    return dataclasses.replace(problem, location=Location(), path=("spec", *problem.path))
