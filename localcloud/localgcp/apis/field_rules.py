"""Rules for the fields of resources, shared by gRPC, REST and the gcp plugin."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from localgcp.apis import discovery
from localgcp.clients.log_filters import check_syntax
from localgcp.errors import FilterError
from localgcp.inventory.machines import is_region, machine_error

Document = Mapping[str, Any]
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
    """Yields an error if the message violates the rule."""


def _value(field: str, error: Callable[[Any], str]) -> Row:
    def check(document: Document) -> Iterator[str]:
        value = document.get(field)
        if value not in (None, "") and (text := error(value)):
            yield text

    return Row(field, check)


def pattern(field: str, form: str) -> Row:
    """Check that the whole text matches a regular expression."""
    bad = f"does not match {form}."
    return _value(field, lambda v: "" if re.fullmatch(form, str(v)) else f"{str(v)[:80]!r} {bad}")


def length(field: str, least: int, most: int, unit: str) -> Row:
    """Check the length of a text or a list."""

    def error(value: Any) -> str:
        text = f"{least} to {most} {unit} are allowed, got {len(value)}."
        return "" if least <= len(value) <= most else text

    return _value(field, error)


def number(field: str, least: float) -> Row:
    """Check that a number is not below a minimum."""
    text = f"Must be at least {least}, got"
    return _value(field, lambda v: "" if float(v) >= least else f"{text} {v}.")


def one_of(field: str, *values: str) -> Row:
    """Check that the value is in a list."""
    listed = ", ".join(values)
    return _value(field, lambda v: "" if v in values else f"{v!r} is not one of {listed}.")


def duration(field: str, least: int, most: int = 0, multiple: int = 1) -> Row:
    """Check that a duration such as ``300s`` is a multiple of some seconds within bounds."""

    def error(value: Any) -> str:
        if not re.fullmatch(r"\d{1,12}(\.\d{1,9})?s", str(value)):
            return f"A duration such as 300s is expected, got {str(value)[:80]!r}."
        seconds = float(str(value)[:-1])
        if seconds < least or (most and seconds > most):
            bound = f"{least} to {most}" if most else f"at least {least}"
            return f"Must be {bound} seconds, got {value}."
        return f"Must be a multiple of {multiple} seconds, got {value}." * bool(seconds % multiple)

    return _value(field, error)


def exclusive(field: str, other: str) -> Row:
    """Check that two fields are not both set."""

    def check(document: Document) -> Iterator[str]:
        if document.get(field) and document.get(other) is not None:
            yield f"{field} and {other} are mutually exclusive."

    return Row(field, check)


def log_filter(field: str, most: int) -> Row:
    """Check a filter in the Logging query language."""

    def error(value: Any) -> str:
        try:
            check_syntax(str(value))
        except FilterError as problem:
            return str(problem)[:300]
        return f"At most {most} characters are allowed." * (len(str(value)) > most)

    return _value(field, error)


def metric_filter(field: str) -> Row:
    """Check a Monitoring filter, which must contain a metric type."""
    form = r"\bmetric\.type\s*=\s*|\bmetric\.types?\s*=\s*\w+\(|\bselect_slo_"

    def error(value: Any) -> str:
        if not re.search(form, str(value)):
            return 'The filter must specify a metric type: metric.type="…".'
        return "At most 2048 characters are allowed." * (len(str(value)) > 2048)

    return _value(field, error)


def extractors(field: str) -> Row:
    """Check a label extractor of a log filter, or a map of extractors."""

    def error(value: Any) -> str:
        texts = value.values() if isinstance(value, Mapping) else [value]
        bad = next((str(text) for text in texts if not _EXTRACTOR.fullmatch(str(text))), "")
        form = "EXTRACT(FIELD) or REGEXP_EXTRACT(FIELD, REGEX) is expected"
        return f"{form}, got {bad[:80]!r}." if bad else ""

    return _value(field, error)


def _conditions(policy: Document) -> Iterator[str]:
    conditions = policy.get("conditions") or []
    if not 1 <= len(conditions) <= 6:
        yield f"A policy has from one to six conditions, got {len(conditions)}."
    if len(conditions) > 1 and any(c.get("conditionMatchedLog") for c in conditions):
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
    required = _CHANNEL_LABELS.get(str(kind))
    if required is None:
        yield f"{kind or ''!r} is not a channel type; types are {', '.join(_CHANNEL_LABELS)}."
        return
    for name, form in required.items():
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
    def check(document: Document) -> Iterator[str]:
        spec = document if field == "machineType" else document.get(field) or {}
        if text := machine_error(spec):
            yield text

    return Row(field, check)


#: Name of a message in the discovery documents -> rules from the descriptions of the fields.
ROWS: Final[Mapping[str, tuple[Row, ...]]] = {
    **{
        f"aiplatform.v1.GoogleCloudAiplatformV1{message}": (_NAME_128,)
        for message in ("CustomJob", "HyperparameterTuningJob", "Model", "TrainingPipeline")
    },
    "aiplatform.v1.GoogleCloudAiplatformV1Endpoint": (
        _NAME_128,
        exclusive("network", "privateServiceConnectConfig"),
    ),
    # localgcp.vertex.checks.LIMITS checks the machines of CustomJobs.
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
    # https://docs.cloud.google.com/monitoring/api/ref_v3/rest/v3/projects.alertPolicies
    "monitoring.v3.AlertStrategy": (duration("autoClose", 1800, 604_800),),
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
        # https://docs.cloud.google.com/monitoring/api/ref_v3/rest/v3/projects.notificationChannelDescriptors/list
        Row("labels", _channel),
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
        # https://docs.cloud.google.com/bigquery/docs/locations
        _value("location", _dataset_location),
    ),
    "bigquery.v2.DatasetReference": (pattern("datasetId", r"[A-Za-z0-9_]{1,1024}"),),
    "bigquery.v2.TableReference": (pattern("tableId", r"[\w\- $]{1,1024}"),),
}


REQUIRED: Final = "Required field is not set."
FieldErrors = Iterator[tuple[str, str]]


def errors(
    schema: str, document: Mapping[str, Any], at: str = "", only: Collection[str] | None = None
) -> FieldErrors:
    """Yield the field and text of each mistake; ``only`` selects top-level fields."""
    described = discovery.fields_of(schema)
    for name, field in described.items():
        if only is not None and name not in only:
            continue
        here, value = f"{at}.{snake(name)}".lstrip("."), document.get(name)
        if is_empty(value) and not (value == {} and "$ref" in field):
            if is_required(field):
                yield here, REQUIRED
        elif isinstance(value, Mapping) and field.get("labels"):
            yield from label_errors(here, value)
        else:
            yield from _nested(field, value, here)
    for row in ROWS.get(schema, ()):
        if only is None or row.field in only:
            for text in row.check(document):
                yield f"{at}.{snake(row.field)}".lstrip("."), text


def _nested(field: Mapping[str, Any], value: Any, at: str) -> FieldErrors:
    if "$ref" in field and isinstance(value, Mapping):
        yield from errors(field["$ref"], value, at)
    elif "items" in field and isinstance(value, list):
        for index, item in enumerate(value):
            yield from _nested(field["items"], item, f"{at}[{index}]")
    elif "additionalProperties" in field and isinstance(value, Mapping):
        for key, item in value.items():
            yield from _nested(field["additionalProperties"], item, f"{at}[{key}]")


def is_required(field: Mapping[str, Any]) -> bool:
    """Return whether the field is required to create a resource."""
    marked = field.get("required", ())
    return marked is True or any(method.endswith(".insert") for method in marked or ())


def is_empty(value: Any) -> bool:
    """Return whether the value is None, "", [] or {}, which count as unset."""
    return value is None or value in ("", [], {})


def label_errors(at: str, labels: Mapping[str, str]) -> FieldErrors:
    """Yield mistakes in labels."""
    if len(labels) > 64:
        yield at, "No more than 64 labels can be associated with one resource."
    for key, value in labels.items():
        is_valid = re.fullmatch(r"[^\W_A-Z][\w-]{0,62}", key)
        is_valid = is_valid and re.fullmatch(r"[\w-]{0,63}", str(value))
        if not is_valid or (key + str(value)) != (key + str(value)).lower():
            yield at, f"Label {key}={value} is not valid: lowercase letters, digits, _ and -."


def snake(name: str) -> str:
    """Return the snake-case form of a JSON field name, such as ``display_name``."""
    return re.sub(r"[A-Z]", lambda capital: f"_{capital[0].lower()}", name)


def json_name(field: str) -> str:
    """Return the JSON form of a field name, such as ``displayName``."""
    return re.sub(r"_([a-z])", lambda letter: letter[1].upper(), field)
