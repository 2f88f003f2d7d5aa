"""IAM policies of Google Cloud by their REST methods, and of the local cloud from its inventory.

One client serves all services: ``getIamPolicy`` and ``setIamPolicy`` have one form everywhere, but
for where their arguments stand. Policies are named as in
``localgcp.inventory.store``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, Protocol

from vertex_training.catalog.resource_types import policy_addresses
from vertex_training.errors import CommandError, OperatorError
from vertex_training_cli.drift.policies import Membership
from vertex_training_cli.engine.stacks import StackRef

#: Services whose ``getIamPolicy`` is a POST with the options in its body.
BY_POST: Final = ("cloudresourcemanager.", "//iam.")
#: Lower versions leave conditions out: https://docs.cloud.google.com/iam/docs/policies
VERSION: Final = 3
TIMEOUT: Final = 30
#: Attempts to write a policy that somebody else writes at the same time.
ATTEMPTS: Final = 5

Addresses = Sequence[tuple[re.Pattern[str], str]]


class PolicyClient(Protocol):
    """Reads IAM policies and removes members from them."""

    def read(self, policy: str) -> list[Membership] | None:
        """All members of a policy; None if its resource is not there.

        Raises:
            CommandError: it cannot be read.
        """
        ...

    def remove(self, memberships: Iterable[Membership]) -> None:
        """Remove members. What is gone already is left alone.

        Raises:
            CommandError: a policy cannot be written.
        """
        ...


def connect(stack: StackRef) -> PolicyClient:
    """The policies of a stack's cloud: Google's, or the local cloud's for ``local-…``."""
    if stack.is_local:
        from localgcp.home import Home
        from localgcp.inventory.store import Store

        return LocalPolicies(Store(Home.find(cwd=stack.root).database))
    import google.auth
    from google.auth.exceptions import GoogleAuthError
    from google.auth.transport.requests import AuthorizedSession

    from vertex_training.customjob.google.impersonation import SCOPE, impersonated_credentials

    try:
        credentials = impersonated_credentials() or google.auth.default(scopes=[SCOPE])[0]
    except (GoogleAuthError, OperatorError) as failed:
        raise CommandError(f"no Google Cloud credentials: {failed}") from None
    return GooglePolicies(AuthorizedSession(credentials))


class GooglePolicies:
    """Over REST. ``session`` is a session of ``requests`` that adds credentials."""

    def __init__(self, session: Any, addresses: Addresses | None = None) -> None:
        self._session, self._addresses = session, addresses or policy_addresses()

    def read(self, policy: str) -> list[Membership] | None:
        """See ``PolicyClient``."""
        document = self._get(policy)
        return None if document is None else _memberships(policy, document)

    def remove(self, memberships: Iterable[Membership]) -> None:
        """See ``PolicyClient``."""
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

    def _call(
        self, method: str, url: str, policy: str, *, conflict: tuple[int, ...] = (404,), **more: Any
    ) -> dict[str, Any] | None:
        """The answer; None for a status in ``conflict``."""
        import requests
        from google.auth.exceptions import GoogleAuthError

        try:
            answer = self._session.request(method, url, timeout=TIMEOUT, **more)
        except (requests.RequestException, GoogleAuthError) as failed:
            raise CommandError(f"{policy}: its IAM policy cannot be reached: {failed}") from None
        if answer.status_code in conflict:
            return None
        if not answer.ok:
            doing = "read" if conflict == (404,) else "written"
            what = (
                f"{policy}: its IAM policy cannot be {doing}: {answer.status_code} {answer.reason}"
            )
            raise CommandError(what, "getIamPolicy and setIamPolicy are permissions of their own.")
        return answer.json()

    def _address(self, policy: str) -> str:
        for form, base in self._addresses:
            if form.fullmatch(policy):
                return base + policy
        raise CommandError(f"{policy}: no service is known that has its IAM policy")


class LocalPolicies:
    """A stand-in: reads and writes the inventory of the local cloud, which serves no IAM API."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def read(self, policy: str) -> list[Membership] | None:
        """See ``PolicyClient``."""
        bindings = self._store.policy(policy).bindings
        document = {
            "bindings": [
                {"role": b.role, "members": b.members, "condition": b.condition} for b in bindings
            ]
        }
        return _memberships(policy, document)

    def remove(self, memberships: Iterable[Membership]) -> None:
        """See ``PolicyClient``."""
        from localgcp.errors import PolicyConflictError
        from localgcp.gcp.services.grants import remove_member

        for each in memberships:
            for _ in range(ATTEMPTS):
                now = self._store.policy(each.policy)
                same = (b for b in now.bindings if b.role == each.role)
                conditions = [b.condition for b in same if _text(b) == each.condition]
                left = now.bindings
                for condition in conditions:
                    left = remove_member(left, each.role, each.member, condition)
                try:
                    self._store.set_policy(each.policy, left, expected_etag=now.etag)
                except PolicyConflictError:
                    continue
                break
            else:
                raise CommandError(f"{each.policy}: its policy changes all the time.")


def _text(binding: Any) -> str:
    return str((binding.condition or {}).get("expression", ""))


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
