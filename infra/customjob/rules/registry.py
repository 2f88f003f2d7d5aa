"""How a rule is written down: an id, a line of documentation, a source, a level, a check."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from infra.customjob.rules.job import Job
from infra.errors import Level, Path

GUIDES = "https://docs.cloud.google.com/gemini-enterprise-agent-platform/machine-learning/"
TYPES = "google-cloud-aiplatform 2.7.0, google/cloud/aiplatform_v1/types/"
OURS = "docs/job-files.md"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule found at ``path`` of the request (REST form)."""

    path: Path
    what: str
    value: str = ""
    hint: str = ""
    missing: str = ""
    """Name of the field that ``path`` lacks, if that is what was found."""


Check = Callable[[Job], Iterator[Finding]]
Checked = TypeVar("Checked", bound=Check)


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule, its documentation and its check; ``check`` is None where reading itself checks."""

    id: str
    summary: str
    source: str
    level: Level
    subject: str
    check: Check | None = None


#: Every rule that looks at a whole request, in the order of registration.
RULES: list[Rule] = []


def rule(id_: str, source: str, level: Level = "error") -> Callable[[Checked], Checked]:
    """Register a rule; the first line of its docstring is its documentation."""

    def register(check: Checked) -> Checked:
        summary = (check.__doc__ or "").strip().splitlines()[0]
        subject = check.__module__.rsplit(".", 1)[-1]
        RULES.append(Rule(id_, summary, source, level, subject, check))
        return check

    return register
