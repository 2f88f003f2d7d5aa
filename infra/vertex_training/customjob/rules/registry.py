"""The registry of rules: id, summary, source, level and check."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

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


YAML: Final = "https://yaml.org/spec/1.1/, as PyYAML 6.0.3 reads it"
CUSTOM_JOB: Final = TYPES + "custom_job.py"
TUNING: Final = TYPES + "hyperparameter_tuning_job.py"
ENUMS: Final = TYPES + "accelerator_type.py"
FLEX_START: Final = GUIDES + "training/schedule-jobs-dws"
#: Source of the rule that the service ignores values of output-only fields.
OUTPUT: Final = "https://google.aip.dev/203"
#: Source for gcloud's conversion of a file into a message: null resets a field, one value becomes a
#: list.
DECODER: Final = "Google Cloud CLI 528.0.0, apitools/base/protorpclite/protojson.py"

_FILE: Final[list[tuple[str, str, str]]] = [
    ("too-large", "A job file has at most 500,000 bytes, and 20,000 values after aliases.", ""),
    ("too-deep", "A job file has at most 40 levels of nesting, and no value contains itself.", ""),
    ("not-text", "A job file is UTF-8 text.", YAML),
    ("not-yaml", "A job file is one YAML document.", YAML),
    ("not-a-mapping", "A job file is a mapping in gcloud's or REST's form.", CUSTOM_JOB),
    ("duplicate-key", "A mapping has no duplicate keys: YAML would ignore the first value.", YAML),
    ("bad-key", "Keys are text.", YAML),
    ("bad-value", "Values have standard YAML types.", YAML),
    ("bad-merge", "The value of `<<` is a mapping or a list of mappings.", YAML),
]
_SHAPE: Final[list[tuple[str, str, str]]] = [
    ("unknown-field", "Every field is a field of the API.", CUSTOM_JOB),
    ("misplaced-field", "Every field is in the message that has this field.", CUSTOM_JOB),
    ("duplicate-field", "No field occurs in both camelCase and snake_case.", CUSTOM_JOB),
    ("wrong-type", "Values have the type of their field.", CUSTOM_JOB),
    ("not-text-value", "Text that YAML would read as another type is quoted.", CUSTOM_JOB),
    ("yaml-number", "Whole numbers are decimal digits, not 012 or 1_000.", YAML),
    ("number-range", "Numbers are within the range of their field.", CUSTOM_JOB),
    ("duration-format", 'Durations are seconds followed by s, like "3600s".', CUSTOM_JOB),
    ("timestamp-format", "Timestamps have the format of RFC 3339.", TUNING),
    ("enum-value", "Values of enum fields are names that the API defines.", ENUMS),
    ("other-resource", "A job file has the kind of job of its section in the stack.", CUSTOM_JOB),
    ("one-of", "A message has at most one of several mutually exclusive fields.", CUSTOM_JOB),
    ("unknown-reference", "Every ${kind.name} references a resource of the stack.", OURS),
    ("ignore", "A comment that ignores a rule has a reason and the id of an ignorable rule.", ""),
    ("job-spec", "A job in REST's form has a jobSpec, a tuning job a trialJobSpec.", CUSTOM_JOB),
]
_LENIENT: Final[list[tuple[str, str, str]]] = [
    ("no-value", "Every field has a value; null is ignored.", DECODER),
    ("lone-value", "A list field has a list; gcloud also accepts a single value.", DECODER),
    ("output-field", "A job file has no output-only fields, which the service ignores.", OUTPUT),
]
_FORM: Final[list[tuple[str, str, str]]] = [
    ("pool-list", "workerPoolSpecs is a list; only gcloud accepts a single pool.", FLEX_START),
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
FILE_LEVELS: Final[dict[str, Level]] = {entry.id: entry.level for entry in FILE_RULES}
