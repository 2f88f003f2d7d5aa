"""Endpoints and TensorBoards of Vertex AI; metrics, channels, alerts, dashboards and budgets."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterable, Mapping
from typing import Any, Final

from localgcp.apis import discovery
from localgcp.errors import CloudError
from localgcp.gcp import check
from localgcp.gcp.cloud import Cloud, Values, new_number, now, text
from localgcp.gcp.services.base import ResourceType
from localgcp.inventory.store import (
    ALERT_POLICY,
    BUDGET,
    CHANNEL,
    DASHBOARD,
    ENDPOINT,
    TENSORBOARD,
    project_number,
)


def _json(value: Any) -> str | None:
    try:
        json.loads(value)
    except ValueError as error:
        return f'"traffic_split" contains an invalid JSON: {error}'
    return None


class AiEndpoint(ResourceType):
    """An endpoint (``gcp.vertex.AiEndpoint``)."""

    def verify(self, cloud: Cloud, project: str, inputs: Values) -> None:
        if not re.fullmatch(r"[1-9]\d{0,9}", name := text(inputs, "name")):
            reason = f"Invalid endpoint_id: {name!r}; expected 1 to 10 digits without a leading 0."
            raise CloudError(400, reason)
        self._check_split(inputs, [])

    def make(self, cloud: Cloud, project: str, id_: str, inputs: Values) -> Values:
        is_dedicated = inputs.get("dedicatedEndpointEnabled")
        dns = {"dedicatedEndpointDns": _dns(project, inputs)} if is_dedicated else {}
        split = text(inputs, "trafficSplit") or "{}"
        return {"etag": re.sub(r"\D", "", now()), "trafficSplit": split, **dns}

    def remake(self, cloud: Cloud, id_: str, inputs: Values, olds: Values) -> Values:
        resource = cloud.store.get(cloud.type.token, id_)
        current = resource.outputs if resource else {}
        deployed = current.get("deployedModels") or []
        self._check_split(inputs, deployed)
        split = text(inputs, "trafficSplit") or current.get("trafficSplit") or "{}"
        made = {"updateTime": now(), "deployedModels": deployed, "trafficSplit": split}
        is_dedicated = inputs.get("dedicatedEndpointEnabled")
        dns = _dns(self.project(cloud, olds), inputs) if is_dedicated else ""
        return {**made, "dedicatedEndpointDns": dns}

    def _check_split(self, inputs: Values, deployed: list[Any]) -> None:
        split: dict[str, int] = json.loads(text(inputs, "trafficSplit") or "{}")
        if not split:
            return
        if unknown := sorted(set(split) - {model["id"] for model in deployed}):
            reason = f"traffic_split names {', '.join(unknown)}, which the endpoint does not have."
            raise CloudError(400, reason)
        if sum(split.values()) != 100:
            raise CloudError(400, f"traffic_split must sum to 100: {split}")

    def unmake(self, cloud: Cloud, id_: str, olds: Values) -> None:
        resource = cloud.store.get(cloud.type.token, id_)
        if deployed := (resource.outputs.get("deployedModels") or []) if resource else []:
            names = ", ".join(model["id"] for model in deployed)
            reason = f"Endpoint {id_} has deployed models: {names}. Undeploy them first."
            doing = f"Error deleting Endpoint {id_!r}"
            raise CloudError(400, reason, "failedPrecondition", doing)
        super().unmake(cloud, id_, olds)


def _dns(project: str, inputs: Values) -> str:
    place = f"{text(inputs, 'location')}-{project_number(project)}"
    return f"{text(inputs, 'name')}.{place}.prediction.vertexai.goog"


class Tensorboard(ResourceType):
    """A TensorBoard instance (``gcp.vertex.AiTensorboard``)."""

    def id(self, cloud: Cloud, inputs: Mapping[str, Any]) -> str:
        project = self.project(cloud, inputs)
        region = text(inputs, "region") or cloud.settings.region
        number = project_number(project)
        return f"projects/{number}/locations/{region}/tensorboards/{new_number()}"

    def import_id(self, cloud: Cloud, id_to_import: str) -> str:
        _, _, rest = id_to_import.partition("/")
        project, _, place = rest.partition("/")
        return f"projects/{project if project.isdigit() else project_number(project)}/{place}"

    def make(self, cloud: Cloud, project: str, id_: str, inputs: Values) -> Values:
        bucket = f"cloud-ai-platform-{secrets.token_hex(4)}"
        region = text(inputs, "region") or cloud.settings.region
        return {"region": region, "blobStoragePathPrefix": bucket}


def _check_channels(cloud: Cloud, field: str, channels: Iterable[str]) -> None:
    for channel in channels:
        if cloud.store.get(CHANNEL, channel) is None:
            raise CloudError(400, f"Field {field} refers to {channel}, which does not exist.")


class AlertPolicy(ResourceType):
    """An alert policy (``gcp.monitoring.AlertPolicy``)."""

    def verify(self, cloud: Cloud, project: str, inputs: Values) -> None:
        channels = inputs.get("notificationChannels") or []
        _check_channels(cloud, "notification_channels", channels)

    def make(self, cloud: Cloud, project: str, id_: str, inputs: Values) -> Values:
        return {"creationRecords": [{"mutateTime": now(), "mutatedBy": "user@example.com"}]}


class Dashboard(ResourceType):
    """A dashboard (``gcp.monitoring.Dashboard``); an input has the API's message as JSON."""

    def document(self, cloud: Cloud, inputs: Values) -> Values:
        del cloud
        return json.loads(text(inputs, "dashboardJson") or "{}")

    def verify(self, cloud: Cloud, project: str, inputs: Values) -> None:
        if errors := discovery.shape_errors(self.message, self.document(cloud, inputs)):
            raise CloudError(400, "; ".join(error for _, error in errors))


class Budget(ResourceType):
    """A budget of a billing account (``gcp.billing.Budget``), which belongs to no project."""

    def document(self, cloud: Cloud, inputs: Values) -> Values:
        body = super().document(cloud, inputs)
        return {**body, "notificationsRule": body.pop("allUpdatesRule", None)}

    def verify(self, cloud: Cloud, project: str, inputs: Values) -> None:
        account = text(inputs, "billingAccount")
        # https://docs.cloud.google.com/billing/docs/how-to/find-billing-account-id
        if not re.fullmatch("(billingAccounts/)?[0-9A-F]{6}-[0-9A-F]{6}-[0-9A-F]{6}", account):
            reason = f"billing_account: {account!r} is not of the form 012345-6789AB-CDEF01."
            raise CloudError(400, reason)
        rule = inputs.get("allUpdatesRule") or {}
        channels = rule.get("monitoringNotificationChannels") or []
        _check_channels(cloud, "monitoring_notification_channels", channels)

    def id(self, cloud: Cloud, inputs: Mapping[str, Any]) -> str:
        account = text(inputs, "billingAccount")
        return f"billingAccounts/{account}/budgets/{secrets.token_hex(8)}"

    def make(self, cloud: Cloud, project: str, id_: str, inputs: Values) -> Values:
        return {"name": id_.rpartition("/")[2]}


_API: Final = "aiplatform.googleapis.com"
_MONITORING: Final = "monitoring.googleapis.com"
TYPES: Final[dict[str, ResourceType]] = {
    TENSORBOARD: Tensorboard("Tensorboard", _API),
    ENDPOINT: AiEndpoint("Endpoint", _API, longest_name=10, rules={"trafficSplit": _json}),
    "gcp:logging/metric:Metric": ResourceType(
        "Metric", "logging.googleapis.com", name_as_given=True, longest_name=255
    ),
    CHANNEL: ResourceType("NotificationChannel", _MONITORING, collection="notificationChannels"),
    ALERT_POLICY: AlertPolicy(
        "AlertPolicy", _MONITORING, collection="alertPolicies", verifies_updates=True
    ),
    DASHBOARD: Dashboard(
        "Dashboard",
        _MONITORING,
        collection="dashboards",
        verifies_updates=True,
        rules={"dashboardJson": check.json_object},
    ),
    BUDGET: Budget(
        "Budget",
        "billingbudgets.googleapis.com",
        deletion_policy_later=True,
        imports_ids=True,
        needs_project=False,
        verifies_updates=True,
    ),
}
