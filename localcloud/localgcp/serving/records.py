"""Tables of model versions, endpoints and DeployedModels: JSON form of the API, by name.

Rows: ``…/models/ID@VERSION`` and ``…/endpoints/ID/deployedModels/ID``. Endpoints are in the store
of the gcp plugin.
"""

from __future__ import annotations

import json
from typing import Final

from localgcp.inventory.store import ENDPOINT, Store, project_number
from localgcp.vertex.collections import Body, ResourceTable

DEFAULT: Final = "default"
#: Fields of rows that only the stand-in uses.
COPY, ACCOUNT, BEGUN_BY = "artifactCopy", "uploadAccount", "begunBy"


class VersionTable:
    """Versions of models; as a table of models, the default version of each model."""

    def __init__(self, table: ResourceTable) -> None:
        self._table = table

    def versions(self, name: str) -> list[Body]:
        """Return all versions of the model ``…/models/ID``, oldest first."""
        base = name.partition("@")[0]
        bodies = map(_to_api, self._table.list(base.rpartition("/")[0]))
        own = (body for body in bodies if body["name"] == base)
        return sorted(own, key=lambda body: int(body["versionId"]))

    def get(self, name: str) -> Body | None:
        """Return the default version of ``…/models/ID``, or the version ``@3`` or ``@champion``."""
        version = name.partition("@")[2] or DEFAULT
        for body in self.versions(name):
            if version == body["versionId"] or version in body.get("versionAliases", []):
                return body
        return None

    def list(self, parent: str) -> list[Body]:
        bodies = map(_to_api, self._table.list(parent))
        return [body for body in bodies if DEFAULT in body.get("versionAliases", [])]

    def put(self, body: Body) -> None:
        """Write a version; its aliases are removed from the model's other versions."""
        # The new version is written first, so that an alias always has a version.
        changed, aliases = [body], set(body.get("versionAliases", []))
        for other in self.versions(body["name"]):
            held = other.get("versionAliases", [])
            if other["versionId"] != body["versionId"] and aliases.intersection(held):
                changed.append({**other, "versionAliases": [a for a in held if a not in aliases]})
        for version in changed:
            self._table.put({**version, "name": versioned(version)})

    def delete(self, name: str) -> None:
        """Delete ``…/models/ID@VERSION``, or a model with all its versions."""
        for version in [name] if "@" in name else map(versioned, self.versions(name)):
            self._table.delete(version)

    def next_id(self, name: str) -> str:
        """Return the id of a model's next version; ids are never reused."""
        counter = name.replace("/models/", "/modelCounters/")
        number = (self._table.get(counter) or {"last": 0})["last"] + 1
        self._table.put({"name": counter, "last": number})
        return str(number)


def versioned(body: Body) -> str:
    """Return the name ``…/models/ID@VERSION``."""
    return f"{body['name']}@{body['versionId']}"


def _to_api(row: Body) -> Body:
    return {**row, "name": row["name"].partition("@")[0]}


class EndpointTable:
    """Endpoints with their DeployedModels."""

    def __init__(self, store: Store, table: ResourceTable) -> None:
        self._store, self._table = store, table

    def get(self, name: str) -> Body | None:
        resource = self._store.get(ENDPOINT, self._id(name))
        return resource and self._to_api(name, resource.outputs)

    def list(self, parent: str) -> list[Body]:
        """Return the endpoints of a location, ``…/endpoints``."""
        return [body for body in self.all() if body["name"].rpartition("/")[0] == parent]

    def put(self, body: Body) -> None:
        """Write an endpoint; its DeployedModels and the plugin's own fields stay unchanged."""
        id_ = self._id(body["name"])
        _, project, _, region, _, number = id_.split("/")
        before = self._store.get(ENDPOINT, id_)
        inputs, outputs = (before.inputs, before.outputs) if before else ({}, {})
        place = {"project": project, "location": region, "region": region, "name": number}
        labels = body.get("labels", {})
        own = {key: value for key, value in labels.items() if key in (outputs.get("labels") or {})}
        texts = {"description": body.get("description", ""), "labels": own}
        outputs = {**outputs, **body, **texts, **place, "effectiveLabels": labels}
        if "trafficSplit" in outputs:  # the plugin has the split as text
            outputs["trafficSplit"] = json.dumps(body.get("trafficSplit") or {}, sort_keys=True)
        _rename(outputs, "projectAllowlist", "projectAllowlists")
        deployed = [_as_output(model) for model in self.deployed(body["name"])]
        self._store.put(ENDPOINT, id_, project, inputs, {**outputs, "deployedModels": deployed})

    def delete(self, name: str) -> None:
        self._store.delete(ENDPOINT, self._id(name))

    def deployed(self, name: str) -> list[Body]:
        return self._table.list(f"{name}/deployedModels")

    def all(self) -> list[Body]:
        endpoints: list[Body] = []
        for resource in self._store.list(ENDPOINT):
            number = project_number(resource.project)
            name = resource.id.replace(f"/{resource.project}/", f"/{number}/", 1)
            endpoints.append(self._to_api(name, resource.outputs))
        return endpoints

    def add_deployed(self, name: str, deployed: Body, split: dict[str, int] | None) -> None:
        """Add or replace a DeployedModel, then set the traffic split if it is not None."""
        self._table.put({**deployed, "name": f"{name}/deployedModels/{deployed['id']}"})
        self._set_split(name, split)

    def remove_deployed(self, name: str, id_: str, split: dict[str, int] | None) -> None:
        """Set the traffic split if it is not None, then remove a DeployedModel."""
        self._set_split(name, split)
        self._table.delete(f"{name}/deployedModels/{id_}")
        self._set_split(name, None)

    def _set_split(self, name: str, split: dict[str, int] | None) -> None:
        body = self.get(name)
        if body is not None:
            self.put(body if split is None else {**body, "trafficSplit": split})

    def _to_api(self, name: str, outputs: Body) -> Body:
        body = {key: value for key, value in outputs.items() if value not in ("", None)}
        body |= {"name": name, "labels": outputs.get("effectiveLabels") or {}}
        if split := body.get("trafficSplit"):
            body["trafficSplit"] = json.loads(split)
        _rename(body, "projectAllowlists", "projectAllowlist")
        return {**body, "deployedModels": self.deployed(name)}

    def _id(self, name: str) -> str:
        """Return the plugin's resource id: the project's id in place of its number."""
        _, number, *rest = name.split("/")
        projects = (id_ for id_ in self._store.projects() if project_number(id_) == number)
        return "/".join(["projects", next(projects, number), *rest])


def _rename(body: Body, old: str, new: str) -> None:
    """Rename a field of an endpoint's Private Service Connect, which the plugin names otherwise."""
    if connect := body.get("privateServiceConnectConfig"):
        renamed = {new if key == old else key: value for key, value in connect.items()}
        body["privateServiceConnectConfig"] = renamed


def _as_output(deployed: Body) -> Body:
    """Convert a DeployedModel to the plugin's form, which has lists in place of single objects."""
    resources = deployed.get("dedicatedResources", {})
    machine = {"acceleratorType": "", "acceleratorCount": 0, **resources.get("machineSpec", {})}
    scaling = resources.get("autoscalingMetricSpecs", [])
    made = {key: deployed.get(key, "") for key in ("id", "model", "displayName", "createTime")}
    return made | {
        "automaticResources": [],
        "dedicatedResources": [
            {
                "autoscalingMetricSpecs": scaling,
                "machineSpecs": [machine],
                "maxReplicaCount": resources.get("maxReplicaCount", 0),
                "minReplicaCount": resources.get("minReplicaCount", 0),
            }
        ],
        "enableAccessLogging": deployed.get("enableAccessLogging", False),
        "enableContainerLogging": not deployed.get("disableContainerLogging", False),
        "modelVersionId": deployed["modelVersionId"],
        "privateEndpoints": [],
        "serviceAccount": deployed.get("serviceAccount", ""),
        "sharedResources": "",
    }
