"""Converts a job file, references and a ladder into a request, and reports all mistakes."""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from vertex_training.catalog import costs
from vertex_training.customjob.batch import BatchParameters, batch_job, job_id
from vertex_training.customjob.kinds import BATCH_JOB, CUSTOM_JOB, TUNING_JOB, JobKind
from vertex_training.customjob.protocol.ports import IDLE_STOP, MODEL
from vertex_training.customjob.request import checking
from vertex_training.customjob.request.message import (
    MessageBuilder,
    ReferenceTable,
    references_in,
    resolve_references,
)
from vertex_training.customjob.rules.context import FILE_ONLY, Context, FileDefaults, JobFacts
from vertex_training.customjob.rules.job import Job, concerns, job_facts_of
from vertex_training.customjob.rules.trials import COUNTS
from vertex_training.errors import ConfigError, Level, Location, Problem, UnknownReferenceError
from vertex_training.located_yaml import document

#: Placeholder of the request id, which is a digest of the request with the placeholder.
REQUEST_ID: Final = "job.requestId"
#: Placeholder of the scheduled time, replaced when the job is submitted.
SLOT: Final = "job.slot"
#: Levels of problems, in the order in which a result has them.
LEVELS: Final[tuple[Level, ...]] = ("error", "warning", "note")
#: Hex digits of a request id: 80 bits, so no two of a million submissions collide by chance.
ID_LENGTH: Final = 20


@dataclass(frozen=True, slots=True)
class Submission:
    """The identity of a job, together with its request (project, stack, job, run)."""

    project: str
    region: str
    stack: str
    job: str
    run: int


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A checked request, ready for submission."""

    submission: Submission
    request_id: str
    body: str
    """The message as canonical JSON: names as in REST, sorted keys, no spaces."""
    used: frozenset[str]
    """References in the file, like ``buckets.data``."""
    warnings: tuple[Problem, ...]
    filled_in: Mapping[str, str] = field(default_factory=dict)
    """Fields from the stack's ``jobDefaults``: field -> the text of the stack file."""
    kind: JobKind = CUSTOM_JOB
    ladder: tuple[JobRequest, ...] = ()
    """The rungs after this request, which is the first rung."""
    words: str = ""
    """Differences of a rung from the job file, as text."""
    subnet: str = ""
    """Subnet of a Batch job's machines; empty for the project's default network."""
    notifications: tuple[Mapping[str, Any], ...] = ()
    """Batch's notifications about states, in the API's form; not part of the job's identity."""

    @property
    def rungs(self) -> tuple[JobRequest, ...]:
        """Return this request and the requests of its ladder; at most one of their jobs runs."""
        return (self, *self.ladder)

    @property
    def cost(self) -> costs.JobCost:
        """Return the maximum cost of the job, which is the cost of its most expensive rung."""
        messages = (rung.message for rung in self.rungs)
        return costs.of_dearest(messages, self.submission.region, self.kind.backend)

    @property
    def own_cost(self) -> costs.JobCost:
        """Return the maximum cost of this request alone, without the rest of its ladder."""
        return costs.of_job(self.message, self.submission.region, self.kind.backend)

    @property
    def message(self) -> dict[str, Any]:
        """Return the parsed message."""
        return json.loads(self.body)

    @property
    def trial(self) -> dict[str, Any]:
        """Return the CustomJob in the message: the message itself, or a trial of a tuning job."""
        return self.kind.trial_of(self.message)

    def sent(self, labels: Mapping[str, str]) -> dict[str, Any]:
        """Return the message with these labels, in the form that its service expects."""
        if self.kind is not BATCH_JOB:
            own = self.message.get("labels", {})
            return {**self.message, **({"labels": {**own, **labels}} if labels else {})}
        own = self.submission
        id_ = job_id(own.stack, own.job, self.request_id)
        place = BatchParameters(own.project, own.region, id_, self.subnet, self.notifications)
        return batch_job(self.message, place, labels)

    @property
    def account(self) -> str:
        """Return the job's serviceAccount; empty if missing."""
        return str(self.trial["jobSpec"].get("serviceAccount", ""))

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the message, in hex."""
        return digest_of(self.body)

    @property
    def output_directory(self) -> str:
        """Return the job's output directory, a gs:// URI; empty if missing."""
        directory = self.trial["jobSpec"].get("baseOutputDirectory", {})
        return directory.get("outputUriPrefix", "")


def digest_of(body: str) -> str:
    """Return the digest of a message: the SHA-256 of its canonical JSON, in hex."""
    return hashlib.sha256(body.encode()).hexdigest()


def canonical(message: Mapping[str, Any]) -> str:
    """Return canonical JSON, independent of the file's key order, spacing and comments."""
    return json.dumps(message, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class JobFileResult:
    """Result of checking one job file. ``request`` is None if there are errors."""

    request: JobRequest | None
    errors: tuple[Problem, ...]
    warnings: tuple[Problem, ...]
    facts: JobFacts = field(default_factory=JobFacts)
    """Properties of the job for rules that compare jobs of a stack."""
    notes: tuple[Problem, ...] = ()
    """Optional advice."""
    ignored: tuple[Problem, ...] = ()
    """Notes that replace problems which a comment in the file ignores."""

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Return the errors, warnings and notes."""
        return (*self.errors, *self.warnings, *self.notes)


def check_job_file(
    data: bytes,
    file: str,
    submission: Submission,
    table: ReferenceTable,
    context: Context = FILE_ONLY,
    kind: JobKind | None = None,
    rung: RungOverrides | None = None,
    *,
    scheduled: bool = False,
) -> JobFileResult:
    """Check the job file ``data``, called ``file`` in messages. Does not raise.

    ``kind`` None accepts any kind. ``rung`` overrides values of the file and of the defaults. The
    request of a ``scheduled`` job retains ``${job.slot}`` and ``${job.requestId}``.
    """
    try:
        parsed = document.read(data, file)
    except ConfigError as unreadable:
        return JobFileResult(None, unreadable.problems, ())
    if is_batch := kind is BATCH_JOB:
        kind, context = CUSTOM_JOB, dataclasses.replace(context, backend=BATCH_JOB.backend)
    known = {
        **table,
        "job.name": submission.job,
        "job.run": str(submission.run),
        REQUEST_ID: "${" + REQUEST_ID + "}",
        **({SLOT: "${" + SLOT + "}"} if scheduled else {}),
    }
    builder = MessageBuilder(parsed, known, kind)
    message, filled, job = builder.build_message(), dict[str, str](), None
    if message is not None:
        message.setdefault("displayName", f"{submission.stack}-{submission.job}")
        if context.encryption_key:
            message.setdefault("encryptionSpec", {"kmsKeyName": context.encryption_key})
        filled = _add_defaults(message, context.defaults, known, builder.kind)
        builder.used.update(name for text in filled.values() for name in references_in(text))
        message = rung.of(message) if rung else message
        if scheduled:
            _add_slot(message, builder.kind)
        unreadable = tuple(map(builder.kind.path_in_trial, builder.unreadable))
        tuning = None if builder.kind is CUSTOM_JOB else message
        job = Job(builder.kind.trial_of(message), context, unreadable, tuning)
    problems = _with_levels([*parsed.problems, *_problems(parsed, builder, job)], context.levels)
    problems, ignored = checking.apply(problems, data.decode("utf-8-sig", errors="replace"), file)
    facts = JobFacts() if job is None else job_facts_of(job)
    problems.sort(key=lambda problem: problem.location)
    errors, warnings, notes = (tuple(p for p in problems if p.level == level) for level in LEVELS)
    if errors or message is None:
        return JobFileResult(None, errors, warnings, facts, notes, ignored)
    if builder.kind is TUNING_JOB:
        message = {**dict.fromkeys(COUNTS, 1), **message}
    draft, used = canonical(message), frozenset(builder.used)
    kind, subnet = (BATCH_JOB, _subnet(context, message)) if is_batch else (builder.kind, "")
    request_id = kind.id_prefix + request_id_of(submission, draft, subnet)
    body = draft if scheduled else draft.replace("${" + REQUEST_ID + "}", request_id)
    request = JobRequest(
        submission, request_id, body, used, warnings, filled, kind, (), str(rung or ""), subnet
    )
    return JobFileResult(request, (), warnings, facts, notes, ignored)


def _add_slot(message: dict[str, Any], kind: JobKind) -> None:
    directory = (message.get(kind.spec) or {}).get("baseOutputDirectory") or {}
    if uri := directory.get("outputUriPrefix"):
        names = ("${" + name + "}" for name in (SLOT, REQUEST_ID))
        if not any(name in uri for name in names):
            directory["outputUriPrefix"] = f"{uri.rstrip('/')}/${{{SLOT}}}"


def _with_levels(problems: Sequence[Problem], levels: Mapping[str, Level]) -> list[Problem]:
    return [
        dataclasses.replace(problem, level=levels[problem.rule])
        if problem.level != "error" and problem.rule in levels
        else problem
        for problem in problems
    ]


def _problems(parsed: document.Document, builder: MessageBuilder, job: Job | None) -> list[Problem]:
    if job is None:
        return [*builder.problems, *builder.remarks]
    broken = list(checking.findings(parsed, job, builder.kind, builder.left_out))
    # A required field without a value is one finding.
    missing = {problem.path for problem in broken} & builder.left_out
    remarks = [remark for remark in builder.remarks if remark.path not in missing]
    return [*builder.problems, *broken, *remarks]


@dataclass(frozen=True, slots=True)
class JobFile:
    """A job file of a stack: content, path for messages, and submission."""

    data: bytes
    file: str
    submission: Submission
    kind: JobKind | None = CUSTOM_JOB
    """The expected kind; None accepts any kind."""
    ladder: tuple[RungOverrides, ...] = ()
    scheduled: bool = False
    """True if a schedule submits the request for each scheduled time."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the stack file for the provider, by name."""


def check_job_files(
    files: Sequence[JobFile], table: ReferenceTable, context: Context = FILE_ONLY
) -> dict[str, JobFileResult]:
    """Check all jobs of a stack, also against each other; return results by job name."""

    def check(one: JobFile, others: Mapping[str, JobFacts]) -> JobFileResult:
        return check_ladder(one, table, dataclasses.replace(context, others=others))

    results = {one.submission.job: check(one, {}) for one in files}
    facts = {job: result.facts for job, result in results.items()}
    for one in files:
        job = one.submission.job
        others = {other: facts[other] for other in facts if other != job}
        # The first pass collects facts of all jobs. Few jobs need a second pass.
        if concerns(facts[job], others):
            results[job] = check(one, others)
    return results


def check_ladder(
    one: JobFile, table: ReferenceTable, context: Context = FILE_ONLY
) -> JobFileResult:
    """Check a job file with its own request, then with the request of each rung of its ladder."""
    context = dataclasses.replace(context, model=one.options.get(MODEL, {}))

    def check(rung: RungOverrides | None) -> JobFileResult:
        return check_job_file(
            one.data, one.file, one.submission, table, context, one.kind, rung,
            scheduled=one.scheduled,
        )  # fmt: skip

    first = check(None)
    if IDLE_STOP in one.options and first.request and (what := _nothing_idles(first.request)):
        hint = "remove idleStop from the stack file"
        problem = Problem(what, hint=hint, location=Location(one.file))
        first = dataclasses.replace(first, request=None, errors=(*first.errors, problem))
    if not one.ladder:
        return first
    titles = {first.request.request_id: "the job file"} if first.request else {}
    errors, warnings, requests = list(first.errors), list(first.warnings), list[JobRequest]()
    reservations = list(first.facts.reservation_requests)
    for number, rung in enumerate(one.ladder, start=2):
        result, title = check(rung), f"rung {number} ({rung})"
        errors += _of_rung(title, result.errors, first.errors)
        warnings += _of_rung(title, result.warnings, first.warnings)
        reservations += result.facts.reservation_requests
        if result.request is None:
            continue
        requests.append(result.request)
        if other := titles.get(result.request.request_id):
            what, hint = f"{title} is equal to {other}", "change or remove this ladder rung"
            errors.append(Problem(what, hint=hint, location=Location(one.file), rule="ladder"))
        titles[result.request.request_id] = title
    request = None
    if first.request and not errors:
        request = dataclasses.replace(
            first.request, ladder=tuple(requests), warnings=tuple(warnings)
        )
    facts = dataclasses.replace(first.facts, reservation_requests=tuple(reservations))
    return dataclasses.replace(
        first, request=request, errors=tuple(errors), warnings=tuple(warnings), facts=facts
    )


def _nothing_idles(request: JobRequest) -> str:
    if request.kind is TUNING_JOB:
        return "idleStop does not support tuning jobs"
    pools = request.message["jobSpec"].get("workerPoolSpecs", ())
    if any((pool.get("machineSpec") or {}).get("acceleratorCount") for pool in pools):
        return ""
    return "idleStop has no effect: no machine of the job has acceleratorCount (TPUs do not count)"


def _of_rung(title: str, problems: Sequence[Problem], of_file: Sequence[Problem]) -> list[Problem]:
    """Return the problems of a rung without the problems of the job file itself."""
    own = [problem for problem in problems if problem not in of_file]
    return [
        dataclasses.replace(problem, what=f"{title}: {problem.what}", mend=None) for problem in own
    ]


def _subnet(context: Context, message: Mapping[str, Any]) -> str:
    network = context.stack and context.stack.network
    return network.subnet if network and "pscInterfaceConfig" in message[CUSTOM_JOB.spec] else ""


def request_id_of(submission: Submission, draft: str, subnet: str = "") -> str:
    """Return the request id, which only equal requests have in common.

    ``subnet`` is the subnet of a Batch job, which is not a field of the request.
    """
    identity = [str(value) for value in dataclasses.astuple(submission)]
    parts = [*identity, draft, *([subnet] if subnet else ())]
    return digest_of("\0".join(parts))[:ID_LENGTH]


def _add_defaults(
    message: dict[str, Any],
    defaults: FileDefaults,
    table: ReferenceTable,
    kind: JobKind,
) -> dict[str, str]:
    """Add the stack's defaults to missing fields; return field -> text in the stack file."""
    spec, filled = message.get(kind.spec), dict[str, str]()
    if not isinstance(spec, dict):
        return filled
    for path, text in defaults.fields.items():
        *outer, last = path
        inside: Any = spec
        for key in outer:
            inside = inside.get(key, {})
        if last in inside:
            continue
        try:
            value = resolve_references(text, table)
        except UnknownReferenceError:
            continue
        inside = spec
        for key in outer:
            inside = inside.setdefault(key, {})
        inside[last] = value
        filled[".".join(path)] = text
    own = message.get("labels", {})
    if missing := {key: value for key, value in defaults.labels.items() if key not in own}:
        message["labels"] = {**missing, **own}
        filled |= {f"labels.{key}": value for key, value in missing.items()}
    return filled


#: Fields of a rung that override a machineSpec.
MACHINE: Final = ("machineType", "acceleratorType", "acceleratorCount")
#: Fields of a rung that override the scheduling.
SCHEDULING: Final = ("strategy", "maxWaitDuration")
#: Field of a rung, and the corresponding field of a machineSpec.
RESERVATION, AFFINITY = "reservation", "reservationAffinity"


@dataclass(frozen=True, slots=True)
class RungOverrides:
    """Fields of the job file that a rung replaces, by field name."""

    fields: Mapping[str, Any]
    affinity: Mapping[str, Any] | None = None
    """The reservationAffinity of the rung's reservation; None without a reservation."""

    def __str__(self) -> str:
        """Return a short text: ``strategy SPOT, 1 x NVIDIA_L4``."""
        values, parts = self.fields, []
        if "strategy" in values:
            parts.append(f"strategy {values['strategy']}")
        if "maxWaitDuration" in values:
            parts.append(f"waits {values['maxWaitDuration']}")
        if "machineType" in values:
            parts.append(str(values["machineType"]))
        if "acceleratorType" in values or "acceleratorCount" in values:
            count = values.get("acceleratorCount", "")
            parts.append(f"{count} x {values.get('acceleratorType', 'accelerators')}".strip(" x"))
        if RESERVATION in values:
            parts.append(f"reservation {values[RESERVATION].rpartition('/')[2]}")
        return ", ".join(parts)

    def of(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Return a CustomJob message with the rung's fields."""
        changed = copy.deepcopy(dict(message))
        spec = changed.get("jobSpec")
        if isinstance(spec, dict):
            self._lay_over_scheduling(spec)
            self._lay_over_machines([pool for pool in spec.get("workerPoolSpecs") or () if pool])
        return changed

    def _lay_over_scheduling(self, spec: dict[str, Any]) -> None:
        values = {key: self.fields[key] for key in SCHEDULING if key in self.fields}
        replaced = SCHEDULING if "strategy" in values or RESERVATION in self.fields else ()
        former = spec.pop("scheduling", None) or {}
        remaining = {key: value for key, value in former.items() if key not in replaced}
        if scheduling := remaining | values:
            spec["scheduling"] = scheduling

    def _lay_over_machines(self, pools: list[dict[str, Any]]) -> None:
        machines = [pool.get("machineSpec") for pool in pools]
        first = machines[0] if machines and isinstance(machines[0], dict) else {}
        values = {key: self.fields[key] for key in MACHINE if key in self.fields}
        replaced = (AFFINITY, *(MACHINE if "machineType" in values else ()))
        for pool, machine in zip(pools, machines, strict=True):
            if not isinstance(machine, dict):
                continue
            if any(machine.get(key) != first.get(key) for key in MACHINE):
                continue
            remaining = {key: value for key, value in machine.items() if key not in replaced}
            pool["machineSpec"] = remaining | values
            if self.affinity is not None:
                pool["machineSpec"][AFFINITY] = copy.deepcopy(dict(self.affinity))
