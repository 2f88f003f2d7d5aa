"""Every grant that the stack may make, with its type of resource and its reason. Pure.

A :class:`GrantRequest` that is not in this table cannot be made, unless the stack file asks for it
by name. Reviews show the reasons from here. ``narrowest`` gives the reason why a grant on a project
cannot be narrower.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from vertex_training.catalog.resource_types import (
    ON_ACCOUNT,
    ON_BUCKET,
    ON_KEY,
    ON_PROJECT,
    ON_REPOSITORY,
    ON_SECRET,
    ON_SUBNET,
)

GUIDES: Final = "https://docs.cloud.google.com/gemini-enterprise-agent-platform/machine-learning/"

BUILD_ACCOUNTS: Final = (
    "https://docs.cloud.google.com/build/docs/securing-builds/"
    "configure-user-specified-service-accounts"
)


READ_OBJECTS: Final = "roles/storage.objectViewer"
WRITE_OBJECTS: Final = "roles/storage.objectUser"
ADD_OBJECTS: Final = "roles/storage.objectCreator"
READ_SECRET: Final = "roles/secretmanager.secretAccessor"
ACT_AS: Final = "roles/iam.serviceAccountUser"
CREATE_TOKENS: Final = "roles/iam.serviceAccountTokenCreator"
WRITE_LOGS: Final = "roles/logging.logWriter"
READ_LOGS: Final = "roles/logging.viewer"
EDIT_BUILDS: Final = "roles/cloudbuild.builds.editor"
PUSH_IMAGES: Final = "roles/artifactregistry.writer"
PULL_IMAGES: Final = "roles/artifactregistry.reader"
REPORT_STATES: Final = "roles/batch.agentReporter"
SUBMIT_TO_BATCH: Final = "roles/batch.jobsEditor"
CALL_VERTEX: Final = "roles/aiplatform.user"
NETWORK_USER: Final = "roles/compute.networkUser"
NETWORK_ADMIN: Final = "roles/compute.networkAdmin"
DNS_PEER: Final = "roles/dns.peer"
USE_KEY: Final = "roles/cloudkms.cryptoKeyEncrypterDecrypter"
SEE_RESERVATION: Final = "roles/compute.viewer"
READ_TABLES: Final = "roles/bigquery.readSessionUser"

#: Type of the component that makes the grants which a stack file asks for by name.
EXTRA_GRANTS: Final = "vertextraining:iam:ExtraGrants"


@dataclass(frozen=True, slots=True)
class AllowedGrant:
    """A grant that the stack may make: ``type`` is the token of the resource that makes it."""

    type: str
    role: str
    why: str
    source: str
    narrowest: str = ""
    """Of a grant on a project: why nothing narrower will do."""


ALLOWED: Final[tuple[AllowedGrant, ...]] = (
    AllowedGrant(
        ON_BUCKET, READ_OBJECTS,
        "jobs read their data, or the code packages they run, from this bucket; builds of images "
        "read their sources",
        "https://docs.cloud.google.com/storage/docs/access-control/iam-roles",
    ),
    AllowedGrant(
        ON_BUCKET, WRITE_OBJECTS,
        "jobs write models, checkpoints and metrics to this bucket",
        "https://docs.cloud.google.com/storage/docs/access-control/iam-roles",
    ),
    AllowedGrant(
        ON_BUCKET, ADD_OBJECTS,
        "builders upload the sources of images; they can overwrite and delete nothing",
        "https://docs.cloud.google.com/storage/docs/access-control/iam-roles",
    ),
    AllowedGrant(
        ON_REPOSITORY, PUSH_IMAGES,
        "builds push the images that they made to this repository",
        BUILD_ACCOUNTS,
    ),
    AllowedGrant(
        ON_REPOSITORY, PULL_IMAGES,
        "builders look up which images are built already; service agents pull the images of jobs, "
        "and accounts those of their jobs on Batch",
        "https://docs.cloud.google.com/artifact-registry/docs/access-control",
    ),
    AllowedGrant(
        ON_SECRET, READ_SECRET,
        "jobs read this secret when they start; it cannot be passed to them in any other way",
        "https://docs.cloud.google.com/secret-manager/docs/access-control",
    ),
    AllowedGrant(
        ON_ACCOUNT, ACT_AS,
        "a submitter may run jobs as this account, or a builder builds, and as no other of the "
        "project",
        GUIDES + "general/custom-service-account",
    ),
    AllowedGrant(
        ON_KEY, USE_KEY,
        "service agents encrypt the disks of jobs, and what the stack stores, with this key",
        GUIDES + "general/cmek",
    ),
    AllowedGrant(
        ON_PROJECT, WRITE_LOGS,
        "what jobs and builds print goes to Cloud Logging",
        "https://docs.cloud.google.com/logging/docs/access-control",
        narrowest="log entries are written to a project; log buckets take no grant for it",
    ),
    AllowedGrant(
        ON_PROJECT, REPORT_STATES,
        "machines of jobs on Batch report as the job's account what their tasks do; without it a "
        "job stays as it is until Batch gives it up",
        "https://docs.cloud.google.com/batch/docs/get-started#project-prerequisites",
        narrowest="states are reported to the project; jobs have no IAM policy of their own",
    ),
    AllowedGrant(
        ON_PROJECT, SUBMIT_TO_BATCH,
        "submitters of jobs on Batch make and end them there",
        "https://docs.cloud.google.com/batch/docs/iam",
        narrowest="jobs have no IAM policy of their own",
    ),
    AllowedGrant(
        ON_PROJECT, READ_LOGS,
        "builders follow the logs of builds",
        "https://docs.cloud.google.com/logging/docs/access-control",
        narrowest="logs of builds are entries of the project; builds have no logs of their own",
    ),
    AllowedGrant(
        ON_PROJECT, EDIT_BUILDS,
        "builders start and cancel builds of images",
        "https://docs.cloud.google.com/build/docs/iam-roles-permissions",
        narrowest="builds have no IAM policy of their own",
    ),
    AllowedGrant(
        ON_PROJECT, CALL_VERTEX,
        "the code itself calls Vertex AI: experiments, TensorBoard, model upload (callsVertex)",
        GUIDES + "general/access-control",
        narrowest="experiments, models and TensorBoard instances have no IAM policy of their own",
    ),
    AllowedGrant(
        ON_SUBNET, NETWORK_USER,
        "uses this subnet of the host project: the service agent for the machines of jobs, "
        "submitters and deployers to send jobs there, deployers to attach it",
        GUIDES + "general/vpc-psc-i-setup",
    ),
    AllowedGrant(
        ON_PROJECT, NETWORK_USER,
        "submits jobs to the peered network of the host project",
        GUIDES + "general/vpc-peering",
        narrowest="a peered network without a subnet of its own: networks have no IAM policy",
    ),
    AllowedGrant(
        ON_PROJECT, NETWORK_ADMIN,
        "the service agent connects the machines of jobs to the network attachment",
        GUIDES + "general/vpc-psc-i-setup",
        narrowest="the setup guide names this role in the attachment's project; it needs "
        "networkAttachments.update, and regionOperations.get, which only a project gives",
    ),
    AllowedGrant(
        ON_PROJECT, DNS_PEER,
        "the service agent looks up names of this project's private zones for jobs",
        GUIDES + "general/vpc-psc-i-setup",
        narrowest="the right is on the project of the network that is peered with, not on a zone",
    ),
    AllowedGrant(
        ON_PROJECT, SEE_RESERVATION,
        "the service agent finds the reservation that a job names",
        GUIDES + "predictions/use-reservations",
        narrowest="reservations have no IAM policy of their own",
    ),
    AllowedGrant(
        ON_PROJECT, READ_TABLES,
        "the code reads tables of BigQuery (datasets); which ones, roles on datasets say",
        "https://docs.cloud.google.com/bigquery/docs/reference/storage#permissions",
        narrowest="read sessions are made in a project and have no IAM policy of their own",
    ),
)  # fmt: skip

#: Grants that no stack makes: owners of other projects make them where an account is theirs.
EXTERNAL: Final[tuple[AllowedGrant, ...]] = (
    AllowedGrant(
        ON_ACCOUNT, CREATE_TOKENS,
        "the service agent runs jobs as this account of another project, which must also allow it: "
        "constraints/iam.disableCrossProjectServiceAccountUsage",
        GUIDES + "general/custom-service-account",
    ),
)  # fmt: skip

_BY_KIND: Final = {(grant.type, grant.role): grant for grant in ALLOWED}


@dataclass(frozen=True, slots=True)
class Condition:
    """Condition of a grant: CEL, and its title."""

    title: str
    expression: str


@dataclass(frozen=True, slots=True)
class GrantRequest:
    """A grant that a stack needs.

    Raises:
        ValueError: the table has no row for it, and the stack file does not ask for it by name.
    """

    key: str
    """Ends the name of its resource; unique in a component."""
    type: str
    """Token of the resource that makes it."""
    role: str
    member: str
    project: str
    resource: str = ""
    """Full name of the subnet, key, repository, bucket (``b/NAME``), secret, account or dataset it
    is on; without it, it is on the project."""
    ours: bool = True
    """True if the stack creates it; otherwise the owner of the project must."""
    asked_for: bool = False
    """True if the stack file asks for this role by name."""
    condition: Condition | None = None

    def __post_init__(self) -> None:
        if not self.asked_for and not reason(self.type, self.role):
            raise ValueError(f"{self.role} by {self.type} is in no row of ALLOWED")

    @property
    def place(self) -> str:
        """Return the resource that the grant is on."""
        return self.resource or f"projects/{self.project}"


def find(type_token: str, role: str) -> AllowedGrant | None:
    """The row for a grant of ``role`` made by a resource of this type; None if there is none."""
    return _BY_KIND.get((type_token, role))


def reason(type_token: str, role: str) -> str:
    """Return why the stack or another team grants ``role`` on a resource of this type; else empty.

    >>> reason("gcp:projects/iAMMember:IAMMember", "roles/editor")
    ''
    """
    known = (*ALLOWED, *EXTERNAL)
    return next((row.why for row in known if (row.type, row.role) == (type_token, role)), "")
