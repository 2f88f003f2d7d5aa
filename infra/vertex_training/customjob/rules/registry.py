"""The registry of rules: id, summary, source, level and check of each.

Reading a file checks some of them before any rule looks at the request: they have no check here.
"""

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
    """The certain fix, if there is one."""


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


YAML: Final = "https://yaml.org/spec/1.1/, as PyYAML 6.0.3 reads it"
CUSTOM_JOB: Final = TYPES + "custom_job.py"
TUNING: Final = TYPES + "hyperparameter_tuning_job.py"
#: A value of an output-only field is ignored, and is no error.
OUTPUT: Final = "https://google.aip.dev/203"
#: How gcloud turns a file into the message: null resets a field, a list is made of a single value.
DECODER: Final = "Google Cloud CLI 528.0.0, apitools/base/protorpclite/protojson.py"

_FILE: Final[list[tuple[str, str, str]]] = [
    ("too-large", "A job file has at most 500,000 bytes and 20,000 values, aliases expanded.", ""),
    ("too-deep", "A job file is nested at most 40 levels deep; no value contains itself.", ""),
    ("not-text", "A job file is text in UTF-8.", YAML),
    ("not-yaml", "A job file is one YAML document.", YAML),
    ("not-a-mapping", "A job file is a mapping: gcloud's form or REST's.", CUSTOM_JOB),
    ("duplicate-key", "No key stands twice in a mapping; YAML would keep one silently.", YAML),
    ("bad-key", "Keys are plain text.", YAML),
    ("bad-value", "Values are of the kinds YAML knows.", YAML),
    ("bad-merge", "`<<` merges mappings.", YAML),
]
_SHAPE: Final[list[tuple[str, str, str]]] = [
    ("unknown-field", "Every field is one of the API's.", CUSTOM_JOB),
    ("misplaced-field", "Every field stands where the API has it.", CUSTOM_JOB),
    ("duplicate-field", "No field is given in camelCase and snake_case at once.", CUSTOM_JOB),
    ("wrong-type", "Values have the type of their field.", CUSTOM_JOB),
    ("not-text-value", "Text that YAML takes for something else is quoted.", CUSTOM_JOB),
    ("yaml-number", "Whole numbers are written plainly, not as 012 or 1_000.", YAML),
    ("number-range", "Numbers fit into their field.", CUSTOM_JOB),
    ("duration-format", 'Durations are seconds with an s, like "3600s".', CUSTOM_JOB),
    ("timestamp-format", "Points in time are written as RFC 3339 has them.", TUNING),
    ("enum-value", "Names are among those the API has.", TYPES + "accelerator_type.py"),
    ("other-resource", "A file is the kind of job that its section of the stack has.", CUSTOM_JOB),
    ("one-of", "Of fields that exclude one another only one is given.", CUSTOM_JOB),
    ("unknown-reference", "Every ${kind.name} is something the stack has.", "docs/job-files.md"),
    ("ignore", "An ignored rule is named, can be ignored, and has a reason.", ""),
    (
        "job-spec",
        "REST's form has a jobSpec, and a tuning job a trialJobSpec.",
        CUSTOM_JOB,
    ),
]
_LENIENT: Final[list[tuple[str, str, str]]] = [
    ("no-value", "Every field that is written has a value; null is left out.", DECODER),
    ("lone-value", "A list is written as one; gcloud makes a list of a single value.", DECODER),
    ("output-field", "Fields that the service fills in are not written; it ignores them.", OUTPUT),
]
_FORM: Final[list[tuple[str, str, str]]] = [
    (
        "pool-list",
        "workerPoolSpecs is a list; gcloud alone takes a single pool.",
        "https://docs.cloud.google.com/gemini-enterprise-agent-platform/machine-learning/"
        "training/schedule-jobs-dws",
    ),
]


_TABLES: Final[list[tuple[list[tuple[str, str, str]], str, Level]]] = [
    (_FILE, "file", "error"),
    (_SHAPE, "fields", "error"),
    (_LENIENT, "fields", "warning"),
    (_FORM, "fields", "note"),
]
FILE_RULES: Final[list[Rule]] = [
    Rule(id_, summary, source or OURS, level, subject)
    for rows, subject, level in _TABLES
    for id_, summary, source in rows
]
#: Level of each rule above, by its id.
FILE_LEVELS: Final[dict[str, Level]] = {each.id: each.level for each in FILE_RULES}
