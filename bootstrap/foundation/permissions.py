"""What ``plan`` and ``deploy`` need, derived from the resource types that the stacks use.

Predefined roles would give more: who may create a secret by ``roles/secretmanager.admin`` may read
every value, and who may create buckets by ``roles/storage.admin`` may make HMAC keys of accounts.
So each account gets a role of its own, with the permissions that ``permissions.yaml`` lists and no
others.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

import pydantic
import yaml
from pydantic import ConfigDict, Field

from infra.plan import grants

#: What IAM takes in one ``hasOnly``: https://docs.cloud.google.com/iam/docs/setting-limits-on-granting-roles
MAX_ROLES = 10

Permission = Annotated[str, Field(pattern=r"^[a-z]+\.[A-Za-z]+\.[A-Za-z]+$")]


class Need(pydantic.BaseModel):
    """Permissions that one resource type asks for; see the head of ``permissions.yaml``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: str
    where: Literal["project", "host", "organization"] = "project"
    read: tuple[Permission, ...] = ()
    content: tuple[Permission, ...] = ()
    write: tuple[Permission, ...] = ()
    grant: tuple[Permission, ...] = ()
    source: str


@functools.cache
def needs() -> dict[str, Need]:
    """All rows by resource type."""
    rows = yaml.safe_load(Path(__file__).with_name("permissions.yaml").read_text(encoding="utf-8"))
    return {need.type: need for need in map(Need.model_validate, rows)}


def of_plan(types: Iterable[str]) -> list[str]:
    """What it takes to refresh resources of these types, objects' content apart."""
    return sorted({p for need in _here(types) for p in need.read})


def of_deploy(types: Iterable[str]) -> list[str]:
    """What it takes to create, change and delete them, but for setting IAM policies."""
    return sorted({p for need in _here(types) for p in (*need.read, *need.content, *need.write)})


def of_granting(types: Iterable[str]) -> list[str]:
    """What it takes to grant rights on them."""
    return sorted({p for need in _here(types) for p in need.grant})


def _here(types: Iterable[str]) -> list[Need]:
    return [need for type_ in types if (need := needs()[type_]).where == "project"]


def grantable_roles() -> list[str]:
    """Roles that the stacks grant in their own project; ``deploy`` may grant no others."""
    elsewhere = {need.type for need in needs().values() if need.where != "project"}
    return sorted({grant.role for grant in grants.ALLOWED if grant.type not in elsewhere})


def only_grantable_roles() -> str:
    """The condition that holds ``deploy`` to them."""
    listed = ", ".join(f"'{role}'" for role in grantable_roles())
    return f"api.getAttribute('iam.googleapis.com/modifiedGrantsByRole', []).hasOnly([{listed}])"
