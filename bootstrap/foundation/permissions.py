"""Permissions of ``plan`` and ``deploy``, derived from the resource types that the stacks use.

Predefined roles grant more: ``roles/secretmanager.admin`` also reads every secret's value, and
``roles/storage.admin`` also creates HMAC keys. So each account gets a custom role with exactly the
permissions that ``permissions.yaml`` lists. ``conditions`` splits those of ``deploy``.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

import pydantic
import yaml
from pydantic import ConfigDict, Field

Permission = Annotated[str, Field(pattern=r"^[a-z]+\.[A-Za-z]+\.[A-Za-z]+$")]


class Need(pydantic.BaseModel):
    """Permissions that one resource type requires; see the head of ``permissions.yaml``."""

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
    """Permissions to refresh resources of these types, without the content of objects."""
    return sorted({p for need in _in_project(types) for p in need.read})


def of_deploy(types: Iterable[str]) -> list[str]:
    """Permissions to create, change and delete such resources, without setting IAM policies."""
    return sorted(
        {p for need in _in_project(types) for p in (*need.read, *need.content, *need.write)}
    )


def of_grant(types: Iterable[str]) -> list[str]:
    """Permissions to set IAM policies of such resources."""
    return sorted({p for need in _in_project(types) for p in need.grant})


def _in_project(types: Iterable[str]) -> list[Need]:
    return [need for type_ in types if (need := needs()[type_]).where == "project"]
