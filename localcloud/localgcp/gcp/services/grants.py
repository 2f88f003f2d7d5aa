"""IAM grants of one role to one member (``…IAMMember``), as changes of the whole policy."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from localgcp.errors import CloudError, PolicyConflictError
from localgcp.gcp import check
from localgcp.gcp.cloud import Cloud, Emulator, Values, normal_project, text
from localgcp.gcp.services.base import ExistingResource, ResourceType, action
from localgcp.gcp.services.identity import CUSTOM_ROLE, missing_account
from localgcp.gcp.services.secrets import CRYPTO_KEY, SECRET
from localgcp.gcp.services.storage import REPOSITORY, project_of_bucket
from localgcp.inventory.resource_paths import is_local
from localgcp.inventory.store import ACCOUNT, BUCKET, Binding, Policy
from localgcp.inventory.vpc import SUBNETWORK

#: The plugin does not support datasets as resources, so a grant may refer to any dataset.
DATASET: Final = "gcp:bigquery/dataset:Dataset"
ATTEMPTS: Final = 60
_ROLE: Final = re.compile(r"^((organizations|projects)/[^/]+/)?roles/[A-Za-z0-9_.]+$")

Rewrite = Callable[[tuple[Binding, ...]], tuple[Binding, ...]]


@dataclass(frozen=True)
class Grant(ResourceType):
    """A type of grants (``gcp.*.…IAMMember``) on resources of one kind."""

    target: str = ""
    """The input with the resource."""
    path: str = ""
    """Template of the resource's path, for an input that has only the resource's name."""
    resource: str | None = None
    """Type token of the resource; None for a project."""
    returns: str = ""
    """The output ``region`` or ``location``, which is a part of the path."""
    overwrites: bool = True

    def resolve(self, cloud: Cloud, inputs: Mapping[str, Any]) -> str:
        """Return the path of the resource in the inputs."""
        name = text(inputs, self.target)
        project = text(inputs, "project") or cloud.settings.project
        place = text(inputs, "location") or text(inputs, "region")
        location = place or cloud.settings.region
        prefix = self.path.partition("/")[0] + "/"
        if "://" in name and "/projects/" in name:
            name = name[name.index("projects/") :]
        if not name.startswith(prefix):
            name = self.path.format(name=name, project=project, location=location)
        return normal_project(name, cloud.settings.project)

    def id(self, cloud: Cloud, inputs: Mapping[str, Any]) -> str:
        path = self.resolve(cloud, inputs)
        if self.resource is None:
            path = path.removeprefix("projects/")  # measured with the official plugin
        parts = [path, text(inputs, "role"), text(inputs, "member")]
        condition = inputs.get("condition")
        if condition:
            parts += [text(condition, key) for key in ("title", "description", "expression")]
        return "/".join(parts)

    def import_id(self, cloud: Cloud, id_to_import: str) -> str:
        """Return the id for the argument ``RESOURCE ROLE MEMBER`` of ``pulumi import``."""
        resource, _, rest = id_to_import.partition(" ")
        role, _, member = rest.partition(" ")
        return f"{resource}/{role}/{member}" if member and _ROLE.fullmatch(role) else id_to_import

    def owner(self, cloud: Cloud, id_: str) -> str:
        resource, _, _ = self.import_id(cloud, id_).partition("/roles/")
        if resource.startswith("b/"):
            return project_of_bucket(cloud, resource.removeprefix("b/"))
        parts = normal_project(resource, cloud.settings.project).split("/")
        return parts[1] if parts[0] == "projects" else parts[0]

    def project(self, cloud: Cloud, values: Mapping[str, Any]) -> str:
        path = self.resolve(cloud, values)
        root, name = path.split("/")[:2]
        return project_of_bucket(cloud, name) if root == "b" else name

    def creating(self, cloud: Cloud, inputs: Values) -> str:
        path = self.resolve(cloud, inputs)
        return f'Error applying IAM policy for {self.title} "{path}"'

    def caller(self, cloud: Cloud, project: str) -> str:
        # A change of a project's policy needs the Resource Manager API in the caller's project.
        return project if self.resource else cloud.settings.project or project

    def check_fields(self, cloud: Cloud, inputs: Values) -> None:
        """Do nothing: ``verify`` checks that the resource exists."""

    def make(self, cloud: Cloud, project: str, id_: str, inputs: Values) -> Values:
        path = self.resolve(cloud, inputs)
        policy = rewrite(cloud, path, lambda bindings: add_member(bindings, inputs))
        made: Values = {"etag": policy.etag}
        if self.resource not in (None, DATASET):
            made[self.target] = path
        if self.returns:
            made[self.returns] = path.split("/")[3]
        return made

    def read(self, cloud: Cloud, id_: str) -> ExistingResource | None:
        resource = super().read(cloud, id_)
        if resource is None:
            return None
        path = self.resolve(cloud, resource.inputs)
        if path.startswith("b/") and not Emulator.of(cloud).has_bucket(path.removeprefix("b/")):
            return None  # a client of Cloud Storage deleted the bucket and the bucket's policy
        policy = cloud.store.policy(path)
        same_role = (b for b in policy.bindings if _has_role(b, resource.inputs))
        holders = next((binding.members for binding in same_role), ())
        if text(resource.inputs, "member") not in holders:
            return None
        return ExistingResource(
            resource.id, resource.inputs, {**resource.outputs, "etag": policy.etag}
        )

    def unmake(self, cloud: Cloud, id_: str, olds: Values) -> None:
        path = self.resolve(cloud, olds)
        with action(self.creating(cloud, olds)):
            rewrite(cloud, path, lambda bindings: remove_member(bindings, olds))

    def verify(self, cloud: Cloud, project: str, inputs: Values) -> None:
        kind, path = self.resource, self.resolve(cloud, inputs)
        if kind not in (None, DATASET):
            key = path.removeprefix("b/") if path.startswith("b/") else path
            if cloud.store.get(kind, key) is None:
                reason = f"{path} not found"
                if kind == BUCKET:
                    reason = "The specified bucket does not exist."
                elif kind == ACCOUNT:
                    reason = f"Unknown service account: {path.rpartition('/')[2]}"
                raise CloudError(404, reason, "notFound")
        role, member = text(inputs, "role"), text(inputs, "member")
        if not _ROLE.fullmatch(role):
            raise CloudError(400, f"Invalid role name: {role}")
        is_local_role = role.startswith("projects/") and is_local(role.removeprefix("projects/"))
        if is_local_role and cloud.store.get(CUSTOM_ROLE, role) is None:
            raise CloudError(400, f"Role {role} is not supported for this resource.")
        missing = missing_account(cloud, member)
        if missing:
            raise CloudError(400, f"Service account {missing} does not exist.")


def rewrite(cloud: Cloud, path: str, change: Rewrite) -> Policy:
    """Change a policy; retry after conflicting writes. Raises CloudError with status 409.

    Like the official plugin, each grant reads and writes the whole policy. The write requires the
    etag of the read, so that two parallel grants cannot lose one of the two.
    """
    for _ in range(ATTEMPTS):
        policy = cloud.store.policy(path)
        bindings = change(policy.bindings)
        if bindings == policy.bindings:
            return policy
        try:
            return cloud.store.set_policy(path, bindings, expected_etag=policy.etag)
        except PolicyConflictError:
            time.sleep(random.uniform(0.001, 0.02))
    raise CloudError(409, "There were concurrent policy changes.", "aborted")


def add_member(bindings: tuple[Binding, ...], grant: Values) -> tuple[Binding, ...]:
    """Return the bindings after adding the grant's member to the role with this condition."""
    member = text(grant, "member")
    for index, binding in enumerate(bindings):
        if _has_role(binding, grant):
            members = tuple(dict.fromkeys((*binding.members, member)))
            grown = replace(binding, members=members)
            return (*bindings[:index], grown, *bindings[index + 1 :])
    return (*bindings, Binding(text(grant, "role"), (member,), _condition(grant)))


def remove_member(bindings: tuple[Binding, ...], grant: Values) -> tuple[Binding, ...]:
    """Return the bindings after removing the grant's member from the role with this condition."""
    member = text(grant, "member")
    left = (
        replace(b, members=tuple(m for m in b.members if m != member)) if _has_role(b, grant) else b
        for b in bindings
    )
    return tuple(binding for binding in left if binding.members)


def _has_role(binding: Binding, grant: Values) -> bool:
    return binding.role == text(grant, "role") and binding.condition == _condition(grant)


def _condition(values: Mapping[str, Any]) -> dict[str, str] | None:
    condition = values.get("condition")
    if not condition:
        return None
    return {key: text(condition, key) for key in ("title", "description", "expression")}


class DatasetGrant(Grant):
    """A grant on a dataset (``gcp.bigquery.DatasetIamMember``), which cannot have a condition."""

    def refuse(self, inputs: Mapping[str, Any]) -> str | None:
        has_condition = bool(inputs.get("condition"))
        return "IAM conditions not allowed on BigQuery Dataset IAM" if has_condition else None

    def verify(self, cloud: Cloud, project: str, inputs: Values) -> None:
        name = self.resolve(cloud, inputs).rpartition("/")[2]
        # https://docs.cloud.google.com/bigquery/docs/datasets#dataset-naming
        if not re.fullmatch("[A-Za-z0-9_]{1,1024}", name):
            rule = "Dataset IDs must be alphanumeric (plus underscores)"
            reason = f'Invalid dataset ID "{name}". {rule}, of 1024 characters at most.'
            raise CloudError(400, reason, "invalid")
        super().verify(cloud, project, inputs)


def _grant(service: str, target: str, path: str, title: str, resource: str | None) -> Grant:
    return Grant(
        title,
        f"{service}.googleapis.com",
        target=target,
        path=path,
        resource=resource,
        rules={"member": check.iam_member},
    )


_ACCOUNT: Final = "projects/{project}/serviceAccounts/{name}"
_REPOSITORY: Final = "projects/{project}/locations/{location}/repositories/{name}"
_REGISTRY: Final = "artifactregistry"
_SECRET: Final = "projects/{project}/secrets/{name}"
_SUBNETWORK: Final = "projects/{project}/regions/{location}/subnetworks/{name}"
TYPES: Final[dict[str, ResourceType]] = {
    "gcp:projects/iAMMember:IAMMember": _grant(
        "cloudresourcemanager", "project", "projects/{name}", "project", None
    ),
    "gcp:serviceaccount/iAMMember:IAMMember": _grant(
        "iam", "serviceAccountId", _ACCOUNT, "service account", ACCOUNT
    ),
    "gcp:storage/bucketIAMMember:BucketIAMMember": _grant(
        "storage", "bucket", "b/{name}", "storage bucket", BUCKET
    ),
    "gcp:artifactregistry/repositoryIamMember:RepositoryIamMember": replace(
        _grant(_REGISTRY, "repository", _REPOSITORY, f"{_REGISTRY} repository", REPOSITORY),
        returns="location",
    ),
    "gcp:secretmanager/secretIamMember:SecretIamMember": replace(
        _grant("secretmanager", "secretId", _SECRET, "secretmanager secret", SECRET),
        project_later=True,
    ),
    "gcp:compute/subnetworkIAMMember:SubnetworkIAMMember": replace(
        _grant("compute", "subnetwork", _SUBNETWORK, "compute subnetwork", SUBNETWORK),
        returns="region",
    ),
    "gcp:bigquery/datasetIamMember:DatasetIamMember": DatasetGrant(
        "Bigquery Dataset",
        "bigquery.googleapis.com",
        target="datasetId",
        path="projects/{project}/datasets/{name}",
        resource=DATASET,
        rules={"member": check.iam_member},
    ),
    "gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember": _grant(
        "cloudkms", "cryptoKeyId", "projects/{project}/{name}", "KMS CryptoKey", CRYPTO_KEY
    ),
}
