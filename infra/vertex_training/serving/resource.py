"""The resources ``ModelVersion``, ``EndpointCleanup`` and ``EndpointTraffic``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import pulumi
from pulumi import dynamic

from vertex_training.serving.declared import DeclaredDeployment, DeclaredEndpoint, DeclaredVersion
from vertex_training.serving.provider import (
    DeployedModelsProvider,
    EndpointCleanupProvider,
    ModelVersionProvider,
)


class ModelVersion(dynamic.Resource, module="vertex", name="ModelVersion"):
    """A version of a model in the registry, created from a run's artifacts.

    Its id is ``projects/NUMBER/locations/REGION/models/ID@VERSION``. A changed request creates a
    new version. The old version leaves the stack when no endpoint of the stack serves it, and
    remains in the registry unless the stack file has ``onDelete: delete``.
    """

    resolved: pulumi.Output[Mapping[str, Any]]
    """The source run: ``job``, ``state``, ``artifactUri`` and ``metrics``."""

    def __init__(
        self,
        resource_name: str,
        *,
        version: DeclaredVersion,
        labels: Mapping[str, str],
        control_bucket: pulumi.Input[str],
        on_delete: str,
        impersonate: str = "",
        opts: pulumi.ResourceOptions,
    ) -> None:
        """Declare the version. ``control_bucket`` has the record that prevents a second upload.

        A change of ``labels`` creates no new version. ``on_delete`` is ``keep`` or ``delete``, for
        a version that leaves the stack. ``impersonate`` is the account for the upload.
        """
        inputs = {
            "model": {**asdict(version.source), "id": version.model_id},
            "requestId": version.request_id,
            "container": version.container,
            "artifacts": version.artifacts,
            "files": list(version.files),
            "options": {
                "labels": dict(labels),
                "controlBucket": control_bucket,
                "onDelete": on_delete,
                **({"key": version.key} if version.key else {}),
                **({"impersonate": impersonate} if impersonate else {}),
            },
        }
        # ``resolved`` is an output for the program; ``check`` adds its value to the inputs.
        super().__init__(ModelVersionProvider(), resource_name, {**inputs, "resolved": None}, opts)


class EndpointCleanup(dynamic.Resource, module="vertex", name="EndpointCleanup"):
    """Undeploys the stack's models from an endpoint when the endpoint leaves the stack.

    After a killed ``up``, the state may lack ``EndpointTraffic`` although models are deployed.
    """

    def __init__(
        self,
        resource_name: str,
        *,
        endpoint: DeclaredEndpoint,
        shell: pulumi.Input[str],
        impersonate: str = "",
        opts: pulumi.ResourceOptions,
    ) -> None:
        """Declare the resource. ``shell`` and ``impersonate`` are as in ``EndpointTraffic``."""
        inputs = {
            "endpoint": _place(endpoint),
            "options": {"impersonate": impersonate} if impersonate else {},
            "shell": shell,
        }
        super().__init__(EndpointCleanupProvider(), resource_name, inputs, opts)


class EndpointTraffic(dynamic.Resource, module="vertex", name="EndpointTraffic"):
    """The deployed versions of an endpoint, and their shares of the traffic.

    An update deploys new versions without traffic, sets the split in one call when all versions are
    healthy, and undeploys removed versions last. Foreign deployed models are never removed.
    """

    others: pulumi.Output[list[str]]
    """Ids of deployed models that do not belong to the stack, as last read."""

    def __init__(
        self,
        resource_name: str,
        *,
        endpoint: DeclaredEndpoint,
        shell: pulumi.Input[str],
        versions: Mapping[int, pulumi.Input[str]],
        impersonate: str = "",
        opts: pulumi.ResourceOptions,
    ) -> None:
        """Declare the resource. ``versions`` has the names of model versions by run.

        ``shell`` is the id of the endpoint. If the endpoint is replaced, this input makes the
        engine replace this resource, too, because only an empty endpoint can be deleted.
        """
        inputs = {
            "endpoint": {
                **_place(endpoint),
                "name": endpoint.key,
                "model": endpoint.model,
                "public": endpoint.is_named_public,
                "private": endpoint.is_private,
                **({"account": endpoint.account} if endpoint.account else {}),
                **({"team": endpoint.team} if endpoint.team else {}),
            },
            "deployed": {
                f"run {run}": _deployed(deployment, versions[run])
                for run, deployment in endpoint.deployments.items()
            },
            "split": {f"run {run}": share for run, share in endpoint.split.items()},
            "options": {"impersonate": impersonate} if impersonate else {},
            "shell": shell,
        }
        super().__init__(DeployedModelsProvider(), resource_name, {**inputs, "others": None}, opts)


def _place(endpoint: DeclaredEndpoint) -> dict[str, str]:
    return {
        "project": endpoint.project,
        "region": endpoint.region,
        "id": endpoint.id,
        "key": endpoint.key,
        "stack": endpoint.stack,
    }


def _deployed(deployment: DeclaredDeployment, version: pulumi.Input[str]) -> dict[str, Any]:
    return {
        "model": version,
        "deployedModelId": deployment.id,
        "requestId": deployment.version.request_id,
        "machine": dict(deployment.machine),
        "min": deployment.minimum,
        "max": deployment.maximum,
        **({"account": deployment.account} if deployment.account else {}),
    }
