"""``vt new job`` and ``vt jobs rerun``: show or write changes of job files and the stack file.

Neither command calls a service. The next ``vt up`` submits what the files declare (decision 39).
"""

from __future__ import annotations

import functools
import operator
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer
import yaml

from vertex_training.customjob.protocol.ports import REQUEST_ID_LABEL
from vertex_training.customjob.request.checking import path_in_file
from vertex_training.errors import CommandError, ConfigError, Mend, did_you_mean
from vertex_training.errors import Path as FieldPath
from vertex_training.located_yaml import document, editing
from vertex_training.located_yaml.editing import set_value
from vertex_training.settings.model import Settings
from vertex_training.settings.project_files import file_name
from vertex_training.settings.stack_files import read_config
from vertex_training.stack import settings_of
from vertex_training_cli.engine import stacks
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.importing.command import offer
from vertex_training_cli.importing.imported import REQUEST_ID, ImportedJob, to_key
from vertex_training_cli.importing.proposal import Proposal, named_files, propose
from vertex_training_cli.importing.sources import SourceContents
from vertex_training_cli.options import SelectedStack, StackOfJob, Write, project_root
from vertex_training_cli.run.script import EXECUTOR
from vertex_training_cli.run.submission import tasks_of

#: Name of the module in the sample package.
MODULE: Final = "task"
#: Key of the bucket that is added to a stack without buckets.
NEW_BUCKET: Final = "artifacts"

TASK: Final = '''\
"""{name}: the code of the job. It is installed as a package and run as `python -m {module}`."""

import argparse
import json
from pathlib import Path


def main() -> None:
    """Train, and write what was learned below --output."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", type=Path, required=True, help="a folder, such as /gcs/…")
    parser.add_argument("--epochs", type=int, default=1)
    options = parser.parse_args()

    loss = 1.0
    for epoch in range(options.epochs):
        loss /= 2
        print(f"epoch {{epoch}}: loss {{loss:.4f}}", flush=True)

    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "metrics.json").write_text(json.dumps({{"loss": loss}}))


if __name__ == "__main__":
    main()
'''


def new_job(
    name: Annotated[str, typer.Argument(help="Name of the job: a-z, 0-9 and hyphens.")],
    stack: StackOfJob = "local",
    image: Annotated[
        str, typer.Option("--image", help="Image URI, or the name of an image of the stack.")
    ] = "",
    write: Write = False,
) -> None:
    """Create a sample job to edit: job file, code and entries of the stack file.

    The job runs the image of --image. Without --image, the job runs a new Python package with one
    file, which the command creates in this checkout. Existing files are not overwritten.

    Exit code: 0 no mistakes, 1 the new files have mistakes, 2 no file was created.

    Example: `vt new job tune --image trainer --write`.
    """
    root = project_root()
    settings = settings_of(root, stack)
    hint = "choose another name for the new job"
    if to_key(name) in settings.jobs:
        raise CommandError(f"stack {stack} already has a job {name}.", hint)
    if (root / "jobs" / f"{name}.yaml").exists():
        raise CommandError(f"jobs/{name}.yaml already exists.", hint)
    source = _sample(name, image, settings)
    offer(propose(source, root, root, stack, settings), write=write)


def _sample(name: str, image: str, settings: Settings) -> SourceContents:
    written = [key for account in settings.service_accounts.values() for key in account.writes]
    bucket = next(iter([*written, *settings.buckets]), NEW_BUCKET)
    where = settings.names.bucket(bucket) if bucket in settings.buckets else bucket
    folder = f"{where}/{name}/{REQUEST_ID}"
    pool: dict[str, Any] = {"replicaCount": 1, "machineSpec": {"machineType": "n1-standard-4"}}
    if image:
        own = f"${{images.{image}}}" if image in settings.images else image
        pool["containerSpec"] = {"imageUri": own}
    else:
        args = [f"--output=/gcs/{folder}", "--epochs=3"]
        pool["pythonPackageSpec"] = {"executorImageUri": EXECUTOR, "args": args}
    spec = {
        "baseOutputDirectory": {"outputUriPrefix": f"gs://{folder}"},
        "scheduling": {"timeout": "3600s"},
        "workerPoolSpecs": [pool],
    }
    if image:
        return SourceContents([ImportedJob(name, spec)])
    code = TASK.format(name=name, module=MODULE)
    return SourceContents([ImportedJob(name, spec, script=f"{MODULE}.py")], {f"{MODULE}.py": code})


#: Path of the output directory in a job's message.
OUTPUT: Final = ("jobSpec", "baseOutputDirectory", "outputUriPrefix")


def rerun(
    job: Annotated[str, typer.Argument(metavar="JOB", help="Name of the job in the stack.")],
    stack: SelectedStack = None,
    args: Annotated[
        str, typer.Option("--args", help="Changed arguments in one string, such as '--epochs=3'.")
    ] = "",
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Continue from the newest checkpoint of the previous run."),
    ] = False,
    write: Write = False,
) -> None:
    """Edit the files of a job or tuning job so that the next `vt up` runs the job again.

    The command increments `run` in the stack file, changes arguments in the job file, and shows the
    diff. --write writes the files. No job is submitted. With --resume, the new run uses the output
    directory of the newest submission, so that its code finds the checkpoints in
    AIP_CHECKPOINT_DIR.

    Example: `vt jobs rerun titanic --args '--epochs=300' --write`.
    """
    offer(_proposal(job, stack, args, resume=resume), write=write)


def _proposal(job: str, stack: str | None, args: str, *, resume: bool) -> Proposal:
    ref = stacks.find(stack)
    settings = settings_of(ref.root, ref.stack)
    if job not in settings.submitted:
        hint = did_you_mean(job, settings.submitted)
        raise CommandError(f"stack {settings.stack} has no job {job!r}.", hint)
    if job in settings.schedules:
        hint = f"run `vt run {job}` to submit the job once; the schedule does not change"
        raise CommandError(
            f"job {job} has a schedule: raising `run` does not submit the job.", hint
        )
    section = "tuning" if job in settings.tuning else "jobs"
    if resume and section == "tuning":
        raise CommandError(f"{job} is a tuning job: its trials cannot be resumed.", "omit --resume")
    entry = settings.submitted[job]
    proposal = Proposal(ref.root, ref.stack, settings.is_local, job_files=[entry.file])
    proposal.named = named_files(settings)
    name = _file_of(job, section, [file_name(ref.stack), *settings.include], ref.root)
    path = ("config", f"vertex-training:{section}", job, "run")
    proposal.files[name] = set_value(
        (ref.root / name).read_bytes(), path, entry.run + 1, name
    ).decode()
    remarks = [f"the next `vt up` submits run {entry.run + 1}"]
    if name in settings.include:
        remarks.append(f"{name} changes for every stack that includes it")
    before = (ref.root / entry.file).read_bytes().decode()
    text = _with_arguments(before, _words(args), entry.file)
    if resume:
        request_id, checkpoints = _checkpoints(job, ref)
        text = with_folder_of(text, request_id, entry.file)
        remarks.append(f"the run resumes from the newest of {checkpoints}")
    if text != before:
        proposal.files[entry.file] = text
        jobs = settings.submitted.items()
        others = [key for key, other in jobs if other.file == entry.file and key != job]
        if others:
            changed = "the output directory" if resume else "the arguments"
            remarks.append(
                f"{changed} of {', '.join(others)} also change: they use the same job file"
            )
    proposal.jobs.append(ImportedJob(job, {}, remarks=remarks))
    return proposal


def _checkpoints(job: str, ref: StackRef) -> tuple[str, str]:
    """Return the request id of a job's newest submission, and a text about its checkpoints."""
    from vertex_training_cli.jobs import view
    from vertex_training_cli.jobs.objects import CHECKPOINTS, Objects
    from vertex_training_cli.jobs.service import Jobs, labels_of

    ref.connect_clients()
    job_ = Jobs(ref).find(job)
    folder = view.spec_of(job_).base_output_directory.output_uri_prefix.rstrip("/")
    where = f"{folder}/{CHECKPOINTS}"
    listing = Objects(ref.project).listing(where) if folder else None
    if listing is None or not listing.count:
        hint = "save checkpoints below AIP_CHECKPOINT_DIR in the job's code (docs/distributed.md)"
        raise CommandError(f"the newest run of job {job} has no checkpoint in {where}.", hint)
    count = f"{listing.count}{'+' if listing.more else ''} files in {where}"
    return labels_of(job_)[REQUEST_ID_LABEL], count


def with_folder_of(text: str, request_id: str, file: str) -> str:
    """Return the job file with the output directory of an earlier request."""
    parsed = document.parse(text.encode(), file)
    # A file may contain only the jobSpec.
    forms = {form: path_in_file(parsed, form) for form in (OUTPUT, OUTPUT[1:])}
    # The path of a missing field is shorter.
    path = next((path for form, path in forms.items() if len(path) == len(form)), None)
    folder = path and functools.reduce(operator.getitem, path, yaml.safe_load(text))
    if not path or not isinstance(folder, str):
        hint = "add baseOutputDirectory to the file"
        raise CommandError(f"{file} has no output directory.", hint)
    own = folder.replace(REQUEST_ID, request_id)
    if own == folder:
        return text  # All runs use the same output directory.
    edited = editing.mended(text, path, Mend("value", own))
    if edited is None:
        hint = f"set {path[-1]} to {own} by hand"
        raise CommandError(f"{file}: cannot edit the output directory in place.", hint)
    return edited


def _file_of(job: str, section: str, files: Sequence[str], root: Path) -> str:
    """Return the file with the job's entry; the stack file if it is unclear."""
    for file in files:
        config = read_config(root / file)
        entries = config.get(f"vertex-training:{section}") or config.get(section)
        if isinstance(entries, Mapping) and job in entries:
            return file
    return files[0]


def _words(args: str) -> list[tuple[str, str]]:
    """Return flags and their new values from ``--args``. Raises ``CommandError``."""
    try:
        words = shlex.split(args)
    except ValueError as failed:
        raise CommandError(f"cannot parse --args: {failed}.") from None
    for word in words:
        if not word.startswith("-") or "=" not in word:
            raise CommandError(
                f"--args: {word!r} is not a flag with a value.", "write --flag=value"
            )
    return [(flag, value) for flag, _, value in (word.partition("=") for word in words)]


def _with_arguments(text: str, words: list[tuple[str, str]], file: str) -> str:
    try:
        document.parse(text.encode(), file)  # refuses large files
    except ConfigError as failed:
        raise CommandError(str(failed.problems[0])) from None
    for flag, value in words:
        places = list(_places(yaml.safe_load(text), flag, value))
        if not places:
            raise CommandError(
                f"{file} has no flag {flag}.", "add the flag to `args` in the file by hand"
            )
        for path, new in places:
            edited = editing.mended(text, path, Mend("value", new))
            if edited is None:
                raise CommandError(f"{file}: cannot edit {flag} in place.", f"edit {flag} by hand")
            text = edited
    return text


def _places(content: Any, flag: str, value: str) -> Iterator[tuple[FieldPath, str]]:
    for path, task in tasks_of(content):
        words = task["args"] if isinstance(task.get("args"), list) else []
        for index, word in enumerate(words):
            if str(word).startswith(f"{flag}="):
                yield (*path, "args", index), f"{flag}={value}"
            elif word == flag and index + 1 < len(words):
                yield (*path, "args", index + 1), value
