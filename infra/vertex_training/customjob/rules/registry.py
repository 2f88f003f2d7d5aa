"""The registry of rules: id, summary, source, level and check of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeVar

from vertex_training.customjob.rules.job import Job
from vertex_training.errors import Level, Mend, Path

GUIDES: Final = "https://docs.cloud.google.com/gemini-enterprise-agent-platform/machine-learning/"
TYPES: Final = "google-cloud-aiplatform 2.7.0, google/cloud/aiplatform_v1/types/"
OURS: Final = "docs/job-files.md"


@dataclass(frozen=True, slots=True)
class Finding:
    """A violation at ``path`` of the request (REST form)."""

    path: Path
    what: str
    value: str = ""
    hint: str = ""
    missing: str = ""
    """Name of the field that ``path`` lacks, if it lacks one."""
    level: Level | None = None
    """Level of this finding, if it is not the rule's."""
    mend: Mend | None = None
    """What certainly mends it."""


Check = Callable[[Job], Iterator[Finding]]
Checked = TypeVar("Checked", bound=Check)


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule, its documentation and its check. ``check`` is None if reading the file checks it."""

    id: str
    summary: str
    source: str
    level: Level
    subject: str
    check: Check | None = None


#: Every rule with a check, in the order of registration.
RULES: Final[list[Rule]] = []


def rule(id_: str, source: str, level: Level = "error") -> Callable[[Checked], Checked]:
    """Register a rule; the first line of its docstring is its documentation."""

    def register(check: Checked) -> Checked:
        summary = (check.__doc__ or "").strip().splitlines()[0]
        subject = check.__module__.rsplit(".", 1)[-1]
        RULES.append(Rule(id_, summary, source, level, subject, check))
        return check

    return register
