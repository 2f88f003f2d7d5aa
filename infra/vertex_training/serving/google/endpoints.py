"""Calls Vertex AI endpoints and their deployed models. Sends each change once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from google.protobuf.json_format import MessageToDict

from vertex_training.customjob.google.job_service import (
    operation_name,
    read_or_none,
    send_once,
    shared,
    to_proto,
)
from vertex_training.errors import NotSubmittedError, PreconditionFailedError
from vertex_training.serving.google import operations
from vertex_training.serving.google.operations import REFUSALS, GoogleOperations
from vertex_training.serving.protocol.ports import Deployment, EndpointSnapshot


def connect(project: str, region: str, account: str = "") -> GoogleEndpoints:
    """Return the endpoints of a project's region, shared by all threads. Raises OperatorError."""
    types = operations.EndpointServiceClient, operations.EndpointServiceGrpcTransport
    return GoogleEndpoints(shared(*types, project, region, account))


class GoogleEndpoints(GoogleOperations):
    """``ports.Endpoints`` with the official client."""

    _client: operations.EndpointServiceClient

    def get(self, name: str) -> EndpointSnapshot | None:
        """Return the endpoint; None if it does not exist."""
        endpoint = read_or_none(self._client.get_endpoint, f"read {name}", name=name)
        if endpoint is None:
            return None
        return EndpointSnapshot(
            name,
            {
                deployed_model.id: _deployment(deployed_model)
                for deployed_model in endpoint.deployed_models
            },
            {id_: share for id_, share in endpoint.traffic_split.items() if share},
            endpoint.etag,
        )

    def deploy(self, name: str, deployment: Deployment) -> str:
        """Deploy a version. Without a traffic split, the call does not change the current split."""
        message = {
            "id": deployment.id,
            "model": deployment.version,
            "displayName": deployment.display_name,
            "dedicatedResources": {
                "machineSpec": dict(deployment.machine),
                "minReplicaCount": deployment.minimum,
                "maxReplicaCount": deployment.maximum,
            },
            **({"serviceAccount": deployment.account} if deployment.account else {}),
        }
        what = f"the deployment of {deployment.version.rpartition('/')[2]}"
        return _begin(
            self._client.deploy_model, what, endpoint=name, deployed_model=_model(message)
        )

    def resize(self, name: str, deployment: Deployment) -> str:
        """Change the minimum and maximum number of replicas of a deployed model."""
        message = {
            "id": deployment.id,
            "dedicatedResources": {
                "minReplicaCount": deployment.minimum,
                "maxReplicaCount": deployment.maximum,
            },
        }
        mask = [f"dedicated_resources.{bound}_replica_count" for bound in ("min", "max")]
        return _begin(
            self._client.mutate_deployed_model,
            f"the resizing of {deployment.id}",
            endpoint=name,
            deployed_model=_model(message),
            update_mask={"paths": mask},
        )

    def undeploy(self, name: str, id_: str) -> str:
        """Undeploy a model."""
        what = f"the undeployment of {id_}"
        return _begin(self._client.undeploy_model, what, endpoint=name, deployed_model_id=id_)

    def set_split(self, name: str, split: Mapping[str, int], etag: str) -> None:
        """Write the whole traffic split if the endpoint still has ``etag``."""
        endpoint = {"name": name, "traffic_split": dict(split), "etag": etag}
        try:
            send_once(
                self._client.update_endpoint,
                "the split",
                {**REFUSALS, "ABORTED": _STALE},
                endpoint=endpoint,
                update_mask={"paths": ["traffic_split"]},
            )
        except NotSubmittedError as refused:
            if "etag" in str(refused).lower() or _STALE in str(refused):
                raise PreconditionFailedError from None
            raise


#: Hint of an error about a changed etag of the endpoint. Only code reads this text.
_STALE = "another process wrote the endpoint"


def _begin(call: Callable[..., Any], what: str, **request: Any) -> str:
    """Start a long-running operation with one call, and return its name."""
    return operation_name(send_once(call, what, REFUSALS, request=request))


def _model(message: dict[str, Any]) -> operations.DeployedModel:
    return to_proto(operations.DeployedModel, message)


def _deployment(model: operations.DeployedModel) -> Deployment:
    resources = model.dedicated_resources
    version = model.model.partition("@")[0]
    if model.model_version_id:
        version = f"{version}@{model.model_version_id}"
    return Deployment(
        model.id,
        version,
        model.display_name,
        resources.min_replica_count,
        resources.max_replica_count or resources.min_replica_count,
        MessageToDict(type(resources).pb(resources).machine_spec),
        model.service_account,
    )
