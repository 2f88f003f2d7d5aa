"""All job files of a stack, judged together: rules across jobs need every one of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from infra.customjob.request import job_file as spec
from infra.customjob.request.job_file import JobFile, Submission, Verdict
from infra.customjob.rules.context import Context
from infra.plan import facts as stack_facts
from infra.plan import images as image_context
from infra.plan import references
from infra.plan.packages import Package
from infra.settings.model import Settings
from infra.stack_rules import limits


def judge(
    settings: Settings,
    packages: Mapping[str, Package],
    root: Path,
    shown: Callable[[str], str] = str,
) -> dict[str, Verdict]:
    """Every job of the stack, by its name, with what was found wrong in its file.

    ``root`` is the checkout; ``shown`` makes a file's name in messages from its name in the
    config.

    Raises:
        OSError: a file cannot be read.
    """
    files = [
        JobFile((root / job.file).read_bytes(), shown(job.file), submission(settings, key, job.run))
        for key, job in settings.jobs.items()
    ]
    return spec.judge_all(files, table(settings, packages, root), context(settings))


def table(settings: Settings, packages: Mapping[str, Package], root: Path) -> dict[str, Any]:
    """What references in job files stand for. ``root`` is the checkout."""
    return references.table(settings, packages, image_context.tags(settings.images, root))


def submission(settings: Settings, job: str, run: int = 1) -> Submission:
    """The submission of a job in this stack."""
    return Submission(settings.project, settings.region, settings.stack, job, run)


def context(settings: Settings) -> Context:
    """What is around every job of this stack, other jobs aside."""
    around = Context.of(stack_facts.facts(settings))
    return dataclasses.replace(around, limits=limits.of_jobs(settings))
