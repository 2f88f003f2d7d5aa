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

#: Modules with policies, in the order of the documentation.
SUBJECTS: Final = ("grants", "storage", "jobs")
#: Setting of every policy with patterns, such as ``dev*``, of the stacks that are not checked.
NOT_IN_STACKS: Final = "notInStacks"

#: Patterns of stacks for rehearsals. All policies apply to stacks with other names.
REHEARSAL_STACKS: Final = ("local*", "dev*")


class Unknown:
    """Type of a value that is unknown until another resource exists."""

    def __repr__(self) -> str:
        return "(known later)"


UNKNOWN: Final = Unknown()


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource and its inputs, named as in its provider. Unknown values are ``UNKNOWN``."""

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
    """A policy. ``check`` yields a text for each violation: what is wrong, the value and a hint."""

    id: str
    subject: str
    severity: Severity
    what: str
    """The requirement of the policy, in one sentence."""
    why: str
    """The damage that the policy prevents."""
    url: str
    """The page of Google about the subject."""
    standards: tuple[str, ...]
    """Equivalent rules of other standards: numbers of CIS benchmarks, ids of Checkov."""
    settings: Mapping[str, Any]
    """The policy's settings with their defaults, including ``notInStacks``."""
    check: Check = field(repr=False)
    types: frozenset[str] = frozenset()
    """Types of the checked resources; empty for all types."""

    def violations(self, resource: Resource, config: Mapping[str, Any] | None = None) -> list[str]:
        """Return the violations of a resource. ``config`` overrides the default settings."""
        settings = {**self.settings, **(config or {})}
        if self.types and resource.type not in self.types:
            return []
        if any(fnmatch.fnmatchcase(resource.stack, p) for p in settings[NOT_IN_STACKS]):
            return []
        lines = (line for rung in _with_rungs(resource) for line in self.check(rung, settings))
        return list(dict.fromkeys(lines))


def _with_rungs(resource: Resource) -> Iterator[Resource]:
    yield resource
    for rung in items(mapping(resource.props, "options"), "ladder"):
        if isinstance(rung, Mapping):
            yield dataclasses.replace(
                resource, props={**resource.props, "request": text(rung, "request")}
            )


#: All policies by id. :func:`load` adds the policies.
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

    ``not_in`` is the default of ``notInStacks``. ``of`` has the types of checked resources; empty
    for all types. ``settings`` has other settings with their defaults.
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
    order = (*SUBJECTS, *dict.fromkeys(registered.subject for registered in POLICIES.values()))
    return tuple(sorted(POLICIES.values(), key=lambda registered: order.index(registered.subject)))


def configure(id_: str, **settings: Any) -> None:
    """Change settings of a policy, in ``policy/__main__.py`` of a repository. Raises ValueError.

    Levels in a configuration file or stack file take precedence.
    """
    load()
    if (registered := POLICIES.get(id_)) is None:
        known = ", ".join(sorted(POLICIES))
        raise ValueError(f"policy {id_} does not exist. Hint: use one of {known}")
    for key, value in settings.items():
        if key not in registered.settings:
            known = ", ".join(registered.settings)
            raise ValueError(f"policy {id_} has no setting {key}. Hint: use one of {known}")
        if type(value) is not (expected := type(registered.settings[key])):
            raise ValueError(f"policy {id_}: setting {key} must be a {expected.__name__}")
    POLICIES[id_] = dataclasses.replace(registered, settings={**registered.settings, **settings})


def text(props: Mapping[str, Any] | Unknown | None, key: str) -> str:
    """Return a text input; empty if the input is missing or unknown."""
    value = props.get(key) if isinstance(props, Mapping) else None
    return value if isinstance(value, str) else ""


def mapping(props: Mapping[str, Any] | Unknown | None, key: str) -> Mapping[str, Any]:
    """Return an object input; empty if the input is missing or unknown."""
    value = props.get(key) if isinstance(props, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def items(props: Mapping[str, Any] | Unknown | None, key: str) -> list[Any]:
    """Return a list input; empty if the input is missing or unknown."""
    value = props.get(key) if isinstance(props, Mapping) else None
    return value if isinstance(value, list) else []


def is_or_unknown(props: Mapping[str, Any] | Unknown | None, key: str, expected: Any) -> bool:
    """Return True if an input has the expected value or is unknown."""
    value = props.get(key) if isinstance(props, Mapping) else props
    return isinstance(value, Unknown) or value == expected


def nested(props: Any, *path: str) -> Any:
    """Return an input at a path; None if missing, ``UNKNOWN`` if inside of an unknown value."""
    for key in path:
        if isinstance(props, Unknown):
            return props
        props = props.get(key) if isinstance(props, Mapping) else None
    return props


def matches_path(path: str, pattern: str) -> bool:
    """Return True if a name with slashes, such as an image's name, matches a pattern.

    ``*`` matches text without slashes, ``**`` any text. A name with an empty part, ``.`` or ``..``
    matches no pattern.
    """
    if any(part in ("", ".", "..") for part in path.split("/")):
        return False
    return _path_pattern(pattern).fullmatch(path) is not None


@functools.cache
def _path_pattern(pattern: str) -> re.Pattern[str]:
    """Convert a path pattern to a regular expression for names of images."""
    stars = {"**": "[A-Za-z0-9._:@/-]*", "*": "[A-Za-z0-9._:@-]*"}
    words = re.split(r"(\*\*|\*)", pattern)
    return re.compile("".join(stars.get(word) or re.escape(word) for word in words))
