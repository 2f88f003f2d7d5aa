"""Names and labels of everything the stack creates: one place, limits checked.

Physical names are always explicit. A reviewer then reads the real name in the preview, a job's
request is known in full before anything exists, and no name changes by itself.
"""

from __future__ import annotations

import fnmatch
import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

#: Key in a stack file: what becomes part of names everywhere. Starts with a letter (RFC 1035).
KEY: Final = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?\Z")
KEY_RULE: Final = "lowercase letters, digits and '-', starting with a letter, not ending with '-'"

#: https://docs.cloud.google.com/storage/docs/buckets#naming (no dots: those need a verified domain)
BUCKET: Final = re.compile(r"[a-z0-9]([a-z0-9_-]{1,61}[a-z0-9])\Z")
#: The same page: no bucket's name begins with the one or contains the other.
BUCKET_GOOGLE: Final = re.compile(r"goog|.*(google|g00gle)")
#: https://docs.cloud.google.com/iam/docs/service-accounts-create: 6 to 30 characters
ACCOUNT_ID: Final = re.compile(r"[a-z]([a-z0-9-]{4,28}[a-z0-9])\Z")
#: Networks, addresses, reservations and what belongs to them: 1 to 63 characters (RFC 1035).
COMPUTE: Final = re.compile(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?\Z")
COMPUTE_RULE: Final = (
    "at most 63 lowercase letters, digits and '-': shorten the key or the stack's name"
)
#: Models of the registry: discovery of aiplatform v1, ``models.upload``, ``modelId``.
MODEL_ID: Final = re.compile(r"[a-z_][a-z0-9_-]{0,62}\Z")
#: What follows a secret's name where a variable of a job on Batch gets its value, not its name:
#: that of the newest version, or of one that a file names.
NEWEST_VALUE: Final = "/versions/latest#value"
SECRET_VALUE: Final = re.compile(r"(projects/[^/\s]+/secrets/[\w-]+/versions/[\w-]+)#value")
#: Labels: at most 63 characters, and start keys with a letter; see ``CustomJob.labels``.
LABEL_KEY: Final = re.compile(r"[a-z][a-z0-9_-]{0,62}\Z")
LABEL_VALUE: Final = re.compile(r"[a-z0-9_-]{0,63}\Z")

#: Labels that the program sets on resources; no stack file may give them. Those of jobs begin with
#: ``vt-`` (``vertex_training.customjob.protocol.ports``).
OWN_LABELS: Final = frozenset({"managed-by", "stack"})
#: How labels begin that the program sets on jobs.
JOB_LABEL_PREFIX: Final = "vt-"
#: Label of an endpoint that the stack file names public; its value is then ``named``.
PUBLIC_LABEL: Final = "vt-public"
#: https://docs.cloud.google.com/resource-manager/docs/labels-overview: at most 64 on a resource
MOST_LABELS: Final = 64

#: The id of what the stack makes and the service numbers; the number takes its place when a job is
#: sent (decision 70).
SERVICE_CHOSEN: Final = "0"

#: How IAM members begin that a stack file may name.
MEMBER_KINDS: Final = ("user:", "group:", "serviceAccount:", "principal://", "principalSet://")

#: Members that include everybody: https://docs.cloud.google.com/iam/docs/principal-identifiers. The
#: last one is meant for policies that deny; in a grant it is taken for everybody.
PUBLIC_MEMBERS: Final = ("allUsers", "allAuthenticatedUsers", "principalSet://goog/public:all")
#: Basic roles, which reach every service, and what they allow with data. The last three are of
#: before IAM: https://docs.cloud.google.com/iam/docs/roles-overview#basic
BASIC_ROLES: Final = {
    "roles/admin": "writes",
    "roles/writer": "writes",
    "roles/reader": "reads",
    "roles/owner": "writes",
    "roles/editor": "writes",
    "roles/viewer": "reads",
}

#: A domain of two labels or more, without a dot at its end.
DOMAIN: Final = r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z0-9-]{1,62}[A-Za-z0-9]"
#: What ``limits.memberDomains`` may name: see :func:`domain_of_member`.
MEMBER_DOMAIN: Final = (
    rf"(?:\*\.)?{DOMAIN}|projects/[0-9]+|folders/[0-9]+|organizations/[0-9]+|"
    r"workforcePools/[a-z0-9-]+"
)
#: Every form of a member that belongs to somebody, with what it belongs to:
#: https://docs.cloud.google.com/iam/docs/principal-identifiers. A number is that of a project:
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

#: A principal of any form: a stack without ``limits.memberDomains`` may name the latest ones.
_PRINCIPAL: Final = re.compile(r"principal(?:Set)?://[!-~]+")

#: Accounts by which Google's services act in a project: https://docs.cloud.google.com/iam/docs/service-agents
_AGENT: Final = re.compile(
    r"serviceAccount:service-\d+@(?:gcp-sa-[a-z0-9-]+|gs-project-accounts|compute-system)"
    r"\.iam\.gserviceaccount\.com"
)

#: How ids of projects begin that live in the local cloud; no other code may spell it.
LOCAL_PREFIX: Final = "local-"

#: Bucket for code packages on their way to a job. Jobs may read it.
STAGING: Final = "staging"
#: Bucket for the records that make a submission happen once. Jobs have no access to it.
CONTROL: Final = "control"
#: Key of the account that builds images.
IMAGE_BUILD: Final = "image-build"
#: Folder of the results of queries in a bucket.
SNAPSHOTS: Final = "snapshots"
#: Where the sources of images lie in the staging bucket.
SOURCES: Final = "images/"


def is_local(project: str) -> bool:
    """Return whether a project is one of the local cloud, which only such projects reach."""
    return project.startswith(LOCAL_PREFIX)


def local_project_number(project: str) -> str:
    """The 12-digit number that a project has in the local cloud, the same on every machine."""
    digest = int(hashlib.sha256(project.encode()).hexdigest(), 16)
    return str(10**11 + digest % (9 * 10**11))


@dataclass(frozen=True, slots=True)
class Names:
    """Names of one stack's resources. ``project`` is the project id, ``number`` its number."""

    project: str
    number: str
    region: str
    stack: str
    given: Mapping[tuple[str, str], str] = field(default_factory=dict, hash=False)
    """Names that the stack file gives, by section and first key; others follow from the keys."""
    first: Mapping[tuple[str, ...], str] = field(default_factory=dict, hash=False)
    """Keys that entries were created under, by section and key: of those that were renamed."""

    def bucket(self, key: str) -> str:
        """Bucket names are global, so they carry the project id; at most 63 characters."""
        key = self._first("buckets", key)
        return self.given.get(("buckets", key)) or f"{self.project}-{key}-{self.stack}"

    def account_id(self, key: str) -> str:
        """Part of a service account's address before the ``@``; 6 to 30 characters."""
        key = self._first("serviceAccounts", key)
        name_override = self.given.get(("serviceAccounts", key)) or f"{key}-{self.stack}"
        return name_override.partition("@")[0]

    def account_email(self, key: str) -> str:
        """Address of a service account that the stack makes or is given."""
        name_override = self.given.get(("serviceAccounts", self._first("serviceAccounts", key)), "")
        domain = name_override.partition("@")[2] or f"{self.project}.iam.gserviceaccount.com"
        return f"{self.account_id(key)}@{domain}"

    def account(self, key: str) -> str:
        """Resource name of that account, as IAM takes it."""
        email = self.account_email(key)
        return f"projects/{project_of_account(email)}/serviceAccounts/{email}"

    def secret_id(self, key: str) -> str:
        """Id of a Secret Manager secret."""
        key = self._first("secrets", key)
        return (self.given.get(("secrets", key)) or f"{key}-{self.stack}").rpartition("/")[2]

    def secret(self, key: str) -> str:
        """Resource name of a secret, as client libraries take it."""
        name_override = self.given.get(("secrets", self._first("secrets", key)), "")
        return (
            name_override
            if "/" in name_override
            else f"projects/{self.project}/secrets/{self.secret_id(key)}"
        )

    def repository_id(self) -> str:
        """Id of the stack's Docker repository."""
        return self.repository_path().rpartition("/")[2]

    def repository_path(self) -> str:
        """Resource name of the stack's Docker repository."""
        name_override = self.given.get(("registry", "")) or f"training-{self.stack}"
        here = f"projects/{self.project}/locations/{self.region}/repositories"
        return name_override if "/" in name_override else f"{here}/{name_override}"

    def repository(self) -> str:
        """Prefix of every image in the stack's Docker repository."""
        _, project, _, location, _, repository = self.repository_path().split("/")
        return f"{location}-docker.pkg.dev/{project}/{repository}"

    def image(self, key: str) -> str:
        """An image of that repository, without tag or digest."""
        return f"{self.repository()}/{key}"

    def tensorboard(self) -> str:
        """Resource name of the stack's TensorBoard instance; see :data:`SERVICE_CHOSEN`."""
        here = f"projects/{self.number}/locations/{self.region}"
        return self.given.get(("tensorboard", "")) or f"{here}/tensorboards/{SERVICE_CHOSEN}"

    def network(self) -> str:
        """Name of the stack's network, and of the one subnet, attachment, router and NAT in it."""
        return f"training-{self.stack}"

    def ip_range(self, key: str) -> str:
        """Name of a range of addresses for the machines of jobs."""
        return f"training-{self._first('network', 'ranges', key)}-{self.stack}"

    def firewall(self, key: str) -> str:
        """Name of a firewall rule; networks of all stacks share one list of them."""
        return f"training-{self.stack}-{self._first('network', 'allow', key)}"

    def reservation(self, key: str) -> str:
        """Name of a reservation."""
        return f"{self._first('reservations', key)}-{self.stack}"

    def model_id(self, key: str) -> str:
        """Id of a model in the registry; at most 63 lowercase letters, digits, '-' and '_'."""
        return f"{self._first('models', key)}-{self.stack}"

    def endpoint_id(self, key: str) -> str:
        """Id of an endpoint: nine digits, which the API and the plugin take.

        A digest of what names it, so that it is known before anything exists.
        """
        first = self._first("endpoints", key)
        parts = "\0".join((self.project, self.region, self.stack, first))
        digest = int(hashlib.sha256(parts.encode()).hexdigest(), 16)
        return str(10**8 + digest % (9 * 10**8))

    def vertex_agent(self) -> str:
        """Vertex AI Service Agent, Google's own account that pulls images and mounts networks.

        https://docs.cloud.google.com/iam/docs/service-agents
        """
        return f"service-{self.number}@gcp-sa-aiplatform.iam.gserviceaccount.com"

    def custom_code_agent(self) -> str:
        """Vertex AI Custom Code Service Agent, as which containers run that name no account.

        https://docs.cloud.google.com/iam/docs/service-agents
        """
        return f"service-{self.number}@gcp-sa-aiplatform-cc.iam.gserviceaccount.com"

    def service_agent(self, domain: str) -> str:
        """The address of a service's own account, like ``gcp-sa-secretmanager``.

        https://docs.cloud.google.com/iam/docs/service-agents
        """
        return f"service-{self.number}@{domain}.iam.gserviceaccount.com"

    def labels(self, extra: Mapping[str, str]) -> dict[str, str]:
        """Labels of every resource that can carry some; entries of ``extra`` win."""
        return {"managed-by": "pulumi", "stack": self.stack, **extra}

    def _first(self, *path: str) -> str:
        """The key that an entry was created under, of its section and its key."""
        return self.first.get(path, path[-1])


def project_of_account(email: str) -> str:
    """The project that has a service account of this address.

    >>> project_of_account("trainer@acme-ml.iam.gserviceaccount.com")
    'acme-ml'
    """
    return email.partition("@")[2].removesuffix(".iam.gserviceaccount.com")


def ci_account_id(role: str, stack: str) -> str:
    """Id of the account that bootstrap makes for a role of CI."""
    return f"ci-{role}-{stack}"


def deployer(project: str, stack: str) -> str:
    """The IAM member that bootstrap makes for deployments of a stack.

    >>> deployer("acme-ml", "dev")
    'serviceAccount:ci-deploy-dev@acme-ml.iam.gserviceaccount.com'
    """
    return f"serviceAccount:{ci_account_id('deploy', stack)}@{project}.iam.gserviceaccount.com"


def domain_of_member(member: str) -> str:
    """Return the domain of an IAM member or an entry of an access list; else its project.

    Google's accounts, pools for workloads, teams of a project and authorized views have a project.

    A pool for people has no project: it is the name of the pool. Empty if the member has none of
    these forms, and so belongs to nobody that a list of domains can name.

    >>> domain_of_member("user:kim@example.com"), domain_of_member("domain:example.com")
    ('example.com', 'example.com')
    >>> domain_of_member("serviceAccount:12-compute@developer.gserviceaccount.com")
    'projects/12'
    >>> domain_of_member("principalSet://iam.googleapis.com/locations/global/workforcePools/eu/*")
    'workforcePools/eu'
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
    """Return whether a stack file may name this IAM member: ASCII, one address or a principal.

    >>> is_member("group:ml@example.com"), is_member("user:a@evil.com/@example.com")
    (True, False)
    """
    if not member.startswith(MEMBER_KINDS) or member in PUBLIC_MEMBERS:
        return False
    return domain_of_member(member) != "" or bool(_PRINCIPAL.fullmatch(member))


def is_service_agent(member: str) -> bool:
    """Return whether an IAM member is a Google service agent, which all stacks of a project share.

    >>> is_service_agent("serviceAccount:service-12@gcp-sa-aiplatform.iam.gserviceaccount.com")
    True
    >>> is_service_agent("serviceAccount:service-12@acme.iam.gserviceaccount.com")
    False
    """
    return bool(_AGENT.fullmatch(member))


def own_domains(project: str, number: str, others: Iterable[str]) -> list[str]:
    """Patterns of :func:`domain_of_member` for a stack's own members; ``others`` are given."""
    return [f"{project}.iam.gserviceaccount.com", f"projects/{number}", *others]


def is_of_domains(member: str, patterns: Iterable[str]) -> bool:
    """Return whether a member's domain matches one of these, as ``*.example.com`` does."""
    domain = domain_of_member(member).lower()
    return domain != "" and any(
        fnmatch.fnmatchcase(domain, pattern.lower()) for pattern in patterns
    )


def is_own_label(key: str) -> bool:
    """Return whether the program sets this label itself, on resources or on jobs."""
    return key in OWN_LABELS or key.startswith(JOB_LABEL_PREFIX)


def stack_of_repository(repository: str) -> str:
    """The stack whose images are in the repository of this id; see ``Names.repository_id``.

    >>> stack_of_repository("training-dev")
    'dev'
    """
    return repository.removeprefix("training-")


def label_problem(key: str, value: str) -> str | None:
    """Return the mistake in a label, or None.

    https://docs.cloud.google.com/resource-manager/docs/labels-overview: "goog" is theirs.
    """
    if key.startswith("goog"):
        return f"label key '{key}' begins with goog, as Google's own do: rename it"
    if not LABEL_KEY.match(key):
        return (
            f"label key '{key}' must be 1 to 63 characters: lowercase letters, digits, '_' and "
            "'-', starting with a letter"
        )
    if not LABEL_VALUE.match(value):
        return f"value of label '{key}' must be at most 63 lowercase letters, digits, '_' and '-'"
    return None
