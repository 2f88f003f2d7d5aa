"""Policies, the resources to check, and the registry of policies."""

from __future__ import annotations

import dataclasses
import fnmatch
import functools
import importlib
import inspect
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

Severity = Literal["low", "medium", "high", "critical"]

#: Modules with policies, in order of the documentation.
SUBJECTS: Final = ("grants", "storage", "jobs")

#: Setting of every policy: patterns of stacks that the policy does not apply to, like ``dev*``.
NOT_IN_STACKS: Final = "notInStacks"

#: Stacks for rehearsals. All policies apply to stacks with other names.
REHEARSAL_STACKS: Final = ("local*", "dev*")


class Unknown:
    """Type of a value that is unknown until another resource exists."""

    def __repr__(self) -> str:
        return "(known later)"


UNKNOWN: Final = Unknown()


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource and its inputs, with the input names of its provider.

    Unknown values are ``UNKNOWN``, at any depth.
    """

    type: str
    name: str
    props: Mapping[str, Any]
    stack: str
    protect: bool = False


Settings = Mapping[str, Any]
Found = Iterator[str]
Check = Callable[[Resource, Settings], Found]


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy. ``check`` yields a text for each violation: what is wrong, value and hint."""

    id: str
    subject: str
    severity: Severity
    what: str
    """Requirement of the policy, in one sentence."""
    why: str
    """Damage that the policy prevents."""
    url: str
    """Google's page on the subject."""
    standards: tuple[str, ...]
    """Equivalent rules of other standards: CIS benchmark numbers, Checkov ids."""
    settings: Mapping[str, Any]
    """Settings and their defaults, including ``notInStacks``."""
    check: Check = field(repr=False)
    types: frozenset[str] = frozenset()
    """Types of checked resources; empty for all types."""

    def violations(self, resource: Resource, given: Mapping[str, Any] | None = None) -> list[str]:
        """Return the violations of a resource; ``given`` has the settings that are not defaults."""
        settings = {**self.settings, **(given or {})}
        if self.types and resource.type not in self.types:
            return []
        if any(fnmatch.fnmatchcase(resource.stack, p) for p in settings[NOT_IN_STACKS]):
            return []
        lines = (line for rung in _rungs(resource) for line in self.check(rung, settings))
        return list(dict.fromkeys(lines))


def _rungs(resource: Resource) -> Iterator[Resource]:
    """Yield the resource; for a job with a ladder, also a copy with each rung's request."""
    yield resource
    for rung in items(mapping(resource.props, "options"), "ladder"):
        if isinstance(rung, Mapping):
            yield dataclasses.replace(
                resource, props={**resource.props, "request": text(rung, "request")}
            )


#: All policies by id; :func:`load` fills it.
POLICIES: Final[dict[str, Policy]] = {}


def policy(
    id_: str,
    severity: Severity,
    *,
    why: str,
    url: str,
    standards: tuple[str, ...] = (),
    not_in: tuple[str, ...] = (),
    of: str | Collection[str] = (),
    **settings: Any,
) -> Callable[[Check], Check]:
    """Register a policy. The docstring of the function is the policy's description.

    ``not_in`` is the default of ``notInStacks``. ``of`` has types of resources; empty for all.
    ``settings`` are further settings with defaults, spelled as in configuration files.

    Raises:
        ValueError: another policy has this id.
    """

    def register(check: Check) -> Check:
        if id_ in POLICIES:
            raise ValueError(f"two policies have the id {id_}")
        POLICIES[id_] = Policy(
            id=id_,
            subject=check.__module__.rpartition(".")[2],
            severity=severity,
            what=inspect.cleandoc(check.__doc__ or ""),
            why=why,
            url=url,
            standards=standards,
            settings={**settings, NOT_IN_STACKS: list(not_in)},
            check=check,
            types=frozenset([of] if isinstance(of, str) else of),
        )
        return check

    return register


def load() -> tuple[Policy, ...]:
    """Import the modules of all subjects, and return all policies in the order of ``SUBJECTS``."""
    for subject in SUBJECTS:
        importlib.import_module(f"{__package__}.{subject}")
    order = {subject: place for place, subject in enumerate(SUBJECTS)}
    return tuple(
        sorted(POLICIES.values(), key=lambda registered: order.get(registered.subject, len(order)))
    )


def configure(id_: str, **settings: Any) -> None:
    """Change settings of a policy, in ``policy/__main__.py`` of a repository.

    Levels in a configuration file or stack file take precedence.

    Raises:
        ValueError: the policy or setting is unknown, or the value has another type.
    """
    load()
    if (registered := POLICIES.get(id_)) is None:
        raise ValueError(
            f"policy {id_} does not exist; known policies: {', '.join(sorted(POLICIES))}"
        )
    for key, value in settings.items():
        if key not in registered.settings:
            raise ValueError(
                f"{id_} has no setting {key}; known settings: {', '.join(registered.settings)}"
            )
        if type(value) is not type(registered.settings[key]):
            raise ValueError(
                f"{id_}: setting {key} must be a {type(registered.settings[key]).__name__}"
            )
    POLICIES[id_] = dataclasses.replace(registered, settings={**registered.settings, **settings})


def text(props: Mapping[str, Any] | Unknown | None, key: str) -> str:
    """Return a text input; empty if missing or unknown."""
    value = props.get(key) if isinstance(props, Mapping) else None
    return value if isinstance(value, str) else ""


def mapping(props: Mapping[str, Any] | Unknown | None, key: str) -> Mapping[str, Any]:
    """Return an object input; empty if missing or unknown."""
    value = props.get(key) if isinstance(props, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def items(props: Mapping[str, Any] | Unknown | None, key: str) -> list[Any]:
    """Return a list input; empty if missing or unknown."""
    value = props.get(key) if isinstance(props, Mapping) else None
    return value if isinstance(value, list) else []


def is_or_unknown(props: Mapping[str, Any] | Unknown | None, key: str, wanted: Any) -> bool:
    """Return True if an input has this value or is unknown."""
    value = props.get(key) if isinstance(props, Mapping) else props
    return isinstance(value, Unknown) or value == wanted


def nested(props: Any, *path: str) -> Any:
    """Return a nested input; None if missing, ``UNKNOWN`` if inside of an unknown value."""
    for key in path:
        if isinstance(props, Unknown):
            return props
        props = props.get(key) if isinstance(props, Mapping) else None
    return props


def matches_path(path: str, pattern: str) -> bool:
    """Return True if a name with slashes, such as an image's, matches a pattern.

    ``*`` matches text without slashes, ``**`` any text. A name with an empty part, ``.`` or ``..``
    matches no pattern.
    """
    if any(part in ("", ".", "..") for part in path.split("/")):
        return False
    return _path_pattern(pattern).fullmatch(path) is not None


@functools.cache
def _path_pattern(pattern: str) -> re.Pattern[str]:
    """Convert a path pattern to a regular expression; stars match characters of image names."""
    stars = {"**": "[A-Za-z0-9._:@/-]*", "*": "[A-Za-z0-9._:@-]*"}
    words = re.split(r"(\*\*|\*)", pattern)
    return re.compile("".join(stars.get(word) or re.escape(word) for word in words))
