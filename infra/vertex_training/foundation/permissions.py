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
#: Method of an API -> permissions that it asks for.
Calls = dict[
    Annotated[str, Field(pattern=r"^[a-z]+(\.[A-Za-z]+)+$")],
    Annotated[tuple[Permission, ...], Field(min_length=1)],
]


Kind = Literal["read", "content", "write", "grant"]


class Need(pydantic.BaseModel):
    """Calls for one resource type and their permissions; see the head of ``permissions.yaml``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: str
    where: Literal["project", "host", "organization", "bootstrap"] = "project"
    read: Calls = {}
    content: Calls = {}
    write: Calls = {}
    grant: Calls = {}
    plugin: str
    source: str

    def permissions(self, *kinds: Kind) -> set[str]:
        """What the calls of these kinds ask for."""
        calls = {"read": self.read, "content": self.content}
        calls |= {"write": self.write, "grant": self.grant}
        return {each for kind in kinds for asked in calls[kind].values() for each in asked}


@functools.cache
def needs() -> dict[str, Need]:
    """All rows by resource type."""
    rows = yaml.safe_load(Path(__file__).with_name("permissions.yaml").read_text(encoding="utf-8"))
    return {need.type: need for need in map(Need.model_validate, rows)}


def of_plan(types: Iterable[str]) -> list[str]:
    """Permissions to refresh resources of these types, without the content of objects."""
    return _permissions(types, "read")


def of_deploy(types: Iterable[str]) -> list[str]:
    """Permissions to create, change and delete such resources, without setting IAM policies."""
    return _permissions(types, "read", "content", "write")


def of_grant(types: Iterable[str]) -> list[str]:
    """Permissions to set IAM policies of such resources."""
    return _permissions(types, "grant")


def _permissions(types: Iterable[str], *kinds: Kind) -> list[str]:
    found = (needs()[type_] for type_ in types)
    return sorted({p for n in found if n.where == "project" for p in n.permissions(*kinds)})
