"""The registry of rules: id, summary, source, level and check."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from vertex_training import catalog
from vertex_training.customjob.rules.job import Job
from vertex_training.errors import Level, Mend, Path

GUIDES: Final = "https://docs.cloud.google.com/gemini-enterprise-agent-platform/machine-learning/"
TYPES: Final = "google-cloud-aiplatform 2.7.0, google/cloud/aiplatform_v1/types/"
OURS: Final = "docs/job-files.md"


@dataclass(frozen=True, slots=True)
class Finding:
    """A violation of a rule at ``path`` of the request (REST form)."""

    path: Path
    what: str
    value: str = ""
    hint: str = ""
    missing: str = ""
    """Name of the missing field at ``path``; empty if no field is missing."""
    level: Level | None = None
    """Level of this finding; None for the rule's level."""
    mend: Mend | None = None
    """The fix, if it is certain."""


Findings = Iterator[Finding]
Check = Callable[[Job], Findings]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule. ``check`` is None if the reader of job files makes the check."""

    id: str
    summary: str
    source: str
    level: Level
    subject: str
    check: Check | None = None


#: All rules with a check, in the order of registration.
RULES: Final[list[Rule]] = []


def rule(
    id_: str, source: str, level: Level = "error", of: Callable[[Job], Iterable[Any]] | None = None
) -> Callable[[Callable[..., Findings]], Check]:
    """Register a rule. The first line of its docstring is its summary.

    With ``of``, the rule checks each part of a job that ``of`` returns, like each worker pool. A
    tuple is passed as several arguments.
    """

    def register(check: Callable[..., Findings]) -> Check:
        def check_parts(job: Job) -> Findings:
            for part in of(job) if of else ():
                yield from check(*part) if isinstance(part, tuple) else check(part)

        of_job = check if of is None else check_parts
        summary = (check.__doc__ or "").strip().splitlines()[0]
        subject = check.__module__.rsplit(".", 1)[-1]
        RULES.append(Rule(id_, summary, source, level, subject, of_job))
        return of_job

    return register


_FILE: Final = catalog.load("file_rules.yaml")
_SOURCES: Final = {
    name: source.format(types=TYPES, guides=GUIDES) for name, source in _FILE["sources"].items()
}
#: Rules that the reader of job files checks, without a function.
FILE_RULES: Final[list[Rule]] = [
    Rule(id_, summary, _SOURCES[source], group["level"], group["subject"])
    for group in _FILE["groups"]
    for id_, (source, summary) in group["rules"].items()
]
#: Level of each rule above, by its id.
FILE_LEVELS: Final[dict[str, Level]] = {entry.id: entry.level for entry in FILE_RULES}
