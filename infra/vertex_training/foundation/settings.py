"""The config of an environment (``bootstrap/Pulumi.<environment>.yaml``): models and reader."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import pydantic
from pydantic import Field

from vertex_training import engine, naming
from vertex_training.errors import ConfigError, Location, Problem
from vertex_training.naming import CONTROL, STAGING, Names
from vertex_training.settings import project_files, reader, stack_files
from vertex_training.settings.reader import Schema
from vertex_training.settings.section import Key, ProjectId, ProjectNumber, Section, form

#: https://docs.github.com/en/rest/repos: numeric ids of owners and repositories never change hands.
Id = Annotated[str, form(r"[0-9]{1,19}", "a number in quotes, like '9919'")]
Days = Annotated[int, Field(ge=1, le=3650)]
#: https://docs.cloud.google.com/iam/docs/service-account-types
Email = Annotated[
    str,
    form(
        r"[a-z0-9][a-z0-9-]{0,62}@[a-z0-9.-]{1,120}\.gserviceaccount\.com",
        "109876543210-compute@developer.gserviceaccount.com",
    ),
]
DatasetName = Annotated[str, form(r"[A-Za-z0-9_]{1,1024}", "clicks, without its project")]


class GitHub(Section):
    """The one repository whose workflows may impersonate this environment's accounts."""

    owner: Annotated[str, form(r"[A-Za-z0-9]([A-Za-z0-9-]{0,37}[A-Za-z0-9])?", "octo-org")]
    """The organization or person that owns it."""
    owner_id: Id
    """Number of the owner: ``gh api users/OWNER --jq .id``."""
    repository: Annotated[str, form(r"[A-Za-z0-9._-]{1,100}", "octo-repo")]
    """Its name."""
    repository_id: Id
    """Its number: ``gh api repos/OWNER/REPOSITORY --jq .id``."""
    branch: Annotated[str, form(r"[A-Za-z0-9._/-]{1,200}", "main")] = "main"
    """The branch that is deployed, and whose nightly job checks for drift."""
    environment: Annotated[str, form(r"[A-Za-z0-9._-]{0,100}", "prod")] = ""
    """GitHub environment whose jobs deploy; the stack's name if empty."""


class State(Section):
    """The bucket that holds Pulumi's state."""

    bucket: Annotated[str, form(naming.BUCKET.pattern, "acme-pulumi-state")] | None = None
    """Its name; ``PROJECT-pulumi-state`` if absent."""
    soft_delete_days: Annotated[int, Field(ge=7, le=90)] = 30
    """Days a deleted checkpoint can be restored."""
    keep_noncurrent_days: Days = 365
    """Days an overwritten checkpoint is kept."""


class Settings(Section):
    """The settings of one environment."""

    stack: Annotated[str, form(r"[a-z]([a-z0-9-]{0,18}[a-z0-9])?", "dev (at most 20)")]
    """The environment's name: the same as that of the training stack it serves."""
    project: ProjectId
    """The project of the environment."""
    region: Annotated[str, form(r"[a-z]+-[a-z]+[0-9]+", "us-central1")]
    """Its region, as the training stack has it."""
    project_number: ProjectNumber
    """Number of the project: ``gcloud projects describe PROJECT
    --format='value(projectNumber)'``."""
    labels: dict[str, str] = {}
    """Labels on everything that can carry some."""
    github: GitHub
    """The repository that deploys."""
    state: State = State()
    """The bucket of Pulumi's state."""
    rotation_days: Annotated[int, Field(ge=2, le=365)] = 90
    """Days between two versions of the key; CIS asks for at most 90."""
    pull_requests: bool = False
    """Workflows of pull requests, whose code nobody has reviewed, may read this
    environment's state and settings as ``preview``."""
    schedules: bool = False
    """Tokens of the workflow ``advance.yml`` may read this environment's state and submit
    jobs in the project, as the accounts that the stack's ``submitters`` allow."""
    plan_reads: list[Key] = Field(default=[], max_length=12)
    """Keys of the training stack's buckets whose objects ``plan`` may read, for drift checks.
    Twelve at most: a condition has no more parts."""
    datasets: list[DatasetName] = Field(default=[], max_length=10)
    """Datasets of the project on which ``deploy`` may grant roles, as ``datasets`` of accounts in
    the stack file ask. Ten at most: a condition has no more parts."""
    deny_policy: bool = True
    """Attach a deny policy; creating one requires ``roles/iam.denyAdmin`` of the
    organization. Without it, ``deploy`` can act as CI's other accounts."""
    protected_accounts: list[Email] = []
    """Further service accounts of the project, such as Compute Engine's default one, that
    ``deploy`` must never act as."""

    @pydantic.field_validator("plan_reads")
    @classmethod
    def _only_other_buckets(cls, keys: list[str]) -> list[str]:
        own = sorted({STAGING, CONTROL} & set(keys))
        if own:
            raise ValueError(
                f"{' and '.join(own)} cannot be listed: staging always is, control never"
            )
        return keys

    @property
    def names(self) -> Names:
        """Names of the training stack that this environment serves."""
        return Names(self.project, self.project_number, self.region, self.stack)

    @property
    def is_local(self) -> bool:
        """Return whether this is a rehearsal in the local cloud. Nothing in it is protected."""
        return naming.is_local(self.project)

    @property
    def state_bucket(self) -> str:
        """Name of the bucket with Pulumi's state."""
        return self.state.bucket or f"{self.project}-pulumi-state"

    @property
    def key_ring(self) -> str:
        """Name of the key ring with the key of Pulumi's secrets."""
        return f"pulumi-{self.stack}"

    @property
    def environment(self) -> str:
        """GitHub environment whose jobs deploy."""
        return self.github.environment or self.stack


SCHEMA: Final = Schema("vertex-training-bootstrap", Settings)


def read(folder: Path) -> Settings:
    """Return the current environment's settings; ``folder`` holds its file.

    Raises:
        ConfigError: with every mistake found.
    """
    try:
        return parse(engine.read_config(SCHEMA, folder))
    except ConfigError as failed:
        raise ConfigError(stack_files.locate(failed.problems, folder)) from None


def parse(raw: Mapping[str, Any]) -> Settings:
    """Validate a config that the engine has parsed; see :func:`read`.

    Raises:
        ConfigError: with every mistake found.
    """
    settings = reader.parse(SCHEMA, raw)
    location = Location(project_files.file_name(settings.stack))
    problems = [
        Problem(problem, value, path=SCHEMA.full_path(("labels", key)), location=location)
        for key, value in settings.labels.items()
        if (problem := naming.label_problem(key, value))
    ]
    if problems:
        raise ConfigError(problems)
    return settings
