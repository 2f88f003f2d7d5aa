"""Model versions, endpoints and traffic of endpoints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
import pulumi_gcp as gcp

from vertex_training.components import ordering
from vertex_training.components.ordering import Scope, component_dependencies, program_labels
from vertex_training.serving.declared import DeclaredEndpoint
from vertex_training.serving.provider import EndpointCleanup, EndpointTraffic, ModelVersion
from vertex_training.stack import Stack


class Serving(pulumi.ComponentResource):
    """Models and endpoints of a stack.

    The gcp plugin creates endpoints, and resources of this program deploy their traffic. The plugin
    ignores changes of the traffic split, which it would otherwise overwrite.
    """

    versions: dict[tuple[str, int], ModelVersion]
    """Model versions, by first key of the model and run."""
    endpoints: dict[str, gcp.vertex.AiEndpoint]
    """Endpoints, by first key."""
    traffic: dict[str, EndpointTraffic]
    """Traffic of endpoints, by first key."""

    def __init__(
        self,
        scope: Scope,
        stack: Stack,
        *,
        control_bucket: pulumi.Input[str],
        after: ordering.Resources,
    ) -> None:
        """Declare versions and endpoints ``after`` APIs, grants, images and jobs."""
        opts = pulumi.ResourceOptions.merge(scope.opts, pulumi.ResourceOptions(depends_on=after))
        super().__init__("vertextraining:serving:Serving", scope.name, None, opts)
        self._stack, self._name = stack, scope.name
        self._account = ordering.submitter_of(self)
        dependencies = component_dependencies(after)
        inside = pulumi.ResourceOptions(parent=self, depends_on=dependencies)
        self._declare_versions(control_bucket, inside)
        self.endpoints = {
            key: _endpoint(f"{scope.name}-{key}-endpoint", endpoint, inside)
            for key, endpoint in stack.endpoints.items()
        }
        cleanups = {
            key: EndpointCleanup(
                f"{scope.name}-{key}-cleanup",
                endpoint=endpoint,
                shell=self.endpoints[key].id,
                impersonate=self._account,
                opts=pulumi.ResourceOptions(parent=self),
            )
            for key, endpoint in stack.endpoints.items()
        }
        self.traffic = {
            key: EndpointTraffic(
                f"{scope.name}-{key}-traffic",
                endpoint=endpoint,
                shell=self.endpoints[key].id,
                versions={
                    run: self.versions[endpoint.model, run].id for run in endpoint.deployments
                },
                impersonate=self._account,
                opts=pulumi.ResourceOptions(parent=self, depends_on=cleanups[key]),
            )
            for key, endpoint in stack.endpoints.items()
        }
        self.register_outputs({})

    def _declare_versions(
        self, control_bucket: pulumi.Input[str], inside: pulumi.ResourceOptions
    ) -> None:
        settings = self._stack.declared
        self.versions = {}  # the first version of a model creates the model
        for (key, run), version in sorted(self._stack.versions.items()):
            model = settings.models[key]
            earlier = [declared for (of, _), declared in self.versions.items() if of == key][-1:]
            self.versions[key, run] = ModelVersion(
                f"{self._name}-{key}-run-{run}",
                version=version,
                labels={
                    **settings.names.labels(settings.labels_of(model.team)),
                    **program_labels(),
                },
                control_bucket=control_bucket,
                on_delete=model.on_delete,
                impersonate=self._account,
                opts=pulumi.ResourceOptions.merge(
                    inside, pulumi.ResourceOptions(depends_on=earlier)
                ),
            )


def _endpoint(
    name: str, endpoint: DeclaredEndpoint, inside: pulumi.ResourceOptions
) -> gcp.vertex.AiEndpoint:
    private: gcp.vertex.AiEndpointPrivateServiceConnectConfigArgsDict = {
        "enable_private_service_connect": True,
        "project_allowlists": [endpoint.project],
    }
    key = endpoint.key_name
    return gcp.vertex.AiEndpoint(
        name,
        name=endpoint.id,
        display_name=endpoint.display_name,
        project=endpoint.project,
        location=endpoint.region,
        region=endpoint.region,
        dedicated_endpoint_enabled=None if endpoint.is_private else True,
        private_service_connect_config=private if endpoint.is_private else None,
        encryption_spec={"kms_key_name": key} if key else None,
        labels=endpoint.labels,
        opts=pulumi.ResourceOptions.merge(
            inside, pulumi.ResourceOptions(ignore_changes=["trafficSplit"])
        ),
    )


def make_serving(
    scope: Scope, stack: Stack, control_bucket: pulumi.Input[str], after: ordering.Resources
) -> list[Serving]:
    """Declare models and endpoints; return an empty list if the stack has neither."""
    if not stack.versions and not stack.endpoints:
        return []
    return [Serving(scope.child("serving"), stack, control_bucket=control_bucket, after=after)]


def serving_outputs(stack: Stack, serving: Sequence[Serving]) -> dict[str, Mapping[str, Any]]:
    """Return the outputs ``models`` and ``endpoints`` by current keys. Omits empty outputs."""
    models: dict[str, Any] = {}
    endpoints: dict[str, Any] = {}
    for component in serving:
        for (key, run), version in component.versions.items():
            models.setdefault(key, {})[f"run {run}"] = version.id
        for key, endpoint in component.endpoints.items():
            declared = stack.endpoints[key]
            endpoints[key] = {
                "id": declared.id,
                "name": declared.name,
                "dns": endpoint.dedicated_endpoint_dns,
                "split": {f"run {run}": share for run, share in declared.split.items()},
                # Readers of this output depend on the traffic.
                "serves": component.traffic[key].id.apply(bool),
            }
    result = {
        "models": stack.by_new_keys(("models",), models),
        "endpoints": stack.by_new_keys(("endpoints",), endpoints),
    }
    return {name: values for name, values in result.items() if values}
