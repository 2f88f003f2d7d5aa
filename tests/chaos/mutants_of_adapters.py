"""Mutants of adoption, withdrawal, provider and adapters, each without one guard."""

from __future__ import annotations

from typing import Final

from tests.chaos.mutant import of

ADOPT: Final = of(
    "protocol.submission",
    "adopt",
    ("digests are not compared", "    if other:", "    if other is None:"),
    ("an ended run is adopted", "not in (*FAILED, ", "not in ("),
    ("a run being cancelled is adopted", "CANCELLING, RECORD_DELETED)", "RECORD_DELETED)"),
    ("the newest job is adopted", "    return min(candidates", "    return max(candidates"),
)
WITHDRAW: Final = of(
    "protocol.waiting",
    "withdraw",
    ("nothing is cancelled", "        jobs.cancel(name)\n", ""),
    (
        "it is cancelled before it is asked about",
        "        before_cancel(job)\n        jobs.cancel(name)\n",
        "        jobs.cancel(name)\n        before_cancel(job)\n",
    ),
    ("its end is not waited for", "    while job is not None and", "    while False and"),
    (
        "a job that does not end is given up silently",
        "        if waited >= bound:\n",
        "        if waited >= bound:\n            return\n",
    ),
    ("records are deleted unasked", "job is not None and delete_record:", "job is not None:"),
    ("a record in use is freed", "record.state is not IntentState.DONE", "record is None"),
    (
        "another job's record is freed",
        "    if stored.record.job_name != name:",
        "    if name is None:",
    ),
    (
        "a freed record forgets its job",
        "state=IntentState.RELEASED, owner",
        "state=IntentState.RELEASED, job_name='', owner",
    ),
    (
        "who loses the write fails",
        "    except PreconditionFailedError:\n        return  #",
        "    except PreconditionFailedError:\n        raise  #",
    ),
)
PROVIDER: Final = of(
    "provider",
    "provider",
    (
        "the record is freed before the job has ended",
        "        ask = functools.partial",
        '        release(_intents(props), props["requestId"], id_)\n'
        "        ask = functools.partial",
    ),
    (
        "nobody asks before a job is cancelled",
        "delete_record=delete_record, before_cancel=ask)",
        "delete_record=delete_record)",
    ),
    (
        "the same run is cancelled for itself",
        "        if _repeats(_current(job.name, olds), news):",
        "        if not request.request_id:",
    ),
    (
        "the record that the same run adopts is deleted",
        " and not _repeats(running, news)",
        "",
    ),
    (
        "the record is never freed",
        "            release(intents, request_id, name)\n",
        "",
    ),
    (
        "nobody asks for the engine",
        "ProcessEnvironment(engine_is_alive=is_engine_alive)",
        "ProcessEnvironment()",
    ),
    (
        "a forgotten job leaves the stack",
        "        return dynamic.ReadResult(name, {",
        "        if job is None:\n            return dynamic.ReadResult('', {})\n"
        "        return dynamic.ReadResult(name, {",
    ),
    (
        "a job is sent without its request id",
        "**ports.request_labels(stack, job, run, id_, digest)",
        "**ports.request_labels(stack, job, run, 'x', digest)",
    ),
    (
        "a job is sent without its name",
        "**ports.request_labels(stack, job, run, id_, digest)",
        "**ports.request_labels(stack, 'x', run, id_, digest)",
    ),
    (
        "a stack file overrides the labels of a request",
        '{**props["options"]["labels"], **ports.request_labels(stack, job, run, id_, digest)}',
        '{**ports.request_labels(stack, job, run, id_, digest), **props["options"]["labels"]}',
    ),
    (
        "tuning jobs share the records of jobs",
        "{_kind(props).records}",
        "{CUSTOM_JOB.records}",
    ),
    (
        "a changed request is no change",
        '            replaces = ["submission',
        '            replaces = [] and ["submission',
    ),
)
CLIENT: Final = of(
    "google.job_service",
    "error classes",
    (
        "UNAVAILABLE proves that nothing was created",
        '    "UNIMPLEMENTED": ',
        '    "UNAVAILABLE": "again",\n    "UNIMPLEMENTED": ',
    ),
    (
        "an answer without a name is an answer",
        "        if not job.name:",
        "        if job is None:",
    ),
    (
        "a missing right is a refusal like any other",
        'PermissionDeniedError if code == "PERMISSION_DENIED" else NotSubmittedError',
        "NotSubmittedError",
    ),
    (
        "a tuning job has the labels of jobs, and its trials with it",
        "self._kind.message), self._kind.sent_labels(labels)",
        "self._kind.message), labels",
    ),
    (
        "a tuning job is looked for by the label of jobs",
        "terms = self._kind.sent_labels(labels).items()",
        "terms = labels.items()",
    ),
)
STORE: Final = of(
    "google.intent_store",
    "compare-and-swap",
    (
        "a record is written without its precondition",
        "            if_generation_match=generation,\n",
        "",
    ),
)

#: All of them.
ADAPTER_MUTANTS: Final = (*ADOPT, *WITHDRAW, *PROVIDER, *CLIENT, *STORE)
