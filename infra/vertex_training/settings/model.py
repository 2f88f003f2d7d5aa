"""The models of a stack file (``Pulumi.<stack>.yaml``)."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterator, Mapping
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
from vertex_training.settings.limits import (
    JobDefaults,
    Limits,
    Rung,
    Schedule,
    Team,
    TrainedModel,
)
from vertex_training.settings.network import NAME, Network, Reservation, SharedVpc
from vertex_training.settings.section import (
    BELOW,
    PROJECT,
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
#: Minimum minutes of ``idleStop``, since most jobs are idle while they start.
LEAST_IDLE_MINUTES: Final = 10
#: A folder of the checkout whose name is not hidden.
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
#: Names with dots belong to verified domains, Firebase and App Engine:
#: https://docs.cloud.google.com/storage/docs/buckets#naming
ExistingBucket = Annotated[
    str,
    form(
        r"(?=.{3,222}$)(?:[a-z0-9](?:[a-z0-9_-]{0,61}[a-z0-9])?\.)*[a-z0-9][a-z0-9_-]{0,61}[a-z0-9]",
        "acme-datasets or data.example.com: lowercase letters, digits, '-', '_' and dots",
    ),
]
AccountId = Annotated[str, form(PROJECT, "trainer: 6 to 30 lowercase letters, digits and '-'")]
AccountEmail = Annotated[
    str,
    form(
        rf"{PROJECT}@{PROJECT}\.iam\.gserviceaccount\.com",
        "ACCOUNT@PROJECT.iam.gserviceaccount.com",
    ),
]
SecretId = Annotated[
    str, form(r"[A-Za-z0-9_-]{1,255}", "wandb-api-key: letters, digits, '-' and '_'")
]
SecretPath = Annotated[
    str,
    form(
        rf"projects/{PROJECT}/secrets/[A-Za-z0-9_-]{{1,255}}",
        "projects/PROJECT/secrets/SECRET, with the project's id",
    ),
]
RepositoryId = Annotated[str, form(NAME, "training: lowercase letters, digits and '-'")]
RepositoryPath = Annotated[
    str,
    form(
        rf"projects/{PROJECT}/locations/[a-z0-9-]+/repositories/{NAME}",
        "projects/PROJECT/locations/LOCATION/repositories/REPOSITORY",
    ),
]
DatasetId = Annotated[str, form(rf"{PROJECT}\.[A-Za-z0-9_]{{1,1024}}", "PROJECT.DATASET")]
Role = Annotated[
    str,
    form(
        r"(?:(?:projects|organizations)/[a-z0-9-]+/)?roles/[A-Za-z0-9_.]+",
        "roles/storage.objectViewer or projects/PROJECT/roles/NAME",
    ),
]
#: Build arguments of BuildKit itself, which its cache keys do not contain.
_BUILDERS_OWN: Final = re.compile(r"BUILDKIT_\w+|(?:http|https|ftp|no|all)_proxy", re.IGNORECASE)


def _of_the_dockerfile(name: str) -> str:
    if _BUILDERS_OWN.fullmatch(name):
        raise ValueError(f"BuildKit reads {name} itself: remove this build argument")
    return name


BuildArg = Annotated[
    str,
    form(r"[A-Za-z_][A-Za-z0-9_]{0,127}", "CUDA_VERSION"),
    pydantic.AfterValidator(_of_the_dockerfile),
]

KeyPath = Annotated[
    str,
    form(
        rf"projects/{PROJECT}/locations/[a-z0-9-]+/"
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
    """Retention policy of a bucket: no user can delete or overwrite an object in this time.
    https://docs.cloud.google.com/storage/docs/bucket-lock"""

    days: int = Field(ge=1, le=36_500)
    """Days from an object's creation; at most a hundred years."""
    locked: bool = False
    """Lock the retention policy: no user can shorten or remove it. A lock is irreversible."""


class Bucket(NamedSection):
    """A regional bucket with uniform access and without public access."""

    name: BucketName | None = None
    """Name in the cloud; default: ``PROJECT-KEY-STACK``."""
    existing: ExistingBucket | None = None
    """Name of an existing bucket. The stack manages only grants on the bucket."""
    project: ProjectId | None = None
    """Project that owns an existing bucket; default: the stack's project."""
    members: dict[Role, list[str]] = {}
    """Role -> IAM members that get this role on the bucket, in addition to grants to accounts."""
    labels: dict[str, str] = {}
    """Labels of the bucket, in addition to labels of the stack and the team."""
    objects: dict[str, str] = {}
    """Objects to upload: object name -> file, or prefix -> folder, of the checkout."""
    versioning: bool = True
    """Keep overwritten and deleted objects as versions."""
    keep_noncurrent_days: int = Field(default=30, ge=1)
    """Days before an overwritten or deleted version is removed. Until then it costs storage."""
    delete_after_days: int | None = Field(default=None, ge=1)
    """Days after which objects are deleted; default: never."""
    storage_class: Literal["STANDARD", "NEARLINE", "COLDLINE", "ARCHIVE"] = "STANDARD"
    """Storage class of new objects. Other classes than STANDARD charge for each read, and have a
    minimum storage time."""
    retention: Retention | None = None
    """Days in which no user can delete or overwrite an object; default: no retention."""
    soft_delete_days: int = 7
    """Days in which a deleted object can be restored: 0 (off) or 7 to 90."""
    force_destroy: bool = False
    """Allow ``pulumi destroy`` to delete the bucket with its objects."""
    protect: bool = False
    """Refuse to delete or replace the bucket, and to destroy the stack."""
    team: str | None = None
    """Team whose accounts may use the bucket; default: all accounts may."""

    @pydantic.field_validator("soft_delete_days")
    @classmethod
    def _check_soft_delete_days(cls, days: int) -> int:
        # https://docs.cloud.google.com/storage/docs/soft-delete: 0, or 7 to 90 days
        if days != 0 and not 7 <= days <= 90:
            raise ValueError("must be 0 (off) or 7 to 90 days")
        return days


class ServiceAccount(NamedSection):
    """A service account that jobs run as, and its access."""

    name: AccountId | None = None
    """Part of the address before the ``@``; default: ``KEY-STACK``."""
    existing: AccountEmail | None = None
    """Address of an existing account. The stack manages only its grants."""
    members: dict[Role, list[str]] = {}
    """Role -> IAM members that get this role on the account, in addition to submitters."""
    roles: dict[ProjectId, list[Role]] = {}
    """Project -> roles of the account in this project. The owner of another project must grant
    the roles there."""
    datasets: dict[DatasetId, list[Role]] = {}
    """BigQuery dataset -> roles of the account on this dataset, such as
    ``roles/bigquery.dataViewer``. The owner of another project must grant the roles there. With any
    dataset, the account may also create read sessions in the stack's project. Queries require
    ``roles/bigquery.jobUser`` in ``roles``."""
    reads: list[str] = []
    """Buckets whose objects the account may read."""
    writes: list[str] = []
    """Buckets whose objects the account may read, write and delete."""
    secrets: list[str] = []
    """Secrets whose value the account may read."""
    calls_vertex: bool = False
    """Grant the account the right to call Vertex AI (experiments, model upload, TensorBoard). The
    account can then also submit jobs without ``serviceAccount``, which can access all buckets and
    datasets of the project."""
    description: str = ""
    """Description in the console."""
    team: str | None = None
    """Team that owns the account."""
    submitters: list[str] | None = None
    """IAM members that may submit jobs as this account; default: submitters of the team, or of the
    stack if the account has no team."""


class Secret(NamedSection):
    """A secret in Secret Manager. Users add its value outside of the stack."""

    name: SecretId | None = None
    """Id in the cloud; default: ``KEY-STACK``."""
    existing: SecretPath | None = None
    """Full name of an existing secret. The stack manages only grants on the secret."""
    members: dict[Role, list[str]] = {}
    """Role -> IAM members that get this role on the secret, in addition to grants to accounts."""
    labels: dict[str, str] = {}
    """Labels of the secret, in addition to labels of the stack and the team."""
    description: str = ""
    """Description, stored as an annotation of the secret."""
    protect: bool = False
    """Refuse to delete or replace the secret, and to destroy the stack."""
    team: str | None = None
    """Team whose accounts may use the secret; default: all accounts may."""


class Package(Section):
    """Python code below ``jobs/``, which the stack builds into a source distribution."""

    path: str
    """Folder with the code, relative to the top of the checkout."""


class Image(Section):
    """A container image with its digest, in the stack's repository or in another repository.

    ``vt images build`` builds the context and writes the digest; ``vt promote`` copies the image
    to another stack.
    """

    context: Annotated[str, form(BELOW, "jobs/titanic, a folder of the checkout")] | None = None
    """Build context: folder with a Dockerfile, relative to the top of the checkout."""
    dockerfile: Annotated[str, form(BELOW, "Dockerfile, a path inside of the context")] = (
        "Dockerfile"
    )
    """Dockerfile, as a path inside of the context."""
    include: list[
        Annotated[str, form(INCLUDED, "jobs/lib/vertex_job, a folder of the checkout")]
    ] = []
    """Folders of the checkout to add to the context, each under the last part of its path."""
    build_args: dict[BuildArg, str] = {}
    """Values of the Dockerfile's ARGs. Every user who can pull the image can read them."""
    target: Annotated[str, form(r"[A-Za-z][A-Za-z0-9_.-]{0,127}", "train")] | None = None
    """Stage of the Dockerfile to build; default: the last stage."""
    digest: Annotated[str, form(r"sha256:[0-9a-f]{64}", "sha256: and 64 hex digits")] | None = None
    """Digest of the image that jobs run, in the stack's repository under the image's name."""
    built_from: Annotated[str, form(r"context-[0-9a-f]{32}", "context-…")] | None = None
    """Digest of the sources of ``digest``; ``vt images build`` writes this value."""
    uri: Annotated[str, form(OUTSIDE, "REGION-docker.pkg.dev/P/REPO/NAME@sha256:…")] | None = None
    """URI of an image in another repository, with its digest."""

    @pydantic.model_validator(mode="after")
    def _check_origin(self) -> Image:
        model_fields_set = self.model_fields_set
        if self.uri and (others := model_fields_set - {"uri"}):
            raise ValueError(f"uri excludes other keys: remove {', '.join(map(to_camel, others))}")
        if not (self.uri or self.digest or self.context):
            raise ValueError("the image has no source: set context, digest or uri")
        options = model_fields_set & {"dockerfile", "include", "build_args", "target", "built_from"}
        if options and not self.context:
            raise ValueError(f"{to_camel(min(options))} requires context: add context")
        return self


class Registry(Section):
    """The stack's Docker repository."""

    name: RepositoryId | None = None
    """Id in the cloud; default: ``training-STACK``."""
    existing: RepositoryPath | None = None
    """Full name of an existing Docker repository. The stack manages only grants on it."""
    members: dict[Role, list[str]] = {}
    """Role -> IAM members that get this role on the repository, in addition to builders."""
    immutable_tags: bool = False
    """Forbid that a pushed tag moves to another image."""
    keep_versions: int = Field(default=10, ge=1)
    """Number of newest versions of each image that are never deleted."""
    scanning: bool | None = None
    """Scan images for known vulnerabilities; default: the project's setting."""
    delete_untagged_after_days: int = Field(default=30, ge=1)
    """Days after which an image version without a tag is deleted."""
    protect: bool = False
    """Refuse to delete or replace the repository, and to destroy the stack."""


# Rows of ``catalog/resource_types.yaml`` list the permissions of such options in ``of_options``.
@dataclass(frozen=True, slots=True)
class Passed:
    """Marks an option of a job that the job's resource has as an input."""


class JobOptions(NamedSection):
    """Options of jobs and tuning jobs."""

    run: int = Field(default=1, ge=1)
    """Number of the run. Increment it to submit an unchanged job again."""
    on_delete: Annotated[Literal["keep", "delete"], Passed()] = "keep"
    """Action on the ended job in Vertex AI when its entry in the stack file is removed."""
    backend: Literal["vertex", "batch"] = "vertex"
    """Service that runs the job: Vertex AI, or Google Batch, which has no fee (docs/batch.md)."""
    on_change: Literal["cancel", "finish"] | None = None
    """Action on the running job when its request changes; default: ``onChange`` of the stack."""
    wait: Literal["running", "succeeded"] | None = None
    """State of the job that ``pulumi up`` waits for after submitting; default: no wait."""
    deadline: Annotated[str, form(r"[1-9][0-9]{0,5}[smhd]", "90s, 30m, 2h or 1d")] | None = None
    """Maximum time of the wait that ``wait`` requests; default: an hour."""
    ladder: list[Rung] = []
    """Alternatives, in order, to use if the service has no machines for the job file's request."""
    idle_stop: Annotated[IdleText | None, Passed()] = None
    """Condition to cancel the idle job. With ``5% for 30m``, a waiting ``up`` or ``vt jobs
    advance`` cancels the job when every accelerator stays below 5% utilization for 30 minutes. The
    time is from 10m to 23h30m."""
    model: Annotated[TrainedModel | None, Passed()] = None
    """Sizes of the transformer that the job trains. Checks and reviews compare the predicted peak
    of GPU memory with the memory of the accelerator."""

    @property
    def passed(self) -> dict[str, Any]:
        """Return the values of options that are inputs of the resource, by their keys."""
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
        text = self.deadline or "1h"
        return int(text[:-1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[text[-1]]

    @pydantic.model_validator(mode="after")
    def _suits_wait_and_backend(self) -> JobOptions:
        if self.deadline and not self.wait:
            raise ValueError("deadline requires wait: add wait")
        if self.idle_stop and self.backend == "batch":
            what = "idleStop requires Vertex AI, since Batch has no accelerator metrics"
            raise ValueError(f"{what}: remove idleStop or backend")
        if self.ladder and self.backend == "batch":
            raise ValueError(
                "ladder requires Vertex AI, since Google's client of Batch has no ranked list of "
                "machines yet (docs/batch.md): remove ladder or backend"
            )
        return self

    @pydantic.field_validator("idle_stop")
    @classmethod
    def _no_short_idle_stop(cls, text: str | None) -> str | None:
        if text and idle_rule(text)[1] < LEAST_IDLE_MINUTES:
            raise ValueError(
                f"{text} is too short and would cancel jobs that load data: write 10m or more"
            )
        return text


class Job(JobOptions):
    """A job or tuning job: its job file and its options in this stack."""

    file: str
    """Path of the job file, like ``jobs/titanic.yaml``."""
    schedule: Schedule | None = None
    """Times at which the job is submitted; default: ``pulumi up`` submits the job once."""
    messages: StateMessages | None = None
    """Messages to a Pub/Sub topic when the job changes state. Requires ``backend: batch``."""

    @pydantic.model_validator(mode="after")
    def _suits_schedule_and_messages(self) -> Job:
        options = self.model_fields_set & {"wait", "deadline", "on_change", "ladder"}
        if self.schedule and options:
            name = to_camel(min(options))
            raise ValueError(f"{name} applies to a single job, not to a schedule: remove {name}")
        if self.schedule and self.backend == "batch":
            raise ValueError("schedule requires Vertex AI: remove schedule or backend")
        if self.messages and self.backend != "batch":
            raise ValueError(
                "messages require Batch: add backend: batch, or use alerts instead of messages "
                "(docs/jobs.md)"
            )
        return self


class Encryption(Section):
    """An existing Cloud KMS key. The stack creates no keys, since keys can never be deleted."""

    key: KeyPath
    """Full name of the key, in the stack's region."""
    covers: Annotated[list[Covered], Field(min_length=1)] = [
        *("buckets", "registry", "secrets", "jobs")
    ]
    """Resources that the key encrypts. A later addition of ``registry`` or ``secrets`` replaces
    deployed resources."""


#: Query parameter whose value is ``asOf``.
AS_OF: Final = "as_of"
#: Value of a query parameter; its YAML type decides its BigQuery type.
Scalar = bool | int | float | str
TableLocation = Annotated[str, form(r"[A-Za-z][A-Za-z0-9-]{1,62}", "US or europe-west4")]
ParameterName = Annotated[str, form(r"[A-Za-z_][A-Za-z0-9_]{0,127}", "day: @day in the query")]


class Snapshot(NamedSection):
    """The result of a BigQuery query, exported to files that never change.

    ``${snapshots.KEY}`` is the folder of the files. The query runs once for each ``run``.
    """

    query: str
    """Path of a file in the checkout with one GoogleSQL query."""
    parameters: dict[ParameterName, Any] = {}
    """Values of query parameters such as ``@day``. Text is STRING, numbers are INT64 or FLOAT64,
    true and false are BOOL."""
    as_of: str | None = None
    """Time of the table contents to read, such as ``2026-11-20T00:00:00Z``, at most seven days ago.
    The query must contain ``FROM table FOR SYSTEM_TIME AS OF @as_of``. Default: the time of the
    first ``pulumi up``."""
    max_bytes_billed: int = Field(ge=1, le=2**63 - 1)
    """Maximum bytes billed for the query. BigQuery refuses a larger query, without a charge."""
    format: Literal["parquet", "csv"] = "parquet"
    """Format of the files."""
    bucket: Key = "data"
    """Key of the bucket that stores the files."""
    location: TableLocation | None = None
    """Location of the tables; default: the stack's region."""
    run: int = Field(default=1, ge=1)
    """Number of the run. Increment it to run an unchanged query again. Old files remain."""

    @pydantic.field_validator("as_of")
    @classmethod
    def _check_as_of(cls, text: str | None) -> str | None:
        if text is None:
            return None
        try:
            time = datetime.datetime.fromisoformat(text)
            in_utc = time.astimezone(datetime.UTC)
        except (ValueError, OverflowError):
            raise ValueError("must be a time such as 2026-11-20T00:00:00Z") from None
        if time.tzinfo is None:
            raise ValueError("the time has no zone: add Z")
        return in_utc.isoformat().replace("+00:00", "Z")

    @pydantic.field_validator("parameters")
    @classmethod
    def _check_parameters(cls, parameters: dict[str, Any]) -> dict[str, Scalar]:
        if AS_OF in {name.lower() for name in parameters}:
            raise ValueError(f"parameter {AS_OF} is reserved: set asOf instead")
        if len({name.lower() for name in parameters}) < len(parameters):
            raise ValueError(
                "two parameters differ only in case, which BigQuery ignores: rename one"
            )
        for name, value in parameters.items():
            if not isinstance(value, Scalar):
                raise ValueError(
                    f"parameter {name} must be text, a number, true or false: put dates in quotes"
                )
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError(f"parameter {name} must be finite")
            if isinstance(value, int) and not -(2**63) <= value < 2**63:
                raise ValueError(f"parameter {name} is outside of the range of INT64")
        return parameters


class AllowedMember(Section):
    """An undeclared member of an IAM policy that ``vt drift`` accepts."""

    member: Annotated[str, Field(min_length=1)]
    """IAM member, like ``user:kim@example.com``."""
    role: Annotated[str, Field(min_length=1)]
    """Role of the member."""
    policy: Annotated[
        str,
        form(
            rf"b/.+|projects/{PROJECT}(?:/.+)?",
            "b/BUCKET or projects/PROJECT/…, with * for any text after b/ or the project",
        ),
    ]
    """Name of the policy as ``vt drift`` prints it; ``b/*`` matches all buckets."""
    reason: Annotated[str, Field(min_length=10)]
    """Reason for the exception, for readers of the file."""


class AllowedResource(Section):
    """An undeclared job, network resource or deployed model that ``vt drift`` accepts."""

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
    """Kind and name, like ``firewalls/iap-*``: display name of a job, id of a deployed model."""
    reason: Annotated[str, Field(min_length=10)]
    """Reason for the exception, for readers of the file."""


class DriftSettings(Section):
    """Scope and exceptions of ``vt drift``."""

    project_policy: Literal["own", "judged"] = "own"
    """Accounts whose project roles are compared: accounts of the stack (``own``), or all accounts
    (``judged``, if no other checkout deploys to the project)."""
    allowed: dict[Key, AllowedMember] = {}
    """Accepted members of IAM policies, by a name of your choice."""
    allowed_resources: dict[Key, AllowedResource] = {}
    """Accepted jobs, network resources and deployed models, by a name of your choice."""
    accepted_losses: dict[str, Annotated[str, Field(min_length=10)]] = {}
    """Protected resources that were deleted in the cloud and may be created again without their
    data. A key is the name in the review. A value is the reason. Remove the entry after the
    deployment."""


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
#: Section -> fields with keys of another section.
REFERENCES: Final[Mapping[str, Mapping[str, str]]] = {
    "serviceAccounts": {"reads": "buckets", "writes": "buckets", "secrets": "secrets"},
    "models": {"job": "jobs"},
    "endpoints": {"model": "models", "account": "serviceAccounts"},
    "snapshots": {"bucket": "buckets"},
}
#: Of these fields, those whose default is the entry's own key.
BY_OWN_KEY: Final = ("job", "model")


class Settings(Section):
    """A whole stack file, validated, and the names that derive from it."""

    stack: str
    """Name of the stack, from the name of its file."""
    include: list[IncludePath] = []
    """Files whose ``config`` is merged into this stack file. Paths are relative to the top of the
    checkout."""
    overrides: dict[str, Any] = {}
    """Values that replace values of included files. A key is a path, like ``buckets.data.protect``.
    Null removes the included value."""
    project: ProjectId
    """Project of the stack's resources and jobs."""
    region: Annotated[str, form(r"[a-z]+-[a-z]+[0-9]+", "us-central1")]
    """Region of jobs, buckets and subnets."""
    project_number: ProjectNumber
    """Number of the project: ``gcloud projects describe PROJECT
    --format='value(projectNumber)'``."""
    labels: dict[str, str] = {}
    """Labels of all resources that support labels."""
    submitters: list[str] = []
    """IAM members that may submit jobs. This list does not apply to accounts with a team or with
    their own ``submitters``."""
    deployers: list[str] = []
    """IAM members that run ``pulumi up``, like CI's account. Deployers may act as every account of
    the stack, including accounts of teams, and may use the subnet of a Shared VPC host project."""
    teams: dict[Key, Team] = {}
    """Teams by name. Teams are isolated from each other."""
    builders: list[str] = []
    """IAM members that may build the stack's images in Cloud Build."""
    # Maps with stable names instead of lists: a new order in the file renames no resource.
    buckets: dict[Key, Bucket] = {}
    """Buckets by name."""
    service_accounts: dict[Key, ServiceAccount] = {}
    """Service accounts that jobs run as, by name."""
    secrets: dict[Key, Secret] = {}
    """Secrets in Secret Manager by name, without their values."""
    packages: dict[Key, Package] = {}
    """Python packages below ``jobs/``, by name."""
    images: dict[Key, Image] = {}
    """Container images by name."""
    registry: Registry = Registry()
    """The stack's Docker repository."""
    network: Network = Network()
    """Network of jobs."""
    shared_vpc: SharedVpc | None = None
    """Shared VPC: the project that owns the network, if it differs from the stack's."""
    reservations: dict[Key, Reservation] = {}
    """Reserved machines for jobs, by name."""
    tensorboard: TensorboardName = ""
    """Display name of a TensorBoard instance that the stack creates for jobs, or full name of an
    existing instance: ``projects/P/locations/REGION/tensorboards/ID``."""
    encryption: Encryption | None = None
    """Cloud KMS key that encrypts the stack's data. By default, Google's keys encrypt the data."""
    limits: Limits = Limits()
    """Limits of the stack and of each job."""
    job_defaults: JobDefaults = JobDefaults()
    """Default values of job files."""
    allowed_secrets: dict[str, Annotated[str, Field(min_length=10)]] = {}
    """Files or lines that look like secrets, but may be uploaded. A key is ``FILE`` or
    ``FILE:LINE``, as in the output of ``vt check``. A value is the reason."""
    rules: dict[str, Literal["error", "warning", "note"]] = {}
    """Rule of job files -> level. The level of a rule that is an error cannot be lowered."""
    drift: DriftSettings = DriftSettings()
    """Differences from the declaration that ``vt drift`` accepts."""
    policy_levels: dict[Key, Literal["advisory", "mandatory", "disabled"]] = {}
    """Levels of policies in this stack. The default level is ``mandatory``."""
    on_change: Literal["cancel", "finish"] = "cancel"
    """Effect of a changed request on a running job. ``cancel`` cancels the job. With ``finish``,
    the job ends by itself, and the next ``pulumi up`` submits the changed job. A job's own
    ``onChange`` takes precedence."""
    snapshots: dict[Key, Snapshot] = {}
    """Results of BigQuery queries, exported to files, by name."""
    jobs: dict[Key, Job] = {}
    """Training jobs by name."""
    tuning: dict[Key, Job] = {}
    """Tuning jobs by name. A tuning job runs many trials of a job."""
    models: dict[Key, Model] = {}
    """Models of the registry by name. The versions of a model come from runs of a job."""
    endpoints: dict[Key, Endpoint] = {}
    """Endpoints by name. An endpoint splits prediction traffic between versions of a model."""
    channels: dict[Key, Channel] = {}
    """Destinations of alerts and budget notifications, by name."""
    alerts: Alerts | None = None
    """Alerts about jobs."""
    budget: Budget | None = None
    """Alert on the monthly cost of the project."""
    dashboards: dict[Key, Dashboard] = {}
    """Dashboards of jobs, by name."""

    @pydantic.field_validator("shared_vpc", "encryption", "alerts", "budget", mode="before")
    @classmethod
    def _none_if_empty(cls, value: Any) -> Any:
        return value or None  # without a value in the stack file, the engine passes an empty object

    @pydantic.field_validator("region")
    @classmethod
    def _check_region(cls, region: str) -> str:
        # A region with an unknown number may be new; other names are compared with known ones.
        known = {name.rstrip(DIGITS): name for name in sorted(machines.regions())}
        if region.rstrip(DIGITS) not in known and (near := nearest(region, known.values(), 0.9)):
            raise ValueError(f"this region does not exist: did you mean '{near}'?")
        return region

    @property
    def names(self) -> Names:
        """Return the names of resources by key; a renamed entry keeps its first name."""
        sections: dict[str, Mapping[str, Bucket | ServiceAccount | Secret]] = {
            "buckets": self.buckets,
            "serviceAccounts": self.service_accounts,
            "secrets": self.secrets,
        }
        explicit = {
            (section, entry.formerly or key): name
            for section, entries in sections.items()
            for key, entry in entries.items()
            if (name := entry.existing or entry.name)
        }
        if "/" in self.tensorboard:
            explicit["tensorboard", ""] = self.tensorboard
        if repository := self.registry.existing or self.registry.name:
            explicit["registry", ""] = repository
        first = {
            (*section, key): entry.formerly
            for section in SECTIONS
            for key, entry in self.entries(section).items()
            if entry.formerly
        }
        return Names(self.project, self.project_number, self.region, self.stack, explicit, first)

    def entries(self, section: tuple[str, ...]) -> Mapping[str, NamedSection]:
        """Return the entries of a section of :data:`SECTIONS` by key."""
        result: Any = self
        for field in SECTIONS[section]:
            result = getattr(result, field)
        return result

    def submitters_of(self, account: str) -> list[str]:
        """Return the IAM members that may submit jobs as the account with this key."""
        settings = self.service_accounts[account]
        if settings.submitters is not None:
            return settings.submitters
        team = self.teams.get(settings.team or "")
        return team.submitters if team else self.submitters

    def members_acting_as(self, account: str) -> list[str]:
        """Return the IAM members that may act as this account: submitters and deployers."""
        return list(dict.fromkeys((*self.submitters_of(account), *self.deployers)))

    @property
    def all_submitters(self) -> list[str]:
        """Return the IAM members that may submit jobs as any account, including deployers."""
        lists = [self.submitters_of(key) for key in self.service_accounts] or [self.submitters]
        members = (member for members in (*lists, self.deployers) for member in members)
        return list(dict.fromkeys(members))

    def labels_of(self, team: str | None) -> dict[str, str]:
        """Return the labels of a team's resources; without a team, those of the stack."""
        owner = self.teams.get(team or "")
        return {**self.labels, "team": str(team), **owner.labels} if owner else self.labels

    def team_at(self, address: str) -> str | None:
        """Return the team of the account with this address; None without a team."""
        names = self.names  # a property that computes all names
        accounts = self.service_accounts.items()
        by_address = {names.account_email(key): account.team for key, account in accounts}
        return by_address.get(address)

    @property
    def builds_images(self) -> bool:
        """Return True if an image of the stack is built from the checkout."""
        return any(image.context for image in self.images.values())

    @property
    def is_watched(self) -> bool:
        """Return True if the stack has channels, alerts, a budget or a dashboard."""
        return bool(self.alert_channels or self.alerts or self.budget or self.dashboards)

    @property
    def alert_channels(self) -> dict[str, Channel]:
        """Return the channels of Cloud Monitoring: all but topics that only Batch uses."""
        only_batch = {job.messages.channel for job in self.jobs.values() if job.messages}
        only_batch -= set(self.alerts.channels if self.alerts else ())
        only_batch -= set(self.budget.channels if self.budget else ())
        return {key: channel for key, channel in self.channels.items() if key not in only_batch}

    def notifications(self, job: str) -> tuple[dict[str, Any], ...]:
        """Return ``notifications`` of a Batch job, in the form of its API."""
        messages = self.jobs[job].messages if job in self.jobs else None
        if messages is None or messages.channel not in self.channels:
            return ()
        topic = self.channels[messages.channel].pubsub
        return messages.notifications(topic) if topic else ()

    @property
    def stops_idle_jobs(self) -> bool:
        """Return True if any job of the stack has ``idleStop``."""
        return any(job.idle_stop for job in self.submitted.values())

    def key_for(self, what: Covered) -> str | None:
        """Return the key that encrypts these resources; None if Google's keys do."""
        encryption = self.encryption
        return encryption.key if encryption and what in encryption.covers else None

    @property
    def submitted(self) -> dict[str, Job]:
        """Return jobs and tuning jobs by key; the two sections share no key."""
        return {**self.jobs, **self.tuning}

    def jobs_by_section(self) -> Iterator[tuple[str, str, Job]]:
        """Yield section, key and options of each job and tuning job."""
        for section, jobs in (("jobs", self.jobs), ("tuning", self.tuning)):
            yield from ((section, key, job) for key, job in jobs.items())

    @property
    def schedules(self) -> dict[str, Schedule]:
        """Return the schedules by the key of their job or tuning job."""
        # Jobs of components are `JobOptions`, which have no schedule.
        by_key = {key: getattr(job, "schedule", None) for key, job in self.submitted.items()}
        return {key: schedule for key, schedule in by_key.items() if schedule is not None}

    def passed_options(self, key: str) -> dict[str, Any]:
        """Return the options that are inputs of the job's resource."""
        more = {"onChange": "finish"} if self.finishes(key) else {}
        return {**self.submitted[key].passed, **more}

    def finishes(self, job: str) -> bool:
        """Return True if a running job may finish when its request changes."""
        return (self.submitted[job].on_change or self.on_change) == "finish"

    @property
    def protects(self) -> bool:
        """Return True if any resource is protected, which makes ``pulumi destroy`` fail."""
        sections = (self.buckets, self.secrets, self.reservations)
        entries = [entry for section in sections for entry in section.values()]
        return self.registry.protect or any(entry.protect for entry in entries)

    @property
    def is_local(self) -> bool:
        return is_local(self.project)
