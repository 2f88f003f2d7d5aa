"""From a job's name or file to the request that the stack would send."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from vertex_training.customjob.request import job_file
from vertex_training.customjob.request.job_file import JobFileResult, JobRequest
from vertex_training.errors import CheckUnavailableError, did_you_mean
from vertex_training.stack import Stack
from vertex_training_cli.check import checking
from vertex_training_cli.engine.paths import from_here

#: Text that every YAML reader, of 1.1 and of 1.2, takes for text without quotes.
PLAIN: Final = re.compile(r"[A-Za-z_/][A-Za-z0-9_./=+@-]*(:[A-Za-z0-9_./=+@-]+)*\Z")


def check_job(stack: Stack, job: str) -> tuple[str, bytes, JobFileResult]:
    """The file, its bytes, and what was found for ``job``: a name in the stack, or a file.

    Raises:
        CheckUnavailableError: it is neither, or several jobs of the stack have this file.
    """
    jobs = stack.settings.submitted
    keys = [job] if job in jobs else []
    if not keys and Path(job).is_file():
        keys = stack.jobs_of(Path(job))
        if not keys:
            data = checking.read(job)
            return job, data, stack.check_other(data, job, checking.job(job))
    if len(keys) > 1:
        raise CheckUnavailableError(
            f"{job} is the file of several jobs, name one: {', '.join(keys)}"
        )
    if not keys:
        hint = did_you_mean(job, jobs)
        raise CheckUnavailableError(f"{job} is neither a job of this stack nor a file; {hint}")
    file = from_here(stack.root / jobs[keys[0]].file)
    found = stack.check_jobs(checking.shown_from(stack.root))
    return file, checking.read(file), found[keys[0]]


def as_sent(request: JobRequest, labels: Mapping[str, str]) -> dict[str, Any]:
    """The message with the labels that the stack adds when it is sent."""
    from vertex_training.customjob import (
        provider,  # half a second of Pulumi, for this option alone
    )

    own = {
        provider.STACK_LABEL: request.submission.stack,
        provider.REQUEST_ID_LABEL: request.request_id,
        provider.DIGEST_LABEL: request.digest[: provider.DIGEST_LABEL_LENGTH],
        provider.JOB_LABEL: request.submission.job,
        provider.RUN_LABEL: str(request.submission.run),
    }
    return request.sent({**labels, **request.kind.sent_labels(own)})


def as_json(message: Mapping[str, Any]) -> str:
    """Canonical JSON: of a request without added labels, the very text its digest is of."""
    return job_file.canonical(message) + "\n"


def as_yaml(message: Mapping[str, Any]) -> str:
    """YAML with sorted keys that any reader takes back to the same message."""
    return yaml.dump(
        json.loads(json.dumps(message)),  # no shared parts, so no anchors
        Dumper=_Dumper,
        sort_keys=True,
        allow_unicode=True,
        default_flow_style=False,
        width=2**31,
    )


class _Dumper(yaml.SafeDumper):
    """Quotes all text that some reader could take for something else."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    resolved = dumper.resolve(yaml.ScalarNode, text, (True, False))
    if PLAIN.match(text) and resolved == "tag:yaml.org,2002:str":
        style = None
    else:
        style = "|" if "\n" in text and text.strip() == text.rstrip("\n") else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)
