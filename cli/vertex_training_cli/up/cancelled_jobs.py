"""After an ``up`` that failed: jobs that were cancelled for requests that were then refused.

The provider leaves a note of each (``CANCELLED_JOBS``). Told are what ran, its newest checkpoint,
and the one command by which it runs again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from vertex_training import stack as stacks
from vertex_training.customjob.protocol.waiting import format_duration
from vertex_training.customjob.protocol.withdrawal import CancelledJob
from vertex_training.errors import CommandError, ConfigError, OperatorError, UnknownStackError
from vertex_training.settings.project_files import file_name
from vertex_training_cli.deploy.sources import run_git
from vertex_training_cli.engine.stacks import StackRef

_USED: Final = re.compile(r"\$\{(packages|images)\.([^.}]+)")


def report_cancelled_jobs(stack: StackRef, notes: Path, log: Callable[[str], None]) -> None:
    """Log each job of the notes, with its checkpoint and the way back."""
    for cancelled in _read(notes):
        log(f"{cancelled} for a request that was refused: nothing runs now")
        if checkpoint := _checkpoint(stack, cancelled):
            log(checkpoint)
        log(f"to bring it back: {_way_back(stack, cancelled.job)}")


def _read(notes: Path) -> Iterator[CancelledJob]:
    if notes.exists():
        for line in notes.read_text(encoding="utf-8").splitlines():
            yield CancelledJob(**json.loads(line))


def _checkpoint(stack: StackRef, cancelled: CancelledJob) -> str:
    """Where its newest checkpoint is; empty if it has no output directory."""
    if not cancelled.output:
        return ""
    from vertex_training_cli.jobs.objects import CHECKPOINTS, Objects  # loads Google's client

    folder = f"{cancelled.output.rstrip('/')}/{CHECKPOINTS}"
    try:
        stack.connect_clients()
        newest = Objects(stack.project).listing(folder).newest
    except (CommandError, OperatorError) as error:
        return f"its output is in {cancelled.output}; checkpoints cannot be looked for: {error}"
    if newest is None:
        return f"it has no checkpoint in {folder}"
    age = max(0.0, (datetime.now(UTC) - newest).total_seconds())
    return f"its newest checkpoint is {format_duration(age)} old, in {folder}"


def _way_back(stack: StackRef, job: str) -> str:
    """The command that submits the request before this one once more."""
    up = f"vt up --stack {stack.stack}"
    try:
        files = ["--", *_files_of(stack, job)]
        if run_git(stack.root, "status", "--porcelain", "--untracked-files=no", *files).strip():
            return f"git stash && {up}"
        commit = run_git(stack.root, "log", "-1", "--format=%h", *files).strip()
    except CommandError:
        commit = ""
    if not commit:
        return f"put its files back as they were, then {up}"
    return f"git revert --no-edit {commit} && {up}"


def _files_of(stack: StackRef, job: str) -> list[str]:
    """Paths that the job's request is made of; the whole checkout if the stack cannot be read."""
    try:
        loaded = stacks.load(stack.root, stack.stack)
    except (ConfigError, UnknownStackError):
        return ["."]
    settings = loaded.settings
    keys = [key for key, first in loaded.first_job_keys.items() if job in (key, first)]
    if not keys:
        return ["."]
    file = settings.submitted[keys[0]].file
    found = [file_name(stack.stack), *settings.include, file]
    for section, key in _USED.findall((stack.root / file).read_text(encoding="utf-8")):
        package, image = settings.packages.get(key), settings.images.get(key)
        if section == "packages" and package:
            found.append(package.path)
        if section == "images" and image and image.context:
            found += [image.context, *image.include]
    return found
