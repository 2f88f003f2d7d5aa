"""Clean-up policies of a repository: those that a stack declares, and what any would delete. Pure.

A version is deleted if a policy with DELETE matches it and none with KEEP does. The name of a
version of a Docker image is its digest, and a condition takes names by their beginning: so a policy
can keep exactly the digests that stack files pin, with or without a tag.

https://docs.cloud.google.com/artifact-registry/docs/repositories/cleanup-policy-overview
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from vertex_training.settings.model import Registry

DAY: Final = 24 * 3600
#: Id of the policy that keeps what stack files pin.
KEEP_PINNED: Final = "keep-pinned"
_DURATION: Final = re.compile(r"([0-9]{1,12})(?:\.[0-9]+)?([smhd]?)\Z")
_UNITS: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": DAY}


@dataclass(frozen=True, slots=True)
class CleanupPolicy:
    """One policy, with the API's words."""

    id: str
    action: Literal["DELETE", "KEEP"]
    tag_state: str = "ANY"
    """``TAGGED``, ``UNTAGGED`` or ``ANY``."""
    tag_prefixes: tuple[str, ...] = ()
    version_name_prefixes: tuple[str, ...] = ()
    package_name_prefixes: tuple[str, ...] = ()
    older_than: int | None = None
    """Seconds."""
    newer_than: int | None = None
    keep_count: int | None = None
    """Newest versions of each package: instead of a condition."""


@dataclass(frozen=True, slots=True)
class ImageVersion:
    """A version of an image, as far as it is known."""

    package: str
    """The image's name in the repository."""
    digest: str
    tags: tuple[str, ...] | None = None
    """None if unknown."""
    age: float | None = None
    """Seconds since the upload; None if unknown."""
    newer: int | None = None
    """How many versions of the package are newer; None if unknown."""


def declared(settings: Registry, pinned: Iterable[str]) -> tuple[CleanupPolicy, ...]:
    """The policies of a stack's repository. ``pinned`` are digests in it that stack files name.

    Untagged images go after a while. The newest of each image stay, and what is pinned.
    """
    seconds = settings.delete_untagged_after_days * DAY
    found = [
        CleanupPolicy("delete-untagged", "DELETE", "UNTAGGED", older_than=seconds),
        CleanupPolicy("keep-newest", "KEEP", keep_count=settings.keep_versions),
    ]
    if names := tuple(sorted(set(pinned))):
        found.append(CleanupPolicy(KEEP_PINNED, "KEEP", version_name_prefixes=names))
    return tuple(found)


def parse(inputs: object) -> tuple[CleanupPolicy, ...]:
    """``cleanupPolicies`` of a repository, as an engine has them; what is unclear matches nothing
    that it would keep, and everything that it would delete."""
    rows = inputs if isinstance(inputs, list) else []
    return tuple(_policy(row) for row in rows if isinstance(row, dict))


def deletes(policies: Sequence[CleanupPolicy], version: ImageVersion) -> bool | None:
    """Whether the policies delete a version: yes, no, or None where that is not known.

    Time counts against a version: one that is too young today is old enough some day.
    """
    kept = _any(_matches(each, version) for each in policies if each.action == "KEEP")
    if kept:
        return False
    gone = _any(_matches(each, version) for each in policies if each.action == "DELETE")
    return None if gone and kept is None else gone


def endangered(
    before: Sequence[CleanupPolicy],
    after: Sequence[CleanupPolicy],
    versions: Iterable[ImageVersion],
) -> list[ImageVersion]:
    """Versions that ``after`` deletes, or may delete, and that ``before`` did not."""
    rank = {False: 0, None: 1, True: 2}
    return [
        version
        for version in versions
        if rank[deletes(after, version)] > rank[deletes(before, version)]
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


def _texts(found: object) -> tuple[str, ...]:
    return tuple(map(str, found)) if isinstance(found, list) else ()


def _seconds(found: object, unclear: int | None) -> int | None:
    if found in (None, ""):
        return None
    match = _DURATION.match(str(found))
    return int(match[1]) * _UNITS[match[2]] if match else unclear


def _matches(policy: CleanupPolicy, version: ImageVersion) -> bool | None:
    """Whether a policy matches a version; a deletion by age matches as if time had passed."""
    parts = [
        _begins(policy.package_name_prefixes, (version.package,)),
        _begins(policy.version_name_prefixes, (version.digest,)),
        _begins(policy.tag_prefixes, version.tags),
        _tag_state(policy.tag_state, version.tags),
    ]
    if policy.keep_count is not None:
        # Newer versions come, unless the repository is looked at as it is now.
        parts.append(None if version.newer is None else version.newer < policy.keep_count)
    if policy.action == "KEEP":
        parts += _age(policy, version.age)
    return _all(parts)


def _age(policy: CleanupPolicy, age: float | None) -> list[bool | None]:
    """Parts about the age, for what is to be kept: it is kept only as long as they hold."""
    tests: list[tuple[int | None, Callable[[float, int], bool]]] = [
        (policy.older_than, lambda one, other: one > other),
        (policy.newer_than, lambda one, other: one < other),
    ]
    return [
        None if age is None else holds(age, limit) for limit, holds in tests if limit is not None
    ]


def _begins(prefixes: Sequence[str], names: Sequence[str] | None) -> bool | None:
    if not prefixes:
        return True
    return None if names is None else any(name.startswith(tuple(prefixes)) for name in names)


def _tag_state(state: str, tags: Sequence[str] | None) -> bool | None:
    if state not in ("TAGGED", "UNTAGGED"):
        return True
    return None if tags is None else bool(tags) == (state == "TAGGED")


def _all(parts: Sequence[bool | None]) -> bool | None:
    if False in parts:
        return False
    return None if None in parts else True


def _any(parts: Iterable[bool | None]) -> bool | None:
    found = list(parts)
    if True in found:
        return True
    return None if None in found else False
