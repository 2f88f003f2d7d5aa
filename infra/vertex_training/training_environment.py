"""``TrainingEnvironment``: the whole program as a component of other programs (docs/components.md).

It declares the same resources as a stack file, with the same names, rules and messages.
"""

from collections.abc import Mapping
from typing import Any, Final, NotRequired, Unpack, overload

import pulumi
from pulumi import Input, Output

from vertex_training import program
from vertex_training.components import ordering
from vertex_training.components.arguments import KEYWORDS, Arguments, Opts, set_outputs
from vertex_training.components.ordering import Scope
from vertex_training.components.sections import EnvironmentFields
from vertex_training.components.storage import made_buckets
from vertex_training.errors import ConfigError
from vertex_training.settings.model import Settings

#: Keys of a stack file that are arguments of ``TrainingEnvironment``.
FIELDS: Final = (*EnvironmentFields.__annotations__, "project", "region", "project_number")
#: Marker of an output with the name of an argument, but another type. Without this marker, Pulumi's
#: SDK would compare the output with the argument.
OF_ANOTHER_TYPE: Final[Any] = pulumi.property("the name of no argument")


class TrainingEnvironmentArgs(EnvironmentFields):
    """Arguments of :class:`TrainingEnvironment`: the keys of a stack file."""

    project: NotRequired[Input[str]]
    """Id of the project; default: project of the gcp provider."""
    project_number: Input[str]
    """Number of the project."""
    region: NotRequired[Input[str]]
    """Region of the resources and jobs; default: region of the gcp provider."""
    environment: NotRequired[Input[str]]
    """Name of the environment, part of all names; default: the Pulumi stack's name."""


class TrainingEnvironment(pulumi.ComponentResource):
    """All resources of a stack file: APIs, buckets, accounts, grants, registry, network and jobs.

    Paths of files (jobs, packages, objects, contexts of images) are relative to the program's
    folder.

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

    buckets: Output[Mapping[str, str]] = OF_ANOTHER_TYPE
    """Bucket URIs (``gs://NAME``) by key."""
    service_accounts: Output[Mapping[str, str]]
    """Addresses of service accounts that jobs run as, by key."""
    registry: Output[str] = OF_ANOTHER_TYPE
    """Prefix of image URIs: ``REGION-docker.pkg.dev/PROJECT/REPOSITORY``."""
    jobs: Output[Mapping[str, Mapping[str, str]]] = OF_ANOTHER_TYPE
    """Jobs by key, with ``name``, ``state``, ``requestId``, ``artifacts``, ``costsAtMost`` and
    links."""
    models: Output[Mapping[str, Mapping[str, str]]] = OF_ANOTHER_TYPE
    """Full names of model versions, by key of the model and run, like ``run 3``."""
    endpoints: Output[Mapping[str, Mapping[str, str]]] = OF_ANOTHER_TYPE
    """Endpoints by key, after their traffic is deployed, with ``id``, ``name`` and ``dns`` (empty
    for private endpoints)."""

    @overload
    def __init__(self, name: str, /, args: TrainingEnvironmentArgs, opts: Opts = None) -> None: ...
    @overload
    def __init__(
        self, name: str, /, *, opts: Opts = None, **given: Unpack[TrainingEnvironmentArgs]
    ) -> None: ...
    def __init__(
        self,
        name: str,
        /,
        args: TrainingEnvironmentArgs = KEYWORDS,
        opts: Opts = None,
        **keywords: Any,
    ) -> None:
        """Declare all resources. Raises ArgumentsError with every mistake in arguments and jobs."""
        arguments = Arguments(f"TrainingEnvironment '{name}'", opts)
        given = arguments.named(args, keywords, (*FIELDS, "environment"))
        raw = arguments.section(Settings, given, FIELDS)
        stack, requests = arguments.stack(raw, arguments.environment(given)), {}
        try:
            requests = program.read_jobs(stack)
        except ConfigError as failed:
            arguments.add(failed.problems)
        if requests:
            arguments.add(ordering.identity_problems(opts))
        arguments.check()
        jobs = [request.submission for request in requests.values()]
        arguments.claim(jobs=jobs, buckets=made_buckets(stack.declared))
        super().__init__("vertex-training:index:TrainingEnvironment", name, arguments.inputs, opts)
        program.log_advice(stack, requests)
        after = arguments.prerequisites()
        # Without annotation, since only outputs are properties in other languages.
        self.environment = program.declare(stack, requests, Scope(name, self), after)
        result = program.outputs(stack, self.environment, requests)
        values = {
            "buckets": result["buckets"],
            "service_accounts": result["serviceAccounts"],
            "registry": self.environment.registry,
            "jobs": {**result["jobs"], **result.get("tuning", {})},
            "models": result.get("models", {}),
            "endpoints": Output.from_input(result.get("endpoints", {})).apply(_addresses),
        }
        set_outputs(self, {key: Output.from_input(value) for key, value in values.items()})


def _addresses(endpoints: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    return {
        key: {name: endpoint[name] or "" for name in ("id", "name", "dns")}
        for key, endpoint in endpoints.items()
    }
