"""IAM policies by the REST methods of their services.

One client serves all services: ``getIamPolicy`` and ``setIamPolicy`` have one form everywhere, but
for where their arguments stand. Policies are named as in
``localgcp.inventory.store``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from vertex_training.catalog.resource_types import policy_addresses
from vertex_training.errors import CommandError
from vertex_training_cli.drift.policies import Membership
from vertex_training_cli.rest import RestClient

#: Services whose ``getIamPolicy`` is a POST. IAM's own takes no body: its options are in the query.
BY_POST: Final = ("cloudresourcemanager.", "//iam.")
#: Lower versions leave conditions out: https://docs.cloud.google.com/iam/docs/policies
VERSION: Final = 3
#: Attempts to write a policy that somebody else writes at the same time.
ATTEMPTS: Final = 5


class GooglePolicies:
    """Reads IAM policies and removes members from them."""

    def __init__(self, client: RestClient) -> None:
        self._client = client

    def read(self, policy: str) -> list[Membership] | None:
        """All members of a policy; None if its resource is not there.

        Raises:
            CommandError: it cannot be read.
        """
        document = self._get(policy)
        return None if document is None else _memberships(policy, document)

    def remove(self, memberships: Iterable[Membership]) -> None:
        """Remove members. What is gone already is left alone.

        Raises:
            CommandError: a policy cannot be written.
        """
        by_policy: dict[str, set[Membership]] = {}
        for each in memberships:
            by_policy.setdefault(each.policy, set()).add(each)
        for policy, unwanted in by_policy.items():
            for _ in range(ATTEMPTS):
                document = self._get(policy)
                if document is None or self._set(policy, _without(document, policy, unwanted)):
                    break
            else:
                raise CommandError(f"{policy}: its policy changes all the time; nothing removed.")

    def _get(self, policy: str) -> dict[str, Any] | None:
        address = self._address(policy)
        if any(part in address for part in BY_POST):
            if "//iam." in address:
                query = f"options.requestedPolicyVersion={VERSION}"
                return self._call("POST", f"{address}:getIamPolicy?{query}", policy)
            options = {"options": {"requestedPolicyVersion": VERSION}}
            return self._call("POST", f"{address}:getIamPolicy", policy, json=options)
        if policy.startswith("b/"):
            address += f"/iam?optionsRequestedPolicyVersion={VERSION}"
        elif "/subnetworks/" in policy:
            address += f"/getIamPolicy?optionsRequestedPolicyVersion={VERSION}"
        else:
            address += f":getIamPolicy?options.requestedPolicyVersion={VERSION}"
        return self._call("GET", address, policy)

    def _set(self, policy: str, document: dict[str, Any]) -> bool:
        """Write a policy; False if it is no longer the one that was read (its ``etag``)."""
        address = self._address(policy)
        if policy.startswith("b/"):
            done = self._call("PUT", f"{address}/iam", policy, json=document, conflict=(409, 412))
        else:
            verb = "/setIamPolicy" if "/subnetworks/" in policy else ":setIamPolicy"
            body = {"policy": document}
            done = self._call("POST", address + verb, policy, json=body, conflict=(409, 412))
        return done is not None

    def _call(self, method: str, url: str, policy: str, **more: Any) -> dict[str, Any] | None:
        return self._client.call(method, url, f"{policy}: its IAM policy", **more)

    def _address(self, policy: str) -> str:
        for form, base in policy_addresses():
            if form.fullmatch(policy):
                return base + policy
        raise CommandError(f"{policy}: no service is known that has its IAM policy")


def _memberships(policy: str, document: dict[str, Any]) -> list[Membership]:
    return [
        Membership(policy, str(binding.get("role")), str(member), _expression(binding))
        for binding in document.get("bindings", ())
        for member in binding.get("members", ())
    ]


def _expression(binding: dict[str, Any]) -> str:
    return str((binding.get("condition") or {}).get("expression", ""))


def _without(document: dict[str, Any], policy: str, unwanted: set[Membership]) -> dict[str, Any]:
    """The policy without some members; its ``etag`` and version stay."""
    bindings = []
    for binding in document.get("bindings", ()):
        role, condition = str(binding.get("role")), _expression(binding)
        kept = [
            member
            for member in binding.get("members", ())
            if Membership(policy, role, str(member), condition) not in unwanted
        ]
        if kept:
            bindings.append({**binding, "members": kept})
    return {**document, "bindings": bindings, "version": VERSION}
