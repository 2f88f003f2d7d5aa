"""What watches a project: metrics of logs, alerts, channels, dashboards, budgets, TensorBoards.

Kept and returned. Nothing is measured; ``localgcp.alerting`` judges alerts on lines of logs.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from localgcp.errors import CloudError
from localgcp.gcp import rules
from localgcp.gcp.cloud import Cloud, now, text
from localgcp.gcp.services.base import ResourceType
from localgcp.gcp.services.network.compute import new_number
from localgcp.inventory.store import CHANNEL, project_number


@dataclass(frozen=True)
class Metric(ResourceType):
    """A metric counted from log entries (``gcp.logging.Metric``)."""

    name_as_given: ClassVar = True
    longest_name: ClassVar = 255

    title: str = "Metric"
    api: str | None = "logging.googleapis.com"

    def exists(self, id_: str) -> str:
        return f"Metric {id_} already exists"


@dataclass(frozen=True)
class ServerNamedType(ResourceType):
    """A resource of a project whose number the service chooses; ``collection`` is its folder."""

    collection: str = ""

    def id(self, cloud: Cloud, inputs: Mapping[str, Any]) -> str:
        return f"projects/{self.project(cloud, inputs)}/{self.collection}/{new_number()}"

    def import_id(self, cloud: Cloud, given: str) -> str:
        if given.startswith("projects/"):
            return given
        return f"projects/{cloud.settings.project}/{self.collection}/{given}"

    def make(self, cloud: Cloud, project: str, id_: str, inputs: dict[str, Any]) -> dict[str, Any]:
        return {"project": project, "name": id_}


@dataclass(frozen=True)
class NotificationChannel(ServerNamedType):
    """Where alerts are sent (``gcp.monitoring.NotificationChannel``)."""

    title: str = "NotificationChannel"
    api: str | None = "monitoring.googleapis.com"
    collection: str = "notificationChannels"


@dataclass(frozen=True)
class AlertPolicy(ServerNamedType):
    """When an alert is sent (``gcp.monitoring.AlertPolicy``)."""

    title: str = "AlertPolicy"
    api: str | None = "monitoring.googleapis.com"
    collection: str = "alertPolicies"

    def verify(self, cloud: Cloud, project: str, inputs: dict[str, Any], doing: str) -> None:
        for channel in inputs.get("notificationChannels") or []:
            if cloud.store.get(CHANNEL, channel) is None:
                reason = f"Field notification_channels refers to {channel}, which does not exist."
                raise CloudError(doing, 400, reason, "badRequest")

    def make(self, cloud: Cloud, project: str, id_: str, inputs: dict[str, Any]) -> dict[str, Any]:
        record = {"mutateTime": now(), "mutatedBy": "user@example.com"}
        return {**super().make(cloud, project, id_, inputs), "creationRecords": [record]}


@dataclass(frozen=True)
class Dashboard(ServerNamedType):
    """A page of charts (``gcp.monitoring.Dashboard``)."""

    rules: ClassVar = {"dashboardJson": rules.json_object}

    title: str = "Dashboard"
    api: str | None = "monitoring.googleapis.com"
    collection: str = "dashboards"

    def make(self, cloud: Cloud, project: str, id_: str, inputs: dict[str, Any]) -> dict[str, Any]:
        return {"project": project}


@dataclass(frozen=True)
class Budget(ResourceType):
    """A budget of a billing account (``gcp.billing.Budget``), created by the stack's project."""

    deletion_policy_later: ClassVar = True

    title: str = "Budget"
    api: str | None = "billingbudgets.googleapis.com"

    def id(self, cloud: Cloud, inputs: Mapping[str, Any]) -> str:
        account = text(dict(inputs), "billingAccount")
        return f"billingAccounts/{account}/budgets/{secrets.token_hex(8)}"

    def import_id(self, cloud: Cloud, given: str) -> str:
        return given

    def make(self, cloud: Cloud, project: str, id_: str, inputs: dict[str, Any]) -> dict[str, Any]:
        return {"name": id_.rpartition("/")[2]}


@dataclass(frozen=True)
class Tensorboard(ResourceType):
    """A TensorBoard instance (``gcp.vertex.AiTensorboard``)."""

    title: str = "Tensorboard"
    api: str | None = "aiplatform.googleapis.com"

    def id(self, cloud: Cloud, inputs: Mapping[str, Any]) -> str:
        project = self.project(cloud, inputs)
        region = text(dict(inputs), "region") or cloud.settings.region
        number = project_number(project)
        return f"projects/{number}/locations/{region}/tensorboards/{new_number()}"

    def import_id(self, cloud: Cloud, given: str) -> str:
        _, _, rest = given.partition("/")
        project, _, place = rest.partition("/")
        return f"projects/{project if project.isdigit() else project_number(project)}/{place}"

    def make(self, cloud: Cloud, project: str, id_: str, inputs: dict[str, Any]) -> dict[str, Any]:
        created = now()
        bucket = f"cloud-ai-platform-{secrets.token_hex(4)}"
        made = {"name": id_, "project": project, "createTime": created, "updateTime": created}
        region = text(inputs, "region") or cloud.settings.region
        return {**made, "region": region, "blobStoragePathPrefix": bucket}

    def remake(
        self, cloud: Cloud, project: str, id_: str, inputs: dict[str, Any], olds: dict[str, Any]
    ) -> dict[str, Any]:
        return {"updateTime": now()}
