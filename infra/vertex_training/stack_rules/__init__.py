"""Rules that compare keys of a stack file.

A rule is a function with the decorator ``rule`` in one of these modules, which report in this
order:

===================  =================================================================
``names``            names, numbers and labels that Google Cloud would refuse; unknown keys;
                     ``existing`` and ``name``
``access``           ``teams``, ``members``, ``roles``, ``datasets``; grants beyond CI's rights
``files``            files that the stack file names, secrets in uploaded files, code that
                     names no project, configuration files of accelerate and DeepSpeed
``storage``          encryption, retention and classes of buckets; ``snapshots``
``network``          ``network``, ``sharedVpc`` and ``reservations``
``jobs``             ``limits`` of the stack as a whole; ``jobDefaults``, ``rules`` and ladders
``serving``          ``models``, ``endpoints``, ``channels``, ``alerts`` and ``budget``
===================  =================================================================
"""

from __future__ import annotations

import dataclasses
import importlib
import pathlib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeVar

from vertex_training.customjob.request.job_file import JobRequest
from vertex_training.errors import Path, Problem, did_you_mean
from vertex_training.plan.network import ReservationPlan
from vertex_training.settings.model import Settings

#: Modules with rules, in the order of their problems in reports.
SUBJECTS: Final = ["names", "access", "files", "storage", "network", "jobs", "serving"]

RuleLevel = Literal["error", "warning", "deployment"]


@dataclass(frozen=True, slots=True)
class StackFile:
    """A stack file with its checkout, the requests of its jobs, and its planned reservations."""

    settings: Settings
    root: pathlib.Path
    """The checkout."""
    requests: Mapping[str, JobRequest] = field(default_factory=dict)
    """Requests of the jobs, by key. Rules of level ``error`` get none."""
    reservations: Mapping[str, ReservationPlan] = field(default_factory=dict)
    """Planned reservations, by key."""


OfSettings = TypeVar("OfSettings", bound=Callable[[Settings], Iterable[Problem]])
OfFile = TypeVar("OfFile", bound=Callable[[StackFile], Iterable[Problem]])
#: All rules with their levels, in the order of registration.
_RULES: Final[list[tuple[RuleLevel, Callable[[StackFile], Iterable[Problem]]]]] = []


def rule(level: RuleLevel = "error") -> Callable[[OfSettings], OfSettings]:
    """Register a rule that needs only the settings."""

    def register(check: OfSettings) -> OfSettings:
        _RULES.append((level, lambda file: check(file.settings)))
        return check

    return register


def file_rule(level: RuleLevel = "error") -> Callable[[OfFile], OfFile]:
    """Register a rule that also needs the checkout, the requests or the reservations."""

    def register(check: OfFile) -> OfFile:
        _RULES.append((level, check))
        return check

    return register


def unknown_entry(
    kind: str, name: str, known: Collection[str], section: str, path: Path
) -> Problem:
    """Return the problem that a section of the stack file does not declare a name."""
    hint = did_you_mean(name, known) or f"declare {name} in section {section}"
    return Problem(f"this stack has no such {kind}", name, hint, path)


def findings(level: RuleLevel, file: StackFile) -> list[Problem]:
    """Run the rules of one level; paths of problems begin below the namespace."""
    result = [problem for at, check in _RULES if at == level for problem in check(file)]
    if level == "error":
        return result
    return [dataclasses.replace(p, level="warning") if p.level == "error" else p for p in result]


# The rules import the definitions above.
for _subject in SUBJECTS:
    importlib.import_module(f"{__name__}.{_subject}")
