"""Evaluates IAM requests against the grants of ``bootstrap/``: allow, conditions and denials.

A stand-in for the service, written from its documentation
(https://docs.cloud.google.com/iam/docs/policy-types#evaluation): a denial wins; a condition that
asks for an attribute which the resource does not have grants nothing; a denial whose condition
cannot be evaluated holds. CEL is evaluated by the library that the tests of the provider use.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final

import cel

from tests.unit.bootstrap.recorder import unique_id

#: What predefined roles hold of the permissions that the tests ask for.
#: https://docs.cloud.google.com/iam/docs/roles-permissions
PREDEFINED: Final[dict[str, set[str]]] = {
    "roles/owner": {"*"},
    "roles/iam.serviceAccountUser": {"iam.serviceAccounts.actAs"},
    "roles/iam.serviceAccountTokenCreator": {"iam.serviceAccounts.getAccessToken"},
    "roles/iam.workloadIdentityUser": {"iam.serviceAccounts.getAccessToken"},
    "roles/secretmanager.secretAccessor": {"secretmanager.versions.access"},
    "roles/storage.objectViewer": {"storage.objects.get", "storage.objects.list"},
    "roles/storage.objectUser": {
        f"storage.objects.{verb}" for verb in ("get", "list", "create", "update", "delete")
    },
    "roles/cloudkms.cryptoKeyDecrypter": {"cloudkms.cryptoKeyVersions.useToDecrypt"},
    "roles/cloudkms.cryptoKeyEncrypterDecrypter": {
        "cloudkms.cryptoKeyVersions.useToDecrypt",
        "cloudkms.cryptoKeyVersions.useToEncrypt",
    },
}
#: Service ids whose FQDN is another.
FQDN: Final = {"resourcemanager": "cloudresourcemanager"}


@dataclass(frozen=True)
class Target:
    """The resource of a request. ``type`` and ``name`` are empty if IAM has no such attribute."""

    path: str
    """What identifies it here: policies are found by it."""
    type: str = ""
    name: str = ""
    project: str = ""
    inherits: tuple[str, ...] = ()
    """Paths whose policies hold for it too."""


@dataclass(frozen=True)
class Binding:
    """One member's role on a path, under a condition."""

    path: str
    member: str
    role: str
    condition: str = ""


@dataclass
class Cloud:
    """The policies of one environment."""

    resources: dict[str, dict[str, Any]]
    """What the program registered."""
    bindings: list[Binding] = field(default_factory=list)
    tags: dict[str, set[str]] = field(default_factory=dict)
    """Namespaced ``key/value`` by path."""

    def __post_init__(self) -> None:
        self.bindings += _registered_bindings(self.resources)
        for path, tag in _registered_tags(self.resources):
            self.tags.setdefault(path, set()).add(tag)

    def allows(
        self, member: str, permission: str, target: Target, roles: tuple[str, ...] = ()
    ) -> bool:
        """Return whether a member may do it. ``roles`` are the roles whose grants the request
        modifies.
        """
        if self._denied(member, permission, target):
            return False
        paths = {target.path, *target.inherits}
        return any(
            binding.path in paths
            and binding.member == member
            and {permission, "*"} & self._permissions(binding.role)
            and self._holds(binding.condition, target, roles)
            for binding in self.bindings
        )

    def _permissions(self, role: str) -> set[str]:
        for inputs in self.resources.values():
            is_role = inputs["type"] == "gcp:projects/iAMCustomRole:IAMCustomRole"
            if is_role and role == f"projects/{inputs['project']}/roles/{inputs['roleId']}":
                return set(inputs["permissions"])
        return PREDEFINED.get(role, set())

    def _denied(self, member: str, permission: str, target: Target) -> bool:
        kind, _, email = member.partition(":")
        who = f"principal://iam.googleapis.com/projects/-/serviceAccounts/{email}"
        for inputs in self.resources.values():
            if inputs["type"] != "gcp:iam/denyPolicy:DenyPolicy" or kind != "serviceAccount":
                continue
            if not inputs["parent"].endswith(f"%2Fprojects%2F{target.project}"):
                continue
            for rule in (rule["denyRule"] for rule in inputs["rules"]):
                if who in rule["deniedPrincipals"] and any(
                    re.fullmatch(re.escape(denied).replace(r"\*", "[A-Za-z]+"), _v2(permission))
                    for denied in rule["deniedPermissions"]
                ):
                    condition = rule.get("denialCondition", {}).get("expression", "")
                    if self._holds(condition, target, (), otherwise=True):
                        return True
        return False

    def _holds(
        self, condition: str, target: Target, roles: tuple[str, ...], *, otherwise: bool = False
    ) -> bool:
        if not condition:
            return True
        attributes = {"type": target.type, "name": target.name}
        context = cel.Context()
        context.add_variable("resource", {key: text for key, text in attributes.items() if text})
        context.add_variable("api", {"roles": list(roles)})
        context.add_function("getAttribute", lambda api, _name, _default: api["roles"])
        context.add_function("hasOnly", lambda given, allowed: set(given) <= set(allowed))
        context.add_function("extract", _extract)
        tags = self.tags.get(target.path, set())
        context.add_function("matchTag", lambda _resource, key, value: f"{key}/{value}" in tags)
        try:
            return cel.evaluate(condition, context) is True
        except (KeyError, RuntimeError, TypeError, ValueError):
            return otherwise


def _extract(name: str, template: str) -> str:
    """Return the part of a name that matches ``{…}``; empty if the template does not match.

    https://docs.cloud.google.com/iam/docs/conditions-attribute-reference#extract
    """
    before, _, rest = template.partition("{")
    after = rest.partition("}")[2]
    _, found, value = name.partition(before)
    if not found or (after and after not in value):
        return ""
    return value.partition(after)[0] if after else value


def _v2(permission: str) -> str:
    """Return a permission in the form of deny policies."""
    service, _, rest = permission.partition(".")
    return f"{FQDN.get(service, service)}.googleapis.com/{rest}"


def _registered_bindings(resources: dict[str, dict[str, Any]]) -> list[Binding]:
    paths = {"bucket": "b/{}", "cryptoKeyId": "key", "serviceAccountId": "{}", "project": "{}"}
    return [
        Binding(
            next(path.format(inputs[key]) for key, path in paths.items() if key in inputs),
            inputs["member"],
            inputs["role"],
            inputs.get("condition", {}).get("expression", ""),
        )
        for inputs in resources.values()
        if inputs["type"].lower().endswith("iammember")
    ]


def _registered_tags(resources: dict[str, dict[str, Any]]) -> list[tuple[str, str]]:
    """Return path and tag of each binding, with the account's id in the path."""
    emails: dict[str, str] = {}
    for inputs in resources.values():
        if inputs["type"] == "gcp:serviceaccount/account:Account":
            email = f"{inputs['accountId']}@{inputs['project']}.iam.gserviceaccount.com"
            emails[unique_id(email)] = email
    keys = {f"{name}-id": inputs for name, inputs in resources.items()}
    found: list[tuple[str, str]] = []
    for inputs in resources.values():
        if inputs["type"] == "gcp:tags/tagBinding:TagBinding":
            value = keys[inputs["tagValue"]]
            key = keys[value["parent"]]
            project = key["parent"].removeprefix("projects/")
            account = inputs["parent"].rpartition("/")[2]
            tag = f"{project}/{key['shortName']}/{value['shortName']}"
            found.append((emails.get(account, account), tag))
    return found
