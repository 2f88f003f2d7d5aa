"""IAM grants: one member, one role, on one resource (``…IAMMember``).

Each grant is a read-modify-write of the resource's whole policy, guarded by its etag, because that
is how the official plugin and the cloud do it: two at the same time must not lose one.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from localgcp.errors import CloudError, PolicyConflictError
from localgcp.gcp import rules
from localgcp.gcp.cloud import Cloud, normal_project, text
from localgcp.gcp.codec import plain, stored
from localgcp.gcp.emulator import Emulator
from localgcp.gcp.plan import created
from localgcp.gcp.services.accounts import missing_account
from localgcp.gcp.services.base import ExistingResource, ResourceType
from localgcp.gcp.services.keys import CRYPTO_KEY
from localgcp.gcp.services.projects import CUSTOM_ROLE
from localgcp.inventory.projects import is_local
from localgcp.inventory.store import ACCOUNT, Binding, Policy
from localgcp.inventory.vpc import SUBNETWORK

#: No resource of this server, so a grant may be on any.
DATASET: Final = "gcp:bigquery/dataset:Dataset"
ATTEMPTS: Final = 60
_ROLE: Final = re.compile(r"^((organizations|projects)/[^/]+/)?roles/[A-Za-z0-9_.]+$")

Rewrite = Callable[[tuple[Binding, ...]], tuple[Binding, ...]]


@dataclass(frozen=True)
class Target:
    """Where a kind of grant goes: the policy's path, and how messages call the resource."""

    property: str
    # Path of a bare name; {project} and {location} come from the inputs or the configuration.
    path: str
    title: str
    # Type token of the resource that must exist; None: a project, which always does.
    resource: str | None
    returns_project: bool = False
    returns_region: bool = False
    returns_location: bool = False

    def resolve(self, cloud: Cloud, inputs: Mapping[str, Any]) -> str:
        """Policy path of the resource that the inputs name."""
        name = text(dict(inputs), self.property)
        project = text(dict(inputs), "project") or cloud.settings.project
        given = text(dict(inputs), "location") or text(dict(inputs), "region")
        location = given or cloud.settings.region
        prefix = self.path.partition("/")[0] + "/"
        if "://" in name and "/projects/" in name:
            name = name[name.index("projects/") :]
        if not name.startswith(prefix):
            name = self.path.format(name=name, project=project, location=location)
        return normal_project(name, cloud.settings.project)


@dataclass(frozen=True)
class Grant(ResourceType):
    """A grant (``gcp.*.…IAMMember``); ``target`` says on what."""

    rules: ClassVar = {"member": rules.iam_member}

    target: Target = Target("project", "projects/{name}", "project", None)

    def id(self, cloud: Cloud, inputs: Mapping[str, Any]) -> str:
        path = self.target.resolve(cloud, inputs)
        if self.target.resource is None:
            path = path.removeprefix("projects/")  # measured: the id of a project's grant
        parts = [path, text(dict(inputs), "role"), text(dict(inputs), "member")]
        condition = inputs.get("condition")
        if condition:
            parts += [text(condition, key) for key in ("title", "description", "expression")]
        return "/".join(parts)

    def import_id(self, cloud: Cloud, given: str) -> str:
        """People write ``RESOURCE ROLE MEMBER``."""
        resource, _, rest = given.partition(" ")
        role, _, member = rest.partition(" ")
        return f"{resource}/{role}/{member}" if member and _ROLE.fullmatch(role) else given

    def owner(self, cloud: Cloud, id_: str) -> str:
        resource, _, _ = self.import_id(cloud, id_).partition("/roles/")
        if resource.startswith("b/"):
            return self._bucket_project(cloud, resource)
        parts = normal_project(resource, cloud.settings.project).split("/")
        return parts[1] if parts[0] == "projects" else parts[0]

    def project(self, cloud: Cloud, values: Mapping[str, Any]) -> str:
        path = self.target.resolve(cloud, values)
        return self._bucket_project(cloud, path) if path.startswith("b/") else path.split("/")[1]

    def _bucket_project(self, cloud: Cloud, path: str) -> str:
        # A bucket's name does not say whose it is. Ask the store only when that cannot matter
        # to the guard: outside a local project there is no store to ask.
        if cloud.settings.project and not is_local(cloud.settings.project):
            return cloud.settings.project
        owner = cloud.store.get("gcp:storage/bucket:Bucket", path.removeprefix("b/"))
        return owner.project if owner else cloud.settings.project

    def create(self, cloud: Cloud, inputs: dict[str, Any]) -> ExistingResource:
        values = plain(inputs)
        project = self.project(cloud, values)
        cloud.guard(project)
        path, id_ = self.target.resolve(cloud, values), self.id(cloud, values)
        doing = f'Error applying IAM policy for {self.target.title} "{path}"'
        # The policy of a project needs the Resource Manager API in the caller's project.
        asking = project if self.target.resource else cloud.settings.project or project
        cloud.need_api(asking, self.api, doing)
        self._verify(cloud, path, values, doing)
        role, member = text(values, "role"), text(values, "member")
        wanted = _condition(values)
        policy = rewrite(cloud, path, doing, lambda b: add_member(b, role, member, wanted))
        outputs = created(cloud.type, inputs, cloud.settings, self._made(path, policy))
        cloud.store.put(cloud.type.token, id_, project, stored(values), stored(outputs))
        return ExistingResource(id_, inputs, outputs)

    def read(self, cloud: Cloud, id_: str) -> ExistingResource | None:
        found = super().read(cloud, id_)
        if found is None:
            return None
        path = self.target.resolve(cloud, found.inputs)
        if path.startswith("b/") and not Emulator.of(cloud).has_bucket(path.removeprefix("b/")):
            return None  # a client of Cloud Storage deleted the bucket, and its policy with it
        policy = cloud.store.policy(path)
        binding = Binding(text(found.inputs, "role"), (), _condition(found.inputs))
        holders = next((b.members for b in policy.bindings if _same_role(b, binding)), ())
        if text(found.inputs, "member") not in holders:
            return None
        return ExistingResource(found.id, found.inputs, {**found.outputs, "etag": policy.etag})

    def unmake(self, cloud: Cloud, id_: str, olds: dict[str, Any]) -> None:
        path = self.target.resolve(cloud, olds)
        role, member, condition = text(olds, "role"), text(olds, "member"), _condition(olds)
        doing = f'Error applying IAM policy for {self.target.title} "{path}"'
        rewrite(cloud, path, doing, lambda b: remove_member(b, role, member, condition))

    def _made(self, path: str, policy: Policy) -> dict[str, Any]:
        made: dict[str, Any] = {"etag": policy.etag}
        if self.target.resource is not None:
            made[self.target.property] = path
        if self.target.returns_project:
            made["project"] = path.split("/")[1]
        if self.target.returns_region:
            made["region"] = path.split("/")[3]
        if self.target.returns_location:
            made["location"] = path.split("/")[3]
        return made

    def _verify(self, cloud: Cloud, path: str, values: dict[str, Any], doing: str) -> None:
        kind = self.target.resource
        if kind not in (None, DATASET):
            key = path.removeprefix("b/") if path.startswith("b/") else path
            if cloud.store.get(kind, key) is None:
                raise CloudError(doing, 404, _not_there(kind, path), "notFound")
        role, member = text(values, "role"), text(values, "member")
        if not _ROLE.fullmatch(role):
            raise CloudError(doing, 400, f"Invalid role name: {role}", "badRequest")
        if _is_local_role(role) and cloud.store.get(CUSTOM_ROLE, role) is None:
            text_ = f"Role {role} is not supported for this resource."
            raise CloudError(doing, 400, text_, "badRequest")
        missing = missing_account(cloud, member)
        if missing:
            text_ = f"Service account {missing} does not exist."
            raise CloudError(doing, 400, text_, "badRequest")


def _is_local_role(role: str) -> bool:
    """Whether this is a custom role of a local project."""
    collection, _, path = role.partition("/")
    return collection == "projects" and is_local(path)


def rewrite(cloud: Cloud, path: str, doing: str, change: Rewrite) -> Policy:
    """Read, change and write a policy; retry on conflicting writes. Raises CloudError 409."""
    for _ in range(ATTEMPTS):
        policy = cloud.store.policy(path)
        bindings = change(policy.bindings)
        if bindings == policy.bindings:
            return policy
        try:
            return cloud.store.set_policy(path, bindings, expected_etag=policy.etag)
        except PolicyConflictError:
            time.sleep(random.uniform(0.001, 0.02))
    raise CloudError(doing, 409, "There were concurrent policy changes.", "aborted")


def add_member(
    bindings: tuple[Binding, ...], role: str, member: str, condition: dict[str, str] | None
) -> tuple[Binding, ...]:
    """The bindings with ``member`` in the one for this role and condition."""
    wanted = Binding(role, (member,), condition)
    for index, binding in enumerate(bindings):
        if _same_role(binding, wanted):
            members = tuple(dict.fromkeys((*binding.members, member)))
            grown = Binding(role, members, condition)
            return (*bindings[:index], grown, *bindings[index + 1 :])
    return (*bindings, wanted)


def remove_member(
    bindings: tuple[Binding, ...], role: str, member: str, condition: dict[str, str] | None
) -> tuple[Binding, ...]:
    """The bindings without ``member`` in the one for this role and condition."""
    wanted = Binding(role, (member,), condition)
    left = (
        Binding(b.role, tuple(m for m in b.members if m != member), b.condition)
        if _same_role(b, wanted)
        else b
        for b in bindings
    )
    return tuple(binding for binding in left if binding.members)


def _same_role(left: Binding, right: Binding) -> bool:
    return left.role == right.role and left.condition == right.condition


def _condition(values: Mapping[str, Any]) -> dict[str, str] | None:
    given = values.get("condition")
    if not given:
        return None
    return {key: text(given, key) for key in ("title", "description", "expression")}


def _not_there(kind: str, path: str) -> str:
    if kind == "gcp:storage/bucket:Bucket":
        return "The specified bucket does not exist."
    if kind == ACCOUNT:
        return f"Unknown service account: {path.rpartition('/')[2]}"
    return f"{path} not found"


class SecretGrant(Grant):
    """A grant on a secret (``gcp.secretmanager.SecretIamMember``)."""

    project_later: ClassVar = True


class DatasetGrant(Grant):
    """A grant on a dataset (``gcp.bigquery.DatasetIamMember``), which takes no condition."""

    def refuse(self, inputs: Mapping[str, Any]) -> str | None:
        return (
            "IAM conditions not allowed on BigQuery Dataset IAM"
            if inputs.get("condition")
            else None
        )

    def _made(self, path: str, policy: Policy) -> dict[str, Any]:
        return {"etag": policy.etag, "project": path.split("/")[1]}


GRANTS: Final[dict[str, ResourceType]] = {
    "gcp:projects/iAMMember:IAMMember": Grant(api="cloudresourcemanager.googleapis.com"),
    "gcp:serviceaccount/iAMMember:IAMMember": Grant(
        api="iam.googleapis.com",
        target=Target(
            "serviceAccountId",
            "projects/{project}/serviceAccounts/{name}",
            "service account",
            ACCOUNT,
        ),
    ),
    "gcp:storage/bucketIAMMember:BucketIAMMember": Grant(
        api="storage.googleapis.com",
        target=Target("bucket", "b/{name}", "storage bucket", "gcp:storage/bucket:Bucket"),
    ),
    "gcp:artifactregistry/repositoryIamMember:RepositoryIamMember": Grant(
        api="artifactregistry.googleapis.com",
        target=Target(
            "repository",
            "projects/{project}/locations/{location}/repositories/{name}",
            "artifactregistry repository",
            "gcp:artifactregistry/repository:Repository",
            returns_project=True,
            returns_location=True,
        ),
    ),
    "gcp:secretmanager/secretIamMember:SecretIamMember": SecretGrant(
        api="secretmanager.googleapis.com",
        target=Target(
            "secretId",
            "projects/{project}/secrets/{name}",
            "secretmanager secret",
            "gcp:secretmanager/secret:Secret",
            returns_project=True,
        ),
    ),
    "gcp:compute/subnetworkIAMMember:SubnetworkIAMMember": Grant(
        api="compute.googleapis.com",
        target=Target(
            "subnetwork",
            "projects/{project}/regions/{location}/subnetworks/{name}",
            "compute subnetwork",
            SUBNETWORK,
            returns_project=True,
            returns_region=True,
        ),
    ),
    "gcp:bigquery/datasetIamMember:DatasetIamMember": DatasetGrant(
        api="bigquery.googleapis.com",
        target=Target(
            "datasetId", "projects/{project}/datasets/{name}", "Bigquery Dataset", DATASET
        ),
    ),
    "gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember": Grant(
        api="cloudkms.googleapis.com",
        target=Target("cryptoKeyId", "projects/{project}/{name}", "KMS CryptoKey", CRYPTO_KEY),
    ),
}
