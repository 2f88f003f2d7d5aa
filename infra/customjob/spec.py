"""Job file + references -> the CustomJob request. Pure, and all mistakes at once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from infra.customjob import document, references, rules, shape
from infra.customjob.document import Document, Path
from infra.errors import ConfigError, Problem

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


def load(data: bytes, file: str, submission: Submission, table: references.Table) -> JobRequest:
    """Read the job file ``data``, shown as ``file`` in messages, against the stack's references.

    Raises:
        ConfigError: with every mistake in the file.
    """
    parsed = document.parse(data, file)
    known = {
        **table,
        "job.name": submission.job,
        "job.run": str(submission.run),
        REQUEST_ID: "${" + REQUEST_ID + "}",
    }
    shaper = shape.Shaper(parsed, known)
    message = _rest_form(parsed, shaper)
    problems, warnings = list(shaper.problems), list(shaper.warnings)
    if message is not None and not problems:
        message.setdefault("displayName", f"{submission.stack}-{submission.job}")
        for level, problem in _broken_rules(parsed, message):
            (problems if level == "error" else warnings).append(problem)
    if problems or message is None:
        raise ConfigError(sorted(problems, key=_place))
    draft = canonical(message)
    request_id = _identity(submission, draft)
    body = draft.replace("${" + REQUEST_ID + "}", request_id)
    return JobRequest(submission, request_id, body, frozenset(shaper.used), tuple(warnings))


def _rest_form(parsed: Document, shaper: shape.Shaper) -> dict[str, Any] | None:
    """The message as REST takes it, from REST's form or gcloud's (the jobSpec alone)."""
    keys = {shape.camel(key) for key in parsed.root.content}
    wrapper = set(shape.messages()["CustomJob"]) - set(shape.messages()["CustomJobSpec"])
    if keys & wrapper:
        return shaper.message(parsed.root, "CustomJob", ())
    spec = shaper.message(parsed.root, "CustomJobSpec", ())
    return None if spec is None else {"jobSpec": spec}


def _broken_rules(parsed: Document, message: dict[str, Any]) -> list[tuple[str, Problem]]:
    found: list[tuple[str, Problem]] = []
    gcloud_form = not any(shape.camel(key) == "jobSpec" for key in parsed.root.content)
    for rule in rules.RULES:
        for finding in rule.check(message):
            path = finding.path
            if gcloud_form and path[:1] == ("jobSpec",):
                path = path[1:]
            where = parsed.where(_as_written(parsed, path))
            what = f"{document.dotted(path)}: {finding.what}" if path else finding.what
            found.append((rule.level, Problem(where, what, finding.got, finding.hint)))
    return found


def _as_written(parsed: Document, path: Path) -> Path:
    """``path`` with the keys of the file, which may be snake_case."""
    value, written = parsed.root, list[str | int]()
    for part in path:
        if isinstance(value.content, dict):
            key = next((k for k in value.content if shape.camel(k) == part), None)
            if key is None:
                break
            part = key
        elif not (isinstance(value.content, list) and isinstance(part, int)):
            break
        written.append(part)
        value = value.content[part]
    return tuple(written)


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


def _place(problem: Problem) -> tuple[str, int, int]:
    file, line, column = problem.where.rsplit(":", 2)
    return file, int(line), int(column)
