"""Properties of resource types, from ``resource_types.yaml``, and types with a name in code."""

from __future__ import annotations

import functools
import itertools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from vertex_training import catalog

JOB: Final = "pulumi-python:dynamic/vertex:CustomJob"
TUNING_JOB: Final = "pulumi-python:dynamic/vertex:HyperparameterTuningJob"
SCHEDULE: Final = "pulumi-python:dynamic/vertex:JobSchedule"
SNAPSHOT: Final = "pulumi-python:dynamic/vertex:Snapshot"
MODEL_VERSION: Final = "pulumi-python:dynamic/vertex:ModelVersion"
ENDPOINT_TRAFFIC: Final = "pulumi-python:dynamic/vertex:EndpointTraffic"
ENDPOINT_CLEANUP: Final = "pulumi-python:dynamic/vertex:EndpointCleanup"
ENDPOINT: Final = "gcp:vertex/aiEndpoint:AiEndpoint"
ALERT: Final = "gcp:monitoring/alertPolicy:AlertPolicy"
CHANNEL: Final = "gcp:monitoring/notificationChannel:NotificationChannel"
DASHBOARD: Final = "gcp:monitoring/dashboard:Dashboard"
BUDGET: Final = "gcp:billing/budget:Budget"
BUCKET: Final = "gcp:storage/bucket:Bucket"
OBJECT: Final = "gcp:storage/bucketObject:BucketObject"
SECRET: Final = "gcp:secretmanager/secret:Secret"
REPOSITORY: Final = "gcp:artifactregistry/repository:Repository"
DATASET: Final = "gcp:bigquery/dataset:Dataset"
TENSORBOARD: Final = "gcp:vertex/aiTensorboard:AiTensorboard"
ACCOUNT: Final = "gcp:serviceaccount/account:Account"
AGENT: Final = "gcp:projects/serviceIdentity:ServiceIdentity"
CUSTOM_ROLE: Final = "gcp:projects/iAMCustomRole:IAMCustomRole"
DENY_POLICY: Final = "gcp:iam/denyPolicy:DenyPolicy"
RESERVATION: Final = "gcp:compute/reservation:Reservation"
NETWORK: Final = "gcp:compute/network:Network"
CONNECTION: Final = "gcp:servicenetworking/connection:Connection"
SUBNET: Final = "gcp:compute/subnetwork:Subnetwork"
ATTACHMENT: Final = "gcp:compute/networkAttachment:NetworkAttachment"
FIREWALL: Final = "gcp:compute/firewall:Firewall"
#: Resource types whose keys let the holder act as an account -> name in messages, and the input
#: that binds the key to an account.
_ACCOUNT_KEYS: Final = {
    "gcp:serviceaccount/key:Key": ("a key", ""),
    "gcp:storage/hmacKey:HmacKey": ("an HMAC key", ""),
    "gcp:projects/apiKey:ApiKey": ("an API key", "serviceAccountEmail"),
}

ON_BUCKET: Final = "gcp:storage/bucketIAMMember:BucketIAMMember"
ON_SECRET: Final = "gcp:secretmanager/secretIamMember:SecretIamMember"
ON_ACCOUNT: Final = "gcp:serviceaccount/iAMMember:IAMMember"
ON_KEY: Final = "gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember"
ON_SUBNET: Final = "gcp:compute/subnetworkIAMMember:SubnetworkIAMMember"
ON_REPOSITORY: Final = "gcp:artifactregistry/repositoryIamMember:RepositoryIamMember"
ON_DATASET: Final = "gcp:bigquery/datasetIamMember:DatasetIamMember"
ON_PROJECT: Final = "gcp:projects/iAMMember:IAMMember"

#: Suffix of IAM types of every service: ``…:SecretIamPolicy``.
IAM_TYPE: Final = re.compile(r"I[Aa][Mm](Member|Binding|Policy)\Z")

_DAY: Final = 24 * 3600
IamKind = Literal["Member", "Binding", "Policy"]
#: Recovery of an existing resource that the state lacks; see ``resource_types.yaml``.
Recovery = Literal["imported", "adopted", "repeated", "restarted", "unsought"]
Permissions = Literal["read", "content", "write", "grant"]
#: Method of an API -> required permissions.
Calls = dict[str, list[str]]


@dataclass(frozen=True, slots=True)
class WatchedInput:
    """An input that protects a resource: a number of seconds, or a switch."""

    path: str
    words: str
    of: Literal["data", "guard", "notice"] = "data"
    safe: object = None
    unsafe: object = None
    same: bool = False
    absent: float = 0

    def is_lowered(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
        """Return True if ``new`` inputs protect less than ``old``."""
        if self.same:
            return value_at(old, self.path) != value_at(new, self.path)
        return self.amount(new) < self.amount(old)

    def amount(self, inputs: Mapping[str, Any]) -> float:
        """Return the degree of protection: days, or 1 for a safe switch and 0 for an unsafe one."""
        value = value_at(inputs, self.path)
        if self.safe is not None:
            return float(type(value) is type(self.safe) and value == self.safe)
        if self.unsafe is not None:
            return float(type(value) is not type(self.unsafe) or value != self.unsafe)
        return as_number(self.absent if value is None else value) / _DAY

    def shown(self, amount: float) -> str:
        """Format a degree of protection as text."""
        if self.safe is None and self.unsafe is None:
            return f"{amount:g} days"
        return "on" if amount else "off"


@dataclass(frozen=True, slots=True)
class ResourceType:
    """Row of the table in ``resource_types.yaml``, which describes the columns."""

    type: str
    word: str = ""
    name: str = "name"
    holds: str = ""
    copy: bool = False
    goes: str = ""
    stays: dict[str, object] | None = None
    restore: str = ""
    unread: str = ""
    watched: tuple[WatchedInput, ...] = ()
    policy: str = ""
    import_id: str = ""
    listed_at: str = ""
    same: Mapping[str, str] = field(default_factory=dict)
    recovery: Recovery = "unsought"
    output: str = ""
    grants_on: str = ""
    named_by: str = ""
    api: str = ""
    where: Literal["project", "host", "organization", "bootstrap"] = "project"
    read: Calls = field(default_factory=dict)
    content: Calls = field(default_factory=dict)
    write: Calls = field(default_factory=dict)
    grant: Calls = field(default_factory=dict)
    of_options: Mapping[str, list[str]] = field(default_factory=dict)
    plugin: str = ""
    source: str = ""

    @property
    def loss(self) -> str:
        """Return the data that a destroy loses for good; empty if the data can be created again."""
        if self.copy:
            return ""
        return self.goes or (f"with {self.holds}" if self.holds else "")

    def permissions(self, *kinds: Permissions) -> set[str]:
        """Return the permissions for operations of these kinds."""
        lists = (required for kind in kinds for required in getattr(self, kind).values())
        return set(itertools.chain.from_iterable(lists))

    def needed_permissions(self, inputs: Mapping[str, Any]) -> set[str]:
        """Return the permissions to deploy a resource, except those of its unused options."""
        options = inputs.get("options") or {}
        unused = (needed for name, needed in self.of_options.items() if not options.get(name))
        every = self.permissions("read", "content", "write", "grant")
        return every.difference(*unused)

    def restoration(self, inputs: Mapping[str, Any]) -> str:
        """Return how to restore a manually deleted resource; empty if that is unknown."""
        return _filled_in(self.restore, inputs)

    def id_to_import(self, inputs: Mapping[str, Any]) -> str:
        """Return the id to import the resource by; empty if unknown or not importable."""
        return _filled_in_if_known(self.import_id, inputs)

    def list_address(self, inputs: Mapping[str, Any]) -> str:
        """Return the URL of the list that contains the resource; empty if unknown."""
        is_distinct = all(value_at(inputs, path) for path in self.same.values())
        return _filled_in_if_known(self.listed_at, inputs) if is_distinct else ""

    def is_same(self, item: Mapping[str, Any], inputs: Mapping[str, Any]) -> bool:
        """Return True if an item of the list is the resource with these inputs."""
        return all(value_at(item, at) == value_at(inputs, own) for at, own in self.same.items())

    def is_alike(self, item: Mapping[str, Any], inputs: Mapping[str, Any]) -> bool:
        """Return True if a list item has the resource's name, by the first path in ``same``."""
        at, own = next(iter(self.same.items()))
        return value_at(item, at) == value_at(inputs, own)

    def output_of(self, inputs: Mapping[str, Any]) -> str:
        """Return the name of the stack output that describes this resource; empty without one."""
        return _filled_in(self.output, inputs)

    def policy_name(self, inputs: Mapping[str, Any]) -> str:
        """Return the name of the resource's IAM policy, or of the policy that a grant changes."""
        named = str(inputs.get(self.named_by) or "")
        if "/" in named:
            return named
        return _filled_in(self.policy, inputs)


def as_number(value: object) -> float:
    """Convert an input to a number; return 0 for an unknown value."""
    try:
        return float(value)  # pyright: ignore[reportArgumentType] - any type, or ValueError
    except (TypeError, ValueError):
        return 0.0


def value_at(document: object, path: str) -> Any:
    """Return the value at a path like ``tiles.-1.text``, also in JSON texts; None if missing."""
    for part in path.split("."):
        if isinstance(document, str):
            try:
                document = json.loads(document)
            except (ValueError, RecursionError):
                return None
        if isinstance(document, Mapping):
            document = document.get(part)
        elif isinstance(document, list) and re.fullmatch(r"-?\d{1,4}", part):
            document = next(iter(document[int(part) :]), None)
        else:
            return None
    return document


def _filled_in_if_known(template: str, inputs: Mapping[str, Any]) -> str:
    values = {part: value_at(inputs, part) for part in re.findall(r"\{([^}]+)\}", template)}
    if not template or not all(isinstance(value, str) and value for value in values.values()):
        return ""
    return re.sub(r"\{([^}]+)\}", lambda part: values[part[1]], template)


def _filled_in(template: str, inputs: Mapping[str, Any]) -> str:
    return re.sub(r"\{(\w+)\}", lambda part: str(inputs.get(part[1])), template)


@functools.cache
def by_token() -> Mapping[str, ResourceType]:
    """Return all rows by type, in the table's order."""
    result = dict[str, ResourceType]()
    for row in catalog.load("resource_types.yaml"):
        recovery = {"recovery": "imported"} if "import_id" in row else {}
        watched = tuple(WatchedInput(**columns) for columns in row.get("watched", ()))
        result[row["type"]] = ResourceType(**recovery | row | {"watched": watched})
    return result


def find(token: str) -> ResourceType:
    """Return the row of a type; an empty row for an unknown type."""
    return by_token().get(token) or ResourceType(token)


def iam_kind(token: str) -> IamKind | None:
    """Return the kind of an IAM type: Member, Binding or Policy; None for other types."""
    match = IAM_TYPE.search(token)
    return match[1] if match else None  # pyright: ignore[reportReturnType]


def account_key(token: str, inputs: Mapping[str, Any]) -> str:
    """Return the kind of service account key that a resource creates; empty for other types."""
    # An API key has an identity only if it is bound to an account:
    # https://docs.cloud.google.com/docs/authentication/api-keys
    words, needed = _ACCOUNT_KEYS.get(token, ("", ""))
    return words if not needed or inputs.get(needed) else ""


def granting(token: str) -> ResourceType:
    """Return the row of the Member type that corresponds to a Member, Binding or Policy type."""
    stem = _without_kind(token)
    same = (row for row in by_token().values() if row.grants_on and _without_kind(row.type) == stem)
    return next(same, ResourceType(token))


def _without_kind(token: str) -> str:
    return re.sub(r"iam(member|binding|policy)", "", token.lower())


def policy_addresses() -> list[tuple[re.Pattern[str], str]]:
    """Return patterns of policy names, each with the URL prefix to read such policies."""
    rows = [row for row in by_token().values() if row.api]
    return [(re.compile(re.sub(r"\{\w+\}", "[^/]+", row.policy)), row.api) for row in rows]


def words_of_data() -> set[str]:
    """Return the nouns for resources that hold data and have an IAM policy: bucket, secret, …"""
    rows = by_token().values()
    return {row.word for row in rows if row.holds} & {row.grants_on for row in rows}


def words_of_inputs() -> dict[str, str]:
    """Return the nouns for granted resources, by the name of the input with the resource's name."""
    return {row.named_by: row.grants_on for row in by_token().values() if row.named_by}
