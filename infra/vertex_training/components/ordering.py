"""Order, scope and provider of resources: prerequisites of jobs, names and places of components.

The SDK has no public way to depend on a component without naming each of its children.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pulumi
import pulumi_gcp as gcp
from pydantic.alias_generators import to_camel

from vertex_training import naming
from vertex_training.customjob.protocol.ports import PROGRAM_LABEL, program_label
from vertex_training.errors import Problem
from vertex_training.pulumi_internals import DependencyResource, awaited, children_of


def component_dependencies(
    components: Sequence[pulumi.Resource],
) -> pulumi.Output[Sequence[pulumi.Resource]]:
    """Dependencies on ``components`` themselves, in place of each resource inside (decision 13).

    Use it for a resource whose parent waits for all of ``components`` already. The engine orders
    deletions by what a resource names itself, and where that is a component, by its children; it
    ignores what the parent names. The SDK would name all children.

    A resource that was registered and does not exist is named itself: ``--target`` left it out, or
    its creation failed. The engine only stops for resources that are named directly.
    """
    return pulumi.Output.from_input(_dependencies(components))


async def _dependencies(components: Sequence[pulumi.Resource]) -> Sequence[pulumi.Resource]:
    dependencies: list[pulumi.Resource] = []
    for resource in components:
        if isinstance(resource, pulumi.ComponentResource):
            dependencies.append(DependencyResource(await resource.urn.future() or ""))
        else:
            dependencies.append(resource)
    if not pulumi.runtime.is_dry_run():  # in a preview, what is to be created has no id either
        for resource in custom_resources(components):
            if not await resource.id.is_known():
                dependencies.append(resource)
    return dependencies


def custom_resources(resources: Sequence[pulumi.Resource]) -> Iterator[pulumi.CustomResource]:
    """All resources in components, as the SDK finds them for ``depends_on``."""
    for resource in inside(resources):
        # One of another process, known by its URN alone, has nothing else.
        if isinstance(resource, pulumi.CustomResource) and not isinstance(
            resource, DependencyResource
        ):
            yield resource


def inside(resources: Iterable[pulumi.Resource]) -> Iterator[pulumi.Resource]:
    """The resources, and all that is in those that are components, at any depth."""
    for resource in resources:
        yield resource
        if isinstance(resource, pulumi.ComponentResource):
            yield from inside(children_of(resource))


class Protection(pulumi.ComponentResource):
    """The first resource that a destroy meets; in a protected environment the one that refuses.

    Waits for all other components, so it goes before them. Has nothing inside. Pulumi looks at the
    protection of a resource when its turn comes. Without this one, a ``destroy`` cancels the jobs
    and deletes secrets and images, and stops at the protected bucket at the end (decision 28).
    """

    def __init__(
        self, scope: Scope, protects: bool, *, after: Sequence[pulumi.ComponentResource]
    ) -> None:
        """``protects``: whether anything of the stack is protected. ``after``: every component.

        It is there also where nothing is protected: one that left the program while the state
        protects it could never be deleted.
        """
        waits = pulumi.ResourceOptions(depends_on=_everything_in(after), protect=protects or None)
        opts = pulumi.ResourceOptions.merge(scope.opts, waits)
        super().__init__("vertextraining:protection:Protection", scope.name, None, opts)
        self.register_outputs({})


def _everything_in(
    components: Sequence[pulumi.ComponentResource],
) -> pulumi.Output[Sequence[pulumi.Resource]]:
    """All resources in the components that could be registered.

    Named one by one: after a deletion that was refused the engine goes on with what the refused
    resource does not need, and it does not count what is inside of a component it names.
    """

    async def registered() -> Sequence[pulumi.Resource]:
        resources = [*components, *custom_resources(components)]
        # One that cannot be created ends the program by itself.
        urns = await asyncio.gather(
            *(each.urn.future() for each in resources), return_exceptions=True
        )
        return [DependencyResource(urn) for urn in urns if urn and isinstance(urn, str)]

    return pulumi.Output.from_input(registered())


@dataclass(frozen=True, slots=True)
class Scope:
    """A component's name in the state, and the component around it."""

    name: str = ""
    """Begins the names of all that is in it; empty at the top of a stack."""
    parent: pulumi.Resource | None = None

    def child(self, component: str) -> Scope:
        """The scope of a component beside others, ``NAME-COMPONENT``."""
        return Scope(f"{self.name}-{component}" if self.name else component, self.parent)

    @property
    def opts(self) -> pulumi.ResourceOptions | None:
        """Options of the component."""
        return pulumi.ResourceOptions(parent=self.parent) if self.parent else None


#: A stack file's own components, whose names in the state are an interface (docs/architecture.md).
TOP: Final = Scope()


def child_options(
    component: pulumi.Resource, after: Sequence[pulumi.Resource], *, protect: bool
) -> pulumi.ResourceOptions:
    """Options of a resource in ``component`` that its settings may protect.

    Else it is for the component's options to say: False would beat what a child inherits.
    """
    return pulumi.ResourceOptions(parent=component, depends_on=after, protect=protect or None)


def program_labels() -> dict[str, str]:
    """By which programs of several repositories, or environments of one, tell their own apart.

    Empty where the names of project and stack make no value of a label.
    """
    program = program_label(pulumi.get_project(), pulumi.get_stack())
    return {PROGRAM_LABEL: program} if naming.LABEL_VALUE.match(program) else {}


#: Any resource type of the provider's package.
_TYPE: Final = "gcp:projects/service:Service"
#: Settings of the provider that are arguments of components, too.
PLACE: Final = ("project", "region")
#: Inputs of the provider that hold for resources alone.
_CREDENTIALS: Final = ("access_token", "credentials")
_IMPERSONATE: Final = "impersonate_service_account"


def explicit(opts: pulumi.ResourceOptions | None) -> pulumi.ProviderResource | None:
    """The provider that a component with ``opts`` gives to what is in it; None for the default."""
    if opts is None:
        return None
    several = opts.providers or ()
    providers = [*(several.values() if isinstance(several, Mapping) else several)]
    providers += [opts.provider] if opts.provider else []
    own = next((each for each in reversed(providers) if each.package == "gcp"), None)
    return own or (opts.parent.get_provider(_TYPE) if opts.parent else None)


def value(opts: pulumi.ResourceOptions | None, key: str) -> Any:
    """A setting of the provider of a component, by its name in Python; None if it has none.

    That of a provider which another language declared cannot be read, and is None: the config's
    may be another one.
    """
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
    """The account as which jobs in a component are submitted; empty for the caller's own."""
    return str(value(pulumi.ResourceOptions(parent=component), _IMPERSONATE) or "")


def identity_problems(opts: pulumi.ResourceOptions | None) -> Iterator[Problem]:
    """Yield a problem if the component's provider acts as an account that its jobs cannot use."""
    provider = explicit(opts)
    for key in _CREDENTIALS:
        if value(opts, key) is not None:
            name = key if provider else to_camel(key)
            what = f"the gcp provider has {name}, which would not submit the job"
            hint = f"for both, {_IMPERSONATE if provider else to_camel(_IMPERSONATE)}"
            yield Problem(what, hint=f"{hint}, or application default credentials")
    if provider is not None and not isinstance(provider, gcp.Provider):
        pulumi.log.warn(
            "A gcp provider of another language cannot be read here: its jobs are submitted with "
            "application default credentials, or as GOOGLE_IMPERSONATE_SERVICE_ACCOUNT."
        )
