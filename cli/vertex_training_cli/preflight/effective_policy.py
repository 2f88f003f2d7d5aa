"""An organization policy in effect, and what it allows. Pure.

A value of a list may name what is below it, as a group of locations or a folder does. Whether it
covers something is not always known from here: then neither yes nor no is answered.

https://docs.cloud.google.com/resource-manager/docs/reference/orgpolicy/rest/v2/projects.policies/getEffectivePolicy
https://docs.cloud.google.com/resource-manager/docs/organization-policy/defining-locations
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from vertex_training.catalog import machines

#: Whether a value of a list covers a thing; None if that is not known.
Match = Callable[[str], bool | None]
#: Values begin with one of them or none: `is:` is the value itself.
_IS: Final = "is:"
_UNDER: Final = "under:"
_IN: Final = "in:"
_LOCATIONS: Final = "-locations"


@dataclass(frozen=True, slots=True)
class EffectivePolicy:
    """A policy as it is in effect for a project."""

    enforced: bool = False
    deny_all: bool = False
    allowed: tuple[str, ...] = ()
    """Also what the parameters of a managed constraint list that is enforced."""
    denied: tuple[str, ...] = ()

    @classmethod
    def parse(cls, document: Mapping[str, Any]) -> EffectivePolicy:
        """The policy in the answer of ``getEffectivePolicy``; one without rules allows all."""
        rules = (document.get("spec") or {}).get("rules") or ()
        values = [rule.get("values") or {} for rule in rules]
        return cls(
            enforced=any(rule.get("enforce") for rule in rules),
            deny_all=any(rule.get("denyAll") for rule in rules),
            allowed=tuple(text for each in values for text in each.get("allowedValues") or ())
            + tuple(_parameters(rules)),
            denied=tuple(text for each in values for text in each.get("deniedValues") or ()),
        )

    def allows(self, covers: Match) -> bool | None:
        """Whether the list allows what its values may cover; None if that is not known."""
        denials = [False, *(covers(each.removeprefix(_IS)) for each in self.denied)]
        allowances = [covers(each.removeprefix(_IS)) for each in self.allowed] or [True]
        if self.deny_all or True in denials:
            return False
        if True in allowances:
            return None if None in denials else True
        return None if None in allowances else False

    def __str__(self) -> str:
        """What it has in effect, in a few words."""
        if self.deny_all:
            return "all denied"
        parts = ["enforced"] if self.enforced else []
        for word, values in (("allowed", self.allowed), ("denied", self.denied)):
            parts += [f"{word}: {', '.join(values)}"] if values else []
        return "; ".join(parts) or "nothing restricted"


def _parameters(rules: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for rule in rules:
        if rule.get("enforce"):
            for value in (rule.get("parameters") or {}).values():
                yield from value if isinstance(value, list) else ()


def match_nothing(_value: str) -> bool | None:
    """What no value of a list is about."""
    return False


def match_value(*names: str) -> Match:
    """A thing with one of these names, and with nothing above it."""
    return lambda value: value in names


def match_path(*paths: str) -> Match:
    """A resource by its paths: ``under:`` a project is known, a folder or an organization not."""

    def covers(value: str) -> bool | None:
        above = value.removeprefix(_UNDER)
        if any(path == above or path.startswith(f"{above}/") for path in paths):
            return True
        return None if above.startswith(("folders/", "organizations/")) else False

    return covers


def match_location(location: str) -> Match:
    """A region, a zone or a multi-region, by itself or in a group like ``in:us-locations``."""
    parts = location.lower().split("-")
    region = "-".join(parts[:2])
    groups = {f"{name}{_LOCATIONS}" for name in (parts[0], region)}
    elsewhere = {
        f"{name}{_LOCATIONS}"
        for each in machines.regions()
        for name in (each, each.partition("-")[0])
    }

    def covers(value: str) -> bool | None:
        value = value.lower()
        if value.startswith(_IN):
            group = value.removeprefix(_IN)
            return True if group in groups else False if group in elsewhere else None
        if len(parts) > 2 and value == region:  # no source says that it covers the region's zones
            return None
        return value == location.lower()

    return covers
