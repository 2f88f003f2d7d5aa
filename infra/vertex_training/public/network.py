"""``TrainingNetwork``: how jobs reach a network."""

from collections.abc import Mapping
from typing import Any, Final, NotRequired, Optional

import pulumi
from pulumi import Input, Output

from vertex_training import program
from vertex_training.environment import Scope
from vertex_training.errors import Problem
from vertex_training.public.declaring import apis_of, output_of, prerequisites
from vertex_training.public.reading import Arguments, environment_name
from vertex_training.public.sections import NetworkFields, SharedVpcArgs
from vertex_training.settings import network as settings_of_network
from vertex_training.settings.model import Settings

FIELDS: Final = tuple(NetworkFields.__annotations__)
SETTINGS: Final = ("project", "project_number", "region", "shared_vpc")


class TrainingNetworkArgs(NetworkFields):
    """Arguments of :class:`TrainingNetwork`. ``mode`` is ``peering`` or ``psc``."""

    project: Input[str]
    """Id of the project of the jobs."""
    project_number: Input[str]
    """Its number, by which jobs name a peered network."""
    region: Input[str]
    """The region of the jobs."""
    environment: NotRequired[Input[str]]
    """Ends its name: ``training-ENVIRONMENT``. The Pulumi stack's name without it."""
    shared_vpc: NotRequired[Input[SharedVpcArgs]]
    """The project that owns the network, if it is another one."""


class TrainingNetwork(pulumi.ComponentResource):
    """A network that jobs reach, by peering or by Private Service Connect interfaces.

    Makes the network, unless it is given, with what jobs need in it. Grants that another project's
    owner must make are logged. Enables Compute Engine, Vertex AI, Resource Manager and, for
    peering, Service Networking.

    Example::

        network = TrainingNetwork(
            "network",
            {
                "project": "local-training",
                "project_number": "971240389164",
                "region": "us-central1",
                "mode": "psc",
                "subnet": {"range": "10.20.0.0/24"},
            },
        )
        pulumi.export("attachment", network.attachment)
    """

    path: Output[str]
    """``projects/P/global/networks/N``, known before it exists."""
    network: Output[str]
    """``network`` of a job in peering: by the project's number. Empty otherwise."""
    attachment: Output[str]
    """The network attachment of jobs with an interface. Empty otherwise."""
    interface: Output[Mapping[str, Any]]
    """``pscInterfaceConfig`` of a job with an interface. Empty otherwise."""

    def __init__(
        self,
        name: str,
        args: TrainingNetworkArgs,
        opts: Optional[pulumi.ResourceOptions] = None,  # noqa: UP045 - as Pulumi's host reads it
    ) -> None:
        """Check the arguments and declare the network.

        Raises:
            ArgumentsError: with every mistake; nothing was declared.
        """
        arguments = Arguments(f"TrainingNetwork '{name}'")
        named = arguments.named(args, (*FIELDS, *SETTINGS, "environment"))
        given = arguments.section(settings_of_network.Network, named, FIELDS, at=("network",))
        raw = arguments.section(Settings, named, SETTINGS) | {"network": given}
        if given.get("mode", "none") == "none":
            hint = "peering or psc; a job without a network needs no component"
            arguments.add([Problem("says how jobs reach it", hint=hint, path=("network", "mode"))])
        stack = arguments.stack(raw, environment_name(named, arguments))
        super().__init__("vertex-training:index:TrainingNetwork", name, {}, opts)
        plan = stack.network
        assert plan is not None  # the mode is not none
        needed = ["compute", "aiplatform", "cloudresourcemanager"]
        needed += ["servicenetworking"] if plan.mode == "peering" else []
        needed += ["dns"] if stack.settings.network.dns_peering else []
        project, after = stack.settings.project, prerequisites(opts, arguments)
        apis = apis_of(self, name, project, needed, after)
        program.declare_network(Scope(name, self), stack, apis)
        if report := stack.external_grants({}):
            pulumi.log.info(report, self)
        self.path = output_of(self, plan.id)
        self.network = output_of(self, plan.path if plan.mode == "peering" else "")
        self.attachment = output_of(self, plan.attachment)
        self.interface = output_of(self, plan.interface if plan.mode == "psc" else {})
        outputs = ("path", "network", "attachment", "interface")
        self.register_outputs({key: getattr(self, key) for key in outputs})
