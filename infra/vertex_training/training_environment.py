"""``TrainingEnvironment``: the whole program as one component, beside resources of other programs.

Reads its arguments as a stack file, and declares what the program declares of one: the same names,
rules and messages (docs/components.md).
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

#: What a stack file and the arguments of ``TrainingEnvironment`` both have.
FIELDS: Final = (*EnvironmentFields.__annotations__, "project", "region", "project_number")
#: Stands beside an output that has the name of an argument, and another type: Pulumi's SDK holds
#: arguments that it registered against the outputs of their name. One for all: it holds nothing.
OF_ANOTHER_TYPE: Final[Any] = pulumi.property("the name of no argument")


class TrainingEnvironmentArgs(EnvironmentFields):
    """Arguments of :class:`TrainingEnvironment`: the keys of a stack file."""

    project: NotRequired[Input[str]]
    """Id of the project. The provider's without it."""
    project_number: Input[str]
    """Its number."""
    region: NotRequired[Input[str]]
    """Region of everything in it. The provider's without it."""
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

    buckets: Output[Mapping[str, str]] = OF_ANOTHER_TYPE
    """``gs://NAME`` by key."""
    service_accounts: Output[Mapping[str, str]]
    """Addresses of the accounts that jobs run as, by key."""
    registry: Output[str] = OF_ANOTHER_TYPE
    """Prefix of images: ``REGION-docker.pkg.dev/PROJECT/REPOSITORY``."""
    jobs: Output[Mapping[str, Mapping[str, str]]] = OF_ANOTHER_TYPE
    """By key: ``name``, ``state``, ``requestId``, ``artifacts``, ``costsAtMost``, links."""
    models: Output[Mapping[str, Mapping[str, str]]] = OF_ANOTHER_TYPE
    """Names of versions by key and run: ``run 3``."""
    endpoints: Output[Mapping[str, Mapping[str, str]]] = OF_ANOTHER_TYPE
    """By key, once they serve what is declared: ``id``, ``name``, and
    ``dns``, which is empty for a private one."""

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
        """Check the arguments and all jobs, log what a reviewer must know, and declare everything.

        Raises:
            ArgumentsError: with every mistake; nothing was declared.
        """
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
        # Not annotated: in other languages only outputs are properties.
        self.environment = program.declare(stack, requests, Scope(name, self), after)
        found = program.outputs(stack, self.environment, requests)
        values = {
            "buckets": found["buckets"],
            "service_accounts": found["serviceAccounts"],
            "registry": self.environment.registry,
            "jobs": {**found["jobs"], **found.get("tuning", {})},
            "models": found.get("models", {}),
            "endpoints": Output.from_input(found.get("endpoints", {})).apply(_addresses),
        }
        set_outputs(self, {key: Output.from_input(value) for key, value in values.items()})


def _addresses(endpoints: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """Addresses of endpoints for their callers. Known with ``serves``, so once all of it serves."""
    return {
        key: {name: each[name] or "" for name in ("id", "name", "dns")}
        for key, each in endpoints.items()
    }
