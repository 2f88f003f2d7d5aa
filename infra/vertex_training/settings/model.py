"""The models of a stack file (``Pulumi.<stack>.yaml``)."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

import pydantic
from pydantic import Field
from pydantic.alias_generators import to_camel

from vertex_training.catalog import machines
from vertex_training.errors import nearest
from vertex_training.naming import Names, is_local
from vertex_training.settings.alerts import (
    Alerts,
    Budget,
    Channel,
    Dashboard,
    IdleText,
    StateMessages,
    idle_rule,
)
from vertex_training.settings.gpu_memory import TrainedModel
from vertex_training.settings.limits import JobDefaults, Limits, Rung, Schedule, Team
from vertex_training.settings.network import Network, Reservation, SharedVpc
from vertex_training.settings.section import (
    BELOW,
    IncludePath,
    Key,
    NamedSection,
    ProjectId,
    ProjectNumber,
    Section,
    form,
)
from vertex_training.settings.serving import Endpoint, Model

DIGITS: Final = "0123456789"
#: Of ``idleStop``: within fewer, most jobs only begin.
LEAST_IDLE_MINUTES: Final = 10
#: A folder below the checkout that has a name of its own, which is not hidden.
INCLUDED: Final = rf"(?!(?:.*/)?\.[^/]*$){BELOW}"
#: An image in Artifact Registry by digest.
OUTSIDE: Final = (
    r"[a-z0-9-]+-docker\.pkg\.dev/[a-z][a-z0-9-]*(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*){2,}"
    r"@sha256:[0-9a-f]{64}"
)
BucketName = Annotated[
    str,
    form(
        r"[a-z0-9]([a-z0-9_-]{1,61}[a-z0-9])",
        "acme-datasets: 3 to 63 lowercase letters, digits, '-' and '_'",
    ),
]
#: With dots only where it was made with a domain's proof, or by Firebase and App Engine:
#: https://docs.cloud.google.com/storage/docs/buckets#naming
ExistingBucket = Annotated[
    str,
    form(
        r"(?=.{3,222}$)(?:[a-z0-9](?:[a-z0-9_-]{0,61}[a-z0-9])?\.)*[a-z0-9][a-z0-9_-]{0,61}[a-z0-9]",
        "acme-datasets or data.example.com: lowercase letters, digits, '-', '_' and dots",
    ),
]
AccountId = Annotated[
    str,
    form(r"[a-z][a-z0-9-]{4,28}[a-z0-9]", "trainer: 6 to 30 lowercase letters, digits and '-'"),
]
AccountEmail = Annotated[
    str,
    form(
        r"[a-z][a-z0-9-]{4,28}[a-z0-9]@[a-z][a-z0-9-]{4,28}[a-z0-9]\.iam\.gserviceaccount\.com",
        "ACCOUNT@PROJECT.iam.gserviceaccount.com",
    ),
]
SecretId = Annotated[
    str, form(r"[A-Za-z0-9_-]{1,255}", "wandb-api-key: letters, digits, '-' and '_'")
]
SecretPath = Annotated[
    str,
    form(
        r"projects/[a-z][a-z0-9-]{4,28}[a-z0-9]/secrets/[A-Za-z0-9_-]{1,255}",
        "projects/PROJECT/secrets/SECRET, with the project's id",
    ),
]
RepositoryId = Annotated[
    str, form(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?", "training: lowercase letters, digits and '-'")
]
RepositoryPath = Annotated[
    str,
    form(
        r"projects/[a-z][a-z0-9-]{4,28}[a-z0-9]/locations/[a-z0-9-]+/repositories/"
        r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?",
        "projects/PROJECT/locations/LOCATION/repositories/REPOSITORY",
    ),
]
DatasetId = Annotated[
    str,
    form(r"[a-z][a-z0-9-]{4,28}[a-z0-9]\.[A-Za-z0-9_]{1,1024}", "PROJECT.DATASET"),
]
Role = Annotated[
    str,
    form(
        r"(?:(?:projects|organizations)/[a-z0-9-]+/)?roles/[A-Za-z0-9_.]+",
        "roles/storage.objectViewer or projects/PROJECT/roles/NAME",
    ),
]
#: BuildKit reads these itself and leaves them out of what its cache is recognised by.
_BUILDERS_OWN: Final = re.compile(r"BUILDKIT_\w+|(?:http|https|ftp|no|all)_proxy", re.IGNORECASE)


def _of_the_dockerfile(name: str) -> str:
    if _BUILDERS_OWN.fullmatch(name):
        raise ValueError(f"{name} is the builder's own, and no ARG of a Dockerfile")
    return name


BuildArg = Annotated[
    str,
    form(r"[A-Za-z_][A-Za-z0-9_]{0,127}", "CUDA_VERSION"),
    pydantic.AfterValidator(_of_the_dockerfile),
]

KeyPath = Annotated[
    str,
    form(
        r"projects/[a-z][a-z0-9-]{4,28}[a-z0-9]/locations/[a-z0-9-]+/"
        r"keyRings/[A-Za-z0-9_-]{1,63}/cryptoKeys/[A-Za-z0-9_-]{1,63}",
        "projects/PROJECT/locations/REGION/keyRings/RING/cryptoKeys/KEY",
    ),
]
TensorboardName = Annotated[
    str,
    form(
        r"(?:[^/\s][^/]{0,127}|projects/[^/]+/locations/[a-z0-9-]+/tensorboards/[0-9]+)?",
        "training, or projects/PROJECT/locations/REGION/tensorboards/ID",
    ),
]
Covered = Literal["buckets", "registry", "secrets", "jobs"]


class Retention(Section):
    """Days in which no user can delete or overwrite an object: https://docs.cloud.google.com/storage/docs/bucket-lock"""

    days: int = Field(ge=1, le=36_500)
    """Days from an object's creation; at most a hundred years."""
    locked: bool = False
    """Forbid ever shortening or removing it. A lock cannot be undone."""


class Bucket(NamedSection):
    """A bucket. Always regional, closed to the public, with uniform access."""

    name: BucketName | None = None
    """Its name in the cloud; ``PROJECT-KEY-STACK`` without it."""
    existing: ExistingBucket | None = None
    """A bucket that is there: only grants on it are the stack's."""
    project: ProjectId | None = None
    """Project that owns an existing bucket; the stack's own without it."""
    members: dict[Role, list[str]] = {}
    """IAM members that get a role on it, beside what follows from the accounts."""
    labels: dict[str, str] = {}
    """Labels of its own, beside the stack's and the team's."""
    objects: dict[str, str] = {}
    """Objects kept in the bucket: name -> file, or prefix -> folder, in the checkout."""
    versioning: bool = True
    """Keep overwritten and deleted objects as versions."""
    keep_noncurrent_days: int = Field(default=30, ge=1)
    """Days an overwritten or deleted version is kept (and paid for)."""
    delete_after_days: int | None = Field(default=None, ge=1)
    """Days after which objects are deleted; never if absent."""
    storage_class: Literal["STANDARD", "NEARLINE", "COLDLINE", "ARCHIVE"] = "STANDARD"
    """Of new objects. All but STANDARD cost money to read, and for a least time of storage."""
    retention: Retention | None = None
    """Days within which nobody can delete or overwrite an object; none without it."""
    soft_delete_days: int = 7
    """Days a deleted object can be restored: 0 (off) or 7 to 90."""
    force_destroy: bool = False
    """Allow ``pulumi destroy`` to delete a bucket that still has objects."""
    protect: bool = False
    """Refuse to delete or replace the bucket, and to destroy the stack."""
    team: str | None = None
    """The team whose accounts alone may name it; every account's without it."""

    @pydantic.field_validator("soft_delete_days")
    @classmethod
    def _check_soft_delete_days(cls, days: int) -> int:
        # https://docs.cloud.google.com/storage/docs/soft-delete: 0, or 7 to 90 days
        if days != 0 and not 7 <= days <= 90:
            raise ValueError("must be 0 (off) or 7 to 90 days")
        return days


class ServiceAccount(NamedSection):
    """An account that jobs run as, and its access; every grant is derived from this."""

    name: AccountId | None = None
    """The part of its address before the ``@``; ``KEY-STACK`` without it."""
    existing: AccountEmail | None = None
    """The address of an account that is there: only its grants are the stack's."""
    members: dict[Role, list[str]] = {}
    """IAM members that get a role on the account itself, beside the submitters."""
    roles: dict[ProjectId, list[Role]] = {}
    """Project -> roles of the account there. The owners of other projects grant theirs."""
    datasets: dict[DatasetId, list[Role]] = {}
    """BigQuery dataset -> roles of the account there, such as ``roles/bigquery.dataViewer``. Owners
    of other projects grant theirs. With any, the account may make read sessions in the stack's
    project; queries take ``roles/bigquery.jobUser`` in ``roles``."""
    reads: list[str] = []
    """Buckets whose objects it may read."""
    writes: list[str] = []
    """Buckets whose objects it may read, write and delete."""
    secrets: list[str] = []
    """Secrets whose value it may read."""
    calls_vertex: bool = False
    """The code calls Vertex AI itself (experiments, model upload, TensorBoard). By a job
    that names no account it then reaches all buckets and datasets of the project."""
    description: str = ""
    """Description in the console."""
    team: str | None = None
    """The team it belongs to."""
    submitters: list[str] | None = None
    """IAM members that may submit jobs as it; the team's without it, or else the stack's."""


class Secret(NamedSection):
    """A secret's container. The value is added outside of this stack and never read here."""

    name: SecretId | None = None
    """Its id in the cloud; ``KEY-STACK`` without it."""
    existing: SecretPath | None = None
    """A secret that is there: only grants on it are the stack's."""
    members: dict[Role, list[str]] = {}
    """IAM members that get a role on it, beside what follows from the accounts."""
    labels: dict[str, str] = {}
    """Labels of its own, beside the stack's and the team's."""
    description: str = ""
    """Description, an annotation of the secret."""
    protect: bool = False
    """Refuse to delete or replace the secret, and to destroy the stack."""
    team: str | None = None
    """The team whose accounts alone may name it; every account's without it."""


class Package(Section):
    """Python code below ``jobs/``, turned into a source distribution."""

    path: str
    """Folder with the code, below the checkout."""


class Image(Section):
    """An image, pinned by digest: one of the stack's repository, or one from outside.

    ``vt images build`` builds the context and writes the digest; ``vt promote`` copies it to
    another stack.
    """

    context: Annotated[str, form(BELOW, "jobs/titanic, a folder of the checkout")] | None = None
    """Folder with a Dockerfile, below the checkout."""
    dockerfile: Annotated[str, form(BELOW, "Dockerfile, a path inside of the context")] = (
        "Dockerfile"
    )
    """The Dockerfile, a path inside of the context."""
    include: list[
        Annotated[str, form(INCLUDED, "jobs/lib/vertex_job, a folder of the checkout")]
    ] = []
    """Folders of the checkout that are put into the context, each under its own last name."""
    build_args: dict[BuildArg, str] = {}
    """Values of the Dockerfile's ARGs. Everybody who can pull the image can read them."""
    target: Annotated[str, form(r"[A-Za-z][A-Za-z0-9_.-]{0,127}", "train")] | None = None
    """Stage to build; the last one without it."""
    digest: Annotated[str, form(r"sha256:[0-9a-f]{64}", "sha256: and 64 hex digits")] | None = None
    """The image that jobs run, in the stack's repository under the image's name."""
    built_from: Annotated[str, form(r"context-[0-9a-f]{32}", "context-…")] | None = None
    """Sources of ``digest``, as ``vt images build`` writes them."""
    uri: Annotated[str, form(OUTSIDE, "REGION-docker.pkg.dev/P/REPO/NAME@sha256:…")] | None = None
    """An image of another repository, by digest."""

    @pydantic.model_validator(mode="after")
    def _check_origin(self) -> Image:
        model_fields_set = self.model_fields_set
        if self.uri and (others := model_fields_set - {"uri"}):
            raise ValueError(f"uri is a whole image: remove {', '.join(map(to_camel, others))}")
        if not (self.uri or self.digest or self.context):
            raise ValueError("give context, digest or uri")
        options = model_fields_set & {"dockerfile", "include", "build_args", "target", "built_from"}
        if options and not self.context:
            raise ValueError(f"{to_camel(min(options))} is about a context: add context")
        return self


class Registry(Section):
    """The stack's Docker repository."""

    name: RepositoryId | None = None
    """Its id in the cloud; ``training-STACK`` without it."""
    existing: RepositoryPath | None = None
    """A Docker repository that is there: only grants on it are the stack's."""
    members: dict[Role, list[str]] = {}
    """IAM members that get a role on it, beside the builders."""
    immutable_tags: bool = False
    """Forbid moving a tag, once pushed."""
    keep_versions: int = Field(default=10, ge=1)
    """Newest versions of each image that are always kept."""
    scanning: bool | None = None
    """Scan images for known vulnerabilities; the project's setting applies if absent."""
    delete_untagged_after_days: int = Field(default=30, ge=1)
    """Days after which a version without a tag is deleted."""
    protect: bool = False
    """Refuse to delete or replace the repository, and to destroy the stack."""


@dataclass(frozen=True, slots=True)
class Passed:
    """Marks an option of a job that its provider reads: its inputs and its state have the value.

    Permissions that it alone needs are ``of_options`` in ``catalog/resource_types.yaml``.
    """


class JobOptions(NamedSection):
    """Options of a job, whatever it runs."""

    run: int = Field(default=1, ge=1)
    """Raise it to submit an unchanged job once more."""
    on_delete: Annotated[Literal["keep", "delete"], Passed()] = "keep"
    """Keep or delete the record of an ended job that leaves the stack."""
    backend: Literal["vertex", "batch"] = "vertex"
    """The service that runs it: Vertex AI, or Google Batch, which takes no fee (docs/batch.md)."""
    on_change: Literal["cancel", "finish"] | None = None
    """Treatment of the running job when its request changes; the stack's if absent."""
    wait: Literal["running", "succeeded"] | None = None
    """State that ``pulumi up`` waits for after it submitted the job; none if absent."""
    deadline: Annotated[str, form(r"[1-9][0-9]{0,5}[smhd]", "90s, 30m, 2h or 1d")] | None = None
    """Longest time to wait; an hour if absent. It needs ``wait``."""
    ladder: list[Rung] = []
    """Alternatives, in order, if the service had no machines for the job file's request."""
    idle_stop: Annotated[IdleText | None, Passed()] = None
    """Cancel the idle job, like ``5% for 30m``: none of its accelerators was at that or above for
    so long. A waiting ``up`` or ``vt jobs advance`` cancels it. From 10m to 23h30m."""
    model: Annotated[TrainedModel | None, Passed()] = None
    """Sizes of the transformer that it trains: checks and reviews compare the predicted peak of GPU
    memory with the accelerator's."""

    @property
    def passed(self) -> dict[str, Any]:
        """The values of the marked options, by their names in a stack file."""
        fields = type(self).model_fields.items()
        marked = [name for name, field in fields if Passed() in field.metadata]
        return {
            to_camel(name): value.model_dump(by_alias=True, exclude_defaults=True)
            if isinstance(value, Section)
            else value
            for name in marked
            if (value := getattr(self, name))
        }

    @property
    def deadline_seconds(self) -> int:
        """``deadline`` in seconds."""
        text = self.deadline or "1h"
        return int(text[:-1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[text[-1]]

    @pydantic.model_validator(mode="after")
    def _deadline_of_a_wait(self) -> JobOptions:
        if self.deadline and not self.wait:
            raise ValueError("deadline is how long to wait, and wait is not set: add wait")
        return self

    @pydantic.field_validator("idle_stop")
    @classmethod
    def _no_short_idle_stop(cls, given: str | None) -> str | None:
        if given and idle_rule(given)[1] < LEAST_IDLE_MINUTES:
            raise ValueError(f"{given}: a job that loads its data would be cancelled; from 10m on")
        return given

    @pydantic.model_validator(mode="after")
    def _no_idle_stop_on_batch(self) -> JobOptions:
        if self.idle_stop and self.backend == "batch":
            what = "Batch tells no metric of accelerators, so nothing would ever be cancelled"
            raise ValueError(f"idleStop: {what}: remove it, or backend")
        return self

    @pydantic.model_validator(mode="after")
    def _no_ladder_on_batch(self) -> JobOptions:
        if self.ladder and self.backend == "batch":
            raise ValueError(
                "a ladder is climbed on Vertex AI alone, and Google's client of Batch has no "
                "ranked list of machines yet (docs/batch.md): remove it, or backend"
            )
        return self


class Job(JobOptions):
    """A file of a job or of a tuning job, and what the stack asks of it."""

    file: str
    """The job file, like ``jobs/titanic.yaml``."""
    schedule: Schedule | None = None
    """Times of submission; without it ``pulumi up`` submits the job once."""
    messages: StateMessages | None = None
    """Messages of Batch to a topic when the job changes its state; with ``backend: batch``."""

    @pydantic.model_validator(mode="after")
    def _no_wait_for_a_schedule(self) -> Job:
        given = self.model_fields_set & {"wait", "deadline", "on_change", "ladder"}
        if self.schedule and given:
            name = to_camel(min(given))
            raise ValueError(f"{name} is about one job, and a schedule submits many: remove it")
        if self.schedule and self.backend == "batch":
            raise ValueError("a schedule submits to Vertex AI alone: remove it, or backend")
        return self

    @pydantic.model_validator(mode="after")
    def _messages_of_batch(self) -> Job:
        if self.messages and self.backend != "batch":
            raise ValueError(
                "messages are written by Batch alone: add backend: batch, or use alerts in place "
                "of messages (docs/jobs.md)"
            )
        return self


class Encryption(Section):
    """A key in Cloud KMS that exists; the stack makes none, for a key can never be deleted."""

    key: KeyPath
    """The key; it is in the stack's region."""
    covers: Annotated[list[Covered], Field(min_length=1)] = [
        *("buckets", "registry", "secrets", "jobs")
    ]
    """Resources that it encrypts. On an existing repository or secret, it means a new one."""


#: Parameter of a query that ``asOf`` gives.
AS_OF: Final = "as_of"
#: A value of a parameter of a query; YAML's type is BigQuery's.
Scalar = bool | int | float | str
ParameterName = Annotated[str, form(r"[A-Za-z_][A-Za-z0-9_]{0,127}", "day: @day in the query")]


class Snapshot(NamedSection):
    """The result of one query in BigQuery, kept as files that never change.

    ``${snapshots.KEY}`` is their folder. The query runs once for each ``run``.
    """

    query: str
    """File of the checkout with one query of GoogleSQL."""
    parameters: dict[ParameterName, Any] = {}
    """Values of the query's parameters: ``@day``. Text is STRING; numbers are INT64 or FLOAT64;
    true and false are BOOL."""
    as_of: str | None = None
    """Time of the tables' state, such as ``2026-11-20T00:00:00Z``: the query reads ``FROM table FOR
    SYSTEM_TIME AS OF @as_of``. BigQuery goes back seven days. Without it, the first ``pulumi up``
    reads the tables as they are then."""
    max_bytes_billed: int = Field(ge=1, le=2**63 - 1)
    """The most bytes that the query may be billed for; the service refuses more, without a
    charge."""
    format: Literal["parquet", "csv"] = "parquet"
    """Of the files."""
    bucket: Key = "data"
    """Key of the bucket that keeps them."""
    location: Annotated[str, form(r"[A-Za-z][A-Za-z0-9-]{1,62}", "US or europe-west4")] | None = (
        None
    )
    """Location of the tables; the stack's region without it."""
    run: int = Field(default=1, ge=1)
    """Raise it to run an unchanged query once more. Files of earlier runs stay."""

    @pydantic.field_validator("as_of")
    @classmethod
    def _check_as_of(cls, text: str | None) -> str | None:
        if text is None:
            return None
        try:
            time = datetime.datetime.fromisoformat(text)
            in_utc = time.astimezone(datetime.UTC)
        except (ValueError, OverflowError):
            raise ValueError("must be a time, such as 2026-11-20T00:00:00Z") from None
        if time.tzinfo is None:
            raise ValueError("has no time zone: add Z")
        return in_utc.isoformat().replace("+00:00", "Z")

    @pydantic.field_validator("parameters")
    @classmethod
    def _check_parameters(cls, given: dict[str, Any]) -> dict[str, Scalar]:
        if AS_OF in {name.lower() for name in given}:
            raise ValueError(f"{AS_OF} is what asOf gives: use asOf")
        if len({name.lower() for name in given}) < len(given):
            raise ValueError("two of them differ by case alone, which BigQuery does not tell apart")
        for name, value in given.items():
            if not isinstance(value, Scalar):
                raise ValueError(f"{name} must be text, a number, true or false: quote a date")
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError(f"{name} must be finite")
            if isinstance(value, int) and not -(2**63) <= value < 2**63:
                raise ValueError(f"{name} is no INT64")
        return given


class AllowedMember(Section):
    """A member of an IAM policy that the stack does not declare and that is no drift."""

    member: Annotated[str, Field(min_length=1)]
    """IAM member, like ``user:kim@example.com``."""
    role: Annotated[str, Field(min_length=1)]
    """Its role."""
    policy: Annotated[
        str,
        form(
            r"b/.+|projects/[a-z][a-z0-9-]{4,28}[a-z0-9](?:/.+)?",
            "b/BUCKET or projects/PROJECT/…, with * for any text after b/ or the project",
        ),
    ]
    """Name of the policy as ``vt drift`` shows it; ``b/*`` stands for all buckets."""
    reason: Annotated[str, Field(min_length=10)]
    """Reason for the exception, for readers of the file."""


class AllowedResource(Section):
    """Something in the stack's network or at its endpoints, or a job, that nobody declares and
    that is no drift."""

    resource: Annotated[
        str,
        form(
            r"(?:firewalls|subnetworks|routes|peerings|customJobs|hyperparameterTuningJobs|jobs"
            r"|deployedModels)/[^*].*",
            "firewalls/NAME, likewise subnetworks, routes, peerings, customJobs, "
            "hyperparameterTuningJobs, jobs (of Batch) and deployedModels, with * for any "
            "text after the name's beginning",
        ),
    ]
    """Kind and name, of a job its display name, of a deployed model its id: ``firewalls/iap-*``."""
    reason: Annotated[str, Field(min_length=10)]
    """Reason for the exception, for readers of the file."""


class DriftSettings(Section):
    """Scope of ``vt drift``, and its exceptions."""

    project_policy: Literal["own", "judged"] = "own"
    """Accounts whose roles on the project are judged: the stack's, or all.
    ``judged`` is for a project that no other checkout deploys to."""
    allowed: dict[Key, AllowedMember] = {}
    """Members of IAM policies that are no drift, by a name of one's own."""
    allowed_resources: dict[Key, AllowedResource] = {}
    """Resources that may be in the stack's network, at its endpoints, or run as its accounts, each
    by a name of your choice."""
    accepted_losses: dict[str, Annotated[str, Field(min_length=10)]] = {}
    """Protected resources that were deleted in the cloud and may be made anew, empty, by the names
    that reviews give them: each with a reason. Remove the entry when that is done."""


#: Sections with entries that can be renamed: path in the stack file -> fields of the model.
SECTIONS: Final[Mapping[tuple[str, ...], tuple[str, ...]]] = {
    ("buckets",): ("buckets",),
    ("serviceAccounts",): ("service_accounts",),
    ("secrets",): ("secrets",),
    ("snapshots",): ("snapshots",),
    ("jobs",): ("jobs",),
    ("tuning",): ("tuning",),
    ("reservations",): ("reservations",),
    ("models",): ("models",),
    ("endpoints",): ("endpoints",),
    ("network", "ranges"): ("network", "ranges"),
    ("network", "allow"): ("network", "allow"),
}


class Settings(Section):
    """A whole stack file, checked, and the names derived from it."""

    stack: str
    """The name of the stack, which the name of its file has."""
    include: list[IncludePath] = []
    """Files of the checkout whose ``config`` belongs to this stack's, from the checkout's top."""
    overrides: dict[str, Any] = {}
    """Differences of the stack from the included files: path, like ``buckets.data.protect``, and
    value. Null leaves it out."""
    project: ProjectId
    """The project where everything is made, and where jobs run."""
    region: Annotated[str, form(r"[a-z]+-[a-z]+[0-9]+", "us-central1")]
    """The region of jobs, buckets and subnets."""
    project_number: ProjectNumber
    """Number of the project: ``gcloud projects describe PROJECT
    --format='value(projectNumber)'``."""
    labels: dict[str, str] = {}
    """Labels on everything that can carry some."""
    submitters: list[str] = []
    """IAM members that may submit jobs as the stack's accounts that have no team and no submitters
    of their own."""
    deployers: list[str] = []
    """IAM members that run ``pulumi up``, like CI's account: they may act as every account of the
    stack, also those of teams, and use a host's subnet."""
    teams: dict[Key, Team] = {}
    """Teams apart from one another, by name."""
    builders: list[str] = []
    """IAM members that may build the stack's images on Google's machines."""
    # Maps keyed by a stable name, never lists: reordering a file renames no resource.
    buckets: dict[Key, Bucket] = {}
    """Buckets by name."""
    service_accounts: dict[Key, ServiceAccount] = {}
    """Accounts that jobs run as, by name."""
    secrets: dict[Key, Secret] = {}
    """Secrets by name: containers alone; values are never kept here."""
    packages: dict[Key, Package] = {}
    """Python code below ``jobs/``, by name."""
    images: dict[Key, Image] = {}
    """Images of containers, by name."""
    registry: Registry = Registry()
    """The stack's Docker repository."""
    network: Network = Network()
    """Connection of jobs to a network."""
    shared_vpc: SharedVpc | None = None
    """The project that owns the network, if it is another one."""
    reservations: dict[Key, Reservation] = {}
    """Machines that are kept for jobs, by name."""
    tensorboard: TensorboardName = ""
    """Display name of a TensorBoard instance for jobs, which the stack makes, or the full name of
    one that is there: ``projects/P/locations/REGION/tensorboards/ID``."""
    encryption: Encryption | None = None
    """A key for what the stack stores; Google's keys encrypt it otherwise."""
    limits: Limits = Limits()
    """Bounds for the stack and every job."""
    job_defaults: JobDefaults = JobDefaults()
    """Values that job files may leave out."""
    allowed_secrets: dict[str, Annotated[str, Field(min_length=10)]] = {}
    """Files that may leave the machine though they look like secrets, or lines of files, as
    ``vt check`` names them (``FILE`` or ``FILE:LINE``): each with a reason."""
    rules: dict[str, Literal["error", "warning", "note"]] = {}
    """Levels of rules of job files; an error stays one."""
    drift: DriftSettings = DriftSettings()
    """Allowed differences from the declaration."""
    policy_levels: dict[Key, Literal["advisory", "mandatory", "disabled"]] = {}
    """Levels of policies in this stack; a policy that is not named is mandatory."""
    on_change: Literal["cancel", "finish"] = "cancel"
    """Treatment of a running job when its request changes. A job's ``onChange`` has precedence.
    ``finish``: it ends by itself, and the next ``pulumi up`` submits the changed one."""
    snapshots: dict[Key, Snapshot] = {}
    """Results of queries in BigQuery that are kept as files, by name."""
    jobs: dict[Key, Job] = {}
    """Training jobs by name."""
    tuning: dict[Key, Job] = {}
    """Tuning jobs: each runs many trials of one job."""
    models: dict[Key, Model] = {}
    """Models of the registry, by name: versions made of what runs of jobs left."""
    endpoints: dict[Key, Endpoint] = {}
    """Endpoints by name: which versions of a model answer predictions, and with what share."""
    channels: dict[Key, Channel] = {}
    """Destinations of alerts and of the budget's mail, by name."""
    alerts: Alerts | None = None
    """Alerts about jobs, and their channels."""
    budget: Budget | None = None
    """Alert on the monthly cost of the project."""
    dashboards: dict[Key, Dashboard] = {}
    """Dashboards of jobs, by name."""

    @pydantic.field_validator("shared_vpc", "encryption", "alerts", "budget", mode="before")
    @classmethod
    def _none_if_empty(cls, given: Any) -> Any:
        return given or None  # a key with no value in a stack file has the default, an empty object

    @pydantic.field_validator("region")
    @classmethod
    def _check_region(cls, region: str) -> str:
        # One that only the number sets apart may be new; others are judged by their words.
        known = {name.rstrip(DIGITS): name for name in sorted(machines.regions())}
        if region.rstrip(DIGITS) not in known and (near := nearest(region, known.values(), 0.9)):
            raise ValueError(f"is no region: did you mean '{near}'?")
        return region

    @property
    def names(self) -> Names:
        """Names of this stack's resources, by their keys here: a renamed entry keeps its name."""
        sections: dict[str, Mapping[str, Bucket | ServiceAccount | Secret]] = {
            "buckets": self.buckets,
            "serviceAccounts": self.service_accounts,
            "secrets": self.secrets,
        }
        given = {
            (section, entry.formerly or key): name
            for section, entries in sections.items()
            for key, entry in entries.items()
            if (name := entry.existing or entry.name)
        }
        if "/" in self.tensorboard:
            given["tensorboard", ""] = self.tensorboard
        if repository := self.registry.existing or self.registry.name:
            given["registry", ""] = repository
        first = {
            (*section, key): entry.formerly
            for section in SECTIONS
            for key, entry in self.entries(section).items()
            if entry.formerly
        }
        return Names(self.project, self.project_number, self.region, self.stack, given, first)

    def entries(self, section: tuple[str, ...]) -> Mapping[str, NamedSection]:
        """The entries of a section of :data:`SECTIONS`, by their keys."""
        result: Any = self
        for field in SECTIONS[section]:
            result = getattr(result, field)
        return result

    def submitters_of(self, account: str) -> list[str]:
        """IAM members that may submit jobs as the account with this key."""
        given = self.service_accounts[account]
        if given.submitters is not None:
            return given.submitters
        team = self.teams.get(given.team or "")
        return team.submitters if team else self.submitters

    def members_acting_as(self, account: str) -> list[str]:
        """IAM members that may act as the account with this key: who submits, and who deploys."""
        return list(dict.fromkeys((*self.submitters_of(account), *self.deployers)))

    @property
    def all_submitters(self) -> list[str]:
        """IAM members that may submit jobs as any account, those that deploy among them."""
        found = [self.submitters_of(key) for key in self.service_accounts] or [self.submitters]
        members = (member for members in (*found, self.deployers) for member in members)
        return list(dict.fromkeys(members))

    def labels_of(self, team: str | None) -> dict[str, str]:
        """Labels of what ``team`` owns, by the stack and by the team; the stack's without one."""
        owner = self.teams.get(team or "")
        return {**self.labels, "team": str(team), **owner.labels} if owner else self.labels

    @property
    def labels_by_team(self) -> dict[str | None, dict[str, str]]:
        """:meth:`labels_of` each team; None has those of what no team owns."""
        return {None: self.labels} | {team: self.labels_of(team) for team in self.teams}

    def team_at(self, address: str) -> str | None:
        """The team of the account with this address; None if it has none."""
        names = self.names  # derived anew at each call
        by_address = {
            names.account_email(key): account.team for key, account in self.service_accounts.items()
        }
        return by_address.get(address)

    @property
    def builds_images(self) -> bool:
        """Return whether an image of the stack is built from a folder of the checkout."""
        return any(image.context for image in self.images.values())

    @property
    def is_watched(self) -> bool:
        """Return whether the stack has alerts, a budget or a dashboard."""
        return bool(self.alert_channels or self.alerts or self.budget or self.dashboards)

    @property
    def alert_channels(self) -> dict[str, Channel]:
        """Channels of Cloud Monitoring: all but topics that Batch alone writes to."""
        told = {job.messages.channel for job in self.jobs.values() if job.messages}
        told -= set(self.alerts.channels if self.alerts else ())
        told -= set(self.budget.channels if self.budget else ())
        return {key: channel for key, channel in self.channels.items() if key not in told}

    def notifications(self, job: str) -> tuple[dict[str, Any], ...]:
        """Return the messages that Batch publishes about a job, as its API has them."""
        messages = self.jobs[job].messages if job in self.jobs else None
        if messages is None or messages.channel not in self.channels:
            return ()
        topic = self.channels[messages.channel].pubsub
        return messages.notifications(topic) if topic else ()

    @property
    def stops_idle_jobs(self) -> bool:
        """Return whether a job is cancelled when its accelerators are idle."""
        return any(job.idle_stop for job in self.submitted.values())

    def key_for(self, what: Covered) -> str | None:
        """The key that encrypts this part of the stack; None if it is Google's."""
        encryption = self.encryption
        return encryption.key if encryption and what in encryption.covers else None

    @property
    def submitted(self) -> dict[str, Job]:
        """Jobs and tuning jobs by key; no key is in both."""
        return {**self.jobs, **self.tuning}

    @property
    def schedules(self) -> dict[str, Schedule]:
        """Schedules of jobs and tuning jobs by the key of the job."""
        found = {key: getattr(job, "schedule", None) for key, job in self.submitted.items()}
        return {key: schedule for key, schedule in found.items() if schedule is not None}

    def passed_options(self, key: str) -> dict[str, Any]:
        """Options of a job that ``up`` submits, as its inputs have them."""
        more = {"onChange": "finish"} if self.finishes(key) else {}
        return {**self.submitted[key].passed, **more}

    def finishes(self, job: str) -> bool:
        """Return whether a running job ends by itself when its request changes."""
        return (self.submitted[job].on_change or self.on_change) == "finish"

    @property
    def protects(self) -> bool:
        """Return whether any resource of the stack is protected; then a destroy is refused."""
        sections = (self.buckets, self.secrets, self.reservations)
        made = [each for section in sections for each in section.values()]
        return self.registry.protect or any(each.protect for each in made)

    @property
    def is_local(self) -> bool:
        """Return whether the stack is in the local cloud."""
        return is_local(self.project)
