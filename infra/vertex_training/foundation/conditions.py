"""Roles of account ``deploy``: permissions by resource type, with conditions. Pure.

A condition on an attribute that the service does not provide grants nothing. So permissions are
split by service, and each part has the conditions that its service supports:

================  ==========================================  =====================
service           type and name of the resource               granted roles
================  ==========================================  =====================
Cloud Storage     yes: the stack's buckets only               limited
Secret Manager    yes: the stack's secrets only               limited
Cloud KMS         yes: no key of Pulumi's secrets             limited
Resource Manager  type only                                   limited
IAM (accounts)    no: ``foundation.denial`` protects CI's     limited
Artifact Registry no                                          not limited
others            no                                          nothing is granted
================  ==========================================  =====================

https://docs.cloud.google.com/iam/docs/conditions-attribute-reference lists the services.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from vertex_training.catalog import READ_PERMISSION, resource_types
from vertex_training.catalog.resource_types import (
    JOB,
    TENSORBOARD,
    TUNING_JOB,
    Permissions,
    ResourceType,
)
from vertex_training.foundation.settings import Settings
from vertex_training.plan import grants

#: Prefixes of permissions whose services support conditions with ``modifiedGrantsByRole``. Under
#: such a condition, requests to other services fail.
LIMITED: Final = frozenset({"resourcemanager", "iam", "storage", "secretmanager", "cloudkms"})
#: Prefix of permissions on datasets. The settings list the datasets, because the name of a dataset
#: does not identify its stack, and to change a dataset's readers is to change the dataset.
DATASETS: Final = "bigquery.datasets."
#: Maximum number of roles in ``hasOnly``: https://docs.cloud.google.com/iam/docs/setting-limits-on-granting-roles
MAX_ROLES: Final = 10


@dataclass(frozen=True, slots=True)
class RolePart:
    """A custom role of account ``deploy``, with the condition of its grant."""

    name: str
    """Name of the role, which is part of the role's id."""
    permissions: tuple[str, ...]
    condition: str = ""
    """CEL expression; empty if the services have no attributes that identify resources."""


def deploy_roles(settings: Settings, types: Iterable[str]) -> list[RolePart]:
    """Return the custom roles of account ``deploy``. Each permission is in exactly one role."""
    needed = [needs()[type_] for type_ in types]
    permissions = permissions_of([need.type for need in needed], "read", "content", "write")
    parts: list[RolePart] = []
    for service in ("", "storage", "secretmanager"):
        if own := tuple(name for name in permissions if _service(name) == service):
            name = f"deploy_{service}" if service else "deploy"
            parts.append(RolePart(name, own, _where(settings).get(service, "")))
    granting = [need for need in needed if need.grant and need.where == "project"]
    return [*parts, *_granting(settings, granting)]


def _service(permission: str) -> str:
    """Return the service of a permission with a condition; empty without a condition.

    A permission to create has no condition, because the project has no name and existing resources
    cannot change. Settings of all buckets and secrets of the project can be read.
    """
    service, resource, verb = permission.split(".")
    has_names = service in ("storage", "secretmanager")
    changes = resource == "objects" or verb in ("update", "delete")
    return service if has_names and changes else ""


def _granting(settings: Settings, needs: Iterable[ResourceType]) -> list[RolePart]:
    by_permission: dict[str, set[str]] = {}
    for need in needs:
        roles = {row.role for row in grants.ALLOWED if row.type == need.type}
        for permission in need.permissions("grant"):
            by_permission.setdefault(permission, set()).update(roles)
    datasets = tuple(name for name in sorted(by_permission) if name.startswith(DATASETS))
    return [
        *(
            RolePart(f"grant_{permission.split('.')[1].lower()}", (permission,),
                     _limits(settings, permission, sorted(roles)))
            for permission, roles in sorted(by_permission.items()) if permission not in datasets
        ),
        *([RolePart("grant_datasets", datasets, _of_datasets(settings))]
          if datasets and settings.datasets else []),
    ]  # fmt: skip


def _of_datasets(settings: Settings) -> str:
    names = (f"projects/{settings.project}/datasets/{dataset}" for dataset in settings.datasets)
    any_name = " || ".join(f"resource.name == '{name}'" for name in dict.fromkeys(names))
    # https://docs.cloud.google.com/iam/docs/conditions-resource-attributes
    return f"resource.type == 'bigquery.googleapis.com/Dataset' && ({any_name})"


def _limits(settings: Settings, permission: str, roles: list[str]) -> str:
    service = permission.split(".")[0]
    parts = [_where(settings).get(service, "")]
    if service in LIMITED:
        parts.append(only_these_roles(roles))
    return " && ".join(f"({part})" if "||" in part else part for part in parts if part)


def only_these_roles(roles: Iterable[str]) -> str:
    """Return the CEL condition that a request changes only grants of these roles.

    With more than ``MAX_ROLES`` roles, one request can change roles of one list only. The program
    changes one role per request.
    """
    changed = "api.getAttribute('iam.googleapis.com/modifiedGrantsByRole', [])"
    quoted = [f"'{role}'" for role in roles]
    lists = [quoted[at : at + MAX_ROLES] for at in range(0, len(quoted), MAX_ROLES)] or [[]]
    return " || ".join(f"{changed}.hasOnly([{', '.join(items)}])" for items in lists)


def _where(settings: Settings) -> dict[str, str]:
    """Return the CEL conditions on type and name of a resource, by service."""
    end = f"-{settings.stack}"
    buckets = f"resource.name.startsWith('projects/_/buckets/{settings.project}-')"
    state = settings.state_bucket
    bucket_of_object = "resource.name.extract('/buckets/{bucket}/objects/')"
    return {
        "storage": (
            # Buckets and objects need separate conditions: object names can end in any text.
            f"{buckets} && ((resource.type == 'storage.googleapis.com/Bucket' && "
            f"resource.name.endsWith('{end}') && "
            f"resource.name != 'projects/_/buckets/{state}') || "
            f"(resource.type == 'storage.googleapis.com/Object' && "
            f"{bucket_of_object}.endsWith('{end}') && {bucket_of_object} != '{state}'))"
        ),
        "secretmanager": (
            "resource.type == 'secretmanager.googleapis.com/Secret' && "
            f"resource.name.startsWith('projects/{settings.project_number}/secrets/') && "
            f"resource.name.endsWith('{end}')"
        ),
        "cloudkms": (
            "resource.type == 'cloudkms.googleapis.com/CryptoKey' && "
            f"resource.name.extract('/keyRings/{{ring}}/') != '{settings.key_ring}'"
        ),
        "resourcemanager": "resource.type == 'cloudresourcemanager.googleapis.com/Project'",
    }


def needs() -> dict[str, ResourceType]:
    """Return the resource types that need permissions, by token."""
    return {token: row for token, row in resource_types.by_token().items() if row.plugin}


def of_submitters() -> list[str]:
    """Return the permissions to submit and monitor jobs, and to use TensorBoard."""
    of_jobs = permissions_of((JOB, TUNING_JOB), "read", "write")
    permissions = {*of_jobs, *permissions_of((TENSORBOARD,), "read")}
    of_vertex = (
        p for p in permissions if p.startswith("aiplatform.") and not p.endswith(".delete")
    )
    return sorted([*of_vertex, READ_PERMISSION])


def permissions_of(types: Iterable[str], *kinds: Permissions) -> list[str]:
    """Return the permissions for operations of these kinds on the project's resources."""
    needed = (needs()[type_] for type_ in types)
    return sorted({p for n in needed if n.where == "project" for p in n.permissions(*kinds)})
