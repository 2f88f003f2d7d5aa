"""Read models and endpoints of a stack through the official clients."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from google.api_core.client_options import ClientOptions
from google.api_core.exceptions import FailedPrecondition, NotFound
from google.auth.exceptions import DefaultCredentialsError

from vertex_training.customjob.google import impersonated_credentials, job_service
from vertex_training.customjob.google.job_service import local_address, read
from vertex_training.customjob.protocol.ports import JOB_LABEL, RUN_LABEL, STACK_LABEL
from vertex_training.errors import CommandError, OperatorError, did_you_mean
from vertex_training.naming import Names
from vertex_training.serving.declared import MODEL_LABEL
from vertex_training_cli.engine import stacks
from vertex_training_cli.engine.stacks import StackRef

Kind = Literal["model", "endpoint", "prediction"]


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a model. Its texts come from the service and are not trusted."""

    model: str
    """Key of the model in the stack file."""
    number: str
    """Number of the version in Vertex AI."""
    job: str
    run: str
    image: str
    artifacts: str
    aliases: tuple[str, ...]
    created: str
    name: str
    """Resource name: ``projects/P/locations/R/models/ID@NUMBER``."""


class ModelReader:
    """Reads models and their versions. Methods raise OperatorError if a request fails."""

    def __init__(self, ref: StackRef) -> None:
        self.ref, self._client = ref, client(ref.project, ref.region, "model")

    def versions(self) -> list[Version]:
        """Return all versions of the stack's models, by model, the newest first."""
        models = _listed(
            self._client.list_models,
            {"parent": self.ref.parent, "filter": f"labels.{STACK_LABEL}={self.ref.stack}"},
        )
        names = sorted({model.name.partition("@")[0] for model in models})
        versions = [
            _version(version, name)
            for name in names
            for version in _listed(self._client.list_model_versions, {"name": name})
        ]

        def order(version: Version) -> tuple[str, int]:
            return version.model, -int(version.number) if version.number.isdecimal() else 0

        return sorted((version for version in versions if version.model), key=order)

    def of_model(self, key: str) -> list[Version]:
        """Return the versions of one model, the newest first."""
        every, first = self.versions(), self.ref.first_key(key, "models")
        versions = [version for version in every if version.model == first]
        if not versions:
            hint = did_you_mean(key, {version.model for version in every})
            raise CommandError(f"stack {self.ref.stack} has no model {key!r}.", hint)
        return versions


class Endpoints:
    """Reads endpoints. Methods raise OperatorError if a request fails."""

    def __init__(self, ref: StackRef) -> None:
        self.ref, self._client = ref, client(ref.project, ref.region, "endpoint")

    def list(self) -> dict[str, Any]:
        """Return the stack's endpoints by their keys, in order.

        Of several endpoints with the same name, the endpoint with the stack's own id has the key.
        The others are listed by their ids.
        """
        request = {"parent": self.ref.parent, "filter": f"labels.stack={self.ref.stack}"}
        endpoints = _listed(self._client.list_endpoints, request)
        by_key = dict[str, Any]()
        ids = {endpoint.name.rpartition("/")[2]: endpoint for endpoint in endpoints}
        keys = {id_: self.key_of(endpoint) for id_, endpoint in ids.items()}
        for id_ in sorted(ids, key=lambda id_: (id_ != self._own_id(keys[id_]), id_)):
            by_key[id_ if keys[id_] in by_key else keys[id_]] = ids[id_]
        return dict(sorted(by_key.items(), key=lambda entry: entry[0]))

    def key_of(self, endpoint: Any) -> str:
        """Return an endpoint's key in the stack file; without one, its display name."""
        return endpoint.display_name.removesuffix(f"-{self.ref.stack}")

    def _own_id(self, key: str) -> str:
        ref = self.ref
        return Names(ref.project, "", ref.region, ref.stack).endpoint_id(key)

    def find(self, wanted: str) -> Any:
        """Return an endpoint by its key or id."""
        endpoints, first = self.list(), self.ref.first_key(wanted, "endpoints")
        ids = {item.name.rpartition("/")[2]: item for item in endpoints.values()}
        if (endpoint := ids.get(self._own_id(first)) or ids.get(wanted)) is not None:
            return endpoint
        if (other := endpoints.get(first)) is not None:
            id_ = other.name.rpartition("/")[2]
            what = f"stack {self.ref.stack} did not create endpoint {id_} with the name {wanted!r}."
            raise CommandError(what, f"to use this endpoint, pass its id {id_}.")
        hint = did_you_mean(wanted, endpoints) or "list endpoints with `vt endpoints list`."
        raise CommandError(f"stack {self.ref.stack} has no endpoint {wanted!r}.", hint)


def connected(stack: str | None) -> StackRef:
    """Return the stack of a command, and connect this process's clients to the stack's cloud."""
    ref = stacks.find(stack)
    ref.connect_clients()
    return ref


def reach(endpoint: Any) -> str:
    """Return ``private``, ``public, dedicated`` or ``public, shared``."""
    if endpoint.private_service_connect_config.enable_private_service_connect or endpoint.network:
        return "private"
    return f"public, {'dedicated' if endpoint.dedicated_endpoint_enabled else 'shared'}"


def shares(endpoint: Any, runs: Mapping[str, str]) -> dict[str, int]:
    """Return the traffic share of each deployed model, by run or by the model's id."""
    split = dict(endpoint.traffic_split)
    return {
        runs.get(f"{model.model.partition('@')[0]}@{model.model_version_id}")
        or f"model {model.id}": int(split.get(model.id, 0))
        for model in endpoint.deployed_models
    }


def client(project: str, region: str, kind: Kind, dns: str = "") -> Any:
    """Return the official client of a service; ``dns`` is the address of a dedicated endpoint."""
    # This import must come first, because it prevents the import of unused parts of the client.
    import vertex_training.serving.google  # noqa: F401

    package = f"google.cloud.aiplatform_v1.services.{kind}_service"
    service = f"{kind.title()}Service"
    make = getattr(importlib.import_module(package), f"{service}Client")
    if not dns or local_address(project):
        transports = importlib.import_module(f"{package}.transports")
        transport = getattr(transports, f"{service}GrpcTransport")
        return job_service.service_client(make, transport, project, region)
    try:
        return make(
            credentials=impersonated_credentials(""),
            client_options=ClientOptions(api_endpoint=dns),
            transport="rest",
        )
    except DefaultCredentialsError:
        raise OperatorError(job_service.NO_CREDENTIALS) from None


def _listed(method: Any, request: Mapping[str, Any]) -> Sequence[Any]:
    def list_(**arguments: Any) -> list[Any]:
        return list(method(**arguments))  # This call reads all pages.

    list_.__name__ = method.__name__
    try:
        return read(list_, request=request)
    except (NotFound, FailedPrecondition) as error:
        raise OperatorError(f"Vertex AI: {error.message}") from None


def _version(message: Any, name: str) -> Version:
    labels = dict(message.labels)
    created = message.version_create_time
    return Version(
        model=labels.get(MODEL_LABEL, ""),
        number=message.version_id,
        job=labels.get(JOB_LABEL, ""),
        run=labels.get(RUN_LABEL, ""),
        image=message.container_spec.image_uri,
        artifacts=message.artifact_uri,
        aliases=tuple(message.version_aliases),
        created=created.strftime("%Y-%m-%d %H:%M:%S") if created else "",
        name=f"{name}@{message.version_id}",
    )
