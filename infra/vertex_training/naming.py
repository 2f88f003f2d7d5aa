"""Names and labels of all resources of a stack, and their limits.

All names are explicit: previews show them, a job's request is known in a preview, and no name
changes by itself.
"""

from __future__ import annotations

import fnmatch
import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

#: Key in a stack file, which becomes part of resource names. Starts with a letter (RFC 1035).
KEY: Final = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?\Z")
KEY_RULE: Final = "lowercase letters, digits and '-', starting with a letter, not ending with '-'"

#: https://docs.cloud.google.com/storage/docs/buckets#naming (no dots: those need a verified domain)
BUCKET: Final = re.compile(r"[a-z0-9]([a-z0-9_-]{1,61}[a-z0-9])\Z")
#: Forbidden names of buckets, from the same page.
BUCKET_GOOGLE: Final = re.compile(r"goog|.*(google|g00gle)")
#: https://docs.cloud.google.com/iam/docs/service-accounts-create: 6 to 30 characters
ACCOUNT_ID: Final = re.compile(r"[a-z]([a-z0-9-]{4,28}[a-z0-9])\Z")
#: Names of Compute Engine resources: 1 to 63 characters (RFC 1035).
COMPUTE: Final = re.compile(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?\Z")
COMPUTE_RULE: Final = (
    "use at most 63 lowercase letters, digits and '-': shorten the key or the stack's name"
)
#: Ids of models in the registry: discovery of aiplatform v1, ``models.upload``, ``modelId``.
MODEL_ID: Final = re.compile(r"[a-z_][a-z0-9_-]{0,62}\Z")
#: Suffix of a secret's name by which a variable of a Batch job gets the secret's value: of the
#: newest version, or of a given version.
NEWEST_VALUE: Final = "/versions/latest#value"
SECRET_VALUE: Final = re.compile(r"(projects/[^/\s]+/secrets/[\w-]+/versions/[\w-]+)#value")
#: Keys and values of labels: at most 63 characters; keys start with a letter.
LABEL_KEY: Final = re.compile(r"[a-z][a-z0-9_-]{0,62}\Z")
LABEL_VALUE: Final = re.compile(r"[a-z0-9_-]{0,63}\Z")

#: Labels that the program sets on resources, and that stack files must not set. Labels of jobs
#: begin with ``vt-`` (``vertex_training.customjob.protocol.ports``).
OWN_LABELS: Final = frozenset({"managed-by", "stack"})
#: Prefix of labels that the program sets on jobs.
JOB_LABEL_PREFIX: Final = "vt-"
#: Label, with value ``named``, of endpoints with ``public: true``.
PUBLIC_LABEL: Final = "vt-public"
#: https://docs.cloud.google.com/resource-manager/docs/labels-overview: at most 64 on a resource
MOST_LABELS: Final = 64

#: Placeholder for an id that the service chooses; replaced when a job is sent (decision 70).
SERVICE_CHOSEN: Final = "0"

#: Prefixes of IAM members that a stack file may list.
MEMBER_KINDS: Final = ("user:", "group:", "serviceAccount:", "principal://", "principalSet://")

#: Public members: https://docs.cloud.google.com/iam/docs/principal-identifiers. The last member is
#: for deny policies; in a grant it counts as public.
PUBLIC_MEMBERS: Final = ("allUsers", "allAuthenticatedUsers", "principalSet://goog/public:all")
#: Basic roles, which cover every service -> access to data. The last three predate
#: IAM: https://docs.cloud.google.com/iam/docs/roles-overview#basic
BASIC_ROLES: Final = {
    "roles/admin": "writes",
    "roles/writer": "writes",
    "roles/reader": "reads",
    "roles/owner": "writes",
    "roles/editor": "writes",
    "roles/viewer": "reads",
}

#: Domain with at least two labels, without a trailing dot.
DOMAIN: Final = r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z0-9-]{1,62}[A-Za-z0-9]"
#: Entry of ``limits.memberDomains``: see :func:`domain_of_member`.
MEMBER_DOMAIN: Final = (
    rf"(?:\*\.)?{DOMAIN}|projects/[0-9]+|folders/[0-9]+|organizations/[0-9]+|"
    r"workforcePools/[a-z0-9-]+"
)
#: Forms of IAM members with an owner. The groups are the owner's domain, pool, project or project
#: number: https://docs.cloud.google.com/iam/docs/principal-identifiers and
#: https://docs.cloud.google.com/iam/docs/service-account-types
_MEMBER: Final = re.compile(
    r"serviceAccount:(?:service-)?(?P<number>[0-9]+)(?:-compute)?@(?:(?:gcp-sa-[a-z0-9-]+|"
    r"gs-project-accounts|compute-system)\.iam|cloudservices|cloudbuild|developer)"
    r"\.gserviceaccount\.com"
    r"|serviceAccount:(?P<project>[a-z][a-z0-9-]+)"
    r"(?:@appspot\.gserviceaccount\.com|\.svc\.id\.goog\[[a-z0-9-]+/[a-z0-9.-]+\])"
    rf"|(?:user|group|serviceAccount):[A-Za-z0-9._%+'&=~-]+@(?P<domain>{DOMAIN})"
    rf"|domain:(?P<whole>{DOMAIN})"
    r"|principal(?:Set)?://iam\.googleapis\.com/(?:projects/(?P<pool_number>[0-9]+)/locations/global/"
    r"workloadIdentityPools/[a-z0-9.-]+|locations/global/(?P<pool>workforcePools/[a-z0-9-]+))"
    r"/(?:\*|[a-z][a-z0-9_.]*/[!-~]+)"
    r"|principalSet://cloudresourcemanager\.googleapis\.com/"
    r"(?P<parent>(?:projects|folders|organizations)/[0-9]+)/type/[A-Za-z]+"
    r"|project(?:Owner|Editor|Viewer):(?:(?P<team_number>[0-9]+)|(?P<team>[a-z][a-z0-9-]+))"
    r"|(?:view|routine|dataset):(?P<reader>[a-z][a-z0-9-]+)(?:\.\w+){1,2}"
)

#: Principal of any form, for stacks without ``limits.memberDomains``.
_PRINCIPAL: Final = re.compile(r"principal(?:Set)?://[!-~]+")

#: Service agents: https://docs.cloud.google.com/iam/docs/service-agents
_AGENT: Final = re.compile(
    r"serviceAccount:service-\d+@(?:gcp-sa-[a-z0-9-]+|gs-project-accounts|compute-system)"
    r"\.iam\.gserviceaccount\.com"
)

#: Prefix of projects of the local cloud; only this module may contain it.
LOCAL_PREFIX: Final = "local-"

#: Key of the bucket for code packages, which jobs may read.
STAGING: Final = "staging"
#: Key of the bucket for records of submissions, without access for jobs.
CONTROL: Final = "control"
#: Key of the account that builds images.
IMAGE_BUILD: Final = "image-build"
#: Folder of query results in a bucket.
SNAPSHOTS: Final = "snapshots"
#: Folder of image sources in the staging bucket.
SOURCES: Final = "images/"


def is_local(project: str) -> bool:
    return project.startswith(LOCAL_PREFIX)


def local_project_number(project: str) -> str:
    """Return a 12-digit number for a local project, which is the same on every machine."""
    return digits(12, project)


def digits(count: int, *parts: str) -> str:
    """Return a digest of texts as a number with ``count`` digits."""
    digest = int(hashlib.sha256("\0".join(parts).encode()).hexdigest(), 16)
    lowest = 10 ** (count - 1)
    return str(lowest + digest % (9 * lowest))


@dataclass(frozen=True, slots=True)
class Names:
    """Names of one stack's resources, by the keys of its stack file."""

    project: str
    """Id of the project."""
    number: str
    """Number of the project."""
    region: str
    stack: str
    given: Mapping[tuple[str, str], str] = field(default_factory=dict, hash=False)
    """Names that the stack file sets, by section and first key. Other names derive from keys."""
    first: Mapping[tuple[str, ...], str] = field(default_factory=dict, hash=False)
    """First keys of renamed entries, by section and key."""

    def _given(self, section: str, key: str) -> str:
        return self.given.get((section, self._first(section, key)), "")

    def bucket(self, key: str) -> str:
        """Return the name of a bucket, which is globally unique because it has the project id."""
        default = f"{self.project}-{self._first('buckets', key)}-{self.stack}"
        return self._given("buckets", key) or default

    def account_id(self, key: str) -> str:
        """Return the part of a service account's address before the ``@``."""
        default = f"{self._first('serviceAccounts', key)}-{self.stack}"
        return (self._given("serviceAccounts", key) or default).partition("@")[0]

    def account_email(self, key: str) -> str:
        """Return the address of a service account that the stack creates or uses."""
        domain = self._given("serviceAccounts", key).partition("@")[2]
        return f"{self.account_id(key)}@{domain or f'{self.project}.iam.gserviceaccount.com'}"

    def account(self, key: str) -> str:
        """Return the full name of a service account for IAM."""
        email = self.account_email(key)
        return f"projects/{project_of_account(email)}/serviceAccounts/{email}"

    def secret_id(self, key: str) -> str:
        default = f"{self._first('secrets', key)}-{self.stack}"
        return (self._given("secrets", key) or default).rpartition("/")[2]

    def secret(self, key: str) -> str:
        explicit = self._given("secrets", key)
        default = f"projects/{self.project}/secrets/{self.secret_id(key)}"
        return explicit if "/" in explicit else default

    def repository_id(self) -> str:
        return self.repository_path().rpartition("/")[2]

    def repository_path(self) -> str:
        """Return the full name of the stack's Docker repository in the API."""
        name_override = self.given.get(("registry", "")) or f"training-{self.stack}"
        here = f"projects/{self.project}/locations/{self.region}/repositories"
        return name_override if "/" in name_override else f"{here}/{name_override}"

    def repository(self) -> str:
        """Return the beginning of image URIs in the stack's Docker repository."""
        _, project, _, location, _, repository = self.repository_path().split("/")
        return f"{location}-docker.pkg.dev/{project}/{repository}"

    def image(self, key: str) -> str:
        """Return the URI of an image in the repository, without tag or digest."""
        return f"{self.repository()}/{key}"

    def tensorboard(self) -> str:
        """Return the full name of the TensorBoard instance; see :data:`SERVICE_CHOSEN`."""
        here = f"projects/{self.number}/locations/{self.region}"
        return self.given.get(("tensorboard", "")) or f"{here}/tensorboards/{SERVICE_CHOSEN}"

    def network(self) -> str:
        """Return the common name of the network, its subnet, attachment, router and NAT."""
        return f"training-{self.stack}"

    def ip_range(self, key: str) -> str:
        """Return the name of an address range for job machines."""
        return f"training-{self._first('network', 'ranges', key)}-{self.stack}"

    def firewall(self, key: str) -> str:
        """Return the name of a firewall rule, which contains the stack to be unique."""
        return f"training-{self.stack}-{self._first('network', 'allow', key)}"

    def reservation(self, key: str) -> str:
        return f"{self._first('reservations', key)}-{self.stack}"

    def model_id(self, key: str) -> str:
        return f"{self._first('models', key)}-{self.stack}"

    def endpoint_id(self, key: str) -> str:
        """Return the id of an endpoint: nine digits, as the API requires, known in a preview."""
        first = self._first("endpoints", key)
        return digits(9, self.project, self.region, self.stack, first)

    def vertex_agent(self) -> str:
        """Return the address of the Vertex AI Service Agent, which pulls job images."""
        return f"service-{self.number}@gcp-sa-aiplatform.iam.gserviceaccount.com"

    def custom_code_agent(self) -> str:
        """Return the address of the agent that runs jobs without ``serviceAccount``."""
        return f"service-{self.number}@gcp-sa-aiplatform-cc.iam.gserviceaccount.com"

    def service_agent(self, domain: str) -> str:
        """Return the address of a service agent by its domain, like ``gcp-sa-secretmanager``."""
        return f"service-{self.number}@{domain}.iam.gserviceaccount.com"

    def labels(self, extra: Mapping[str, str]) -> dict[str, str]:
        """Return a resource's labels; ``extra`` overrides the stack's labels."""
        return {"managed-by": "pulumi", "stack": self.stack, **extra}

    def _first(self, *path: str) -> str:
        return self.first.get(path, path[-1])


def project_of_account(email: str) -> str:
    """Return the project in a service account's address."""
    return email.partition("@")[2].removesuffix(".iam.gserviceaccount.com")


def ci_account_id(role: str, stack: str) -> str:
    """Return the id of the account that ``bootstrap/`` creates for a role of CI."""
    return f"ci-{role}-{stack}"


def deployer(project: str, stack: str) -> str:
    """Return the IAM member that ``bootstrap/`` creates to deploy a stack: ``ci-deploy-STACK``."""
    return f"serviceAccount:{ci_account_id('deploy', stack)}@{project}.iam.gserviceaccount.com"


def domain_of_member(member: str) -> str:
    """Return the domain of an IAM member or of an access list entry; empty for unknown forms.

    Google's accounts, identity pools, teams of a project and authorized views have a project, like
    ``projects/12``, instead of a domain. A workforce pool has its name: ``workforcePools/eu``.
    """
    if deleted := re.fullmatch(r"deleted:([^?]+)\?uid=[0-9]+", member):
        member = deleted[1]
    if (match := _MEMBER.fullmatch(member)) is None:
        return ""
    if number := match["number"] or match["pool_number"] or match["team_number"]:
        return f"projects/{number}"
    if project := match["project"] or match["team"] or match["reader"]:
        return f"{project}.iam.gserviceaccount.com"
    return match["domain"] or match["whole"] or match["pool"] or match["parent"]


def is_member(member: str) -> bool:
    """Return True if a stack file may list this IAM member: an address or principal in ASCII."""
    if not member.startswith(MEMBER_KINDS) or member in PUBLIC_MEMBERS:
        return False
    return domain_of_member(member) != "" or bool(_PRINCIPAL.fullmatch(member))


def is_service_agent(member: str) -> bool:
    """Return True if an IAM member is Google's service agent, which all stacks share."""
    return bool(_AGENT.fullmatch(member))


def own_domains(project: str, number: str, others: Iterable[str]) -> list[str]:
    """Return the patterns of the stack's own project, and ``others``; see ``is_of_domains``."""
    return [f"{project}.iam.gserviceaccount.com", f"projects/{number}", *others]


def is_of_domains(member: str, patterns: Iterable[str]) -> bool:
    """Return True if a member's domain matches any pattern, like ``*.example.com``."""
    domain = domain_of_member(member).lower()
    return domain != "" and any(
        fnmatch.fnmatchcase(domain, pattern.lower()) for pattern in patterns
    )


def is_own_label(key: str) -> bool:
    """Return True if the program sets this label itself, on resources or jobs."""
    return key in OWN_LABELS or key.startswith(JOB_LABEL_PREFIX)


def stack_of_repository(repository: str) -> str:
    """Return the stack in the id of a stack's Docker repository."""
    return repository.removeprefix("training-")


def label_problem(key: str, value: str) -> str | None:
    """Return the mistake in a label as text; None for a valid label."""
    # https://docs.cloud.google.com/resource-manager/docs/labels-overview: "goog" is reserved.
    if key.startswith("goog"):
        return f"label key '{key}' begins with goog, which is reserved: rename the key"
    if not LABEL_KEY.match(key):
        return (
            f"label key '{key}' must be 1 to 63 characters: lowercase letters, digits, '_' and "
            "'-', starting with a letter"
        )
    if not LABEL_VALUE.match(value):
        return f"value of label '{key}' must be at most 63 lowercase letters, digits, '_' and '-'"
    return None
