"""``TrainingEnvironment``: all of an environment, as a stack file describes it."""

from collections.abc import Mapping
from typing import Final, NotRequired, Optional

import pulumi
from pulumi import Input, Output

from vertex_training import program
from vertex_training.customjob.request.job_file import JobRequest
from vertex_training.environment import Scope
from vertex_training.errors import ConfigError
from vertex_training.public.declaring import claim, made_buckets, prerequisites
from vertex_training.public.reading import Arguments, environment_name
from vertex_training.public.sections import EnvironmentFields
from vertex_training.settings.model import Settings
from vertex_training.stack import Stack

FIELDS: Final = tuple(EnvironmentFields.__annotations__)
PLACE: Final = ("project", "region", "project_number")


class TrainingEnvironmentArgs(EnvironmentFields):
    """Arguments of :class:`TrainingEnvironment`: the keys of a stack file."""

    project: Input[str]
    """Id of the project."""
    project_number: Input[str]
    """Its number."""
    region: Input[str]
    environment: NotRequired[Input[str]]
    """Name of the environment, part of the names of everything in it. The Pulumi stack's name
    without it."""


class TrainingEnvironment(pulumi.ComponentResource):
    """APIs, buckets, accounts, grants, registry, network, reservations and the jobs themselves.

    What a stack file makes, as one component beside other resources. Files that it names (jobs,
    packages, objects, contexts of images) are below the folder of the program.

    Example::

        training = TrainingEnvironment(
            "training",
            {
                "project": "local-training",
                "project_number": "971240389164",
                "region": "us-central1",
                "buckets": {"data": {}, "artifacts": {}},
                "service_accounts": {"trainer": {"reads": ["data"], "writes": ["artifacts"]}},
                "jobs": {"titanic": {"file": "jobs/titanic.yaml"}},
            },
        )
        pulumi.export("jobs", training.jobs)
    """

    buckets: Output[Mapping[str, str]]
    """``gs://NAME`` by key."""
    service_accounts: Output[Mapping[str, str]]
    """Addresses of the accounts that jobs run as, by key."""
    registry: Output[str]
    """Prefix of images: ``REGION-docker.pkg.dev/PROJECT/REPOSITORY``."""
    jobs: Output[Mapping[str, Mapping[str, str]]]
    """By key: ``name``, ``state``, ``requestId``, ``artifacts``, ``costsAtMost``, links."""

    def __init__(
        self,
        name: str,
        args: TrainingEnvironmentArgs,
        opts: Optional[pulumi.ResourceOptions] = None,  # noqa: UP045 - as Pulumi's host reads it
    ) -> None:
        """Check the arguments and all jobs, log what a reviewer must know, and declare everything.

        Raises:
            ArgumentsError: with every mistake; nothing was declared.
        """
        arguments = Arguments(f"TrainingEnvironment '{name}'")
        given = arguments.named(args, (*FIELDS, *PLACE, "environment"))
        raw = arguments.section(Settings, given, (*FIELDS, *PLACE))
        stack = arguments.stack(raw, environment_name(given, arguments))
        requests = _requests(stack, arguments)
        jobs = [request.submission for request in requests.values()]
        claim(arguments, jobs=jobs, buckets=made_buckets(stack))
        super().__init__("vertex-training:index:TrainingEnvironment", name, {}, opts)
        program.log_advice(stack, requests)
        after = prerequisites(opts, arguments)
        # Not annotated: in other languages only outputs are properties.
        self.environment = program.declare(stack, requests, Scope(name, self), after)
        found = program.outputs(stack, self.environment, requests)
        self.buckets = pulumi.Output.from_input(found["buckets"])
        self.service_accounts = pulumi.Output.from_input(found["serviceAccounts"])
        self.registry = self.environment.registry
        self.jobs = pulumi.Output.from_input({**found["jobs"], **found.get("tuning", {})})
        outputs = ("buckets", "service_accounts", "registry", "jobs")
        self.register_outputs({key: getattr(self, key) for key in outputs})


def _requests(stack: Stack, arguments: Arguments) -> Mapping[str, JobRequest]:
    """The requests of all jobs.

    Raises:
        ArgumentsError: with every mistake in their files.
    """
    try:
        return program.read_jobs(stack)
    except ConfigError as failed:
        arguments.add(failed.problems)
    arguments.check()
    return {}  # not reached: there are problems
