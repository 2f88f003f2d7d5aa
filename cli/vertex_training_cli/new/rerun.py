"""``vt jobs rerun``: a run more, with other arguments, as a change of files and never as a call.

What runs is what the files say, so that a review sees it and the next ``up`` repeats nothing
(docs/adr/0039-a-rerun-is-a-change-of-files.md).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer
import yaml

from vertex_training import stack as stacks
from vertex_training.errors import CommandError, ConfigError, Mend, did_you_mean
from vertex_training.errors import Path as FieldPath
from vertex_training.located_yaml import document, mending
from vertex_training.located_yaml.editing import set_value
from vertex_training.settings import stack_files
from vertex_training.settings.includes import read_config
from vertex_training.settings.model import Settings
from vertex_training.settings.reader import file_name
from vertex_training_cli.engine import stacks as engine_stacks
from vertex_training_cli.importing.command import offer
from vertex_training_cli.importing.imported import ImportedJob
from vertex_training_cli.importing.proposal import Proposal, named_files
from vertex_training_cli.options import SelectedStack, Write

#: Fields of a worker pool that have arguments, in both spellings.
TASKS: Final = ("containerSpec", "container_spec", "pythonPackageSpec", "python_package_spec")
POOLS: Final = ("workerPoolSpecs", "worker_pool_specs")
SPECS: Final = ("jobSpec", "job_spec")


def rerun(
    job: Annotated[str, typer.Argument(metavar="JOB", help="Name in the stack.")],
    stack: SelectedStack = None,
    args: Annotated[
        str, typer.Option("--args", help="Arguments that change, as one text: '--epochs=3'.")
    ] = "",
    write: Write = False,
) -> None:
    """Ask for one more run of a job: raises `run` in the stack file, and changes arguments.

    Nothing is sent: the diff is shown, and what --write writes is submitted by the next `up`.
    """
    offer(_proposal(job, stack, args), write=write)


def _proposal(job: str, stack: str | None, args: str) -> Proposal:
    ref = engine_stacks.find(stack)
    raw = stack_files.read_raw(stacks.SCHEMA, ref.root, ref.stack)
    settings = stacks.read_settings(raw, ref.root)
    _ensure_known(job, settings)
    entry = settings.jobs[job]
    made = Proposal(ref.root, ref.stack, settings.is_local, job_files=[entry.file])
    made.named = named_files(settings)
    name = _file_of(job, [file_name(ref.stack), *settings.include], ref.root)
    path = ("config", "vertex-training:jobs", job, "run")
    made.files[name] = set_value((ref.root / name).read_bytes(), path, entry.run + 1, name).decode()
    remarks = [f"run {entry.run + 1} is submitted by the next `vt up`"]
    if name in settings.include:
        remarks.append(f"{name} holds the job for every stack that includes it")
    if words := _words(args):
        text = (ref.root / entry.file).read_bytes().decode()
        made.files[entry.file] = with_arguments(text, words, entry.file)
        others = [k for k, each in settings.jobs.items() if each.file == entry.file and k != job]
        if others:
            remarks.append(f"the arguments of {', '.join(others)} change too: one file")
    made.jobs.append(ImportedJob(job, {}, remarks=remarks))
    return made


def _file_of(job: str, files: Sequence[str], root: Path) -> str:
    """The file that has the job's entry; the stack's own if none can be told."""
    for file in files:
        config = read_config(root / file)
        entries = config.get("vertex-training:jobs") or config.get("jobs")
        if isinstance(entries, Mapping) and job in entries:
            return file
    return files[0]


def _ensure_known(job: str, settings: Settings) -> None:
    if job in settings.tuning:
        hint = f"raise `run` of {job} below `tuning` in the stack file"
        raise CommandError(f"{job} is a tuning job, of which no file is changed here.", hint)
    if job not in settings.jobs:
        hint = did_you_mean(job, settings.jobs)
        raise CommandError(f"stack {settings.stack} has no job {job!r}.", hint)


def _words(args: str) -> list[tuple[str, str]]:
    """Flags and their new values.

    Raises:
        CommandError: a word is no ``--flag=value``.
    """
    try:
        words = shlex.split(args)
    except ValueError as failed:
        raise CommandError(f"--args cannot be read: {failed}.") from None
    for word in words:
        if not word.startswith("-") or "=" not in word:
            raise CommandError(f"--args: {word!r} is no flag with a value.", "write --flag=value")
    return [(flag, value) for flag, _, value in (word.partition("=") for word in words)]


def with_arguments(text: str, words: list[tuple[str, str]], file: str) -> str:
    """The job file with other values of flags, in every pool that has them.

    Raises:
        CommandError: no pool has a flag, or its place cannot be edited alone.
    """
    try:
        document.parse(text.encode(), file)  # bounded
    except ConfigError as failed:
        raise CommandError(str(failed.problems[0])) from None
    for flag, value in words:
        places = list(_places(yaml.safe_load(text), flag, value))
        if not places:
            raise CommandError(f"{file} gives no {flag}.", "add it to args by hand")
        for path, new in places:
            edited = mending.mended(text, path, Mend("value", new))
            if edited is None:
                raise CommandError(f"{file}: {flag} cannot be changed in place.", "edit it by hand")
            text = edited
    return text


def _places(content: Any, flag: str, value: str) -> Iterator[tuple[FieldPath, str]]:
    """Where a flag has its value, and what is to stand there."""
    for path, words in _arguments(content):
        for index, word in enumerate(words):
            if str(word).startswith(f"{flag}="):
                yield (*path, index), f"{flag}={value}"
            elif word == flag and index + 1 < len(words):
                yield (*path, index + 1), value


def _arguments(content: Any) -> Iterator[tuple[FieldPath, list[Any]]]:
    path: FieldPath = ()
    for names in (SPECS, POOLS):
        key = next((name for name in names if isinstance(content, Mapping) and name in content), "")
        if key:
            content, path = content[key], (*path, key)
    pools = content if isinstance(content, list) else [content]
    for index, pool in enumerate(pools):
        here = (*path, index) if isinstance(content, list) else path
        for task in TASKS:
            if isinstance(pool, Mapping) and isinstance(pool.get(task), Mapping):
                words = pool[task].get("args")
                if isinstance(words, list):
                    yield (*here, task, "args"), words
