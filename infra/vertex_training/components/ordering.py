"""Dependencies between components, their scopes and their providers.

The SDK has no public way to depend on a component without a list of all its children.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import pulumi
import pulumi_gcp as gcp
from pydantic.alias_generators import to_camel

from vertex_training import naming
from vertex_training.customjob.protocol.ports import PROGRAM_LABEL, program_label
from vertex_training.errors import Problem
from vertex_training.pulumi_internals import DependencyResource, awaited, children_of

#: Resources that a resource waits for.
Resources: TypeAlias = Sequence[pulumi.Resource]


def component_dependencies(components: Resources) -> pulumi.Output[Resources]:
    """Return dependencies on ``components`` themselves, not on their children (decision 13).

    For the order of deletions the engine expands a component to its children, and ignores
    dependencies of a resource's parent. A registered resource without an id (excluded by
    ``--target``, or not created) is listed itself, since the engine only stops for direct
    dependencies.
    """
    return pulumi.Output.from_input(_dependencies(components))


async def _dependencies(components: Resources) -> Resources:
    dependencies: list[pulumi.Resource] = []
    for resource in components:
        if isinstance(resource, pulumi.ComponentResource):
            dependencies.append(DependencyResource(await resource.urn.future() or ""))
        else:
            dependencies.append(resource)
    if not pulumi.runtime.is_dry_run():  # in a preview, resources to be created have no id either
        for resource in custom_resources(components):
            if not await resource.id.is_known():
                dependencies.append(resource)
    return dependencies


def custom_resources(resources: Resources) -> Iterator[pulumi.CustomResource]:
    """Yield custom resources, including those in components."""
    for resource in inside(resources):
        is_custom = isinstance(resource, pulumi.CustomResource)
        # Resources of other processes (`DependencyResource`) have only a URN.
        if is_custom and not isinstance(resource, DependencyResource):
            yield resource


def inside(resources: Iterable[pulumi.Resource]) -> Iterator[pulumi.Resource]:
    """Yield the resources, and all resources inside of components at any depth."""
    for resource in resources:
        yield resource
        if isinstance(resource, pulumi.ComponentResource):
            yield from inside(children_of(resource))


class Protection(pulumi.ComponentResource):
    """Empty component that ``destroy`` deletes first. In a protected stack this deletion fails.

    Pulumi checks the protection of each resource only before deleting it. Without this component,
    ``destroy`` would cancel jobs and delete secrets before it stops at a protected bucket (decision
    28).
    """

    def __init__(
        self, scope: Scope, protects: bool, *, after: Sequence[pulumi.ComponentResource]
    ) -> None:
        """Declare the component, also without ``protects``; a removed one cannot be deleted."""
        waits = pulumi.ResourceOptions(depends_on=_everything_in(after), protect=protects or None)
        opts = pulumi.ResourceOptions.merge(scope.opts, waits)
        super().__init__("vertextraining:protection:Protection", scope.name, None, opts)
        self.register_outputs({})


def _everything_in(
    components: Sequence[pulumi.ComponentResource],
) -> pulumi.Output[Resources]:
    """Return all registered resources in components.

    After a refused deletion the engine deletes every resource that the refused resource does not
    depend on, and does not expand components.
    """

    async def registered() -> Resources:
        resources = [*components, *custom_resources(components)]
        # A failed registration ends the program by itself.
        urns = await asyncio.gather(
            *(resource.urn.future() for resource in resources), return_exceptions=True
        )
        return [DependencyResource(urn) for urn in urns if urn and isinstance(urn, str)]

    return pulumi.Output.from_input(registered())


@dataclass(frozen=True, slots=True)
class Scope:
    """Name of a component in the state, with its parent component."""

    name: str = ""
    """Prefix of the names of the component's children; empty at the top of a stack."""
    parent: pulumi.Resource | None = None

    def child(self, component: str) -> Scope:
        """Return the scope of a child component, ``NAME-COMPONENT``."""
        return Scope(f"{self.name}-{component}" if self.name else component, self.parent)

    @property
    def opts(self) -> pulumi.ResourceOptions | None:
        return pulumi.ResourceOptions(parent=self.parent) if self.parent else None


#: Scope of a stack file's own components. Their names in the state are an interface
#: (docs/architecture.md).
TOP: Final = Scope()


def child_options(
    component: pulumi.Resource, after: Resources, *, protect: bool
) -> pulumi.ResourceOptions:
    """Return options of a child resource. Without ``protect`` it has the component's protection."""
    return pulumi.ResourceOptions(parent=component, depends_on=after, protect=protect or None)


def program_labels() -> dict[str, str]:
    """Return the label with Pulumi project and stack; empty if their names form no valid label."""
    program = program_label(pulumi.get_project(), pulumi.get_stack())
    return {PROGRAM_LABEL: program} if naming.LABEL_VALUE.match(program) else {}


#: A resource type of the provider's package; any type is suitable.
_TYPE: Final = "gcp:projects/service:Service"
#: Settings of the provider that are also arguments of components.
PLACE: Final = ("project", "region")
#: Inputs of the provider that do not apply to jobs.
_CREDENTIALS: Final = ("access_token", "credentials")
_IMPERSONATE: Final = "impersonate_service_account"


def explicit(opts: pulumi.ResourceOptions | None) -> pulumi.ProviderResource | None:
    """Return the explicit gcp provider of a component; None for the default provider."""
    if opts is None:
        return None
    several = opts.providers or ()
    providers = [*(several.values() if isinstance(several, Mapping) else several)]
    providers += [opts.provider] if opts.provider else []
    own = next((provider for provider in reversed(providers) if provider.package == "gcp"), None)
    return own or (opts.parent.get_provider(_TYPE) if opts.parent else None)


def value(opts: pulumi.ResourceOptions | None, key: str) -> Any:
    """Return a setting of a component's provider, by Python name; None if unset or unreadable."""
    provider = explicit(opts)
    if provider is None:
        result = pulumi.Config("gcp").get(to_camel(key))
        return result or (getattr(gcp.config, key) if key in PLACE else None)
    result = getattr(provider, key, None)
    if isinstance(result, pulumi.Output):
        result = awaited(result.future())
    if result is None and isinstance(provider, gcp.Provider) and key in PLACE:
        return value(None, key)
    return result


def submitter_of(component: pulumi.Resource) -> str:
    """Return the account that submits a component's jobs; empty for the caller's own account."""
    return str(value(pulumi.ResourceOptions(parent=component), _IMPERSONATE) or "")


def identity_problems(opts: pulumi.ResourceOptions | None) -> Iterator[Problem]:
    """Yield a problem for credentials of the provider that cannot submit jobs."""
    provider = explicit(opts)
    for key in _CREDENTIALS:
        if value(opts, key) is not None:
            name = key if provider else to_camel(key)
            what = f"the gcp provider has {name}, which does not apply to submitting jobs"
            hint = f"use {_IMPERSONATE if provider else to_camel(_IMPERSONATE)}"
            yield Problem(what, hint=f"{hint}, or application default credentials, for both")
    if provider is not None and not isinstance(provider, gcp.Provider):
        pulumi.log.warn(
            "Settings of a gcp provider from another language are unreadable: jobs are submitted "
            "with application default credentials, or as GOOGLE_IMPERSONATE_SERVICE_ACCOUNT."
        )
