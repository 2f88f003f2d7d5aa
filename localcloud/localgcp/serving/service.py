"""``google.cloud.aiplatform.v1.PredictionService``, and the assembly of all serving services.

A request goes to a DeployedModel by its share of the traffic, then to the healthy replica with the
fewest requests.
"""

from __future__ import annotations

import json
import random
from functools import partial
from typing import Any, ClassVar, Final

import grpc
from google.protobuf import json_format

from localgcp.apis.client import Api, Implementation
from localgcp.apis.client import prediction_service as requests
from localgcp.apis.rest import CODES
from localgcp.apis.server import failed_precondition, invalid_argument
from localgcp.errors import ApiError, ContainerDownError, NoAnswerError
from localgcp.faults.calls import OperationFaults
from localgcp.faults.table import FaultTable
from localgcp.serving.deployments import Answer, Deployment, Deployments, Host
from localgcp.serving.endpoints import EndpointService
from localgcp.serving.models import ModelService
from localgcp.serving.records import EndpointTable
from localgcp.vertex.collections import Body, ResourceTable
from localgcp.vertex.operations import OperationRunner
from localgcp.vertex.service import JobService

_CODE: Final = grpc.StatusCode
#: Maximum bytes of a request or an answer, and maximum seconds, by kind of endpoint.
_SHARED: Final = 1_500_000, 60.0
_DEDICATED: Final = 10_000_000, 300.0


class PredictionService:
    """Forwards prediction requests to endpoints."""

    api: ClassVar = Api("google.cloud.aiplatform_v1", "prediction_service")

    def __init__(self, endpoints: EndpointService, deployments: Deployments) -> None:
        self._endpoints, self._deployments = endpoints, deployments

    def predict(self, request: requests.PredictRequest, context: Any) -> requests.PredictResponse:
        """Return the container's predictions for the instances of the request."""
        sent = json_format.MessageToDict(requests.PredictRequest.pb(request))
        payload = {key: sent[key] for key in ("instances", "parameters") if key in sent}
        body = json.dumps({"instances": [], **payload}).encode()
        used, answer = self._ask(request.endpoint, body, context)
        response = requests.PredictResponse(
            deployed_model_id=used.deployed["id"],
            model=used.deployed["model"],
            model_version_id=used.deployed["modelVersionId"],
            model_display_name=used.version["displayName"],
        )
        try:
            document = json.loads(answer.body, parse_constant=_refuse_constant)
            kept = {key: document[key] for key in ("predictions", "metadata") if key in document}
            if not isinstance(kept["predictions"], list):
                raise TypeError("predictions must be a list")
            json_format.ParseDict(kept, requests.PredictResponse.pb(response))
        except (ValueError, LookupError, TypeError, RecursionError, json_format.ParseError) as why:
            text = 'The container\'s answer must have the form {"predictions": [...]}'
            raise ApiError(_CODE.INTERNAL, f"{text} ({type(why).__name__}: {why}).") from None
        return response

    def _ask(self, name: str, body: bytes, context: Any) -> tuple[Deployment, Answer]:
        endpoint = self._endpoints.find(name, context)
        size, seconds = _DEDICATED if endpoint.get("dedicatedEndpointEnabled") else _SHARED
        if len(body) > size:
            raise invalid_argument(f"The request size exceeds {size / 1e6:g}MB limit.")
        used, answer = self._answer(endpoint, body, seconds)
        if answer.status != 200:
            text = answer.body.decode(errors="replace")[:2_000].replace("\0", "")
            code = CODES.get(answer.status)
            code = code or (_CODE.INTERNAL if answer.status >= 500 else _CODE.FAILED_PRECONDITION)
            raise ApiError(code, f"{answer.status} from the container: {text}")
        if len(answer.body) > size:
            text = f"The response size exceeds {size / 1e6:g}MB limit."
            raise failed_precondition(text)
        return used, answer

    def _answer(self, endpoint: Body, body: bytes, seconds: float) -> tuple[Deployment, Answer]:
        while True:
            used = self._pick(endpoint)
            if used is not None and (answer := _try_replicas(used, body, seconds)):
                return used, answer
            if used is not None and not used.closed:
                text = f"DeployedModel {used.deployed['id']} has no healthy replica."
                raise ApiError(_CODE.UNAVAILABLE, text)
            # The model was just undeployed, so another model has its share of the traffic.
            split = (self._endpoints.table.get(endpoint["name"]) or {}).get("trafficSplit")
            if split == endpoint.get("trafficSplit"):
                raise ApiError(_CODE.UNAVAILABLE, f"{endpoint['name']} has no running containers.")
            endpoint = {**endpoint, "trafficSplit": split or {}}

    def _pick(self, endpoint: Body) -> Deployment | None:
        split = {id_: share for id_, share in endpoint.get("trafficSplit", {}).items() if share}
        if not split:
            raise failed_precondition(f"Endpoint {endpoint['name']} doesn't have traffic_split.")
        id_ = random.choices(list(split), list(split.values()))[0]
        return self._deployments.get(endpoint["name"], id_)


def _try_replicas(used: Deployment, body: bytes, seconds: float) -> Answer | None:
    while True:
        with used.replica() as replica:
            if replica is None:
                return None
            try:
                return replica.ask("POST", used.predict_route, body, seconds=seconds)
            except ContainerDownError:
                replica.healthy = False  # until the next health check
            except NoAnswerError as error:
                text = f"The container did not answer: {error}"
                raise ApiError(_CODE.UNAVAILABLE, text) from None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not valid JSON")


class Serving:
    """The serving services with their containers and operations."""

    def __init__(
        self, jobs: JobService, table: ResourceTable, host: Host, faults: FaultTable
    ) -> None:
        self._runner = OperationRunner(jobs.operations, partial(OperationFaults, faults))
        self._deployments = Deployments(host)
        endpoints = EndpointTable(jobs.store, table)
        models = ModelService(jobs, table, endpoints, self._runner, host.cloud.storage_url)
        self._endpoints = EndpointService(jobs, table, endpoints, self._runner, self._deployments)
        prediction = PredictionService(self._endpoints, self._deployments)
        self.services: tuple[Implementation, ...] = (models, self._endpoints, prediction)

    def start(self) -> None:
        """Resume the containers and unfinished operations of an earlier server."""
        self._endpoints.recover()
        self._runner.recover()

    def stop(self) -> None:
        """End all containers; the next server resumes unfinished operations."""
        self._runner.stopping.set()
        self._deployments.stop()  # before the operations, which may wait for containers
        self._runner.stop()
