"""Check requests to the model and endpoint services; errors end a call at once.

Sources: google-cloud-aiplatform 2.7.0 (``model.py``, ``endpoint.py``, ``machine_resources.py`` and
the services), doc:predictions/custom-container-requirements. Most texts are ours.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from localgcp.apis.server import (
    failed_precondition,
    invalid_argument,
    invalid_fields,
    permission_denied,
)
from localgcp.containers.engines import registry_path
from localgcp.inventory import resource_paths
from localgcp.inventory.store import IMAGE_READER, Store, has_role, service_agent
from localgcp.vertex.admission import READERS, WRITERS
from localgcp.vertex.checks import FieldErrors, check_account, env_errors, machine_errors

MODEL_ID: Final = r"[a-z_][a-z0-9_-]{0,62}"
_ALIAS: Final = re.compile(r"[a-z][a-zA-Z0-9-]{0,126}[a-z0-9]")
_IMAGE: Final = re.compile(r"(?P<place>[a-z0-9-]+)-docker\.pkg\.dev/(?P<project>[^/]+)/.+")
_IMAGE_READERS: Final = IMAGE_READER | {"roles/aiplatform.serviceAgent"}
_BUCKET_READERS: Final = READERS | WRITERS | {"roles/aiplatform.serviceAgent"}


def check_model(store: Store, project: str, region: str, body: Mapping[str, Any]) -> None:
    """Raise ApiError if a model version cannot be uploaded."""
    if bad := [*_model_errors(body, region)]:
        raise invalid_fields(bad)
    agent = service_agent(project)
    match = _IMAGE.fullmatch(body["containerSpec"]["imageUri"])
    if match and registry_path(match[0]) and match["project"] != project:
        repository = match[0].split("/")[2]
        place = f"projects/{match['project']}/locations/{match['place']}/repositories/{repository}"
        if not has_role(store, agent, _IMAGE_READERS, f"projects/{match['project']}", place):
            text = f"{agent} does not have permission to pull {match[0]}."
            raise permission_denied(f"{text} Grant roles/artifactregistry.reader on {place}.")
    if uri := body.get("artifactUri"):
        _check_bucket(store, project, region, uri)


def _check_bucket(store: Store, project: str, region: str, uri: str) -> None:
    bucket = uri.removeprefix("gs://").partition("/")[0]
    resource = store.bucket(bucket)
    if resource is None:
        raise invalid_argument(f"The specified bucket does not exist: gs://{bucket} (in {uri}).")
    owner, agent = resource.get("project"), service_agent(project)
    if owner not in (project, None) and not has_role(
        store, agent, _BUCKET_READERS, f"b/{bucket}", f"projects/{owner}"
    ):
        text = f"{agent} does not have storage.objects.list access to the bucket gs://{bucket}."
        raise permission_denied(f"{text} Grant roles/storage.objectViewer on the bucket.")
    location = str(resource.get("location") or region).lower()
    if location != region:
        text = f"The artifact_uri {uri} is in a bucket of location {location};"
        raise invalid_argument(f"{text} it must be in the region of the model, {region}.")


def _model_errors(body: Mapping[str, Any], region: str) -> FieldErrors:
    for alias in body.get("versionAliases", []):
        if not _ALIAS.fullmatch(alias):
            yield "model.version_aliases", f"{alias!r} does not match {_ALIAS.pattern}."
    uri = body.get("artifactUri", "")
    if uri and not re.fullmatch(r"gs://[a-z0-9][a-z0-9._-]*(/.*)?", uri, re.DOTALL):
        yield "model.artifact_uri", f"Expected a Cloud Storage URI, got {uri!r}."
    if any(part in (".", "..") for part in uri.removeprefix("gs://").split("/")):
        yield "model.artifact_uri", f"{uri!r} has an invalid path segment (empty, `.` or `..`)."
    container = body.get("containerSpec", {})
    if not container.get("imageUri"):
        yield "model.container_spec.image_uri", "Required field is not set."
        return
    yield from _container_errors("model.container_spec", container, region)


def _container_errors(at: str, container: Mapping[str, Any], region: str) -> FieldErrors:
    image = container["imageUri"]
    match = _IMAGE.fullmatch(image)
    if match is None:
        yield f"{at}.image_uri", f"{image!r} is not an image of Artifact Registry."
    elif match["place"] not in (region, region.partition("-")[0]):
        text = f"{image} is in {match['place']}; the image must be in the region of the model,"
        yield f"{at}.image_uri", f"{text} {region}."
    yield from env_errors(at, container)
    for name in (variable.get("name", "") for variable in container.get("env", [])):
        if name.startswith("AIP_"):
            yield f"{at}.env", f"{name}: the prefix AIP_ is reserved for Vertex AI."
    words = [*container.get("command", []), *container.get("args", [])]
    words += [variable.get("value", "") for variable in container.get("env", [])]
    if any("\0" in word for word in words):
        yield at, "command, args and env must not contain a NUL character."
    for field, name in (("predictRoute", "predict_route"), ("healthRoute", "health_route")):
        if field in container and not re.fullmatch(r"/[!-~]*", container[field]):
            text = "must begin with a slash, and contain neither blanks nor control characters."
            yield f"{at}.{name}", f"{container[field]!r} {text}"
    for port in container.get("ports", []):
        if not 1 <= int(port.get("containerPort", 0)) <= 65535:
            yield f"{at}.ports", "A port must be between 1 and 65535, inclusive."
    if float(container.get("deploymentTimeout", "0s").removesuffix("s")) > 2 * 3600:
        yield f"{at}.deployment_timeout", "The limit is 2 hours."


def merged_aliases(held: Iterable[str], changes: Iterable[str]) -> list[str]:
    """Return the aliases of a version after MergeVersionAliases. Raises ApiError."""
    aliases, changes = set(held), list(changes)
    for change in changes:
        name = change.removeprefix("-")
        if not _ALIAS.fullmatch(name):
            text = f"Invalid version alias {name!r}: expected a match of {_ALIAS.pattern}."
            raise invalid_argument(text)
        if change == "-default" and "default" in aliases:
            text = "The alias default cannot be removed, only moved to another version."
            raise invalid_argument(text)
        (aliases.discard if change.startswith("-") else aliases.add)(name)
    return sorted(aliases)


def check_deployed_model(store: Store, deployed: Mapping[str, Any]) -> None:
    """Raise ApiError if a model cannot be deployed with these settings."""
    if bad := [*_deployed_errors(deployed)]:
        raise invalid_fields(bad)
    check_account(store, deployed.get("serviceAccount"))


def _deployed_errors(deployed: Mapping[str, Any]) -> FieldErrors:
    if not re.fullmatch(r"(\d{1,10})?", deployed.get("id", "")):
        yield "deployed_model.id", f"{deployed['id']!r}: expected 1 to 10 digits."
    resources = deployed.get("dedicatedResources")
    if resources is None:
        text = "a model with a custom container requires dedicated_resources."
        yield "deployed_model.prediction_resources", text
        return
    yield from replica_errors(resources)
    machine = resources.get("machineSpec", {})
    yield from machine_errors("deployed_model.dedicated_resources.machine_spec", machine)


def replica_errors(resources: Mapping[str, Any]) -> FieldErrors:
    """Yield errors in the replica counts of a DeployedModel."""
    at = "deployed_model.dedicated_resources"
    least, most = replicas(resources), int(resources.get("maxReplicaCount", 0))
    if least < 1:
        yield f"{at}.min_replica_count", "must be greater than or equal to 1."
    if most and most < least:
        yield f"{at}.max_replica_count", f"must be at least min_replica_count, {least}; got {most}."
    if not 0 <= int(resources.get("requiredReplicaCount", 0)) <= max(least, 0):
        yield f"{at}.required_replica_count", f"must be at most min_replica_count, {least}."


def replicas(resources: Mapping[str, Any]) -> int:
    """Return the number of local replicas, which is the service's minimum number."""
    return int(resources.get("minReplicaCount", 0))


def check_split(split: Mapping[str, int], ids: Iterable[str]) -> None:
    """Raise ApiError unless the split is empty or sums to 100 over these DeployedModels."""
    known = set(ids)
    if unknown := sorted(set(split) - known):
        text = f"traffic_split names {', '.join(unknown)}, which the endpoint does not have"
        raise invalid_argument(f"{text} (deployed: {', '.join(sorted(known)) or 'nothing'}).")
    if split and (sum(split.values()) != 100 or min(split.values()) < 0):
        raise invalid_argument(f"traffic_split must sum to 100, got {dict(sorted(split.items()))}.")


def check_idle(id_: str, split: Mapping[str, int], others: int) -> None:
    """Raise ApiError if a DeployedModel that is to be undeployed receives traffic."""
    if others and split.get(id_):
        text = f"DeployedModel {id_} has {split[id_]} percent of the traffic."
        raise failed_precondition(f"{text} Set its share to 0 first, or send a traffic_split.")


def project_of(store: Store, name: str) -> tuple[str, str]:
    """Return project id and region of a canonical name."""
    _, number, _, region, *_ = name.split("/")
    return resource_paths.project_id(store, number) or number, region
