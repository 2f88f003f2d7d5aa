"""The stack of a run: reasons to refuse it, all at once, and its edited job files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from vertex_training import stack
from vertex_training.catalog import costs
from vertex_training.catalog.costs import JobCost
from vertex_training.customjob.protocol.ports import REQUEST_ID_LABEL
from vertex_training.errors import CommandError, ConfigError, OperatorError, Problem
from vertex_training.settings.project_files import file_name
from vertex_training_cli.engine import stacks
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.jobs import view
from vertex_training_cli.jobs.service import Jobs
from vertex_training_cli.read_errors import is_api_off

#: How often the job is submitted: once to its end, once to be replaced, once in its place.
SUBMISSIONS: Final = 3
#: Names that a throw-away stack does not have.
_PROD: Final = re.compile(r"(^|[-_.])(prod|prd|production|live)\d*([-_.]|$)")

_HINT: Final = "use a throw-away project and the stack file in docs/examples/first-run"


@dataclass(frozen=True, slots=True)
class Subject:
    """The stack as far as a run depends on its file."""

    job: str
    """Key of its one job."""
    timeout: float
    number: str
    request_id: str
    cost: JobCost

    @property
    def most_usd(self) -> float | None:
        """Maximum cost of all submissions; None without a price."""
        return None if self.cost.worst_case is None else SUBMISSIONS * self.cost.worst_case

    @property
    def price(self) -> str:
        """For people."""
        return f"{costs.usd(self.most_usd)} at most: {SUBMISSIONS} times {self.job}, {self.cost}"


def read_subject(ref: StackRef) -> Subject:
    """Return the stack to verify.

    Raises:
        ConfigError: the stack's files have mistakes, or say something that no run is made of.
    """
    loaded = stack.load(ref.root, ref.stack)
    settings, file = loaded.settings, file_name(ref.stack)
    problems: list[Problem] = []
    if _PROD.search(ref.stack):
        problems.append(Problem(f"{file} is a stack of production by its name", hint=_HINT))
    if settings.protects:
        problems.append(Problem(f"{file} protects something", hint="a run destroys all of it"))
    if settings.reservations:
        problems.append(Problem(f"{file} reserves machines, which cost while idle", hint=_HINT))
    if len(settings.submitted) != 1 or len(settings.jobs) != 1:
        count = len(settings.submitted)
        problems.append(Problem(f"{file} has {count} jobs; a run takes one", hint=_HINT))
    for entry in settings.jobs.values():
        if not EPOCHS.search((ref.root / entry.file).read_text(encoding="utf-8")):
            hint = "a run raises it, so that the job still trains when it is replaced"
            problems.append(Problem(f"{entry.file} has no argument --epochs=N", hint=hint))
    if problems:
        raise ConfigError(problems)
    [(job, result)] = loaded.check_jobs().items()
    if result.request is None:
        raise ConfigError(result.errors)
    request = result.request
    cost = request.cost
    return Subject(job, cost.timeout, settings.project_number, request.request_id, cost)


def price_refusals(subject: Subject, max_usd: float) -> list[Problem]:
    """Nothing without a price is run, and nothing that can cost more than ``max_usd``."""
    most = subject.most_usd
    if most is None:
        return [Problem(f"job {subject.job} has no price", hint="vt catalogue has those with one")]
    if not most <= max_usd:  # a limit that is no number is none
        hint = "shorten scheduling.timeout of the job file, or raise --max-usd"
        return [Problem(f"{subject.price}; --max-usd is {costs.usd(max_usd)}", hint=hint)]
    return []


def state_refusals(ref: StackRef, deployment: Mapping[str, Any]) -> list[Problem]:
    """A stack that has something is none to throw away."""
    resources = [
        resource for resource in deployment.get("resources") or [] if resource.get("custom")
    ]
    resources = [
        resource for resource in resources if not str(resource["type"]).startswith("pulumi:")
    ]
    if not resources:
        return []
    hint = f"if it is left from a run before: `{clean_command(ref)}`"
    return [Problem(f"stack {ref.stack} has {len(resources)} resources already", hint=hint)]


def job_refusals(ref: StackRef, subject: Subject, jobs: Sequence[Any]) -> list[Problem]:
    """``jobs`` are those of the stack in its project, ended ones as well."""
    live = [job for job in jobs if not view.has_ended(job)]
    problems = [
        Problem(
            f"job {job.name} of stack {ref.stack} is {view.state(job)}",
            hint=f"`vt jobs cancel {view.job_id(job)} --stack {ref.stack}`",
        )
        for job in live
    ]
    ended = [job for job in jobs if job.labels.get(REQUEST_ID_LABEL) == subject.request_id]
    if ended and not live:
        hint = f"raise jobs.{subject.job}.run in {file_name(ref.stack)}"
        problems.append(Problem(f"{ended[0].name} has run for the same request", hint=hint))
    return problems


def stack_jobs(ref: StackRef) -> Sequence[Any]:
    """The stack's jobs, newest first; none where the API is off, as in a new project.

    Raises:
        CommandError, OperatorError: they cannot be listed, so it is not known what runs.
    """
    ref.connect_clients()
    try:
        return Jobs(ref).list()
    except (CommandError, OperatorError) as error:
        if is_api_off(str(error)):
            return ()
        raise


def clean_command(ref: StackRef) -> str:
    """Return the command that removes everything that a run may have left."""
    return f"vt destroy --stack {ref.stack} --yes --name {ref.stack}"


#: An argument of the Titanic job.
EPOCHS: Final = re.compile(r"--epochs=\d+")
#: Of the edited job: days on any machine, so that its timeout is its end. The last one counts.
LONG: Final = ("--epochs=100000000", "--patience=100000000")


def edited_job(text: str, display_name: str) -> str:
    """A job file that trains for long under a name of its own.

    The name makes it another request than that of any run before.
    """
    document = yaml.safe_load(text)
    job = document if "jobSpec" in document else {"jobSpec": document}
    pool = job["jobSpec"]["workerPoolSpecs"][0]
    pool.get("pythonPackageSpec", pool.get("containerSpec"))["args"] += LONG
    return yaml.safe_dump({**job, "displayName": display_name}, sort_keys=False)


def write_edit(
    ref: StackRef, folder: Path, job: str, name: str, deployment: Mapping[str, Any]
) -> Path:
    """Write an edited job file and a stack file that names it into ``folder``, below the checkout.

    Returns the stack file. It has the encryption settings of the ``deployment``.

    Raises:
        CommandError: the stack file itself does not have the job.
    """
    content = stacks.read_stack_file(ref.root, ref.stack)
    config = content.get("config") or {}
    keys = [key for key in ("vertex-training:jobs", "jobs") if job in (config.get(key) or {})]
    if not keys:
        raise CommandError(f"Pulumi.{ref.stack}.yaml has no job {job}, or includes it.")
    entry = config[keys[0]][job]
    text = edited_job((ref.root / entry["file"]).read_text(encoding="utf-8"), name)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    entry["file"] = str((folder / f"{name}.yaml").relative_to(ref.root))
    file = folder / f"Pulumi.{name}.yaml"
    document = yaml.safe_dump({**content, **_encryption(deployment)}, sort_keys=False)
    file.write_text(document, encoding="utf-8")
    return file


def _encryption(deployment: Mapping[str, Any]) -> dict[str, str]:
    """Settings of a stack file by which the engine opens the secrets of this state."""
    provider = deployment.get("secrets_providers") or {}
    state = provider.get("state") or {}
    if provider.get("type") == "passphrase":
        return {"encryptionsalt": state["salt"]}
    if provider.get("type") == "cloud":
        return {"secretsprovider": state["url"], "encryptedkey": state["encryptedkey"]}
    return {}
