"""``ModelVersion``, ``EndpointCleanup`` and ``EndpointTraffic``, as the program declares them."""

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
    """One version of a model in the registry, made of what one run left.

    Its id is ``projects/NUMBER/locations/REGION/models/ID@VERSION``. Another request makes another
    version; the old one leaves when nothing of the stack serves it any more, and stays in the
    registry unless the stack file says ``onDelete: delete``.
    """

    resolved: pulumi.Output[Mapping[str, Any]]
    """The run that it was made of: ``job``, ``state``, ``artifactUri`` and ``metrics``."""

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
        """Declare the version.

        ``labels`` are the stack's; a change of them makes no other version. ``control_bucket``
        holds the record by which it is uploaded only once. ``on_delete``, ``keep`` or ``delete``,
        is about the version when it leaves. ``impersonate`` is the account that uploads it.
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
        # ``resolved`` is an output here, and ``check`` adds it to the inputs.
        super().__init__(ModelVersionProvider(), resource_name, {**inputs, "resolved": None}, opts)


class EndpointCleanup(dynamic.Resource, module="vertex", name="EndpointCleanup"):
    """Empties one endpoint of the stack's deployed models when it leaves; does nothing before.

    It stands between the endpoint and its ``EndpointTraffic``, which a killed ``up`` leaves out of
    the state together with what it had deployed.
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
        """Declare it. ``shell`` and ``impersonate`` are those of ``EndpointTraffic``."""
        inputs = {
            "endpoint": _place(endpoint),
            "options": {"impersonate": impersonate} if impersonate else {},
            "shell": shell,
        }
        super().__init__(EndpointCleanupProvider(), resource_name, inputs, opts)


class EndpointTraffic(dynamic.Resource, module="vertex", name="EndpointTraffic"):
    """The versions behind one endpoint and the share of each; the only writer of both.

    Updated in place: what is new is deployed without traffic, the split is set in one call once all
    of it is healthy, and what has left is undeployed last. What others deployed is never removed.
    """

    others: pulumi.Output[list[str]]
    """Ids of deployed models that are not the stack's, as last read."""

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
        """Declare it. ``versions`` are the names of the model versions by run.

        ``shell`` is the id of the endpoint itself. Where that is made anew, it has to be empty
        first, so this is made anew around it: the engine sees that by this input alone.
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
    """Return what identifies an endpoint, and the stack's deployed models there."""
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
