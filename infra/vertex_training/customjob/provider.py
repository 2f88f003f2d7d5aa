"""The dynamic provider of ``CustomJob`` and ``HyperparameterTuningJob``.

States refer to this module and class by name: neither can be renamed or moved. One instance serves
four threads.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from pulumi import dynamic

from vertex_training.customjob.dynamic_values import (
    IMPERSONATE,
    PROVIDER_KEY,
    BoundedProvider,
    has_unknown,
    print_line,
    without_provider,
)
from vertex_training.customjob.kinds import (
    BACKEND,
    BATCH_JOB,
    CUSTOM_JOB,
    SECTION,
    JobKind,
    kind_of_submission,
)
from vertex_training.customjob.protocol import ports
from vertex_training.customjob.protocol.idle import IdleRule, IdleStop, Reading, reason_of
from vertex_training.customjob.protocol.ladder import Ladder, job_with_turn, stop_climbing
from vertex_training.customjob.protocol.ports import ProcessEnvironment
from vertex_training.customjob.protocol.prerequisites import (
    Prerequisites,
    ask_all,
    ask_until_settled,
    questions,
)
from vertex_training.customjob.protocol.submission import current_job
from vertex_training.customjob.protocol.waiting import (
    CancelledJob,
    release,
    withdraw,
)
from vertex_training.customjob.refusal_lookup import (
    RefusalLookup,
    ReplacedJob,
    is_offline,
    refusal_reason,
)
from vertex_training.customjob.request.job_file import JobRequest, digest_of
from vertex_training.errors import JobRefusedError, NotSubmittedError, OperatorError
from vertex_training.pulumi_internals import is_engine_alive

#: Keys of ``submission``, which together with the request identify a job.
SUBMISSION_KEYS: Final = ("project", "region", "stack", "job", "run")
#: Key of ``submission`` of a Batch job: the subnet of its machines.
SUBNET: Final = "subnet"
#: Key of ``options``: Batch's notifications. In the state, so that the preview shows changes.
NOTIFICATIONS: Final = "notifications"
#: Key of ``options``: folder of the records in a control bucket of several environments.
RECORDS: Final = "records"
#: Keys of ``options`` that are not in the state: only a preview and ``create`` read them.
NOT_STORED: Final = frozenset({"filledIn", "labels", "onChange", ports.LADDER})
#: Key of a job's outputs: the id of the request to submit after the running job has ended.
DEFERRED: Final = "deferredRequestId"


class CustomJobProvider(BoundedProvider):
    """Implements check, diff, create, read, update and delete for jobs of all kinds."""

    def check(self, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.CheckResult:
        """Validate inputs again. Fail the preview if the service or records would refuse the job.

        Accepts unknown values. ``olds`` are empty for a new job and for a replacement, whose inputs
        the engine checks a second time.
        """
        reasons = [] if has_unknown(news) else _input_problems(news)
        if not reasons:
            _declared[_job_key(news)] = news
        if not (reasons or olds or has_unknown(news)) and (reason := _refusal(news, None)):
            reasons = [reason]
        # Without the name of a property, whose value the engine would print.
        return dynamic.CheckResult(news, [dynamic.CheckFailure("", text) for text in reasons])

    def diff(self, id_: str, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.DiffResult:
        """Replace the job if its request changed: Vertex AI cannot update jobs. Ignore labels.

        With ``onChange: finish``, a live job is updated instead, and continues.

        Raises:
            JobRefusedError: the new request would be refused after the old job was cancelled.
        """
        replaces = []
        deferred = _is_deferred(id_, olds, news)
        if not deferred and _has_another_request(id_, olds, news):
            # The state has no copy of the request, which changed if the submission did not.
            changed = olds.get("submission") != news.get("submission")
            replaces = ["submission" if changed else "request"]
            replaced = _current(id_, olds)
            if not has_unknown(news) and (reason := _refusal(news, replaced)):
                raise JobRefusedError(f"{reason.removesuffix('.')}. Nothing was cancelled.")
        changes = (
            bool(replaces)
            or olds.get(DEFERRED) != (news["requestId"] if deferred else None)
            or (not deferred and olds.get(ports.LADDER) != _rung_ids(olds, news).get(ports.LADDER))
            or (not (deferred or replaces) and olds["requestId"] != news["requestId"])
            or olds.get(PROVIDER_KEY) != news.get(PROVIDER_KEY)
            or olds["options"] != _stored_options(news["options"])
        )
        return dynamic.DiffResult(changes=changes, replaces=replaces, delete_before_replace=True)

    def create(self, props: dict[str, Any]) -> dynamic.CreateResult:
        """Submit the job, or adopt an existing job. Does not wait for the job.

        Raises:
            OperatorError: the submission was refused or is uncertain; names a cancelled old job.
        """
        from vertex_training.customjob.google import prerequisites  # loads Google's client

        environment = ProcessEnvironment(engine_is_alive=is_engine_alive)
        service, intents = _service(props), _intents(props)
        try:
            rungs = [prerequisites.to_send(rung, _account(props)) for rung in rungs_of(props)]
            job, adopted = Ladder(rungs, service, intents, self.timing, environment).place()
        except OperatorError as error:
            cancelled = _cancelled.get(_job_key(props))
            if cancelled is None:
                raise
            # After another error a job may exist, so ``in_vain`` may be wrong.
            is_certain = isinstance(error, (NotSubmittedError, JobRefusedError))
            text = cancelled.in_vain if is_certain else f"Before that, {cancelled}."
            raise type(error)(f"{error} {text}") from None
        if adopted:
            _adopted.add(job.name)
        outs = {"state": job.state, **{key: props[key] for key in ("submission", "requestId")}}
        outs |= {"options": _stored_options(props["options"]), **_rung_ids({}, props)}
        return dynamic.CreateResult(job.name, outs)

    def read(self, id_: str, props: dict[str, Any]) -> dynamic.ReadResult:
        """Refresh the job's state. Returns no inputs: changed inputs would submit the job again.

        With a restored old state, adopts the current job of the request.
        """
        request_id, name = _current(id_, props)
        job = current_job(name, _parent(props), request_id, _service(props))
        name, state = (id_, ports.RECORD_DELETED) if job is None else (job.name, job.state)
        return dynamic.ReadResult(name, {**without_provider(props), "state": state})

    def update(self, id_: str, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.UpdateResult:
        """Update the stored options, and the request that follows the running job."""
        outs = {**without_provider(olds), "options": _stored_options(news["options"])}
        outs.pop(DEFERRED, None)
        if _has_another_request(id_, olds, news):
            outs[DEFERRED] = news["requestId"]
        else:
            outs.pop(ports.EARLIER_RUNGS, None)
            outs |= {"requestId": news["requestId"], **_rung_ids(olds, news)}
        return dynamic.UpdateResult(outs)

    def delete(self, id_: str, props: dict[str, Any]) -> None:
        """Cancel the job and wait for its end. With ``onDelete: delete``, delete its record.

        A job continues if another resource adopted it in the same update: the resource has a new
        name without an alias, and the engine creates the new resource before it deletes the old.

        Raises:
            JobRefusedError: the request that replaces the job would be refused; the job continues.
        """
        running = _current(id_, props)
        if not _adopted.isdisjoint((id_, running.name)):
            return
        news = _declared.get(_job_key(props))
        # If a job's own request replaces it, the record must remain: otherwise the request would
        # be submitted again.
        delete_record = props["options"]["onDelete"] == "delete" and not _repeats(running, news)
        ask = functools.partial(self._ensure_accepted, news, props)
        service, intents = _service(props), _intents(props)

        def end(request_id: str, name: str) -> None:
            ended = withdraw(service, name, delete_record=delete_record, before_cancel=ask)
            if ended is not None:
                submission = props["submission"]
                cancelled = CancelledJob.of(submission["job"], int(submission["run"]), ended)
                _cancelled[_job_key(props)] = cancelled
            release(intents, request_id, name)

        known, stores = _known_request(props), (service, intents)
        environment = ProcessEnvironment()
        if not known.ladder or not stop_climbing(known, *stores, end, self.timing, environment):
            end(props["requestId"], id_)

    def _ensure_accepted(
        self, news: dict[str, Any] | None, olds: dict[str, Any], job: ports.JobSnapshot
    ) -> None:
        """Check that the request ``news`` would be accepted before its live job is cancelled."""
        from vertex_training.customjob.google import prerequisites  # loads Google's client

        if news is None or has_unknown(news):
            return
        rungs, environment = rungs_of(news), ProcessEnvironment()
        request = rungs[0]
        if _repeats(_current(job.name, olds), news):
            reason = f"its request is unchanged; set run: {request.run + 1} to submit the job again"
        else:
            checks = questions(rungs, _kind(news))
            answers = ask_until_settled(checks, _prerequisites(news), self.timing, environment)
            for line in answers.unanswered:
                print_line(f"job '{request.job}' is replaced: {line}")
            reason = str(answers) or prerequisites.obstacle(request, _account(news))
            reason = reason or _record_problem(rungs, _current(job.name, olds), news)
        if reason:
            raise JobRefusedError(
                f"job '{request.job}' was not replaced, and {job.name} continues "
                f"({job.short_state}), because run {request.run} would be refused: {reason}. "
                "Nothing was cancelled."
            )


def submission_of(request: JobRequest) -> dict[str, object]:
    """Return ``submission`` for inputs and state; CustomJobs omit section and backend."""
    more: dict[str, object] = {}
    if request.kind is BATCH_JOB:
        more = {BACKEND: BATCH_JOB.backend, **({SUBNET: request.subnet} if request.subnet else {})}
    elif request.kind is not CUSTOM_JOB:
        more = {SECTION: request.kind.section}
    return {**asdict(request.submission), **more}


def input_options(
    request: JobRequest,
    passed: Mapping[str, Any],
    labels: Mapping[str, str],
    control_bucket: Any,
    impersonate: str = "",
    records: str = "",
) -> dict[str, Any]:
    """Return the input ``options`` of a job or schedule: ``passed``, and values of the request."""
    others = {
        "filledIn": dict(request.filled_in),
        IMPERSONATE: impersonate,
        RECORDS: records,
        NOTIFICATIONS: list(request.notifications),
    }
    present = {key: value for key, value in others.items() if value}
    return {"labels": dict(labels), "controlBucket": control_bucket, **passed, **present}


def _has_another_request(id_: str, olds: dict[str, Any], news: dict[str, Any]) -> bool:
    """Return whether the stack no longer declares the running or last request."""
    if not _known_rungs(olds) and ports.LADDER not in news["options"]:
        return olds["requestId"] != news["requestId"]
    declared = _declared_rungs(news)
    return olds.get(ports.LADDER) != declared and _current(id_, olds).request_id not in declared


def _repeats(running: ReplacedJob, news: dict[str, Any] | None) -> bool:
    if news is None or has_unknown(news):
        return False
    return running.request_id in _declared_rungs(news)


def _declared_rungs(news: Mapping[str, Any]) -> list[str]:
    ladder = news["options"].get(ports.LADDER, ())
    return [news["requestId"], *(rung["requestId"] for rung in ladder)]


def _known_rungs(olds: Mapping[str, Any]) -> tuple[str, ...]:
    return (*olds.get(ports.LADDER, ()), *olds.get(ports.EARLIER_RUNGS, ()))


def _rung_ids(olds: Mapping[str, Any], news: Mapping[str, Any]) -> dict[str, list[str]]:
    if ports.LADDER not in news["options"] and not _known_rungs(olds):
        return {}
    declared = _declared_rungs(news)
    before = (*_known_rungs(olds), olds["requestId"]) if olds else ()
    earlier = [id_ for id_ in dict.fromkeys(before) if id_ not in declared]
    return {ports.LADDER: declared, **({ports.EARLIER_RUNGS: earlier} if earlier else {})}


def _current(id_: str, olds: Mapping[str, Any]) -> ReplacedJob:
    """Return request and job of the current rung; those of the state if the turn is unreadable."""
    known, current = _known_rungs(olds), None
    if known and not is_offline(olds["submission"]["project"]):
        try:
            current = job_with_turn(_known_request(olds), _intents(dict(olds)))
        except OperatorError as error:
            job = olds["submission"]["job"]
            print_line(f"job '{job}': the current ladder rung could not be read: {error}")
    request_id, name = current or (olds["requestId"], id_)
    return ReplacedJob(request_id, name or id_)


def _is_deferred(id_: str, olds: dict[str, Any], news: dict[str, Any]) -> bool:
    """Return whether the new request waits for the running job; an unreadable job may be live."""
    if news["options"].get("onChange") != "finish" or not _has_another_request(id_, olds, news):
        return False
    if olds.get("state") in ports.TERMINAL and not _known_rungs(olds):
        return False
    try:
        job = _service(olds).get(_current(id_, olds).name)
    except OperatorError:
        return True
    return job is not None and job.state not in ports.TERMINAL


def _refusal(news: dict[str, Any], replaced: ReplacedJob | None) -> str:
    def connect() -> tuple[ports.JobService, ports.IntentStore]:
        return _service(news), _intents(news)

    def ask() -> str:
        if replaced is None:
            return ""  # no job is cancelled, and the submission itself reports a refusal
        lasting = [question for question in questions(rungs, _kind(news)) if question.lasts]
        return str(ask_all(lasting, _prerequisites(news)))

    rungs = rungs_of(news)
    records = f"{news['options']['controlBucket']}/{_records(news)}"
    return _lookup.reason(rungs, replaced, records, connect, ask)


def _record_problem(
    rungs: Sequence[ports.SubmissionRequest], replaced: ReplacedJob, news: dict[str, Any]
) -> str:
    try:
        intents = _intents(news)
        intents.now()  # a write
        return refusal_reason(rungs, replaced, _service(news), intents).removesuffix(".")
    except OperatorError as error:
        return f"the records of the job cannot be used: {str(error).removesuffix('.')}"


#: Lookups of this process. A module variable: attributes of the provider would be pickled into
#: states.
_lookup: Final = RefusalLookup()
#: Names of jobs that resources adopted in this update. The engine starts a process for each update.
_adopted: Final[set[str]] = set()
#: ``_job_key`` -> job that was cancelled for a new request.
_cancelled: Final[dict[tuple[object, ...], CancelledJob]] = {}
#: ``_job_key`` -> inputs of a declared job, which may replace a deleted job. The engine checks all
#: inputs before it deletes resources.
_declared: Final[dict[tuple[object, ...], dict[str, Any]]] = {}


def _request(props: Mapping[str, Any]) -> ports.SubmissionRequest:
    submission, id_, body = props["submission"], props["requestId"], props["request"]
    stack, job, run = submission["stack"], submission["job"], int(submission["run"])
    digest = digest_of(body)
    # The last labels win: no stack file may override the labels of a request.
    labels = {**props["options"]["labels"], **ports.request_labels(stack, job, run, id_, digest)}
    return ports.SubmissionRequest(_parent(props), stack, job, run, id_, body, digest, labels)


def _known_request(olds: Mapping[str, Any]) -> ports.SubmissionRequest:
    """Return the submission in a state. A state contains no bodies of requests."""
    submission, id_ = olds["submission"], olds["requestId"]
    stack, job, run = submission["stack"], submission["job"], int(submission["run"])
    return ports.SubmissionRequest(
        _parent(olds), stack, job, run, id_, "", "", {}, ladder=_known_rungs(olds)
    )


def rungs_of(props: Mapping[str, Any]) -> list[ports.SubmissionRequest]:
    """Return the rungs of a job's inputs; the first is the request of the job file."""
    ladder, ids = props["options"].get(ports.LADDER) or (), tuple(_declared_rungs(props))
    if not ladder:
        return [_request(props)]
    rungs = []
    for number, rung in enumerate([{"words": "as in the job file"}, *ladder], start=1):
        request = _request({**props, **rung})
        labels = {**request.labels, ports.RUNG_LABEL: str(number)}
        words = str(rung["words"])
        rungs.append(dataclasses.replace(request, ladder=ids, words=words, labels=labels))
    return rungs


def ladder_of(props: Mapping[str, Any]) -> Ladder:
    """Return the ladder of a job's inputs, for a wait. Raises OperatorError."""
    from vertex_training.customjob.google import prerequisites  # loads Google's client

    rungs = [prerequisites.to_send(rung, _account(props)) for rung in rungs_of(props)]
    return Ladder(rungs, _service(dict(props)), _intents(dict(props)))


def idle_stop_of(props: Mapping[str, Any]) -> IdleStop | None:
    """Return the ``idleStop`` of a job's or a schedule's inputs, or None. Raises OperatorError."""
    if not (rule := props["options"].get(ports.IDLE_STOP)):
        return None
    project, account = props["submission"]["project"], _account(props)

    def look(name: str, seconds: float) -> Reading:
        from vertex_training.customjob.google.logs import read_utilization

        return read_utilization(project, name, seconds, account)

    return IdleStop(IdleRule(rule), _service(dict(props)), _intents(dict(props)), look)


def stop_reason(props: Mapping[str, Any], name: str, request_id: str) -> str:
    """Return why ``idleStop`` cancelled the job ``name``, or empty text. Raises OperatorError."""
    return reason_of(name, request_id, _intents(dict(props)))


def _parent(props: Mapping[str, Any]) -> str:
    submission = props["submission"]
    return f"projects/{submission['project']}/locations/{submission['region']}"


def _job_key(props: Mapping[str, Any]) -> tuple[object, ...]:
    """Return the identity of a job, which does not include run and request."""
    keys = ("project", "region", "stack", "job", SECTION)
    return tuple(props["submission"].get(key) for key in keys)


def _kind(props: Mapping[str, Any]) -> JobKind:
    return kind_of_submission(props.get("submission") or {})


def _service(props: dict[str, Any]) -> ports.JobService:
    from vertex_training.customjob.google.backends import connect  # loads Google's client

    submission = props["submission"]
    place = submission["project"], submission["region"]
    subnet, topics = str(submission.get(SUBNET, "")), props["options"].get(NOTIFICATIONS, ())
    return connect(*place, _kind(props), _account(props), subnet, topics)


def _prerequisites(props: dict[str, Any]) -> Prerequisites:
    from vertex_training.customjob.google.prerequisites import connect

    return connect(props["submission"]["project"], _account(props))


def _intents(props: dict[str, Any]) -> ports.IntentStore:
    from vertex_training.customjob.google.intent_store import connect  # loads Google's client

    bucket = props["options"]["controlBucket"]
    return connect(props["submission"]["project"], bucket, _records(props), _account(props))


def _records(props: Mapping[str, Any]) -> str:
    return f"{props['options'].get(RECORDS, '')}{_kind(props).records}"


def _account(props: Mapping[str, Any]) -> str:
    return str(props["options"].get(IMPERSONATE, ""))


def _stored_options(options: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in options.items() if value and key not in NOT_STORED}


def _input_problems(news: dict[str, Any]) -> list[str]:
    """Return a message if required inputs are empty, which only other programs can pass."""
    submission, options = news.get("submission") or {}, news.get("options") or {}
    missing = [
        *(f"submission.{key}" for key in SUBMISSION_KEYS if not submission.get(key)),
        *(key for key in ("request", "requestId") if not news.get(key)),
        *(f"options.{key}" for key in ("controlBucket", "onDelete") if not options.get(key)),
    ]
    return [f"{_kind(news).message}: {', '.join(missing)} must not be empty"] if missing else []
