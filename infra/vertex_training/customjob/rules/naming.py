"""Names and labels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from vertex_training.customjob.protocol.ports import JOB_LABELS, LABEL_PREFIX
from vertex_training.customjob.rules.job import Job
from vertex_training.customjob.rules.registry import TYPES, Finding, rule

MAX_NAME: Final = 128
MAX_LABELS: Final = 64
MAX_LENGTH: Final = 64
MAX_BYTES: Final = 128


@rule("display-name", TYPES + "custom_job.py")
def display_name(job: Job) -> Iterator[Finding]:
    """displayName has 1 to 128 characters."""
    name = job.request.get("displayName", "x")
    if not 1 <= len(name) <= MAX_NAME:
        what = f"has more than {MAX_NAME} characters" if name else "is empty"
        yield Finding(("displayName",), what, name, "leave it out for STACK-JOB")


@rule("label", TYPES + "custom_job.py")
def label(job: Job) -> Iterator[Finding]:
    """Labels have at most 64 lowercase letters, digits, '_' and '-', of any language."""
    limit = f"must have at most {MAX_LENGTH} lowercase letters, digits, '_' and '-'"
    for key, value in job.request.get("labels", {}).items():
        if not key or not _is_label(key):
            what = f"label key '{key}' {limit}"
            yield Finding(("labels", key), what, "", "for example cost-center")
        elif not _is_label(value):
            what = f"value of label '{key}' {limit}"
            yield Finding(("labels", key), what, value, "for example ml-1")


@rule(
    "label-limits", "https://docs.cloud.google.com/resource-manager/docs/labels-overview", "warning"
)
def label_limits(job: Job) -> Iterator[Finding]:
    """Labels stay below what was seen to be refused: 64 characters, 128 bytes, '-' at the start."""
    for key, value in job.request.get("labels", {}).items():
        if not _is_label(key) or not _is_label(value):
            continue  # reported by the rule above
        long = any(len(t) >= MAX_LENGTH or len(t.encode()) >= MAX_BYTES for t in (key, value))
        if long or key[:1] in ("_", "-"):
            what = f"label '{key}' was seen to be refused"
            hint = "63 characters at most, the key beginning with a letter or digit"
            yield Finding(("labels", key), what, value, hint)


def _is_label(text: str) -> bool:
    marks = all(c in "_-" or (c.isalnum() and c == c.lower()) for c in text)
    return marks and len(text) <= MAX_LENGTH


@rule("label-reserved", "docs/job-files.md")
def label_reserved(job: Job) -> Iterator[Finding]:
    """Labels that begin with vt- are left to the stack: by them a job is found again.

    Without a stack this is a warning: the service takes such a job.
    """
    level = "warning" if job.context.stack is None else None
    for key in job.request.get("labels", {}):
        if key.startswith(LABEL_PREFIX):
            what = f"the stack sets the labels that begin with {LABEL_PREFIX}"
            yield Finding(("labels", key), what, key, "rename it", level=level)


@rule(
    "label-count", "https://docs.cloud.google.com/resource-manager/docs/labels-overview", "warning"
)
def label_count(job: Job) -> Iterator[Finding]:
    """With those of the stack, a job has at most 64 labels."""
    count = len(job.request.get("labels", {}))
    if count > MAX_LABELS - len(JOB_LABELS):
        what = f"a job has at most {MAX_LABELS} labels, {len(JOB_LABELS)} of which the stack sets"
        yield Finding(("labels",), what, str(count), "remove some")
