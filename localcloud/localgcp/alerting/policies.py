"""Selects the alert policies that the local cloud can evaluate; gives a reason for others (pure).

https://docs.cloud.google.com/monitoring/api/ref_v3/rest/v3/projects.alertPolicies
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from localgcp.clients import log_filters
from localgcp.clients.log_filters import LogFilter
from localgcp.errors import FilterError
from localgcp.inventory.store import ALERT_POLICY, BUDGET, StoredResource

#: Fields that a filter may compare, except the severity: a job's own log lines have none here.
KNOWN: Final = (
    *("resource.type", "resource.labels.job_id", "resource.labels.task_name"),
    *("resource.labels.project_id", "textPayload", "logName"),
)
#: Resource type of the log lines of jobs and tuning jobs.
OF_JOBS: Final = "ml_job"
_EXTRACTOR: Final = re.compile(r"EXTRACT\((resource\.labels\.\w+)\)")


@dataclass(frozen=True)
class LogAlert:
    """An alert policy that matches log lines of jobs."""

    id: str
    project: str
    title: str
    created: datetime
    """Creation time. Earlier log lines cause no notification."""
    filters: tuple[tuple[LogFilter, Mapping[str, str]], ...]
    """For each condition, the filter, and label -> field that contains the label's value."""
    channels: tuple[str, ...]
    text: str
    """The policy's documentation, with variables."""
    pause: timedelta
    """Minimum time between two notifications with the same labels."""


def read(declared: Iterable[StoredResource]) -> tuple[list[LogAlert], dict[str, str]]:
    """Return the alerts to evaluate, and by title the reasons against other alerts and budgets."""
    alerts, others = list[LogAlert](), dict[str, str]()
    for declaration in declared:
        title = str(declaration.inputs.get("displayName") or declaration.id)
        if declaration.type == BUDGET:
            others[title] = "the local cloud has no costs"
        elif declaration.type == ALERT_POLICY and declaration.inputs.get("enabled") is not False:
            try:
                alerts.append(_alert(declaration, title))
            except FilterError as error:
                others[title] = str(error)
            except (AttributeError, LookupError, TypeError, ValueError):
                others[title] = "the stored alert policy cannot be read"
    return alerts, others


def _alert(policy: StoredResource, title: str) -> LogAlert:
    inputs = policy.inputs
    documentation = inputs.get("documentation") or {}
    strategy = inputs.get("alertStrategy") or {}
    limit = (strategy.get("notificationRateLimit") or {}).get("period") or "0s"
    records = policy.outputs.get("creationRecords") or []
    return LogAlert(
        id=policy.id,
        project=policy.project,
        title=title,
        created=datetime.fromisoformat(records[0]["mutateTime"]),
        filters=tuple(_condition(condition) for condition in inputs.get("conditions") or []),
        channels=tuple(inputs.get("notificationChannels") or []),
        text=str(documentation.get("content") or ""),
        pause=timedelta(seconds=float(str(limit).removesuffix("s"))),
    )


def _condition(condition: Mapping[str, Any]) -> tuple[LogFilter, Mapping[str, str]]:
    if not (match := condition.get("conditionMatchedLog")):
        raise FilterError("the local cloud has no metrics")
    labels = dict[str, str]()
    for label, extractor in (match.get("labelExtractors") or {}).items():
        field = _EXTRACTOR.fullmatch(str(extractor))
        if field is None:
            raise FilterError(f"the local cloud does not support the extractor {extractor}")
        labels[label] = field[1]
    log_filter = log_filters.parse(str(match.get("filter")), KNOWN)
    if (kind := log_filter.equal.get("resource.type", OF_JOBS)) != OF_JOBS:
        raise FilterError(f"the local cloud evaluates only log lines of {OF_JOBS}, not of {kind}")
    return log_filter, labels
