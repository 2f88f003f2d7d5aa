"""Permissions of ``plan`` and ``deploy``, derived from the resource types that the stacks use.

Predefined roles grant more: ``roles/secretmanager.admin`` also reads every secret's value, and
``roles/storage.admin`` also creates HMAC keys. So each account gets a custom role with exactly the
permissions that ``resource_types.yaml`` lists. ``conditions`` splits those of ``deploy``.
"""

from __future__ import annotations

from collections.abc import Iterable

from vertex_training.catalog import resource_types
from vertex_training.catalog.metrics import READ_PERMISSION
from vertex_training.catalog.resource_types import (
    JOB,
    TENSORBOARD,
    TUNING_JOB,
    Permissions,
    ResourceType,
)


def needs() -> dict[str, ResourceType]:
    """The types that somebody needs permissions for, by token."""
    return {token: row for token, row in resource_types.by_token().items() if row.plugin}


def of_plan(types: Iterable[str]) -> list[str]:
    """Permissions to refresh resources of these types, without the content of objects."""
    return _permissions(types, "read")


def of_deploy(types: Iterable[str]) -> list[str]:
    """Permissions to create, change and delete such resources, without setting IAM policies."""
    return _permissions(types, "read", "content", "write")


def of_submitters() -> list[str]:
    """Permissions to submit jobs, to follow them and their accelerators, and for TensorBoard."""
    of_jobs = _permissions((JOB, TUNING_JOB), "read", "write")
    found = {*of_jobs, *_permissions((TENSORBOARD,), "read")}
    of_vertex = (p for p in found if p.startswith("aiplatform.") and not p.endswith(".delete"))
    return sorted([*of_vertex, READ_PERMISSION])


def of_grant(types: Iterable[str]) -> list[str]:
    """Permissions to set IAM policies of such resources."""
    return _permissions(types, "grant")


def _permissions(types: Iterable[str], *kinds: Permissions) -> list[str]:
    found = (needs()[type_] for type_ in types)
    return sorted({p for n in found if n.where == "project" for p in n.permissions(*kinds)})
