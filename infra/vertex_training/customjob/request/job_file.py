"""From a job file, references and rungs to the request, with all mistakes at once. Pure.

A file is a CustomJob or a HyperparameterTuningJob (``vertex_training.customjob.kinds``).
"""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from vertex_training.catalog import costs
from vertex_training.customjob.batch.message import BatchParameters, batch_job
from vertex_training.customjob.batch.naming import job_id
from vertex_training.customjob.kinds import BATCH_JOB, CUSTOM_JOB, TUNING_JOB, JobKind
from vertex_training.customjob.protocol.ports import IDLE_STOP
from vertex_training.customjob.request import checking, references
from vertex_training.customjob.request.message import MessageBuilder
from vertex_training.customjob.rules.context import FILE_ONLY, Context, FileDefaults, JobFacts
from vertex_training.customjob.rules.job import Job, concerns, job_facts_of
from vertex_training.customjob.rules.trials import COUNTS
from vertex_training.errors import ConfigError, Level, Location, Problem, UnknownReferenceError
from vertex_training.located_yaml import document

#: Placeholder of the request id, which is a digest of the request that contains it.
REQUEST_ID: Final = "job.requestId"
#: Placeholder of the slot of a schedule, which is known when the slot is submitted.
SLOT: Final = "job.slot"
#: Hex digits of a request id: 80 bits, so no two of a million submissions collide by chance.
ID_LENGTH: Final = 20


@dataclass(frozen=True, slots=True)
class Submission:
    """The identity of a job, together with its request."""

    project: str
    region: str
    stack: str
    job: str
    run: int


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A checked request, ready to be sent."""

    submission: Submission
    request_id: str
    body: str
    """The message as canonical JSON: REST's names, sorted keys, no spaces."""
    used: frozenset[str]
    """References the file uses, like ``buckets.data``."""
    warnings: tuple[Problem, ...]
    filled_in: Mapping[str, str] = field(default_factory=dict)
    """Fields from the stack's ``jobDefaults``: field -> the text of the stack file."""
    kind: JobKind = CUSTOM_JOB
    ladder: tuple[JobRequest, ...] = ()
    """The rungs after this request, which is the first one."""
    words: str = ""
    """Of a rung: what it has otherwise than the job file."""
    subnet: str = ""
    """Subnet of the machines of a job on Batch; empty for the project's default network."""
    notifications: tuple[Mapping[str, Any], ...] = ()
    """Batch's messages about its states, as the API has them; no part of its identity."""

    @property
    def rungs(self) -> tuple[JobRequest, ...]:
        """This request and those of its ladder; at most one of them runs."""
        return (self, *self.ladder)

    @property
    def cost(self) -> costs.JobCost:
        """Return its maximum cost: that of its most expensive rung."""
        messages = (rung.message for rung in self.rungs)
        return costs.of_dearest(messages, self.submission.region, self.kind.backend)

    @property
    def own_cost(self) -> costs.JobCost:
        """Return the maximum cost of this rung."""
        return costs.of_job(self.message, self.submission.region, self.kind.backend)

    @property
    def message(self) -> dict[str, Any]:
        """The message."""
        return json.loads(self.body)

    @property
    def trial(self) -> dict[str, Any]:
        """The CustomJob message that runs: the message itself, or that of one trial."""
        return self.kind.trial_of(self.message)

    def sent(self, labels: Mapping[str, str]) -> dict[str, Any]:
        """The message with these labels, as its service takes it."""
        if self.kind is not BATCH_JOB:
            own = self.message.get("labels", {})
            return {**self.message, **({"labels": {**own, **labels}} if labels else {})}
        own = self.submission
        id_ = job_id(own.stack, own.job, self.request_id)
        place = BatchParameters(own.project, own.region, id_, self.subnet, self.notifications)
        return batch_job(self.message, place, labels)

    @property
    def account(self) -> str:
        """The address of the account that it runs as; empty if it names none."""
        return str(self.trial["jobSpec"].get("serviceAccount", ""))

    @property
    def digest(self) -> str:
        """SHA-256 of the message, in hex."""
        return digest_of(self.body)

    @property
    def output_directory(self) -> str:
        """``baseOutputDirectory`` of the job, a gs:// URI; empty if it has none."""
        directory = self.trial["jobSpec"].get("baseOutputDirectory", {})
        return directory.get("outputUriPrefix", "")


def digest_of(body: str) -> str:
    """Request digest: SHA-256 of a message's canonical JSON, in hex."""
    return hashlib.sha256(body.encode()).hexdigest()


def canonical(message: Mapping[str, Any]) -> str:
    """Canonical JSON: key order, spacing and comments of the file do not matter."""
    return json.dumps(message, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class JobFileResult:
    """Result of checking one job file. ``request`` is None if there are errors."""

    request: JobRequest | None
    errors: tuple[Problem, ...]
    warnings: tuple[Problem, ...]
    facts: JobFacts = field(default_factory=JobFacts)
    """Facts that rules about the stack's other jobs need."""
    notes: tuple[Problem, ...] = ()
    """Advice for who asks for it."""
    ignored: tuple[Problem, ...] = ()
    """Those notes that a comment of the file made of a mistake or a warning."""

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Errors, warnings and notes."""
        return (*self.errors, *self.warnings, *self.notes)


def check_job_file(
    data: bytes,
    file: str,
    submission: Submission,
    table: references.Table,
    context: Context = FILE_ONLY,
    kind: JobKind | None = None,
    rung: RungOverrides | None = None,
    *,
    scheduled: bool = False,
) -> JobFileResult:
    """Read the job file ``data``, shown as ``file`` in messages, against the stack's references.

    Returns mistakes and warnings together, and raises nothing.

    ``kind`` is the wanted one; None takes what the file is. ``rung`` is laid over what the file and
    the stack's defaults say. The request of a ``scheduled`` job has ``${job.slot}`` and
    ``${job.requestId}`` as they are: each slot has its own.
    """
    try:
        parsed = document.read(data, file)
    except ConfigError as unreadable:
        return JobFileResult(None, unreadable.problems, ())
    is_batch = kind is BATCH_JOB
    if is_batch:
        kind, context = CUSTOM_JOB, dataclasses.replace(context, backend=BATCH_JOB.backend)
    known = {
        **table,
        "job.name": submission.job,
        "job.run": str(submission.run),
        REQUEST_ID: "${" + REQUEST_ID + "}",
        **({SLOT: "${" + SLOT + "}"} if scheduled else {}),
    }
    builder = MessageBuilder(parsed, known, kind)
    message, filled = builder.build_message(), dict[str, str]()
    if message is not None:
        filled = _fill_in(message, submission, known, context, builder)
        message = rung.of(message) if rung else message
        if scheduled:
            _add_slot(message, builder.kind)
    job = None if message is None else _job(message, context, builder)
    found = _with_levels([*parsed.problems, *_problems(parsed, builder, job)], context.levels)
    found, ignored = checking.apply(found, data.decode("utf-8-sig", errors="replace"), file)
    facts = JobFacts() if job is None else job_facts_of(job)
    errors, warnings = _of_level(found, "error"), _of_level(found, "warning")
    notes = _of_level(found, "note")
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


def _fill_in(
    message: dict[str, Any],
    submission: Submission,
    known: references.Table,
    context: Context,
    builder: MessageBuilder,
) -> dict[str, str]:
    """Add what the file leaves out; what came of ``jobDefaults``."""
    message.setdefault("displayName", f"{submission.stack}-{submission.job}")
    if context.encryption_key:
        message.setdefault("encryptionSpec", {"kmsKeyName": context.encryption_key})
    filled = _add_defaults(message, context.defaults, known, builder.kind)
    builder.used.update(name for text in filled.values() for name in references.names_in(text))
    return filled


def _add_slot(message: dict[str, Any], kind: JobKind) -> None:
    """Give each slot a folder of its own below the output directory, where the file does not."""
    spec = message.get(kind.spec)
    directory = spec.get("baseOutputDirectory") if isinstance(spec, dict) else None
    uri = directory.get("outputUriPrefix") if isinstance(directory, dict) else None
    if isinstance(directory, dict) and isinstance(uri, str) and uri:
        names = ("${" + name + "}" for name in (SLOT, REQUEST_ID))
        if not any(name in uri for name in names):
            directory["outputUriPrefix"] = f"{uri.rstrip('/')}/${{{SLOT}}}"


def _job(message: dict[str, Any], context: Context, builder: MessageBuilder) -> Job:
    """The message as the rules read it: a CustomJob, which a trial is as well."""
    kind = builder.kind
    unreadable = tuple(kind.path_in_trial(path) for path in builder.unreadable)
    tuning = None if kind is CUSTOM_JOB else message
    return Job(kind.trial_of(message), context, unreadable, tuning)


def _with_levels(problems: Sequence[Problem], levels: Mapping[str, Level]) -> list[Problem]:
    """The problems at the levels that the stack sets; an error stays one."""
    return [
        dataclasses.replace(problem, level=levels[problem.rule])
        if problem.level != "error" and problem.rule in levels
        else problem
        for problem in problems
    ]


def _problems(parsed: document.Document, builder: MessageBuilder, job: Job | None) -> list[Problem]:
    """Result of the builder and the rules."""
    if job is None:
        return [*builder.problems, *builder.remarks]
    broken = list(checking.findings(parsed, job, builder.kind, builder.left_out))
    # A field that a rule misses is one finding, also if it is there without a value.
    missing = {problem.path for problem in broken} & builder.left_out
    remarks = [remark for remark in builder.remarks if remark.path not in missing]
    return [*builder.problems, *broken, *remarks]


def _of_level(problems: Sequence[Problem], level: Level) -> tuple[Problem, ...]:
    """Problems of one level, in the order of their places."""
    return tuple(sorted((p for p in problems if p.level == level), key=lambda p: p.location))


@dataclass(frozen=True, slots=True)
class JobFile:
    """A job file of a stack: its bytes, its path as messages show it, and its submission."""

    data: bytes
    file: str
    submission: Submission
    kind: JobKind | None = CUSTOM_JOB
    """The wanted one; None takes what the file is."""
    ladder: tuple[RungOverrides, ...] = ()
    scheduled: bool = False
    """True if it is the request of each slot of a schedule."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the stack file that its provider reads, by their names there."""


def check_job_files(
    files: Sequence[JobFile], table: references.Table, context: Context = FILE_ONLY
) -> dict[str, JobFileResult]:
    """Check all jobs of a stack, each also against the others. Results are by the job's name."""

    def check(one: JobFile, others: Mapping[str, JobFacts]) -> JobFileResult:
        return check_ladder(one, table, dataclasses.replace(context, others=others))

    results = {one.submission.job: check(one, {}) for one in files}
    facts = {job: result.facts for job, result in results.items()}
    for one in files:
        job = one.submission.job
        others = {other: facts[other] for other in facts if other != job}
        # The facts of all jobs take a first pass. Few jobs need a second one.
        if concerns(facts[job], others):
            results[job] = check(one, others)
    return results


def check_ladder(
    one: JobFile, table: references.Table, context: Context = FILE_ONLY
) -> JobFileResult:
    """Check a job file, and each rung of its ladder as if it were the file's own request."""

    def check(rung: RungOverrides | None) -> JobFileResult:
        return check_job_file(
            one.data, one.file, one.submission, table, context, one.kind, rung,
            scheduled=one.scheduled,
        )  # fmt: skip

    first = check(None)
    if IDLE_STOP in one.options and first.request and (what := _nothing_idles(first.request)):
        problem = Problem(what, hint="remove idleStop", location=Location(one.file))
        first = dataclasses.replace(first, request=None, errors=(*first.errors, problem))
    if not one.ladder:
        return first
    found = {first.request.request_id: "the job file"} if first.request else {}
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
        if other := found.get(result.request.request_id):
            what, hint = f"{title} asks for what {other} asks for", "remove it, or change it"
            errors.append(Problem(what, hint=hint, location=Location(one.file), rule="ladder"))
        found[result.request.request_id] = title
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
    """Return the reason why ``idleStop`` would never cancel the job; empty if it may."""
    if request.kind is TUNING_JOB:
        return "idleStop is about one job, and a tuning job runs many"
    pools = request.message["jobSpec"].get("workerPoolSpecs", ())
    if any((pool.get("machineSpec") or {}).get("acceleratorCount") for pool in pools):
        return ""
    what = "no machine of the job has acceleratorCount, and TPUs are not looked at"
    return f"idleStop has nothing to look at: {what}"


def _of_rung(title: str, problems: Sequence[Problem], of_file: Sequence[Problem]) -> list[Problem]:
    """Problems that a rung has and the file has not. No edit of the file mends them."""
    own = [problem for problem in problems if problem not in of_file]
    return [
        dataclasses.replace(problem, what=f"{title}: {problem.what}", mend=None) for problem in own
    ]


def _subnet(context: Context, message: Mapping[str, Any]) -> str:
    """The stack's subnet, if the job is in its network."""
    network = context.stack and context.stack.network
    return network.subnet if network and "pscInterfaceConfig" in message[CUSTOM_JOB.spec] else ""


def request_id_of(submission: Submission, draft: str, subnet: str = "") -> str:
    """Request id: equal for two submissions of the same request, and only for them.

    Of one on Batch, ``subnet`` is what no field of the request has; its id has a prefix as well.
    """
    parts = [
        submission.project,
        submission.region,
        submission.stack,
        submission.job,
        str(submission.run),
        draft,
        *([subnet] if subnet else ()),
    ]
    digest = hashlib.sha256("\0".join(parts).encode())
    return digest.hexdigest()[:ID_LENGTH]


def _add_defaults(
    message: dict[str, Any],
    defaults: FileDefaults,
    table: references.Table,
    kind: JobKind = CUSTOM_JOB,
) -> dict[str, str]:
    """Add what ``message`` lacks; field -> the text of the stack file that gave it.

    A default with an unknown reference is left out: it is a mistake of the stack file.
    """
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
            value = references.resolve(text, table)
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


#: Fields of a rung that are those of a machineSpec.
MACHINE: Final = ("machineType", "acceleratorType", "acceleratorCount")
#: Fields of a rung that are those of the scheduling.
SCHEDULING: Final = ("strategy", "maxWaitDuration")
#: Field of a rung and of a machineSpec.
RESERVATION, AFFINITY = "reservation", "reservationAffinity"


@dataclass(frozen=True, slots=True)
class RungOverrides:
    """Differences of a rung from the job file, by the names of a job file's fields."""

    fields: Mapping[str, Any]
    affinity: Mapping[str, Any] | None = None
    """The reservationAffinity of its reservation; None if it names none."""

    def __str__(self) -> str:
        """It in a few words: ``strategy SPOT, 1 x NVIDIA_L4``."""
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
        """The message of a CustomJob with the rung laid over it."""
        changed = copy.deepcopy(dict(message))
        spec = changed.get("jobSpec")
        if isinstance(spec, dict):
            self._lay_over_scheduling(spec)
            self._lay_over_machines([pool for pool in spec.get("workerPoolSpecs") or () if pool])
        return changed

    def _lay_over_scheduling(self, spec: dict[str, Any]) -> None:
        values = {key: self.fields[key] for key in SCHEDULING if key in self.fields}
        scheduling = dict(spec.get("scheduling") or {})
        if "strategy" in values or RESERVATION in self.fields:
            for key in SCHEDULING:
                scheduling.pop(key, None)
        scheduling |= values
        if scheduling:
            spec["scheduling"] = scheduling
        else:
            spec.pop("scheduling", None)

    def _lay_over_machines(self, pools: list[dict[str, Any]]) -> None:
        """The first pool and those of the same machine."""
        machines = [pool.get("machineSpec") for pool in pools]
        first = machines[:1]
        values = {key: self.fields[key] for key in MACHINE if key in self.fields}
        for pool, machine in zip(pools, machines, strict=True):
            if not isinstance(machine, dict) or _machine(machine) != _machine(first[0] or {}):
                continue
            kept = dict(machine)
            kept.pop(AFFINITY, None)
            if "machineType" in values:
                for key in MACHINE:
                    kept.pop(key, None)
            kept |= values
            if self.affinity is not None:
                kept[AFFINITY] = copy.deepcopy(dict(self.affinity))
            pool["machineSpec"] = kept


def _machine(machine: Mapping[str, Any]) -> list[Any]:
    return [machine.get(key) for key in MACHINE]
