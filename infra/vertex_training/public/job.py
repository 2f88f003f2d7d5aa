"""``TrainingJob``: one job, submitted once."""

import dataclasses
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NotRequired, Optional

import pulumi
from pulumi import Input, Output

from vertex_training import program
from vertex_training.components.training import Training
from vertex_training.customjob.request import job_file
from vertex_training.customjob.request.job_file import JobRequest, Submission
from vertex_training.customjob.rules.context import FILE_ONLY
from vertex_training.errors import Location, Problem
from vertex_training.plan.facts import job_limits
from vertex_training.public.declaring import claim, prerequisites
from vertex_training.public.reading import Arguments, environment_name
from vertex_training.public.sections import JobFields, LimitsArgs
from vertex_training.settings.model import JobOptions, Settings
from vertex_training.settings.partial import STAND_INS
from vertex_training.settings.section import Key, Section
from vertex_training.stack_rules import files

FIELDS: Final = tuple(JobFields.__annotations__)
SETTINGS: Final = ("project", "region", "labels", "limits")
OTHERS: Final = ("environment", "file", "spec", "control_bucket")
#: https://docs.cloud.google.com/storage/docs/buckets#naming
_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]")
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

    project: Input[str]
    """Id of the project of the job."""
    region: Input[str]
    control_bucket: Input[str]
    """Name of the bucket for records: ``TrainingBuckets.control``. May be unknown in a preview."""
    spec: NotRequired[Input[Mapping[str, Any]]]
    """The request, as REST spells it: a CustomJob, its ``jobSpec`` alone, or a
    HyperparameterTuningJob. All of it must be known in a preview."""
    file: NotRequired[Input[str]]
    """A file with the request, below the folder of the program; in place of ``spec``."""
    environment: NotRequired[Input[str]]
    """Part of the job's name and identity. The Pulumi stack's name without it."""
    labels: NotRequired[Input[Mapping[str, Input[str]]]]
    """Labels of the job; a change of them submits nothing."""
    limits: NotRequired[Input[LimitsArgs]]
    """What the job may use and cost."""


class _Options(Section):
    """The options of one job by its name, which is checked like a key of a stack file."""

    stack: str
    jobs: dict[Key, JobOptions]


class TrainingJob(pulumi.ComponentResource):
    """A training job or a tuning job on Vertex AI, checked before and submitted once.

    The rules of job files hold for ``spec`` (docs/rules.md), and ``${job.name}``, ``${job.run}``
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
    console: Output[str]
    """URL of the job in the console, or the command that shows a local job."""
    logs: Output[str]
    """URL of the job's log in the console, or the command that shows a local one."""

    def __init__(
        self,
        name: str,
        args: TrainingJobArgs,
        opts: Optional[pulumi.ResourceOptions] = None,  # noqa: UP045 - as Pulumi's host reads it
    ) -> None:
        """Check the request and declare the job.

        Raises:
            ArgumentsError: with every mistake; nothing was declared.
        """
        arguments = Arguments(f"TrainingJob '{name}'")
        given = arguments.named(args, (*FIELDS, *SETTINGS, *OTHERS))
        environment = environment_name(given, arguments)
        options = _options(name, given, environment, arguments)
        bucket = _control_bucket(given, arguments)
        labels = arguments.section(Settings, given, ("labels",)).get("labels", {})
        request = _request(name, given, environment, options, arguments)
        claim(arguments, jobs=[request.submission])
        super().__init__("vertex-training:index:TrainingJob", name, {}, opts)
        training = Training(
            name,
            requests={name: request},
            jobs={name: options},
            labels=labels,
            control_bucket=bucket,
            finishes=lambda _: options.on_change == "finish",
            after=prerequisites(opts, arguments),
            opts=pulumi.ResourceOptions(parent=self),
        )
        found = program.summary(training.jobs[name], request)
        outputs = {key: pulumi.Output.from_input(found[theirs]) for key, theirs in OUTPUTS.items()}
        for key, value in outputs.items():
            setattr(self, key, value)
        self.register_outputs(outputs)


def _control_bucket(given: Mapping[str, Any], arguments: Arguments) -> Input[str]:
    """The bucket for records: its name, or an output where that is not known yet."""
    bucket = given.get("control_bucket")
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
    name: str, given: Mapping[str, Any], environment: str, arguments: Arguments
) -> JobOptions:
    """What is asked of the job; defaults where that is wrong, since the problems are raised."""
    given = arguments.section(JobOptions, given, FIELDS, at=("jobs", name))
    found = arguments.parse(_Options, {"stack": environment, "jobs": {name: given}})
    return found.jobs[name] if found else JobOptions()


def _request(
    name: str,
    given: Mapping[str, Any],
    environment: str,
    options: JobOptions,
    arguments: Arguments,
) -> JobRequest:
    """The request of the job, with all rules of job files.

    Raises:
        ArgumentsError: with every mistake in the arguments and in the request.
    """
    stack = arguments.stack_or_none(arguments.section(Settings, given, SETTINGS), environment)
    document, result, file = _document(given, arguments), None, ""
    if document is not None:
        data, file = document
        place = stack.settings if stack else Settings.model_validate(STAND_INS)
        submission = Submission(place.project, place.region, environment, name, options.run)
        limits = job_limits(place)
        context = dataclasses.replace(FILE_ONLY, region=place.region, limits=limits)
        result = job_file.check_job_file(data, file or "spec", submission, {}, context)
        arguments.problems += [_placed(problem, file) for problem in result.errors]
        if stack:
            arguments.add(stack.exceeded_limits({name: result}))
    arguments.check()
    assert result is not None  # without a document there is a problem
    assert result.request is not None  # and without a request as well
    for warning in result.warnings:
        pulumi.log.warn(f"{arguments.component}: {_placed(warning, file)}")
    return result.request


def _document(given: Mapping[str, Any], arguments: Arguments) -> tuple[bytes, str] | None:
    """The request as a file, and the file's name, empty for ``spec``; None with a problem."""
    if ("file" in given) == ("spec" in given):
        arguments.problems.append(Problem("give either spec or file", path=("spec",)))
        return None
    before = len(arguments.problems)
    if "spec" in given:
        spec = arguments.plain(given["spec"], ("spec",))
        # An unknown value is reported as such, and not as missing by the rules of requests.
        return None if len(arguments.problems) > before else (json.dumps(spec).encode(), "")
    name = str(arguments.plain(given["file"], ("file",)))
    arguments.problems += files.file_problems(("file",), name, Path.cwd())
    return None if len(arguments.problems) > before else (Path(name).read_bytes(), name)


def _placed(problem: Problem, file: str) -> Problem:
    """A problem in ``spec`` at the path of the property; one in a file has its line."""
    if file:
        return problem
    return dataclasses.replace(problem, location=Location(), path=("spec", *problem.path))
