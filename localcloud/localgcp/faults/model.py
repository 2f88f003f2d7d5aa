"""Faults, and the checks of their fields."""

from __future__ import annotations

import difflib
import json
import random
import re
import shlex
from collections.abc import Iterable
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from localgcp.errors import LocalCloudError

#: gRPC codes except OK (https://grpc.io/docs/guides/status-codes).
GRPC_CODES: Final = frozenset({
    *("CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND"),
    *("ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION"),
    *("ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS"),
    "UNAUTHENTICATED",
})  # fmt: skip
#: Service -> names of the methods to which faults apply. ``jobs`` includes methods of Batch;
#: ``bigquery`` includes running jobs (``query``, ``load``, ``extract``).
METHODS: Final = {
    service: frozenset(names.split())
    for service, names in {
        "jobs": """
            CreateCustomJob GetCustomJob ListCustomJobs CancelCustomJob DeleteCustomJob
            GetOperation ListOperations CreateHyperparameterTuningJob GetHyperparameterTuningJob
            ListHyperparameterTuningJobs CancelHyperparameterTuningJob
            DeleteHyperparameterTuningJob CreateJob GetJob ListJobs CancelJob DeleteJob
            """,
        "models": """
            UploadModel GetModel ListModels ListModelVersions MergeVersionAliases
            DeleteModelVersion DeleteModel CreateEndpoint GetEndpoint ListEndpoints
            UpdateEndpoint DeleteEndpoint DeployModel UndeployModel MutateDeployedModel Predict
            """,
        "operations": "UploadModel DeployModel UndeployModel MutateDeployedModel",
        "storage": """
            objects.insert objects.get objects.download objects.list objects.delete
            objects.other buckets buckets.get
            """,
        "iam": "TestIamPermissions GetIamPolicy SetIamPolicy serviceAccounts.get",
        "compute": """
            reservations.get networks.get firewalls.list routes.list subnetworks.aggregatedList
            globalAddresses.list networkAttachments.get projects.get projects.getXpnHost
            regions.get
            """,
        "monitoring": """
            projects.timeSeries.list projects.notificationChannels.get
            projects.notificationChannels.list projects.alertPolicies.list
            projects.dashboards.list
            """,
        "billingbudgets": "billingAccounts.budgets.list",
        "serviceusage": "consumerQuotaMetrics.get services.list",
        "cloudresourcemanager": "projects.get",
        "cloudbilling": "projects.getBillingInfo",
        "artifactregistry": "repositories.get",
        "secretmanager": "secrets.get versions.get",
        "cloudkms": "cryptoKeys.get",
        "orgpolicy": "projects.policies.getEffectivePolicy",
        "servicenetworking": "services.connections.list",
        "dns": "managedZones.list",
        "bigquery": """
            jobs.insert jobs.get jobs.list jobs.cancel jobs.query jobs.getQueryResults
            datasets.insert datasets.get tables.get tabledata.list query load extract
            """,
    }.items()
}


class Service(StrEnum):
    """Services to which faults can be added."""

    JOBS = "jobs"
    MODELS = "models"
    OPERATIONS = "operations"
    """Long-running operations, which calls of ``models`` start."""
    STORAGE = "storage"
    IAM = "iam"
    COMPUTE = "compute"
    MONITORING = "monitoring"
    SERVICEUSAGE = "serviceusage"
    RESOURCEMANAGER = "cloudresourcemanager"
    BILLING = "cloudbilling"
    BUDGETS = "billingbudgets"
    REGISTRY = "artifactregistry"
    SECRETS = "secretmanager"
    KEYS = "cloudkms"
    ORGANIZATION_POLICIES = "orgpolicy"
    SERVICE_NETWORKING = "servicenetworking"
    DNS = "dns"
    BIGQUERY = "bigquery"
    """Calls of BigQuery and running jobs (``query``, ``load``, ``extract``)."""


class Kind(StrEnum):
    """Kinds of faults."""

    ERROR = "error"
    """The service answers the call with the error ``code``."""
    DROP = "drop"
    """The service does not answer the call, so the caller's deadline passes."""
    DELAY = "delay"
    """The service delays the call by ``seconds``."""
    RESET = "reset"
    """The service closes the caller's connection."""
    TRUNCATE = "truncate"
    """The service sends only the first part of the answer."""
    HOLD = "hold"
    """The call waits until the fault is released."""
    STALE = "stale"
    """Lists omit jobs younger than ``seconds``."""
    SHORT_PAGES = "short-pages"
    """The first page of a list is empty, and each further page has one job."""
    LOST_PAGE = "lost-page"
    """The first page of a list has one job, and later pages are empty."""
    LOST_RECORD = "lost-record"
    """The record of a job is missing: requests fail with 404, and lists omit the job."""
    STOCKOUT = "stockout"
    """No machine is available, so the job waits ``seconds``. Without ``seconds``, FLEX_START and
    Batch jobs wait, and other jobs fail.
    """
    PREEMPT = "preempt"
    """A running job with the strategy SPOT loses machines after ``seconds`` and restarts; a Batch
    task ends with exit code 50001.
    """
    KILL = "kill"
    """SIGKILL ends a replica of a running job after ``seconds``."""
    DENY = "deny"
    """The answer denies the request: a missing permission, no reservation, a quota of 0."""
    PATCH = "patch"
    """The service merges ``patch`` into the answer, to simulate another project: no billing, a
    disabled API, a policy, a quota. For a missing resource, the answer is ``patch`` alone.
    """
    UTILIZATION = "utilization"
    """Accelerators of running jobs have the utilization ``value`` in each minute of the last
    ``seconds``. Without this fault, the local cloud has no utilization data.
    """


LISTS: Final = frozenset({Kind.STALE, Kind.SHORT_PAGES, Kind.LOST_PAGE})
_LIST_METHODS: Final = ("ListCustomJobs", "ListHyperparameterTuningJobs", "ListJobs")
#: Kinds that apply to running jobs instead of calls.
OF_JOBS: Final = frozenset({Kind.STOCKOUT, Kind.PREEMPT, Kind.KILL})
#: Kinds that apply to one replica of a job, or to all replicas.
_OF_REPLICAS: Final = frozenset({Kind.PREEMPT, Kind.KILL})
#: Services over gRPC.
_BY_GRPC: Final = frozenset({Service.JOBS, Service.MODELS, Service.OPERATIONS})
#: Services with only the kinds of REST methods (``localgcp.reads``).
_BY_REST: Final = frozenset(
    {*Service} - _BY_GRPC - {Service.STORAGE, Service.BIGQUERY, Service.MONITORING}
)
_KINDS_OF_REST: Final = frozenset({Kind.DENY, Kind.PATCH, Kind.ERROR, Kind.DELAY})
_OF_CALLS: Final = frozenset(
    {Kind.ERROR, Kind.DROP, Kind.DELAY, Kind.RESET, Kind.TRUNCATE, Kind.HOLD}
)
_KINDS_OF: Final = {
    Service.MODELS: _OF_CALLS,
    Service.OPERATIONS: frozenset({Kind.ERROR, Kind.DELAY, Kind.HOLD}),
    Service.BIGQUERY: _KINDS_OF_REST | {Kind.RESET, Kind.HOLD},
    Service.MONITORING: _KINDS_OF_REST | {Kind.RESET, Kind.HOLD, Kind.UTILIZATION},
}
_NEEDS_SECONDS: Final = frozenset({Kind.DELAY, Kind.STALE, Kind.UTILIZATION})


class Fault(BaseModel):
    """One fault. Raises ValidationError for contradictory fields.

    The fault starts with the ``nth`` matching call and happens ``times`` times (0: until cleared;
    None: once, or until cleared for lists, lost records, patches and utilization), each time with
    ``probability``. The same ``seed`` results in the same choices.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    service: Service
    kind: Kind
    method: str = "*"
    """Short name of the method, or a pattern such as ``objects.*``."""
    match: str = ""
    """Text in the job's name, labels, id or list filter, in BUCKET/OBJECT, in a path, or in a
    tested permission. With a permission, ``deny`` denies only this permission.
    """
    when: Literal["before", "after"] = "before"
    """Whether the fault happens before or after the service executes the request."""
    code: str = ""
    """gRPC code (UNAVAILABLE) for jobs, models and operations, HTTP status (503) otherwise."""
    replica: str = Field(default="", pattern=r"^(workerpool[0-3]-\d+|task-\d+)?$")
    """The replica (Batch: ``task-0``) to kill (default: the first) or to preempt (default: all
    replicas, or one Batch task).
    """
    seconds: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    nth: int = Field(default=1, ge=1)
    times: int | None = Field(default=None, ge=0)
    probability: float = Field(default=1.0, gt=0, le=1)
    seed: int = 0
    patch: dict[str, Any] = Field(default_factory=dict)
    """A JSON merge patch (RFC 7396) for an answer."""
    value: float | None = Field(default=None, ge=0, le=1, allow_inf_nan=False)
    """Utilization of accelerators, from 0 to 1."""

    @classmethod
    def parse(cls, **fields: object) -> Fault:
        """Return a Fault. Raises one LocalCloudError that lists all mistakes."""
        try:
            return cls.model_validate(fields)
        except ValidationError as error:
            texts = []
            for mistake in error.errors():
                place = ".".join(map(str, mistake["loc"]))
                text = mistake["msg"].removeprefix("Value error, ")
                texts.append(f"{place}: {text} (got {mistake['input']!r})" if place else text)
            hint = "`vt local fault add --help` lists kinds and options; docs/local-stack.md has"
            raise LocalCloudError("; ".join(texts) + ".", f"{hint} examples.") from None

    @property
    def limit(self) -> int:
        """Return how often the fault happens; 0 means until the fault is cleared."""
        if self.times is not None:
            return self.times
        return 0 if self.kind in LISTS | {Kind.LOST_RECORD, Kind.PATCH, Kind.UTILIZATION} else 1

    def describe(self) -> str:
        """Return the fault as arguments of ``vt local fault add``."""
        conditions = self.model_dump(exclude={"service", "kind"}, exclude_defaults=True)
        if self.patch:
            conditions["patch"] = shlex.quote(json.dumps(self.patch))
        return " ".join([self.service, self.kind, *(f"--{k} {v}" for k, v in conditions.items())])

    def fits(self, service: Service, method: str, subjects: Iterable[str]) -> bool:
        """Return whether the fault matches a call; ``subjects`` must contain ``match``."""
        return (
            self.service is service
            and (self.kind not in LISTS or method in _LIST_METHODS)
            and fnmatchcase(method, self.method)
            and (not self.match or any(self.match in subject for subject in subjects))
        )

    def happens(self, seen: int, fired: int) -> bool:
        """Return whether the fault happens to matching call ``seen``, after ``fired`` events."""
        if seen < self.nth or (self.limit and fired >= self.limit):
            return False
        return random.Random(f"{self.seed}:{seen}").random() < self.probability

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        problems = [*_place_problems(self), *_value_problems(self)]
        if problems:
            raise ValueError("; ".join(problems))
        return self


def _place_problems(fault: Fault) -> Iterable[str]:
    kind, service = fault.kind, fault.service
    if service is Service.STORAGE and kind in LISTS | OF_JOBS | {Kind.LOST_RECORD}:
        yield (
            f"{kind} requires a service of jobs; Cloud Storage lists and reads are strongly "
            "consistent"
        )
    is_rest = service in _BY_REST or (service, fault.method) == (Service.STORAGE, "buckets.get")
    kinds = _KINDS_OF.get(service, frozenset({*Kind} - {Kind.DENY, Kind.PATCH, Kind.UTILIZATION}))
    if kind not in (_KINDS_OF_REST if is_rest else kinds):
        yield f"service {service} does not support fault {kind}"
    known = METHODS[service]
    if not any(fnmatchcase(name, fault.method) for name in known):
        yield f"{service} has no method '{fault.method}' (methods: {', '.join(sorted(known))})"
    if kind in LISTS and not any(fnmatchcase(name, fault.method) for name in _LIST_METHODS):
        yield f"{kind} applies to {' and '.join(_LIST_METHODS)}, not to {fault.method}"
    if kind in OF_JOBS and fault.method != "*":
        yield f"{kind} applies to running jobs, not to calls: omit the method"


def _value_problems(fault: Fault) -> Iterable[str]:
    kind = fault.kind
    if kind is Kind.ERROR:
        yield from _code_problems(fault)
    elif fault.code:
        yield f"{kind} does not accept a code"
    if kind not in (_OF_CALLS - {Kind.TRUNCATE}) and fault.when != "before":
        yield f"{kind} does not accept `when`"
    if kind is Kind.PATCH and not fault.patch:
        yield "kind patch requires a patch, a JSON object"
    elif kind is not Kind.PATCH and fault.patch:
        yield f"{kind} does not accept a patch"
    if kind is Kind.UTILIZATION and fault.value is None:
        yield f"{kind} needs a value"
    elif kind is not Kind.UTILIZATION and fault.value is not None:
        yield f"{kind} does not accept a value"
    if kind in _NEEDS_SECONDS and fault.seconds is None:
        yield f"{kind} needs seconds"
    if kind not in _NEEDS_SECONDS | OF_JOBS and fault.seconds is not None:
        yield f"{kind} does not accept seconds"
    if kind in _OF_REPLICAS and (fault.nth, fault.probability) != (1, 1.0):
        yield f"{kind} accepts neither nth nor probability: it applies to all matching jobs"
    if kind not in _OF_REPLICAS and fault.replica:
        yield f"{kind} does not accept a replica"


def _code_problems(fault: Fault) -> Iterable[str]:
    if not fault.code:
        example = "UNAVAILABLE" if fault.service in _BY_GRPC else "503"
        yield f"kind error requires a code, such as {example}"
    elif fault.service in _BY_GRPC and fault.code not in GRPC_CODES:
        near = difflib.get_close_matches(fault.code.upper(), GRPC_CODES)
        yield f"'{fault.code}' is not a gRPC code ({near[0] if near else 'UNAVAILABLE, …'})"
    elif fault.service not in _BY_GRPC and not re.fullmatch("[45][0-9]{2}", fault.code):
        yield f"'{fault.code}' is not an HTTP status from 400 to 599"
