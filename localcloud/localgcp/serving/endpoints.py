"""``google.cloud.aiplatform.v1.EndpointService``: DeployedModels and their traffic split.

An endpoint runs one operation at a time. A DeployedModel is listed after its replicas are healthy.
It is removed, with its traffic, before its containers end.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

import grpc
from google.longrunning import operations_pb2
from google.protobuf import json_format

from localgcp.apis.client import Api, endpoint, operation
from localgcp.apis.client import endpoint_service as requests
from localgcp.apis.field_rules import json_name
from localgcp.apis.server import failed_precondition, invalid_argument, invalid_fields, not_found
from localgcp.errors import ApiError, ServerStoppingError
from localgcp.serving import checks
from localgcp.serving.deployments import Deployments
from localgcp.serving.records import EndpointTable, VersionTable
from localgcp.vertex.collections import (
    Body,
    Collection,
    ResourceReader,
    ResourceTable,
    serves,
    to_body,
    to_message,
)
from localgcp.vertex.operations import OperationRunner
from localgcp.vertex.records import new_id, now
from localgcp.vertex.service import JobService

ENDPOINTS: Final = Collection(endpoint.Endpoint, "endpoint", "endpoints", requests)
_ID: Final = r"[1-9]\d{0,9}|[a-z][a-z0-9-]{0,61}[a-z0-9]"
#: Fields of a new endpoint that only the service sets.
_UNSET: Final = ("deployedModels", "trafficSplit", "dedicatedEndpointDns")
_MUTABLE: Final = frozenset({
    *("displayName", "description", "labels", "trafficSplit"),
    *("predictRequestResponseLoggingConfig", "clientConnectionConfig"),
})  # fmt: skip
#: Fields that MutateDeployedModel changes.
_OF_REPLICAS: Final = ("minReplicaCount", "maxReplicaCount")
#: Key of the new model in a request's traffic split.
_NEW: Final = "0"


@serves(ENDPOINTS)
class EndpointService(ResourceReader):
    """Endpoints created by stacks and by clients."""

    api: ClassVar = Api("google.cloud.aiplatform_v1", "endpoint_service")

    def __init__(
        self,
        jobs: JobService,
        table: ResourceTable,
        endpoints: EndpointTable,
        runner: OperationRunner,
        deployments: Deployments,
    ) -> None:
        super().__init__(jobs.store, jobs.operations, endpoints)
        self._endpoints, self._runner, self._deployments = endpoints, runner, deployments
        self._versions = VersionTable(table)
        self._lock = threading.RLock()  # held between reading and writing an endpoint
        runner.register("DeployModel", self._deploy)
        runner.register("UndeployModel", self._undeploy)
        runner.register("MutateDeployedModel", self._mutate)

    def recover(self) -> None:
        """Start the containers of all deployed models after a restart of the server."""
        for body in self._endpoints.all():
            for deployed in body["deployedModels"]:
                try:
                    version = self._version(deployed)
                except ApiError as error:  # the inventory was edited
                    print(f"DeployedModel {deployed['id']} of {body['name']}: {error.message}")
                    continue
                self._deployments.start(body["name"], deployed, version)

    def _version(self, deployed: Body) -> Body:
        version = self._versions.get(f"{deployed['model']}@{deployed['modelVersionId']}")
        if version is None:
            raise not_found(deployed["model"], "Model")
        return version

    def create_endpoint(
        self, request: requests.CreateEndpointRequest, context: Any
    ) -> operations_pb2.Operation:
        """Create an endpoint; an endpoint without an id in the request gets a number."""
        place, id_ = self.place(request.parent, context), request.endpoint_id
        if id_ and not re.fullmatch(_ID, id_):
            raise invalid_argument(f"Invalid endpoint_id: {id_!r}; valid ids are {_ID}.")
        name, time = f"{place}/{ENDPOINTS.segment}/{id_ or new_id()}", now()
        sent = to_body(ENDPOINTS, request.endpoint)
        body = {key: value for key, value in sent.items() if key not in _UNSET}
        if body.get("dedicatedEndpointEnabled"):
            body["dedicatedEndpointDns"] = dedicated_dns(name)
        with self._lock:
            if self._endpoints.get(name) is not None:
                text = f"Endpoint {name} already exists."
                raise ApiError(grpc.StatusCode.ALREADY_EXISTS, text)
            body = self._write(body | {"name": name, "createTime": time}, time)
        metadata = requests.CreateEndpointOperationMetadata()
        return self.operations.finish(name, to_message(ENDPOINTS, body), metadata)

    def _write(self, body: Body, time: str) -> Body:
        body |= {"updateTime": time, "etag": re.sub(r"\D", "", time)}
        self._endpoints.put(body)
        return body

    def update(self, sent: Any, mask: Sequence[str], context: Any) -> Body:
        """Update the fields of the mask, or all mutable fields. Raises ApiError."""
        fields = {json_name(path.partition(".")[0]) for path in mask} - {"*"} or _MUTABLE
        if fixed := sorted(fields - _MUTABLE):
            raise invalid_argument(f"update_mask: {', '.join(fixed)} cannot be changed.")
        new = to_body(ENDPOINTS, sent)
        with self._lock:
            body = self.find(sent.name, context)
            if "trafficSplit" in fields:
                known = [deployed["id"] for deployed in body["deployedModels"]]
                checks.check_split(sent.traffic_split, known)
            if new.get("etag", body.get("etag")) != body.get("etag"):
                text = f"The etag of {sent.name} is outdated: the resource was changed meanwhile."
                raise ApiError(grpc.StatusCode.ABORTED, text)
            kept = {key: value for key, value in body.items() if key not in fields}
            return self._write(kept | {k: v for k, v in new.items() if k in fields}, now())

    def delete(self, name: str, context: Any) -> operations_pb2.Operation:
        """Delete an endpoint without DeployedModels."""
        with self._lock:
            body = self._find_idle(name, context)
            if deployed := [model["id"] for model in body["deployedModels"]]:
                text = f"Endpoint {body['name']} has deployed models: {', '.join(deployed)}."
                raise failed_precondition(f"{text} Undeploy them first.")
            self._endpoints.delete(body["name"])
        return self.operations.deleted(body["name"])

    def _find_idle(self, name: str, context: Any) -> Body:
        """Return an endpoint. Raises ApiError if the endpoint has a running operation."""
        body = self.find(name, context)
        self._check_idle(body["name"])
        return body

    def _check_idle(self, name: str) -> None:
        if others := [unfinished[0] for unfinished in self.operations.unfinished(name)]:
            text = f'There are other operations running on the Endpoint "{name}".'
            raise failed_precondition(f"{text} Operation(s) are: {', '.join(others)}.")

    def deploy_model(
        self, request: requests.DeployModelRequest, context: Any
    ) -> operations_pb2.Operation:
        """Start to deploy a version, which receives traffic after it is healthy."""
        sent = json_format.MessageToDict(endpoint.DeployedModel.pb(request.deployed_model))
        with self._lock:
            body = self._find_idle(request.endpoint, context)
            checks.check_deployed_model(self.store, sent)
            deployed = self._new_deployed(body["name"], sent, context)
            known = [model["id"] for model in body["deployedModels"]]
            if deployed["id"] in known:
                text = f"DeployedModel {deployed['id']} already exists in {body['name']}."
                raise ApiError(grpc.StatusCode.ALREADY_EXISTS, text)
            split = dict(request.traffic_split)
            checks.check_split(split, [*known, _NEW])
            split = {deployed["id"] if key == _NEW else key: share for key, share in split.items()}
            work = {"endpoint": body["name"], "deployed": deployed, "split": split or None}
            return self._begin("DeployModel", work)

    def _new_deployed(self, endpoint_name: str, sent: Body, context: Any) -> Body:
        name = self.canonical(sent.get("model", ""), context)
        version = self._versions.get(name) if "/models/" in name else None
        if version is None:
            raise not_found(sent.get("model", ""), "Model")
        if version["name"].split("/")[:4] != endpoint_name.split("/")[:4]:
            text = f"{version['name']} is not in the project and region of the endpoint."
            raise invalid_argument(text)
        resources = sent["dedicatedResources"]
        most = resources.get("maxReplicaCount") or resources["minReplicaCount"]
        return {
            **sent,
            "id": sent.get("id") or new_id(),
            "model": version["name"],
            "modelVersionId": version["versionId"],
            "displayName": sent.get("displayName") or version["displayName"],
            "createTime": now(),
            "dedicatedResources": {**resources, "maxReplicaCount": most},
        }

    def _begin(self, method: str, work: Body) -> operations_pb2.Operation:
        generic = operation.GenericOperationMetadata()
        metadata = getattr(requests, f"{method}OperationMetadata")(generic_metadata=generic)
        return self._runner.begin(work["endpoint"], method, work, metadata)

    def _deploy(self, _: str, work: Mapping[str, Any]) -> requests.DeployModelResponse:
        name, deployed = work["endpoint"], work["deployed"]
        if not any(other["id"] == deployed["id"] for other in self._endpoints.deployed(name)):
            made = self._deployments.start(name, deployed, self._version(deployed))
            try:
                made.wait_healthy(self._runner.stopping)
            except ApiError:
                self._deployments.end(name, deployed["id"], drain=False)
                raise
            self._write_deployed(name, deployed, work["split"])
        return requests.DeployModelResponse(deployed_model=_message(deployed))

    def undeploy_model(
        self, request: requests.UndeployModelRequest, context: Any
    ) -> operations_pb2.Operation:
        """Start to undeploy a model without traffic; the request may remove its traffic."""
        with self._lock:
            body, id_ = self.find(request.endpoint, context), request.deployed_model_id
            self._deployed(body, id_)
            self._check_idle(body["name"])
            others = [model["id"] for model in body["deployedModels"] if model["id"] != id_]
            split = dict(request.traffic_split) or body.get("trafficSplit", {})
            checks.check_idle(id_, split, len(others))
            split = {key: share for key, share in split.items() if key != id_} if others else {}
            if request.traffic_split:
                checks.check_split(split, others)
            work = {"endpoint": body["name"], "id": id_, "split": split}
            return self._begin("UndeployModel", work)

    def _undeploy(self, _: str, work: Mapping[str, Any]) -> requests.UndeployModelResponse:
        with self._lock:
            self._endpoints.remove_deployed(work["endpoint"], work["id"], work["split"])
        self._deployments.end(work["endpoint"], work["id"])
        return requests.UndeployModelResponse()

    def mutate_deployed_model(
        self, request: requests.MutateDeployedModelRequest, context: Any
    ) -> operations_pb2.Operation:
        """Start to change the number of replicas of a DeployedModel."""
        paths = [path.split(".") for path in request.update_mask.paths]
        fields = [json_name(path[-1]) for path in paths]
        if not fields or not {*fields} <= {*_OF_REPLICAS}:
            text = f"can be changed: {' and '.join(_OF_REPLICAS)}."
            raise invalid_argument(f"update_mask: {', '.join(fields) or 'empty'}; {text}")
        sent = json_format.MessageToDict(endpoint.DeployedModel.pb(request.deployed_model))
        with self._lock:
            body = self.find(request.endpoint, context)
            deployed = self._deployed(body, sent.get("id", ""))
            self._check_idle(body["name"])
            new = sent.get("dedicatedResources", {})
            changes = {key: new.get(key) for key in fields}
            resources = {**deployed["dedicatedResources"], **changes}
            resources = {key: value for key, value in resources.items() if value is not None}
            if bad := [*checks.replica_errors(resources)]:
                raise invalid_fields(bad)
            deployed = {**deployed, "dedicatedResources": resources}
            work = {"endpoint": body["name"], "deployed": deployed}
            return self._begin("MutateDeployedModel", work)

    def _mutate(self, _: str, work: Mapping[str, Any]) -> requests.MutateDeployedModelResponse:
        name, deployed = work["endpoint"], work["deployed"]
        deployment = self._deployments.get(name, deployed["id"])
        if deployment is not None:
            deployment.scale(checks.replicas(deployed["dedicatedResources"]))
            deployment.wait_healthy(self._runner.stopping)
        self._write_deployed(name, deployed, None)
        return requests.MutateDeployedModelResponse(deployed_model=_message(deployed))

    def _write_deployed(self, name: str, deployed: Body, split: dict[str, int] | None) -> None:
        if self._runner.stopping.is_set():
            raise ServerStoppingError
        with self._lock:
            self._endpoints.add_deployed(name, deployed, split)

    def _deployed(self, body: Body, id_: str) -> Body:
        for deployed in body["deployedModels"]:
            if deployed["id"] == id_:
                return deployed
        text = f"DeployedModel {id_!r} does not exist in {body['name']}."
        raise ApiError(grpc.StatusCode.NOT_FOUND, text)


def dedicated_dns(name: str) -> str:
    """Return the host name of a dedicated endpoint."""
    _, number, _, region, _, id_ = name.split("/")
    return f"{id_}.{region}-{number}.prediction.vertexai.goog"


def _message(deployed: Body) -> endpoint.DeployedModel:
    made = endpoint.DeployedModel()
    json_format.ParseDict(deployed, endpoint.DeployedModel.pb(made), ignore_unknown_fields=True)
    return made
