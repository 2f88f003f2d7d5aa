"""All grants that the stack may make, by type of resource, with reasons. Pure.

A :class:`GrantRequest` must be in this table, unless the stack file requests the role by name.
Reviews print the reasons. ``narrowest`` is the reason for a grant on a whole project.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from vertex_training import catalog

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

#: Type of the component with grants that a stack file requests by name.
EXTRA_GRANTS: Final = "vertextraining:iam:ExtraGrants"


@dataclass(frozen=True, slots=True)
class AllowedGrant:
    """A grant that the stack may make. ``type`` is the token of its Pulumi resource."""

    type: str
    role: str
    why: str
    source: str
    narrowest: str = ""
    """Reason for a grant on a project: why a narrower grant is impossible."""


ALLOWED: Final = tuple(AllowedGrant(**row) for row in catalog.load("grants.yaml")["allowed"])
#: Grants on accounts of other projects. Only the owners of these projects can make the grants.
EXTERNAL: Final = tuple(AllowedGrant(**row) for row in catalog.load("grants.yaml")["external"])

_BY_KIND: Final = {(grant.type, grant.role): grant for grant in ALLOWED}


@dataclass(frozen=True, slots=True)
class Condition:
    """The condition of a grant: a title and a CEL expression."""

    title: str
    expression: str


@dataclass(frozen=True, slots=True)
class GrantRequest:
    """A grant that a stack needs.

    Raises:
        ValueError: the table lacks the grant, and the stack file does not request the role.
    """

    key: str
    """Suffix of the resource name; unique in a component."""
    type: str
    """Type token of the grant's resource."""
    role: str
    member: str
    project: str
    resource: str = ""
    """Full name of the granted subnet, key, repository, bucket (``b/NAME``), secret, account or
    dataset; empty for a grant on the project."""
    ours: bool = True
    """True if the stack makes the grant; otherwise the owner of the project must."""
    asked_for: bool = False
    """True if the stack file requests the role by name."""
    condition: Condition | None = None

    def __post_init__(self) -> None:
        if not self.asked_for and not reason(self.type, self.role):
            raise ValueError(f"table ALLOWED has no row for {self.role} with {self.type}")

    @property
    def place(self) -> str:
        """Return the resource on which the role is granted."""
        return self.resource or f"projects/{self.project}"


def find(type_token: str, role: str) -> AllowedGrant | None:
    """Return the row for a role and a type of grant; None if the table has no row."""
    return _BY_KIND.get((type_token, role))


def reason(type_token: str, role: str) -> str:
    """Return the reason for granting ``role`` by this type of grant; empty if it is not allowed.

    >>> reason("gcp:projects/iAMMember:IAMMember", "roles/editor")
    ''
    """
    known = (*ALLOWED, *EXTERNAL)
    return next((row.why for row in known if (row.type, row.role) == (type_token, role)), "")
