"""Clean-up policies that a repository declares, and the images that the policies delete. Pure.

A version is deleted if a DELETE policy matches the version and no KEEP policy does. The name of a
Docker image's version is its digest, and a condition matches prefixes of names. So a policy can
keep exactly the digests in stack files, with or without a tag.
https://docs.cloud.google.com/artifact-registry/docs/repositories/cleanup-policy-overview
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from vertex_training.settings.model import Registry

DAY: Final = 24 * 3600
#: Id of the policy that keeps the digests in stack files.
KEEP_PINNED: Final = "keep-pinned"
_DURATION: Final = re.compile(r"([0-9]{1,12})(?:\.[0-9]+)?([smhd]?)\Z")
_UNITS: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": DAY}


@dataclass(frozen=True, slots=True)
class CleanupPolicy:
    """A clean-up policy with the values of the API."""

    id: str
    action: Literal["DELETE", "KEEP"]
    tag_state: str = "ANY"
    """``TAGGED``, ``UNTAGGED`` or ``ANY``."""
    tag_prefixes: tuple[str, ...] = ()
    version_name_prefixes: tuple[str, ...] = ()
    package_name_prefixes: tuple[str, ...] = ()
    older_than: int | None = None
    """Minimum age in seconds."""
    newer_than: int | None = None
    """Maximum age in seconds."""
    keep_count: int | None = None
    """Number of newest versions of each package to keep, instead of a condition."""


def declared(settings: Registry, pinned: Iterable[str]) -> tuple[CleanupPolicy, ...]:
    """Return the declared policies of a repository. ``pinned`` has its digests in stack files.

    Untagged images are deleted after some days, except the newest and the pinned versions.
    """
    seconds = settings.delete_untagged_after_days * DAY
    rules = [
        CleanupPolicy("delete-untagged", "DELETE", "UNTAGGED", older_than=seconds),
        CleanupPolicy("keep-newest", "KEEP", keep_count=settings.keep_versions),
    ]
    if names := tuple(sorted(set(pinned))):
        rules.append(CleanupPolicy(KEEP_PINNED, "KEEP", version_name_prefixes=names))
    return tuple(rules)


def parse(inputs: object) -> tuple[CleanupPolicy, ...]:
    """Parse a repository's ``cleanupPolicies`` from engine inputs.

    Unclear values match no image in a KEEP policy, and all images in a DELETE policy.
    """
    rows = inputs if isinstance(inputs, list) else []
    return tuple(_policy(row) for row in rows if isinstance(row, dict))


def deletes(policies: Sequence[CleanupPolicy], package: str, digest: str) -> bool | None:
    """Return True if the policies delete an image once it is old enough; None if unknown."""
    keep = {_matches(policy, package, digest) for policy in policies if policy.action == "KEEP"}
    delete = {_matches(policy, package, digest) for policy in policies if policy.action == "DELETE"}
    if True in keep or delete <= {False}:
        return False
    return True if True in delete and None not in keep else None


def endangered(
    before: Sequence[CleanupPolicy],
    after: Sequence[CleanupPolicy],
    images: Iterable[tuple[str, str]],
) -> list[tuple[str, str]]:
    """Return the images (package, digest) that ``after`` may delete but ``before`` does not."""
    rank = {False: 0, None: 1, True: 2}
    return [
        image for image in images if rank[deletes(after, *image)] > rank[deletes(before, *image)]
    ]


def _policy(row: Mapping[str, Any]) -> CleanupPolicy:
    condition, newest = row.get("condition"), row.get("mostRecentVersions")
    condition = condition if isinstance(condition, dict) else {}
    newest = newest if isinstance(newest, dict) else {}
    deleting = str(row.get("action")).upper() != "KEEP"
    count = newest.get("keepCount")
    return CleanupPolicy(
        str(row.get("id", "")),
        "DELETE" if deleting else "KEEP",
        str(condition.get("tagState") or "ANY").upper(),
        _texts(condition.get("tagPrefixes")),
        _texts(condition.get("versionNamePrefixes")),
        _texts(condition.get("packageNamePrefixes") or newest.get("packageNamePrefixes")),
        _seconds(condition.get("olderThan"), 0 if deleting else None),
        _seconds(condition.get("newerThan"), None if deleting else 0),
        int(count) if isinstance(count, int | float) else 0 if newest else None,
    )


def _texts(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()


def _seconds(value: object, unclear: int | None) -> int | None:
    if value in (None, ""):
        return None
    match = _DURATION.match(str(value))
    return int(match[1]) * _UNITS[match[2]] if match else unclear


def _matches(policy: CleanupPolicy, package: str, digest: str) -> bool | None:
    """Return True if a policy matches an image; None if tags, age or other images decide."""
    for prefixes, name in (
        (policy.package_name_prefixes, package),
        (policy.version_name_prefixes, digest),
    ):
        if prefixes and not name.startswith(prefixes):
            return False
    by_tags = policy.tag_state in ("TAGGED", "UNTAGGED") or policy.tag_prefixes
    by_age = policy.action == "KEEP" and (policy.older_than, policy.newer_than) != (None, None)
    return None if by_tags or by_age or policy.keep_count is not None else True
