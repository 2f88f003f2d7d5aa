"""A policy, the resource it judges, and the table that all policies register in."""

from __future__ import annotations

import fnmatch
import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

Severity = Literal["low", "medium", "high", "critical"]

#: Modules with policies, in the order in which they are listed.
SUBJECTS: Final = ("grants", "buckets", "registry", "jobs", "encryption", "network")

#: Setting of every policy: names of stacks it leaves alone, as patterns like ``dev*``.
NOT_IN_STACKS: Final = "notInStacks"

#: Stacks where data and jobs are rehearsed; everything else is held to what production needs.
REHEARSALS: Final = ("local*", "dev*")


class Unknown:
    """A value that is only known once something else exists."""

    def __repr__(self) -> str:
        return "(known later)"


UNKNOWN: Final = Unknown()


@dataclass(frozen=True, slots=True)
class Resource:
    """What a policy sees of one resource: its inputs, under the names the provider uses.

    Values that a preview does not know are ``UNKNOWN``, at any depth.
    """

    type: str
    name: str
    props: Mapping[str, Any]
    stack: str
    protect: bool = False


Judge = Callable[[Resource, Mapping[str, Any]], Iterator[str]]


@dataclass(frozen=True, slots=True)
class Policy:
    """One policy. ``judge`` yields a sentence for each violation: what, which value, what to do."""

    id: str
    subject: str
    severity: Severity
    what: str
    """One sentence: what holds where the policy is kept."""
    why: str
    """What goes wrong otherwise."""
    url: str
    """Google's own page on it."""
    standards: tuple[str, ...]
    """The same demand elsewhere: numbers of the CIS benchmark, ids of Checkov."""
    settings: Mapping[str, Any]
    """Settings and their defaults; ``notInStacks`` is one of them."""
    judge: Judge = field(repr=False)

    def violations(self, resource: Resource, given: Mapping[str, Any] | None = None) -> list[str]:
        """What is wrong with a resource; ``given`` are settings other than the defaults."""
        settings = {**self.settings, **(given or {})}
        if any(fnmatch.fnmatchcase(resource.stack, p) for p in settings[NOT_IN_STACKS]):
            return []
        return list(self.judge(resource, settings))


POLICIES: Final[dict[str, Policy]] = {}
"""All policies by id; :func:`load` fills it."""


def policy(
    id_: str,
    severity: Severity,
    *,
    why: str,
    url: str,
    standards: tuple[str, ...] = (),
    not_in: tuple[str, ...] = (),
    **settings: Any,
) -> Callable[[Judge], Judge]:
    """Register a policy; the function's docstring says what it holds.

    ``not_in``: stacks it leaves alone unless it is told otherwise. ``settings``: its own, with
    their defaults, in the spelling of configuration files.
    """

    def register(judge: Judge) -> Judge:
        if id_ in POLICIES:
            raise ValueError(f"two policies are called {id_}")
        POLICIES[id_] = Policy(
            id=id_,
            subject=judge.__module__.rpartition(".")[2],
            severity=severity,
            what=inspect.cleandoc(judge.__doc__ or ""),
            why=why,
            url=url,
            standards=standards,
            settings={**settings, NOT_IN_STACKS: list(not_in)},
            judge=judge,
        )
        return judge

    return register


def load() -> tuple[Policy, ...]:
    """All policies, in the order of their subjects."""
    for subject in SUBJECTS:
        importlib.import_module(f"guardrails.{subject}")
    return tuple(POLICIES.values())


def text(props: Mapping[str, Any] | Unknown | None, key: str) -> str:
    """A text among inputs; empty if it is not there, or not known yet."""
    value = props.get(key) if isinstance(props, Mapping) else None
    return value if isinstance(value, str) else ""


def mapping(props: Mapping[str, Any] | Unknown | None, key: str) -> Mapping[str, Any]:
    """An object among inputs; empty if it is not there, or not known yet."""
    value = props.get(key) if isinstance(props, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def items(props: Mapping[str, Any] | Unknown | None, key: str) -> list[Any]:
    """A list among inputs; empty if it is not there, or not known yet."""
    value = props.get(key) if isinstance(props, Mapping) else None
    return value if isinstance(value, list) else []


def is_or_may_be(props: Mapping[str, Any] | Unknown | None, key: str, wanted: Any) -> bool:
    """Whether an input has this value, or one that is not known yet."""
    value = props.get(key) if isinstance(props, Mapping) else props
    return isinstance(value, Unknown) or value == wanted


def inside(props: Any, *path: str) -> Any:
    """An input inside of objects; None if it is not there, ``UNKNOWN`` if that cannot be told."""
    for key in path:
        if isinstance(props, Unknown):
            return props
        props = props.get(key) if isinstance(props, Mapping) else None
    return props
