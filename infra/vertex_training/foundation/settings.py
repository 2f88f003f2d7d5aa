"""The settings of an environment (``bootstrap/Pulumi.<environment>.yaml``): models and reader."""

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
Id = Annotated[str, form(r"[0-9]{1,19}", "'9919', a number in quotes")]
Days = Annotated[int, Field(ge=1, le=3650)]
#: https://docs.cloud.google.com/iam/docs/service-account-types
Email = Annotated[
    str,
    form(
        r"[a-z0-9][a-z0-9-]{0,62}@[a-z0-9.-]{1,120}\.gserviceaccount\.com",
        "109876543210-compute@developer.gserviceaccount.com",
    ),
]
DatasetName = Annotated[str, form(r"[A-Za-z0-9_]{1,1024}", "clicks, without the project")]


class GitHub(Section):
    """The repository whose workflows can impersonate this environment's accounts."""

    owner: Annotated[str, form(r"[A-Za-z0-9]([A-Za-z0-9-]{0,37}[A-Za-z0-9])?", "octo-org")]
    """The organization or user that owns the repository."""
    owner_id: Id
    """Number of the owner: ``gh api users/OWNER --jq .id``."""
    repository: Annotated[str, form(r"[A-Za-z0-9._-]{1,100}", "octo-repo")]
    """Name of the repository."""
    repository_id: Id
    """Number of the repository: ``gh api repos/OWNER/REPOSITORY --jq .id``."""
    branch: Annotated[str, form(r"[A-Za-z0-9._/-]{1,200}", "main")] = "main"
    """The deployed branch, which also has the nightly drift check."""
    environment: Annotated[str, form(r"[A-Za-z0-9._-]{0,100}", "prod")] = ""
    """GitHub environment for deployments; the stack's name if empty."""


class State(Section):
    """The bucket for Pulumi's state."""

    bucket: Annotated[str, form(naming.BUCKET.pattern, "acme-pulumi-state")] | None = None
    """Name of the bucket; ``PROJECT-pulumi-state`` if absent."""
    soft_delete_days: Annotated[int, Field(ge=7, le=90)] = 30
    """Number of days in which a deleted checkpoint can be restored."""
    keep_noncurrent_days: Days = 365
    """Number of days for which an overwritten checkpoint is stored."""


class Settings(Section):
    """The settings of an environment."""

    stack: Annotated[str, form(r"[a-z]([a-z0-9-]{0,18}[a-z0-9])?", "dev (at most 20)")]
    """Name of the environment and of its training stack."""
    project: ProjectId
    """The project of the environment."""
    region: Annotated[str, form(r"[a-z]+-[a-z]+[0-9]+", "us-central1")]
    """Region of the environment and of its training stack."""
    project_number: ProjectNumber
    """Number of the project: ``gcloud projects describe PROJECT
    --format='value(projectNumber)'``."""
    labels: dict[str, str] = {}
    """Labels on all resources that support labels."""
    github: GitHub
    """The repository with the deployment workflows."""
    state: State = State()
    """The bucket for Pulumi's state."""
    rotation_days: Annotated[int, Field(ge=2, le=365)] = 90
    """Number of days between two versions of the key; CIS recommends at most 90."""
    pull_requests: bool = False
    """Allow workflows of pull requests, which run unreviewed code, to read this
    environment's state and settings as ``preview``."""
    schedules: bool = False
    """Allow tokens of the workflow ``advance.yml`` to read this environment's state and to submit
    jobs in the project, with the accounts that the stack's ``submitters`` allow."""
    plan_reads: list[Key] = Field(default=[], max_length=12)
    """Keys of buckets of the training stack whose objects ``plan`` can read, for drift checks.
    At most twelve, the limit of a condition."""
    datasets: list[DatasetName] = Field(default=[], max_length=10)
    """Datasets of the project on which ``deploy`` can grant roles, for ``datasets`` of accounts in
    the stack file. At most ten, the limit of a condition."""
    deny_policy: bool = True
    """Create a deny policy, which requires ``roles/iam.denyAdmin`` in the organization. Without the
    policy, ``deploy`` can act as CI's other accounts."""
    protected_accounts: list[Email] = []
    """Further service accounts of the project, such as Compute Engine's default account, that
    ``deploy`` must never act as."""

    @pydantic.field_validator("plan_reads")
    @classmethod
    def _only_other_buckets(cls, keys: list[str]) -> list[str]:
        own = sorted({STAGING, CONTROL} & set(keys))
        if own:
            raise ValueError(
                f"remove {' and '.join(own)}, because `plan` always reads staging and never control"
            )
        return keys

    @property
    def names(self) -> Names:
        """Return the names of the training stack's resources."""
        return Names(self.project, self.project_number, self.region, self.stack)

    @property
    def is_local(self) -> bool:
        """Return True if the project is in the local cloud, so that resources are not protected."""
        return naming.is_local(self.project)

    @property
    def state_bucket(self) -> str:
        """Return the name of the bucket that contains Pulumi's state."""
        return self.state.bucket or f"{self.project}-pulumi-state"

    @property
    def key_ring(self) -> str:
        """Return the name of the key ring whose key encrypts Pulumi's secrets."""
        return f"pulumi-{self.stack}"

    @property
    def environment(self) -> str:
        """Return the name of the GitHub environment for deployments."""
        return self.github.environment or self.stack


SCHEMA: Final = Schema("vertex-training-bootstrap", Settings)


def read(folder: Path) -> Settings:
    """Read the settings of the environment from its file in ``folder``. Raises ConfigError."""
    try:
        return parse(engine.read_config(SCHEMA, folder))
    except ConfigError as failed:
        raise ConfigError(stack_files.locate(failed.problems, folder)) from None


def parse(raw: Mapping[str, Any]) -> Settings:
    """Validate the settings that the engine has parsed. Raises ConfigError like :func:`read`."""
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
