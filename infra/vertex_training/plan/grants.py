"""Every grant that the stack may make, with its type of resource and its reason. Pure.

A :class:`GrantRequest` that is not in this table cannot be made, unless the stack file asks for it
by name. Reviews show the reasons from here. ``narrowest`` gives the reason why a grant on a project
cannot be narrower.
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


ALLOWED: Final = tuple(AllowedGrant(**row) for row in catalog.load("grants.yaml")["allowed"])
#: Grants that no stack makes: owners of other projects make them where an account is theirs.
EXTERNAL: Final = tuple(AllowedGrant(**row) for row in catalog.load("grants.yaml")["external"])

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
