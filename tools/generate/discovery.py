"""Write data of Google's discovery documents for the methods that the local cloud implements.

``python -m tools.generate.discovery`` writes ``discovery.json`` beside ``localgcp.apis.discovery``.
The package google-api-python-client contains the documents.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from google.cloud.aiplatform.constants.base import SUPPORTED_REGIONS

from localgcp.apis import discovery
from localgcp.apis.field_rules import ROWS
from localgcp.apis.server import schema_of
from localgcp.gcp.services import MESSAGES
from localgcp.reads import resources, serving
from localgcp.services import SERVICES
from vertex_training import catalog
from vertex_training.catalog import machines

TARGET: Final = Path(discovery.__file__).with_name("discovery.json")
#: Fields that the documents call required, although the service does not require them.
NOT_ENFORCED: Final = (
    # An empty value is valid, and protobuf cannot distinguish empty values from missing values.
    ("aiplatform.v1.GoogleCloudAiplatformV1EnvVar", "value"),
    # The service chooses an id if a job has none.
    ("bigquery.v2.JobReference", "jobId"),
    ("bigquery.v2.JobReference", "projectId"),
    # The path of a new table contains both ids.
    ("bigquery.v2.TableReference", "datasetId"),
    ("bigquery.v2.TableReference", "projectId"),
    # The path contains the build's name.
    ("cloudbuild.v1.CancelBuildRequest", "id"),
    ("cloudbuild.v1.CancelBuildRequest", "projectId"),
)
#: Messages whose labels describe another resource, so they are not a user's labels.
NO_LABELS: Final = frozenset(
    {"monitoring.v3.NotificationChannel", "monitoring.v1.MonitoredResource"}
)
#: Keys of a schema that the file contains.
KEPT: Final = ("type", "format", "enum", "$ref")


@functools.cache
def read_document(name: str) -> dict[str, Any]:
    """Return a discovery document, such as ``compute.v1``. Raises ModuleNotFoundError."""
    package = importlib.util.find_spec("googleapiclient")  # its code takes a second to import
    if package is None or package.origin is None:
        raise ModuleNotFoundError("google-api-python-client is not installed. Run `make setup`")
    folder = Path(package.origin).parent / "discovery_cache" / "documents"
    return json.loads((folder / f"{name}.json").read_bytes())


def described_methods(document: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every method of a document, with its path in the document."""
    for name, method in document.get("methods", {}).items():
        yield prefix + name, method
    for name, resource in document.get("resources", {}).items():
        yield from described_methods(resource, f"{prefix}{name}.")


def served_methods() -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """Return the documents and methods that the local cloud implements, by method id."""
    served = resources.METHODS.keys() | serving.METHODS.keys()
    documents = {name: read_document(name) for name in sorted({*map(version_of, served)})}
    return {
        f"{name}.{place}": (document, method)
        for name, document in documents.items()
        for place, method in described_methods(document)
        if f"{name}.{place}" in served
    }


def version_of(name: str) -> str:
    """Return the document of a method or message: ``compute.v1`` of ``compute.v1.Firewall``."""
    return ".".join(name.split(".")[:2])


def path_of(document: dict[str, Any], method: dict[str, Any]) -> str:
    """Return the path template of a method, such as ``/v1/projects/{project}``."""
    return f"/{document['servicePath']}{method.get('flatPath') or method['path']}"


def is_required(schema: dict[str, Any]) -> bool:
    """Return True if a field is described as required, and a message can lack the field."""
    number = schema.get("type") in ("integer", "number", "boolean") or schema.get("format") in (
        *("int64", "uint64"),
    )
    marked = re.match(r"\s*(?:\[Required\]|Required\.|REQUIRED:)", schema.get("description", ""))
    return bool(marked) and not number


def has_labels(name: str, field: dict[str, Any]) -> bool:
    """Return True if a field contains the labels that users set on a resource."""
    is_map = field.get("additionalProperties", {}).get("type") == "string"
    return name in ("labels", "userLabels") and is_map


def trimmed(schema: dict[str, Any], version: str, name: str = "") -> dict[str, Any]:
    """Return a schema without its texts. References also contain the document's name."""
    kept: dict[str, Any] = {key: schema[key] for key in KEPT if key in schema}
    if required := schema.get("annotations", {}).get("required") or is_required(schema):
        kept["required"] = required
    if has_labels(name, schema):
        kept["labels"] = True
    if "$ref" in kept:
        kept["$ref"] = f"{version}.{kept['$ref']}"
    for key in ("items", "additionalProperties"):
        if key in schema:
            kept[key] = trimmed(schema[key], version)
    if "properties" in schema:
        kept["properties"] = {
            name: trimmed(property_, version, name)
            for name, property_ in sorted(schema["properties"].items())
        }
    return kept


def generate() -> str:
    """Return the text of the generated file."""
    methods: dict[str, Any] = {}
    schemas: dict[str, Any] = {}
    system: set[str] = set()
    for id_, (document, method) in sorted(served_methods().items()):
        version = version_of(id_)
        system |= {*document["parameters"]}
        row: dict[str, Any] = {
            "verb": method["httpMethod"],
            "template": path_of(document, method),
            "parameters": {
                name: trimmed(parameter, version)
                for name, parameter in sorted(method.get("parameters", {}).items())
                if parameter["location"] == "query"
            },
        }
        for key in ("request", "response"):
            if key in method:
                row[key] = f"{version}.{method[key]['$ref']}"
                _collect(row[key], schemas)
        methods[id_] = row
    _collect("monitoring.v1.Dashboard", schemas)
    reduced = {
        "methods": methods,
        "parameters": sorted(name.removeprefix("$") for name in system),
        "places": places(),
        "schemas": dict(sorted({**rule_schemas(), **schemas}.items())),
    }
    for schema, field in NOT_ENFORCED:
        reduced["schemas"][schema]["properties"].get(field, {}).pop("required", None)
    for schema in NO_LABELS & reduced["schemas"].keys():
        reduced["schemas"][schema]["properties"].get("labels", {}).pop("labels", None)
    return json.dumps(reduced, indent=1) + "\n"


def places() -> dict[str, Any]:
    """Return regions of Google's client and of the catalogue, and zones of the catalogue."""
    zones = catalog.load("zones.yaml")["letters"]
    regions = {*SUPPORTED_REGIONS, *machines.regions(), *zones} - {"global"}
    return {"regions": sorted(regions), "zones": zones}


def rule_schemas() -> dict[str, Any]:
    """Return message schemas of gRPC and the gcp plugin, with only the fields that have rules."""
    full: dict[str, Any] = {}
    for name in {*messages_of_methods(), *MESSAGES.values()}:
        _collect(name, full)
    ruled = {
        name
        for name, schema in full.items()
        if name in ROWS or any(map(_has_rule, schema.get("properties", {}).values()))
    }
    while more := {n for n, s in full.items() if n not in ruled and ruled & {*_references(s)}}:
        ruled |= more
    for name in ruled:
        kept = {
            field: property_
            for field, property_ in full[name]["properties"].items()
            if _has_rule(property_) or ruled & {*_references(property_)}
        }
        full[name] = {"properties": kept}
    return {name: full[name] for name in ruled}


def _has_rule(field: dict[str, Any]) -> bool:
    return bool({"required", "labels"} & field.keys())


def messages_of_methods() -> Iterator[str]:
    """Yield the messages in bodies of gRPC methods, by their names in discovery documents."""
    for service in SERVICES:
        for method in service.api.methods(service):
            request: Any = method.plain_request().DESCRIPTOR
            for body in {rule.body for rule in method.rules() if rule.body}:
                field = request.fields_by_name.get(body)
                name = schema_of(field.message_type if field is not None else request)
                if name and name.split(".", 2)[2] in read_document(version_of(name))["schemas"]:
                    yield name


def _collect(name: str, schemas: dict[str, Any]) -> None:
    if name in schemas:
        return
    version = version_of(name)
    resolved = read_document(version)["schemas"][name.removeprefix(f"{version}.")]
    schemas[name] = trimmed(resolved, version)
    for reference in _references(schemas[name]):
        _collect(reference, schemas)


def _references(schema: dict[str, Any]) -> Iterator[str]:
    if "$ref" in schema:
        yield schema["$ref"]
    for nested in (schema.get("items"), schema.get("additionalProperties")):
        if nested:
            yield from _references(nested)
    for property_ in schema.get("properties", {}).values():
        yield from _references(property_)


if __name__ == "__main__":
    TARGET.write_text(generate(), encoding="utf-8")
