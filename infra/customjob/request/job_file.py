"""Job file + references -> the CustomJob request. Pure, and all mistakes at once."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from infra.customjob.request import judging, references
from infra.customjob.request import message as shape
from infra.customjob.rules.context import ALONE, Context, JobFacts
from infra.customjob.rules.job import Job
from infra.customjob.rules.job_facts import about, matter_to
from infra.errors import ConfigError, Problem
from infra.located_yaml import document

#: Stands for the request id until it is known: the id is a digest of the request that names it.
REQUEST_ID = "job.requestId"
#: Hex digits of a request id. 80 bits: among a million submissions, no two are equal by chance.
ID_LENGTH = 20


@dataclass(frozen=True, slots=True)
class Submission:
    """Which job is meant: the parts that, with the request, make its identity."""

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
    """The CustomJob message as canonical JSON: REST's names, sorted keys, no spaces."""
    used: frozenset[str]
    """References the file uses, like ``buckets.data``."""
    warnings: tuple[Problem, ...]

    @property
    def message(self) -> dict[str, Any]:
        """The CustomJob message."""
        return json.loads(self.body)

    @property
    def digest(self) -> str:
        """SHA-256 of the message, in hex."""
        return digest_of(self.body)

    @property
    def output_directory(self) -> str:
        """``baseOutputDirectory`` of the job, a gs:// URI; empty if it has none."""
        return output_directory(self.body)


def digest_of(body: str) -> str:
    """Request digest: SHA-256 of a message's canonical JSON, in hex."""
    return hashlib.sha256(body.encode()).hexdigest()


def output_directory(body: str) -> str:
    """``baseOutputDirectory`` of a message given as JSON; empty if it has none."""
    spec = json.loads(body)["jobSpec"]
    return spec.get("baseOutputDirectory", {}).get("outputUriPrefix", "")


def canonical(message: Mapping[str, Any]) -> str:
    """One text for one message: key order, spacing and comments of the file do not matter."""
    return json.dumps(message, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found in one job file. ``request`` is there if no error was."""

    request: JobRequest | None
    errors: tuple[Problem, ...]
    warnings: tuple[Problem, ...]
    about: JobFacts = field(default_factory=JobFacts)
    """What the stack's other jobs must know of it."""


def load(
    data: bytes,
    file: str,
    submission: Submission,
    table: references.Table,
    context: Context = ALONE,
) -> JobRequest:
    """Read the job file ``data``, shown as ``file`` in messages, against the stack's references.

    Raises:
        ConfigError: with every mistake in the file.
    """
    verdict = judge(data, file, submission, table, context)
    if verdict.request is None:
        raise ConfigError(verdict.errors)
    return verdict.request


def judge(
    data: bytes,
    file: str,
    submission: Submission,
    table: references.Table,
    context: Context = ALONE,
) -> Verdict:
    """Like ``load``, but returns mistakes and warnings together; raises nothing."""
    try:
        parsed = document.read(data, file)
    except ConfigError as unreadable:
        return Verdict(None, unreadable.problems, ())
    known = {
        **table,
        "job.name": submission.job,
        "job.run": str(submission.run),
        REQUEST_ID: "${" + REQUEST_ID + "}",
    }
    shaper = shape.Shaper(parsed, known)
    message = shaper.request()
    found = [*parsed.problems, *shaper.problems, *shaper.warnings]
    if message is not None:
        message.setdefault("displayName", f"{submission.stack}-{submission.job}")
        job = Job(message, context, tuple(shaper.damaged))
        found += judging.findings(parsed, job)
    errors = tuple(sorted((p for p in found if p.level == "error"), key=lambda p: p.location))
    warnings = tuple(sorted((p for p in found if p.level == "warning"), key=lambda p: p.location))
    facts = JobFacts() if message is None else about(Job(message))
    if errors or message is None:
        return Verdict(None, errors, warnings, facts)
    draft = canonical(message)
    request_id = _identity(submission, draft)
    body = draft.replace("${" + REQUEST_ID + "}", request_id)
    request = JobRequest(submission, request_id, body, frozenset(shaper.used), warnings)
    return Verdict(request, (), warnings, facts)


@dataclass(frozen=True, slots=True)
class JobFile:
    """A job file of a stack: its bytes, its path as messages show it, and which job it is."""

    data: bytes
    file: str
    submission: Submission


def judge_all(
    files: Sequence[JobFile], table: references.Table, context: Context = ALONE
) -> dict[str, Verdict]:
    """Judge all jobs of a stack, each also against the others; by the job's name."""

    def judged(one: JobFile, others: Mapping[str, JobFacts]) -> Verdict:
        around = dataclasses.replace(context, others=others)
        return judge(one.data, one.file, one.submission, table, around)

    verdicts = {one.submission.job: judged(one, {}) for one in files}
    facts = {job: verdict.about for job, verdict in verdicts.items()}
    for one in files:
        job = one.submission.job
        others = {other: seen for other, seen in facts.items() if other != job}
        # What a job needs is known only once it was read; few need a second look.
        if matter_to(facts[job], others):
            verdicts[job] = judged(one, others)
    return verdicts


def _identity(submission: Submission, draft: str) -> str:
    """Request id: what makes one intended submission the same as another."""
    parts = [
        submission.project,
        submission.region,
        submission.stack,
        submission.job,
        str(submission.run),
        draft,
    ]
    digest = hashlib.sha256("\0".join(parts).encode())
    return digest.hexdigest()[:ID_LENGTH]
