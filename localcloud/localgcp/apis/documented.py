"""Rules that Google's documentation states in prose: rows by message and field, each with a source.

The sentences of the refusals are ours. ``DOC`` stands for the field's own description in the
discovery documents of google-api-python-client.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from localgcp.clients.log_filters import check_syntax
from localgcp.errors import FilterError
from localgcp.inventory.machines import is_region, machine_error

Document = Mapping[str, Any]
DOC: Final = "description of the field"
_ALERTS: Final = (
    "https://docs.cloud.google.com/monitoring/api/ref_v3/rest/v3/projects.alertPolicies"
)
_CHANNELS: Final = (
    "https://docs.cloud.google.com/monitoring/api/ref_v3/rest/v3/"
    "projects.notificationChannelDescriptors/list"
)
_DATASETS: Final = "https://docs.cloud.google.com/bigquery/docs/locations"
_EXTRACTOR: Final = re.compile(r'(?:EXTRACT\([^,()]+\)|REGEXP_EXTRACT\([^,]+,\s*(["\']).+\1\))')
#: Type of notification channel -> required labels: name -> regular expression of the value.
_CHANNEL_LABELS: Final[Mapping[str, Mapping[str, str]]] = {
    "campfire": {"account": ".+", "room": ".+"},
    "email": {"email_address": r"[^@\s]+@[^@\s]+\.[^@\s]+"},
    "google_chat": {"space": "spaces/.+"},
    "hipchat": {"room": ".+"},
    "pagerduty": {},
    "pubsub": {"topic": r"projects/[^/\s]+/topics/[^/\s]+"},
    "slack": {"channel_name": "#?.+"},
    "sms": {"number": r"\+?[\d\s().-]+"},
    "webhook_basicauth": {"url": "https?://.+", "username": ".+"},
    "webhook_tokenauth": {"url": "https?://.+"},
}


@dataclass(frozen=True)
class Row:
    """One rule for one field of a message."""

    field: str
    check: Callable[[Document], Iterator[str]]
    """Yields a sentence if the message breaks the rule."""
    source: str = DOC


def _value(field: str, wrong: Callable[[Any], str]) -> Callable[[Document], Iterator[str]]:
    """Return a check of a field's value if it is set; ``wrong`` returns the error text or ""."""

    def check(document: Document) -> Iterator[str]:
        value = document.get(field)
        if value not in (None, "") and (text := wrong(value)):
            yield text

    return check


def pattern(field: str, form: str, source: str = DOC) -> Row:
    """Check that the whole text matches a regular expression."""
    bad = f"does not match {form}."
    return Row(
        field,
        _value(field, lambda v: "" if re.fullmatch(form, str(v)) else f"{str(v)[:80]!r} {bad}"),
        source,
    )


def length(field: str, least: int, most: int, unit: str, source: str = DOC) -> Row:
    """Check the number of characters of a text or of elements of a list."""

    def wrong(value: Any) -> str:
        text = f"{least} to {most} {unit} are allowed, got {len(value)}."
        return "" if least <= len(value) <= most else text

    return Row(field, _value(field, wrong), source)


def number(field: str, least: float, source: str = DOC) -> Row:
    """Check that a number is not below a minimum."""
    return Row(
        field,
        _value(field, lambda v: "" if float(v) >= least else f"Must be at least {least}, got {v}."),
        source,
    )


def one_of(field: str, *values: str, source: str = DOC) -> Row:
    """Check that the value is in a list."""
    listed = ", ".join(values)
    return Row(
        field,
        _value(field, lambda v: "" if v in values else f"{v!r} is not one of {listed}."),
        source,
    )


def duration(field: str, least: int, most: int = 0, multiple: int = 1, source: str = DOC) -> Row:
    """Check that a duration such as ``300s`` is within bounds and a multiple of some seconds."""

    def wrong(value: Any) -> str:
        if not re.fullmatch(r"\d{1,12}(\.\d{1,9})?s", str(value)):
            return f"A duration such as 300s is expected, got {str(value)[:80]!r}."
        seconds = float(str(value)[:-1])
        if seconds < least or (most and seconds > most):
            bound = f"{least} to {most}" if most else f"at least {least}"
            return f"Must be {bound} seconds, got {value}."
        return f"Must be a multiple of {multiple} seconds, got {value}." * bool(seconds % multiple)

    return Row(field, _value(field, wrong), source)


def exclusive(field: str, other: str, source: str = DOC) -> Row:
    """Check that two fields are not both set."""

    def check(document: Document) -> Iterator[str]:
        if document.get(field) and document.get(other) is not None:
            yield f"{field} and {other} are mutually exclusive."

    return Row(field, check, source)


def log_filter(field: str, most: int, source: str = DOC) -> Row:
    """Check a filter in the Logging query language."""

    def wrong(value: Any) -> str:
        try:
            check_syntax(str(value))
        except FilterError as error:
            return str(error)[:300]
        return f"At most {most} characters are allowed." * (len(str(value)) > most)

    return Row(field, _value(field, wrong), source)


def metric_filter(field: str) -> Row:
    """Check a Monitoring filter, which must contain a metric type."""
    form = r"\bmetric\.type\s*=\s*|\bmetric\.types?\s*=\s*\w+\(|\bselect_slo_"

    def wrong(value: Any) -> str:
        if not re.search(form, str(value)):
            return 'The filter must specify a metric type: metric.type="…".'
        return "At most 2048 characters are allowed." * (len(str(value)) > 2048)

    return Row(field, _value(field, wrong))


def extractors(field: str) -> Row:
    """Check one extractor, or a map of extractors."""

    def wrong(value: Any) -> str:
        texts = value.values() if isinstance(value, Mapping) else [value]
        bad = next((str(text) for text in texts if not _EXTRACTOR.fullmatch(str(text))), "")
        form = "EXTRACT(FIELD) or REGEXP_EXTRACT(FIELD, REGEX) is expected"
        return f"{form}, got {bad[:80]!r}." if bad else ""

    return Row(field, _value(field, wrong))


def _conditions(policy: Document) -> Iterator[str]:
    conditions = policy.get("conditions") or []
    of_logs = [condition for condition in conditions if condition.get("conditionMatchedLog")]
    if not 1 <= len(conditions) <= 6:
        yield f"A policy has from one to six conditions, got {len(conditions)}."
    if of_logs and len(conditions) > 1:
        yield "With conditionMatchedLog, no other conditions can be present."


def _rate_limit(policy: Document) -> Iterator[str]:
    conditions = policy.get("conditions") or []
    limited = (policy.get("alertStrategy") or {}).get("notificationRateLimit")
    of_logs = any(condition.get("conditionMatchedLog") for condition in conditions)
    if of_logs and not limited:
        yield "notificationRateLimit is required for policies with conditionMatchedLog."
    if limited and conditions and not of_logs:
        yield "notificationRateLimit is for policies with conditionMatchedLog only."


def _channel(channel: Document) -> Iterator[str]:
    kind, labels = channel.get("type"), channel.get("labels") or {}
    wanted = _CHANNEL_LABELS.get(str(kind))
    if wanted is None:
        yield f"{kind or ''!r} is not a channel type; types are {', '.join(_CHANNEL_LABELS)}."
        return
    for name, form in wanted.items():
        if not re.fullmatch(form, str(labels.get(name, ""))):
            value = str(labels.get(name, ""))[:80]
            yield f"A channel of type {kind} needs the label {name} ({form}), got {value!r}."


def _money(budget: Document) -> Iterator[str]:
    amount = (budget.get("amount") or {}).get("specifiedAmount") or {}
    if float(amount.get("units") or 0) < 0:
        yield f"Must not be negative, got {amount['units']}."


def _dataset_location(name: str) -> str:
    known = name.upper() in ("US", "EU") or is_region(name.lower())
    return "" if known else f"{name!r} is not a BigQuery location."


_NAME_128: Final = length("displayName", 1, 128, "characters")
_LONG_NAME: Final = length("displayName", 0, 512, "characters")


def _machine(field: str) -> Row:
    """Check that a machine type's accelerators exist and are supported."""

    def check(document: Document) -> Iterator[str]:
        spec = document if field == "machineType" else document.get(field) or {}
        if text := machine_error(spec):
            yield text

    return Row(field, check, "localgcp.inventory.machines")


#: By the message's name in the discovery documents.
ROWS: Final[Mapping[str, tuple[Row, ...]]] = {
    **{
        f"aiplatform.v1.GoogleCloudAiplatformV1{message}": (_NAME_128,)
        for message in ("CustomJob", "HyperparameterTuningJob", "Model", "TrainingPipeline")
    },
    "aiplatform.v1.GoogleCloudAiplatformV1Endpoint": (
        _NAME_128,
        exclusive("network", "privateServiceConnectConfig"),
    ),
    # Machines of CustomJobs are checked by the catalogue: localgcp.vertex.checks.LIMITS.
    "aiplatform.v1.GoogleCloudAiplatformV1DedicatedResources": (_machine("machineSpec"),),
    "batch.v1.InstancePolicy": (_machine("machineType"),),
    "compute.v1.Instance": (_machine("machineType"),),
    "compute.v1.AllocationSpecificSKUAllocationReservedInstanceProperties": (
        _machine("machineType"),
    ),
    "monitoring.v3.AlertPolicy": (
        _LONG_NAME,
        Row("conditions", _conditions),
        Row("alertStrategy", _rate_limit),
    ),
    "monitoring.v3.AlertStrategy": (duration("autoClose", 1800, 604_800, source=_ALERTS),),
    "monitoring.v3.MetricThreshold": (
        duration("duration", 0, multiple=60),
        one_of("comparison", "COMPARISON_GT", "COMPARISON_LT"),
        metric_filter("filter"),
        metric_filter("denominatorFilter"),
    ),
    "monitoring.v3.MetricAbsence": (
        duration("duration", 120, multiple=60),
        metric_filter("filter"),
    ),
    "monitoring.v3.LogMatch": (log_filter("filter", 20_000), extractors("labelExtractors")),
    "monitoring.v3.NotificationChannel": (
        _LONG_NAME,
        Row("labels", _channel, _CHANNELS),
        length("description", 0, 1024, "characters"),
    ),
    "logging.v2.LogMetric": (
        pattern("name", r"[A-Za-z0-9_\-.,+!*'()%][A-Za-z0-9_\-.,+!*'()%/]{0,99}"),
        log_filter("filter", 20_000),
        extractors("valueExtractor"),
        extractors("labelExtractors"),
        length("description", 0, 8000, "characters"),
    ),
    "billingbudgets.v1.GoogleCloudBillingBudgetsV1Budget": (
        length("displayName", 0, 60, "characters"),
        Row("amount", _money),
    ),
    "billingbudgets.v1.GoogleCloudBillingBudgetsV1ThresholdRule": (number("thresholdPercent", 0),),
    "billingbudgets.v1.GoogleTypeMoney": (pattern("currencyCode", "[A-Z]{3}"),),
    "billingbudgets.v1.GoogleCloudBillingBudgetsV1NotificationsRule": (
        length("monitoringNotificationChannels", 0, 5, "channels"),
        pattern("pubsubTopic", "projects/[^/]+/topics/[^/]+"),
        one_of("schemaVersion", "1.0"),
    ),
    "bigquery.v2.Dataset": (
        number("defaultTableExpirationMs", 3_600_000),
        Row("location", _value("location", _dataset_location), _DATASETS),
    ),
    "bigquery.v2.DatasetReference": (pattern("datasetId", r"[A-Za-z0-9_]{1,1024}"),),
    "bigquery.v2.TableReference": (pattern("tableId", r"[\w\- $]{1,1024}"),),
}
