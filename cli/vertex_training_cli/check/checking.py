"""Check job files, with or without their stack, and return reports.

Without a stack, references have placeholder values: ``${buckets.data}`` is the URI of a fictitious
bucket.
"""

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

from vertex_training import naming
from vertex_training.customjob.request import job_file
from vertex_training.customjob.request.checking import path_in_file
from vertex_training.customjob.request.job_file import ID_LENGTH, Submission
from vertex_training.customjob.request.message import references_in
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
from vertex_training_cli.check.report import FileReport
from vertex_training_cli.engine.paths import from_here, link_out, root_of, stack_file

if TYPE_CHECKING:
    from vertex_training.stack import Stack

#: Maximum number of bytes that are read from a file. Job files have a lower limit.
MAX_READ: Final = 32 * 1024 * 1024
#: Field name that identifies a JSON file as a job file.
JOB_FIELD: Final = re.compile(
    rb'"(jobSpec|job_spec|workerPoolSpecs|worker_pool_specs|trialJobSpec|trial_job_spec)"\s*:'
)
STDIN: Final = "-"
#: Rule id of problems with the local cloud on this machine. Comments cannot disable this rule.
LOCAL_RULE: Final = "local-cannot-run"


def files_of(arguments: Iterable[str]) -> list[str]:
    """Return the distinct files to check, including the job files directly in named folders."""
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
    """Return the folder of the Pulumi project; None outside of a project."""
    root = root_of(Path.cwd())
    if stack_name and root is None:
        raise CheckUnavailableError(
            "no Pulumi.yaml in this folder or above, but --stack requires a Pulumi project"
        )
    return root


def files_to_check(
    arguments: Sequence[str], root: Path | None, loaded: Stack | None = None
) -> list[str]:
    """Return the named files; without names, the stack's job files or the files in folder jobs."""
    if arguments:
        return files_of(arguments)
    if loaded is not None:
        jobs = loaded.settings.submitted.values()
        return list(dict.fromkeys(from_here(loaded.root / job.file) for job in jobs))
    folder = (root or Path.cwd()) / "jobs"
    if not folder.is_dir():
        raise CheckUnavailableError("folder jobs does not exist here. Name the files to check")
    return files_of([from_here(folder)])


def _may_be_job_file(file: Path) -> bool:
    is_json = file.suffix == ".json" and not file.name.endswith(".schema.json")
    is_job = is_json and JOB_FIELD.search(read(str(file))) is not None
    return is_job or file.suffix in (".yaml", ".yml")


def read(file: str) -> bytes:
    """Return the bytes of a file, or of standard input for ``-``."""
    if file == STDIN:
        return sys.stdin.buffer.read(MAX_READ)
    if link := link_out(Path(os.path.abspath(file)), of_user=True):
        raise CheckUnavailableError(
            f"{file}: {from_here(link)} is a link to a file outside the checkout"
        )
    try:
        with Path(file).open("rb") as stream:
            return stream.read(MAX_READ)
    except OSError as failed:
        raise CheckUnavailableError(f"{file}: {failed.strerror or failed}") from None


def check_without_stack(file: str) -> FileReport:
    """Return the problems of a file that do not depend on a stack."""
    data, shown = read(file), name(file)
    return report(shown, data, check_content(data, shown, job(file)))


def check_content(data: bytes, shown: str, job: str) -> job_file.JobFileResult:
    """Return the result of a file's content, without a stack."""
    submission, known = placeholder_submission(job), placeholders(data)
    return job_file.check_job_file(data, shown, submission, known)


def check_in_stack(
    files: Sequence[str], root: Path, stack_name: str, *, ask_registries: bool = False
) -> list[FileReport]:
    """Return the problems of the files in this stack, and of the stack file.

    Without ``files``, all jobs of the stack are checked. If the stack file has mistakes, the job
    files are checked without the stack. ``ask_registries`` looks up pinned images over the network.
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
            known = placeholders(data) | placeholders("".join(defaults.fields.values()).encode())
            result = job_file.check_job_file(
                data, shown, placeholder_submission(key), known, context
            )
            reports[shown] = report(shown, data, result)
    return list(reports.values())


def _in_registries(loaded: Stack) -> list[Problem]:
    from localgcp.home import REGISTRY
    from vertex_training_cli.engine import stacks
    from vertex_training_cli.images.lookup import problems

    settings = loaded.settings
    with suppress(CommandError):  # Without the local cloud, each lookup reports the reason.
        stacks.find_unchecked(loaded.root, settings.stack).connect_clients(address=REGISTRY)
    return loaded.located(problems(settings, loaded.root))


def shown_from(root: Path) -> Callable[[str], str]:
    """Return a function that converts a file of the project to a path from the current folder."""
    return lambda file: from_here(root / file)


def stack_or_reports(root: Path, stack_name: str) -> Stack | list[FileReport]:
    """Return the stack, or reports on mistakes in the stack file and its package files."""
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
    """Return reports of the stack file and of other files. Only the stack file is quoted."""
    shown = stack_file(root, stack_name)
    by_file: dict[str, list[Problem]] = {shown: []}
    for problem in problems:
        file = problem.location.file
        if file == Path(shown).name:
            place = shown
        elif (root / file).is_file():
            place = from_here(root / file)
        else:
            by_file[shown].append(problem)
            continue
        located = problem.at(dataclasses.replace(problem.location, file=place))
        by_file.setdefault(place, []).append(located)
    source = _text((root / file_name(stack_name)).read_bytes())
    return [
        FileReport.from_problems(file, source if file == shown else "", of_file, of_stack=True)
        for file, of_file in by_file.items()
        if of_file
    ]


def _one_of(file: str, loaded: Stack, results: Mapping[str, job_file.JobFileResult]) -> FileReport:
    data, shown = read(file), name(file)
    jobs = [] if file == STDIN else loaded.jobs_of(Path(file))
    job_results = [results[key] for key in jobs] or [loaded.check_other(data, shown, job(file))]
    problems = list[Problem]()
    for result in job_results:
        problems += result.problems
        if is_local(loaded.settings.project):
            problems += local_problems(data, shown, result)
    return FileReport.from_problems(shown, _text(data), problems)


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
    return data[: document.MAX_BYTES].decode("utf-8-sig", errors="replace")


def local_problems(data: bytes, shown: str, result: job_file.JobFileResult) -> Iterator[Problem]:
    """Yield a problem for each part of a valid job file that the local cloud cannot run."""
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
        path = request.kind.path_in_message(problem.path)
        location = Location(shown)
        with suppress(ConfigError):
            parsed = document.read(data, shown)
            # A file may contain only the jobSpec.
            location = parsed.location(path_in_file(parsed, path) or path_in_file(parsed, path[1:]))
        what = problem.what.removesuffix(".")
        yield Problem(what, "", problem.hint, (), location, LOCAL_RULE, problem.level)


def _choices() -> dict[str, Any]:
    from localgcp.errors import LocalCloudError
    from localgcp.home import Home
    from localgcp.runner.allotment import GpuShortage
    from localgcp.runner.executors import takes_nearest

    try:
        home = Home.find()
    except LocalCloudError:  # The folder belongs to another user.
        return {}
    return {"nearest": takes_nearest(home), "shortage": GpuShortage.of(home)}


@functools.cache
def _engine_missing() -> str:
    from localgcp.containers import host
    from localgcp.containers.registry import find_program
    from localgcp.home import Home

    if find_program() is None:
        return f"no container registry ({host.MISSING})"
    return "" if host.find_engine(Home.find()) else f"no container engine ({host.MISSING})"


#: Properties of the fictitious stack for checks without a stack.
PROJECT: Final = "placeholder-project"
NUMBER: Final = "100000000000"
REGION: Final = "us-central1"
STACK: Final = "dev"
ATTACHMENT: Final = f"projects/{PROJECT}/regions/{REGION}/networkAttachments/{STACK}"
NAMES: Final = naming.Names(PROJECT, NUMBER, REGION, STACK)
ZERO_DIGEST: Final = "sha256:" + "0" * 64


#: Values of references without a key.
FIXED: Final[dict[str, Any]] = {
    "stack.name": STACK,
    "stack.project": PROJECT,
    "stack.projectNumber": NUMBER,
    "stack.region": REGION,
    "network.name": f"projects/{NUMBER}/global/networks/{STACK}",
    "network.attachment": ATTACHMENT,
    "network.interface": {"networkAttachment": ATTACHMENT},
}
#: Reference to a reserved range of the network.
RANGE: Final = re.compile(r"network\.ranges\.([a-z](?:[a-z0-9-]{0,38}[a-z0-9])?)\Z")
#: An example name of each kind, for hints: did you mean 'buckets.data'?
EXAMPLES: Final = {
    "buckets": "data",
    "serviceAccounts": "trainer",
    "secrets": "api-key",
    "packages": "code",
    "images": "trainer",
    "reservations": "gpus",
    "snapshots": "clicks",
}


def placeholders(data: bytes) -> dict[str, Any]:
    """Return placeholder values of the references in the job file ``data``, and of examples."""
    known = dict(FIXED)
    for kind, key in EXAMPLES.items():
        known |= _entries(kind, key)
    if len(data) <= document.MAX_BYTES:  # Larger files are refused.
        for name in set(references_in(data.decode("utf-8", errors="replace"))):
            kind, key = name.split(".")[:2]
            if kind in EXAMPLES and naming.KEY.match(key) and len(key) <= 40:
                known |= _entries(kind, key)
            elif range_ := RANGE.match(name):
                known[name] = NAMES.ip_range(range_[1])
    return known


def placeholder_submission(job: str) -> Submission:
    """Return a placeholder submission of ``job``, for references to the job itself."""
    return Submission(PROJECT, REGION, STACK, job, run=1)


def _entries(kind: str, key: str) -> dict[str, Any]:
    bucket, secret = NAMES.bucket(key), NAMES.secret(key)
    folder = f"{NAMES.bucket('data')}/{naming.SNAPSHOTS}/{STACK}/{key}/{'0' * ID_LENGTH}"
    reservation = f"projects/{PROJECT}/zones/{REGION}-a/reservations/{key}"
    affinity = {
        "reservationAffinityType": "SPECIFIC_RESERVATION",
        "key": "compute.googleapis.com/reservation-name",
        "values": [reservation],
    }
    packages = f"gs://{NAMES.bucket(naming.STAGING)}/packages"
    values = {
        "buckets": {"": f"gs://{bucket}", ".name": bucket, ".mount": f"/gcs/{bucket}"},
        "serviceAccounts": {"": NAMES.account_email(key)},
        "secrets": {"": secret, ".value": f"{secret}{naming.NEWEST_VALUE}"},
        "packages": {"": f"{packages}/{key}-0000000000000000.tar.gz"},
        "images": {"": f"{NAMES.repository()}/{key}@{ZERO_DIGEST}"},
        "reservations": {"": affinity, ".name": reservation},
        "snapshots": {"": f"gs://{folder}", ".mount": f"/gcs/{folder}"},
    }
    return {f"{kind}.{key}{suffix}": value for suffix, value in values[kind].items()}
