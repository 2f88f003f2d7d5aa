"""Runs the rules over a request and says where in the file each finding stands."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from infra.customjob import rules
from infra.customjob.request import hints
from infra.customjob.request import message as shape
from infra.customjob.request.secret_patterns import withheld
from infra.customjob.rules import Finding, Job
from infra.errors import Path, Problem, nearest
from infra.located_yaml.document import MAX_PROBLEMS, Document

#: Characters of a hint; the longest of our own names all regions.
MAX_HINT = 700


def findings(parsed: Document, job: Job) -> Iterator[Problem]:
    """What the rules find in ``job``, which was read from ``parsed``; the first hundred.

    Nothing is said about a place that could not be read: a misspelt field is one mistake, not
    also a missing one.
    """
    return itertools.islice(_findings(parsed, job), MAX_PROBLEMS)


def _findings(parsed: Document, job: Job) -> Iterator[Problem]:
    if "jobSpec" not in job.request:
        if not job.damaged:
            location = parsed.location(())
            hint = "beside displayName and labels, REST's form has everything else in jobSpec"
            yield Problem("jobSpec is missing", "", hint, location=location, rule="job-spec")
        return
    gcloud_form = not any(shape.camel(key) == "jobSpec" for key in parsed.root.content)
    for rule in rules.RULES:
        if rule.check is None:
            continue
        for finding in rule.check(job):
            if _hidden(finding, job.damaged):
                continue
            path = finding.path
            if gcloud_form and path[:1] == ("jobSpec",):
                path = path[1:]
            location = parsed.location(_as_written(parsed, path))
            hint = withheld(finding.hint)[:MAX_HINT]  # it may quote a value of any length
            value = withheld(finding.value)
            yield Problem(finding.what, value, hint, path, location, rule.id, rule.level)


def _hidden(finding: Finding, damaged: tuple[Path, ...]) -> bool:
    place = (*finding.path, finding.missing) if finding.missing else finding.path
    for path in damaged:
        shared = min(len(path), len(place))
        if path[:shared] == place[:shared]:
            return True
        if finding.missing and path[:-1] == finding.path and _meant(str(path[-1]), finding.missing):
            return True
    return False


def _meant(field: str, missing: str) -> bool:
    """Whether an unreadable ``field`` is the missing one misspelt, or belongs inside of it."""
    inside = (
        hints.messages()[row["message"]]
        for fields in hints.messages().values()
        if "message" in (row := fields.get(missing, {}))
    )
    return nearest(field, [missing]) is not None or any(field in fields for fields in inside)


def _as_written(parsed: Document, path: Path) -> Path:
    """``path`` with the keys of the file, which may be snake_case."""
    value, written = parsed.root, list[str | int]()
    for part in path:
        content = value.content
        if isinstance(content, dict) and part == 0:
            continue  # one worker pool, written without a list
        if isinstance(content, dict):
            key = next((k for k in content if part in (k, shape.camel(k))), None)
            if key is None:
                break
            written.append(key)
            value = content[key]
        elif isinstance(content, list) and isinstance(part, int):
            written.append(part)
            value = content[part]
        else:
            break
    return tuple(written)
