"""Check job files, with or without their stack, and return reports."""

from __future__ import annotations

import dataclasses
import functools
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from vertex_training.customjob.request import job_file
from vertex_training.customjob.request.checking import path_in_file
from vertex_training.customjob.rules.context import Context
from vertex_training.errors import (
    CheckUnavailableError,
    CommandError,
    ConfigError,
    Location,
    Problem,
    UnknownStackError,
)
from vertex_training.located_yaml import document
from vertex_training.naming import is_local
from vertex_training.settings.project_files import file_name
from vertex_training_cli.check import placeholders
from vertex_training_cli.check.report import FileReport
from vertex_training_cli.engine.paths import from_here, link_out, root_of, stack_file

if TYPE_CHECKING:  # with a stack comes pydantic
    from vertex_training.stack import Stack

#: Maximum bytes read from a file, to bound memory use. The size limit of job files is far lower.
MAX_READ: Final = 32 * 1024 * 1024
#: Field name that identifies a JSON file as a job file.
JOB_FIELD: Final = re.compile(
    rb'"(jobSpec|job_spec|workerPoolSpecs|worker_pool_specs|trialJobSpec|trial_job_spec)"\s*:'
)
#: Argument that means standard input instead of a file.
STDIN: Final = "-"
#: Rule id of problems with the local cloud on this machine. Comments cannot disable it, because it
#: is not a rule of the service.
LOCAL_RULE: Final = "local-cannot-run"


def files_of(arguments: Iterable[str]) -> list[str]:
    """Return the distinct files to check; a folder means the job files directly in that folder.

    These are its YAML files, and its JSON files with a field of a job.

    Raises:
        CheckUnavailableError: a file does not exist.
    """
    files: dict[str, None] = {}
    for argument in arguments:
        path = Path(argument)
        if path.is_dir():
            inside = sorted(file for file in path.iterdir() if file.is_file())
            files |= dict.fromkeys(str(file) for file in inside if _may_be_job_file(file))
        elif argument == STDIN or path.exists():
            files[argument] = None
        else:
            raise CheckUnavailableError(f"{argument}: no such file")
    if not files:
        raise CheckUnavailableError("no job file to check")
    return list(files)


def project_of(stack_name: str) -> Path | None:
    """Return the folder of the Pulumi project; None outside of a project.

    Raises:
        CheckUnavailableError: a stack requires a project, and no folder has one.
    """
    root = root_of(Path.cwd())
    if stack_name and root is None:
        raise CheckUnavailableError(
            "no Pulumi.yaml in this folder or above; --stack requires a project"
        )
    return root


def files_to_check(
    arguments: Sequence[str], root: Path | None, loaded: Stack | None = None
) -> list[str]:
    """Return the named files; without names, the stack's job files or those in the folder jobs.

    Raises:
        CheckUnavailableError: a file or folder does not exist.
    """
    if arguments:
        return files_of(arguments)
    if loaded is not None:
        jobs = loaded.settings.submitted.values()
        return list(dict.fromkeys(from_here(loaded.root / job.file) for job in jobs))
    folder = (root or Path.cwd()) / "jobs"
    if not folder.is_dir():
        raise CheckUnavailableError("this folder has no folder jobs: name the files to check")
    return files_of([from_here(folder)])


def _may_be_job_file(file: Path) -> bool:
    """Return whether a folder's file may be a job file, not data or a schema."""
    if file.suffix in (".yaml", ".yml"):
        return True
    if file.suffix != ".json" or file.name.endswith(".schema.json"):
        return False
    return JOB_FIELD.search(read(str(file))) is not None


def read(file: str) -> bytes:
    """Return the bytes of a file, or of standard input for ``-``.

    Raises:
        CheckUnavailableError: the file cannot be read, or is behind a link out of the checkout.
    """
    if file == STDIN:
        return sys.stdin.buffer.read(MAX_READ)
    if link := link_out(Path(os.path.abspath(file)), of_user=True):
        raise CheckUnavailableError(
            f"{file}: {from_here(link)} is a link to a place outside the checkout"
        )
    try:
        with Path(file).open("rb") as stream:
            return stream.read(MAX_READ)
    except OSError as failed:
        raise CheckUnavailableError(f"{file}: {failed.strerror or failed}") from None


def check_without_stack(file: str) -> FileReport:
    """Return the problems of a file that do not depend on a stack.

    Raises:
        CheckUnavailableError: the file cannot be read.
    """
    data, shown = read(file), name(file)
    result = job_file.check_job_file(
        data, shown, placeholders.submission(job(file)), placeholders.table(data)
    )
    return report(shown, data, result)


def check_in_stack(
    files: Sequence[str], root: Path, stack_name: str, *, ask_registries: bool = False
) -> list[FileReport]:
    """Return the problems of the files in this stack, and of the stack file.

    ``ask_registries`` looks up pinned images over the network. Without files, all jobs of the stack
    are checked. If the stack file has mistakes, the job files are checked without it.

    Raises:
        CheckUnavailableError: the stack does not exist, or a file cannot be read.
    """
    loaded = stack_or_reports(root, stack_name)
    if isinstance(loaded, list):
        if files:
            return [*loaded, *map(check_without_stack, files)]
        return [*loaded, *_jobs_without_stack(root, stack_name)]
    try:
        results = loaded.check_jobs(shown_from(root))
    except OSError as failed:
        raise CheckUnavailableError(f"{failed.filename}: {failed.strerror or failed}") from None
    reports = [_one_of(file, loaded, results) for file in files_to_check(files, root, loaded)]
    looked_up = _in_registries(loaded) if ask_registries else []
    from vertex_training.settings import stack_files
    from vertex_training_cli import policy_levels

    requests = {key: result.request for key, result in results.items() if result.request}
    levels = loaded.located(policy_levels.problems(loaded.settings.policy_levels))
    warnings = [*loaded.warnings(requests), *loaded.deployment_warnings(), *levels]
    warnings += stack_files.unread(root / file_name(stack_name))
    if of_stack := [*loaded.exceeded_limits(results), *warnings, *looked_up]:
        reports = [*_of_config(root, stack_name, of_stack), *reports]
    return reports


def _jobs_without_stack(root: Path, stack_name: str) -> list[FileReport]:
    """Return the problems of the stack's job files while the stack file has mistakes.

    The result is empty if the stack file cannot be read, or has mistakes in defaults for jobs.
    """
    from vertex_training.plan.facts import file_defaults
    from vertex_training.settings import reader, stack_files
    from vertex_training.stack import SCHEMA
    from vertex_training.stack_rules.files import file_problems

    try:
        read_so_far = reader.read(SCHEMA, stack_files.read_raw(SCHEMA, root, stack_name))
    except ConfigError:
        return []
    settings = read_so_far.settings
    if settings is None or {path[0] for path in read_so_far.removed} & {"jobDefaults", "rules"}:
        return []
    defaults = file_defaults(settings)
    context = Context(defaults=defaults, levels=settings.rules)
    reports: dict[str, FileReport] = {}
    for key, entry in settings.submitted.items():
        file = root / entry.file
        if not any(file_problems((), entry.file, root)):
            data, shown = read(str(file)), from_here(file)
            known = placeholders.table(data) | placeholders.table(
                "".join(defaults.fields.values()).encode()
            )
            result = job_file.check_job_file(
                data, shown, placeholders.submission(key), known, context
            )
            reports[shown] = report(shown, data, result)
    return list(reports.values())


def _in_registries(loaded: Stack) -> list[Problem]:
    """Return problems of the stack's images in their registries; does not start the local cloud."""
    from vertex_training_cli.engine import stacks
    from vertex_training_cli.images import registry
    from vertex_training_cli.images.lookup import problems

    settings = loaded.settings
    with suppress(CommandError):  # not running: each image reports this
        registry.connect(
            stacks.find_unchecked(loaded.root, settings.stack), lambda _: None, start=False
        )
    return loaded.located(problems(settings, loaded.root))


def shown_from(root: Path) -> Callable[[str], str]:
    """Return a function that converts a configuration file to its path from the current folder."""
    return lambda file: from_here(root / file)


def stack_or_reports(root: Path, stack_name: str) -> Stack | list[FileReport]:
    """Return the stack, or reports on the stack file and package files if these have mistakes.

    Raises:
        CheckUnavailableError: the stack does not exist.
    """
    from vertex_training import stack
    from vertex_training.settings import stack_files

    try:
        return stack.load(root, stack_name)
    except UnknownStackError as missing:
        raise CheckUnavailableError(str(missing)) from None
    except ConfigError as failed:
        unread = stack_files.unread(root / file_name(stack_name))
        return _of_config(root, stack_name, [*failed.problems, *unread])


def _of_config(root: Path, stack_name: str, problems: Sequence[Problem]) -> list[FileReport]:
    """Return a report of the stack file, and of each other file with a problem.

    Problems of a folder are reported with the stack file. Only the stack file is quoted, because a
    line of requirements may have a password.
    """
    shown = stack_file(root, stack_name)
    source = _text((root / file_name(stack_name)).read_bytes())
    others: dict[str, list[Problem]] = {}
    own: list[Problem] = []
    for problem in problems:
        file = problem.location.file
        if file == Path(shown).name or not (root / file).is_file():
            own.append(_as_shown(problem, shown))
        else:
            shown_file = from_here(root / file)
            others.setdefault(shown_file, []).append(
                problem.at(dataclasses.replace(problem.location, file=shown_file))
            )
    reports = [
        FileReport.from_problems(file, "", of_file, of_stack=True)
        for file, of_file in others.items()
    ]
    own_report = FileReport.from_problems(shown, source, own, of_stack=True)
    return [own_report, *reports] if own else reports


def _one_of(file: str, loaded: Stack, results: Mapping[str, job_file.JobFileResult]) -> FileReport:
    data, shown = read(file), name(file)
    jobs = [] if file == STDIN else loaded.jobs_of(Path(file))
    job_results = [results[key] for key in jobs] or [loaded.check_other(data, shown, job(file))]
    of_jobs = [_report_in_stack(shown, data, result, loaded) for result in job_results]
    whole = of_jobs[0]
    for other in of_jobs[1:]:
        whole = whole.merged(other)
    return whole


def _report_in_stack(
    shown: str, data: bytes, result: job_file.JobFileResult, loaded: Stack
) -> FileReport:
    """Return a file's report. For a local stack, it includes problems of the local cloud."""
    local = is_local(loaded.settings.project)
    more = local_problems(data, shown, result) if local else ()
    return FileReport.from_problems(shown, _text(data), [*result.problems, *more])


def report(shown: str, data: bytes, result: job_file.JobFileResult) -> FileReport:
    """Return the report of a checked file."""
    return FileReport.from_problems(shown, _text(data), result.problems)


def name(file: str) -> str:
    """Return the name of a file in messages."""
    return "<stdin>" if file == STDIN else file


def job(file: str) -> str:
    """Return the job name of a file without a stack: the file name without its extension."""
    return "stdin" if file == STDIN else Path(file).stem[:40]


def _text(data: bytes) -> str:
    """Return the file's text for quoted lines, cut to the maximum size of a job file."""
    return data[: document.MAX_BYTES].decode("utf-8-sig", errors="replace")


def _as_shown(problem: Problem, file: str) -> Problem:
    """Return the problem with the stack file's path for messages instead of its bare name."""
    if problem.location.file != Path(file).name:
        return problem
    return problem.at(dataclasses.replace(problem.location, file=file))


def local_problems(data: bytes, shown: str, result: job_file.JobFileResult) -> Iterator[Problem]:
    """Yield a problem for each part of a valid job file that the local cloud cannot run here."""
    import psutil

    from localgcp.runner.refusals import refusals, stored_only

    request = result.request
    if request is None:
        return
    free = psutil.virtual_memory().available
    study = request.message.get("studySpec", {})
    for problem in (
        *refusals(request.trial, _engine_missing, free, **_choices()),
        *stored_only(study),
    ):
        location = _location(data, shown, request.kind.path_in_message(problem.path))
        what = problem.what.removesuffix(".")
        yield Problem(what, "", problem.hint, (), location, LOCAL_RULE, problem.level)


def _choices() -> dict[str, Any]:
    """Return the settings that the last ``vt local start`` saved."""
    from localgcp.errors import LocalCloudError
    from localgcp.home import Home
    from localgcp.runner import substitutes
    from localgcp.runner.allotment import GpuShortage

    try:
        home = Home.find()
    except LocalCloudError:  # a folder that is no home of this user has no settings
        return {}
    return {"nearest": substitutes.takes_nearest(home), "shortage": GpuShortage.of(home)}


def _location(data: bytes, shown: str, path: tuple[Any, ...]) -> Location:
    """Return the location of a field in the file, or of the whole file if the field is missing."""
    try:
        parsed = document.read(data, shown)
    except ConfigError:
        return Location(shown)
    # A file may be the jobSpec alone.
    return parsed.location(path_in_file(parsed, path) or path_in_file(parsed, path[1:]))


@functools.cache
def _engine_missing() -> str:
    """Return the reason why images cannot run on this machine; empty if they can."""
    from localgcp.containers import host
    from localgcp.containers.registry import find_program
    from localgcp.home import Home

    if find_program() is None:
        return f"no container registry ({host.MISSING})"
    return "" if host.find_engine(Home.find()) else f"no container engine ({host.MISSING})"
