"""Deny policies, and the tags in their conditions. The local cloud stores but does not enforce
them.

These types follow the documentation; unlike most others they were not held against the official
plugin. https://docs.cloud.google.com/iam/docs/deny-overview
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from localgcp.errors import CloudError
from localgcp.gcp.cloud import Cloud, Values, new_number, text
from localgcp.gcp.services.base import ResourceType
from localgcp.inventory.store import ACCOUNT

DENY_POLICY: Final = "gcp:iam/denyPolicy:DenyPolicy"
TAG_KEY: Final = "gcp:tags/tagKey:TagKey"
TAG_VALUE: Final = "gcp:tags/tagValue:TagValue"
TAG_BINDING: Final = "gcp:tags/tagBinding:TagBinding"

_ATTACHMENT: Final = re.compile(r"cloudresourcemanager\.googleapis\.com%2Fprojects%2F([^%/]+)\Z")
_POLICY_ID: Final = re.compile(r"[a-z][a-z0-9.-]{2,62}\Z")
# https://docs.cloud.google.com/iam/docs/deny-permissions-support: a verb may be "*", or all may
_PERMISSION: Final = re.compile(r"[a-z0-9.-]+\.googleapis\.com/[A-Za-z]+\.([A-Za-z]+|\*)\Z")
_PRINCIPAL: Final = re.compile(r"principal(Set)?://\S+\Z")
_FORMS: Final = {
    "deniedPermissions": _PERMISSION,
    "exceptionPermissions": _PERMISSION,
    "deniedPrincipals": _PRINCIPAL,
    "exceptionPrincipals": _PRINCIPAL,
}
# What a deny policy's condition may ask: tags, joined and negated.
_CONDITION: Final = re.compile(
    r"(!|\(|\)|\s|&&|\|\||resource\.(matchTag|matchTagId|hasTagKey|hasTagKeyId)"
    r"\('[^']+'(,\s*'[^']+')?\))+\Z"
)


class DenyPolicy(ResourceType):
    """A deny policy of a project (``gcp.iam.DenyPolicy``)."""

    def project(self, cloud: Cloud, values: Mapping[str, Any]) -> str:
        match = _ATTACHMENT.match(text(values, "parent"))
        return match[1] if match else cloud.settings.project

    def owner(self, cloud: Cloud, id_: str) -> str:
        return self.project(cloud, {"parent": id_.rpartition("/")[0]})

    def verify(self, cloud: Cloud, project: str, inputs: Values, doing: str) -> None:
        if not _ATTACHMENT.match(text(inputs, "parent")):
            raise _invalid(doing, f"Attachment point {text(inputs, 'parent')} is invalid.")
        if not _POLICY_ID.match(text(inputs, "name")):
            raise _invalid(doing, f"Policy ID {text(inputs, 'name')} is invalid.")
        for rule in inputs.get("rules") or []:
            denied = rule.get("denyRule") or {}
            for kind, form in _FORMS.items():
                for value in denied.get(kind) or []:
                    if not form.match(value):
                        raise _invalid(doing, f"{value} is not supported in {kind}.")
            condition = text(denied.get("denialCondition") or {}, "expression")
            if condition and not _CONDITION.match(condition):
                raise _invalid(doing, f"Condition {condition} may only use resource tags.")

    def make(self, cloud: Cloud, project: str, id_: str, inputs: Values) -> Values:
        return {"etag": new_number()}

    def remake(self, cloud: Cloud, id_: str, inputs: Values, olds: Values) -> Values:
        return {"etag": new_number()}


@dataclass(frozen=True)
class Tag(ResourceType):
    """A tag's key or value (``gcp.tags.TagKey``, ``gcp.tags.TagValue``)."""

    parent: str | None = None
    """Type token of the parent; None for a project."""

    def project(self, cloud: Cloud, values: Mapping[str, Any]) -> str:
        parent = text(values, "parent")
        if self.parent is None:
            return parent.partition("projects/")[2] or cloud.settings.project
        resource = cloud.store.get(self.parent, parent)
        return resource.project if resource else cloud.settings.project

    def id(self, cloud: Cloud, inputs: Mapping[str, Any]) -> str:
        return f"{self.collection}/{new_number()}"

    def import_id(self, cloud: Cloud, id_to_import: str) -> str:
        return id_to_import if "/" in id_to_import else f"{self.collection}/{id_to_import}"

    def verify(self, cloud: Cloud, project: str, inputs: Values, doing: str) -> None:
        parent = text(inputs, "parent")
        if self.parent is not None and cloud.store.get(self.parent, parent) is None:
            raise CloudError(doing, 404, f"{parent} was not found.", "notFound")

    def make(self, cloud: Cloud, project: str, id_: str, inputs: Values) -> Values:
        above = project
        if self.parent is not None:
            key = cloud.store.get(self.parent, text(inputs, "parent"))
            above = text(key.outputs, "namespacedName") if key else project
        named = {"namespacedName": f"{above}/{text(inputs, 'shortName')}"}
        made = super().make(cloud, project, id_, inputs)
        return {**made, **named, "name": id_.rpartition("/")[2]}


class TagBinding(ResourceType):
    """A tag on a resource (``gcp.tags.TagBinding``); a tagged service account must exist."""

    def project(self, cloud: Cloud, values: Mapping[str, Any]) -> str:
        parent = text(values, "parent")
        match = re.search(r"/projects/([^/]+)", parent)
        return match[1] if match else cloud.settings.project

    def id(self, cloud: Cloud, inputs: Mapping[str, Any]) -> str:
        parent = quote(text(inputs, "parent"), safe="")
        return f"tagBindings/{parent}/{text(inputs, 'tagValue')}"

    def import_id(self, cloud: Cloud, id_to_import: str) -> str:
        return (
            id_to_import
            if id_to_import.startswith("tagBindings/")
            else f"tagBindings/{id_to_import}"
        )

    def verify(self, cloud: Cloud, project: str, inputs: Values, doing: str) -> None:
        value = text(inputs, "tagValue")
        if cloud.store.get(TAG_VALUE, value) is None:
            raise CloudError(doing, 404, f"{value} was not found.", "notFound")
        _, separator, account = text(inputs, "parent").partition("/serviceAccounts/")
        if separator and not _has_account(cloud, project, account):
            raise CloudError(doing, 404, f"Service account {account} was not found.", "notFound")

    def make(self, cloud: Cloud, project: str, id_: str, inputs: Values) -> Values:
        return {"name": id_.removeprefix("tagBindings/")}


def _has_account(cloud: Cloud, project: str, account: str) -> bool:
    """Return whether the project has an account with this unique id or address."""
    return any(
        account in (text(row.outputs, "uniqueId"), text(row.outputs, "email"))
        for row in cloud.store.list(ACCOUNT, project)
    )


def _invalid(doing: str, reason: str) -> CloudError:
    return CloudError(doing, 400, reason, "badRequest")


_TAGS: Final = "cloudresourcemanager.googleapis.com"
TYPES: Final[dict[str, ResourceType]] = {
    DENY_POLICY: DenyPolicy("DenyPolicy", "iam.googleapis.com", verifies_updates=True),
    TAG_KEY: Tag("TagKey", _TAGS, collection="tagKeys"),
    TAG_VALUE: Tag("TagValue", _TAGS, collection="tagValues", parent=TAG_KEY),
    TAG_BINDING: TagBinding("TagBinding", _TAGS, exists="A binding already exists: {id}"),
}
