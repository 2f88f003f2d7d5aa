"""Parameters of a generated repository: names, projects, region, people; the rendered files.

The folder ``templates/`` has the texts of the files.
"""

from __future__ import annotations

import difflib
import enum
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any, Final

import jinja2
import pydantic
from pydantic import Field

from vertex_training import naming
from vertex_training.catalog import machines
from vertex_training.errors import CommandError, ConfigError, Problem
from vertex_training.naming import LOCAL_PREFIX
from vertex_training.settings.section import ProjectId, ProjectNumber, Section, form
from vertex_training_cli.toolchain.layout import ENGINE_VERSION

#: Name of the first environment of every repository. Each merge deploys this environment.
FIRST: Final = "dev"
#: Placeholder for a missing project number. The user must replace the placeholder.
PLACEHOLDER_NUMBER: Final = "123456789012"
USUAL_REGION: Final = "us-central1"
USUAL_TEAM: Final = "ml-platform"
#: Placeholder for a missing repository. The user must replace the placeholder.
PLACEHOLDER_REPOSITORY: Final = "octo-org/octo-repo"
#: Reserved names of environments.
TAKEN: Final = ("local",)
_ENVIRONMENT: Final = re.compile(r"[a-z][a-z0-9]{0,19}\Z")
_ENVIRONMENT_RULE: Final = "1 to 20 lowercase letters and digits, beginning with a letter"
#: Options of the command line, by the field of the answers.
OPTIONS: Final[Mapping[str, str]] = {
    "name": "--name",
    "project": "--project",
    "projectNumber": "--number",
    "region": "--region",
    "team": "--team",
    "submitters": "--submitter",
    "github": "--github",
    "environments": "--environment",
}

GitHubRepository = Annotated[
    str,
    form(
        r"[A-Za-z0-9]([A-Za-z0-9-]{0,37}[A-Za-z0-9])?/[A-Za-z0-9._-]{1,100}", "octo-org/octo-repo"
    ),
]


class EnvironmentAnswers(Section):
    """Parameters of an environment."""

    name: str
    project: ProjectId
    project_number: ProjectNumber
    region: str

    @property
    def variable(self) -> str:
        """Return the suffix of the names of the environment's GitHub variables."""
        return self.name.upper()

    @property
    def deployer(self) -> str:
        """Return the IAM member that deploys the environment."""
        return naming.deployer(self.project, self.name)

    @pydantic.field_validator("name")
    @classmethod
    def _name(cls, name: str) -> str:
        if not _ENVIRONMENT.match(name):
            raise ValueError(f"must be {_ENVIRONMENT_RULE}")
        if name in TAKEN:
            raise ValueError("is reserved for the stack of the local cloud")
        return name

    @pydantic.field_validator("project")
    @classmethod
    def _project(cls, project: str) -> str:
        if naming.is_local(project):
            raise ValueError(
                "is a project of the local cloud, but must be a project of Google Cloud"
            )
        return project

    @pydantic.field_validator("region")
    @classmethod
    def _region(cls, region: str) -> str:
        known = machines.regions()
        if region not in known:
            near = difflib.get_close_matches(region, known, 1)
            hint = f"did you mean {near[0]}?" if near else "`vt catalogue` lists regions"
            raise ValueError(f"does not offer training jobs: {hint}")
        return region


class Answers(Section):
    """Parameters of all templates."""

    name: Annotated[str, form(r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?", "acme-training (at most 40)")]
    """Name of the Pulumi project."""
    team: Annotated[str, form(r"[a-z0-9][a-z0-9_-]{0,62}", "ml-platform")] = USUAL_TEAM
    """Value of the label ``team``, and the team of the code owners."""
    submitters: tuple[str, ...] = ()
    """IAM members that may run jobs."""
    github: GitHubRepository = PLACEHOLDER_REPOSITORY
    """The repository: OWNER/REPOSITORY."""
    environments: Annotated[list[EnvironmentAnswers], Field(min_length=1)]
    """Environments in the order of their deployment."""

    @property
    def names(self) -> list[str]:
        """Return the names of the environments."""
        return [environment.name for environment in self.environments]

    @property
    def owner(self) -> str:
        """Return the GitHub account or organization that owns the repository."""
        return self.github.partition("/")[0]

    @property
    def repository(self) -> str:
        """Return the repository's name without its owner."""
        return self.github.partition("/")[2]

    @property
    def codeowner(self) -> str:
        """Return the team that reviews all changes except changes of jobs."""
        return f"@{self.owner}/{self.team}"

    def earlier(self, environment: EnvironmentAnswers) -> list[EnvironmentAnswers]:
        """Return the environments that are deployed before this environment."""
        return self.environments[: self.environments.index(environment)]

    @pydantic.field_validator("submitters")
    @classmethod
    def _members(cls, submitters: tuple[str, ...]) -> tuple[str, ...]:
        for member in submitters:
            if not re.fullmatch(r"[\x21-\x7e]+", member) or not member.startswith(
                naming.MEMBER_KINDS
            ):
                raise ValueError(f"{member!r} must look like group:ml-engineers@example.com")
        return submitters

    @pydantic.field_validator("environments")
    @classmethod
    def _once(cls, environments: list[EnvironmentAnswers]) -> list[EnvironmentAnswers]:
        names = [environment.name for environment in environments]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"{', '.join(twice)} already exists")
        return environments

    def with_environment(self, added: EnvironmentAnswers, before: str = "") -> Answers:
        """Return the answers with another environment, last or before one. Raises ConfigError."""
        names = self.names
        if before and before not in names[1:]:
            hint = f"omit --before, because only {names[0]} exists"
            if names[1:]:
                hint = f"use one of {', '.join(names[1:])}"
            what = "--before: must be an environment other than the first"
            raise ConfigError([Problem(what, before, hint)])
        place = names.index(before) if before else len(names)
        environments = [*self.environments[:place], added, *self.environments[place:]]
        return parse(dict(self) | {"environments": environments})


def parse(raw: Mapping[str, Any]) -> Answers:
    """Return the answers from a manifest or from options. Raises ConfigError."""
    try:
        return Answers.model_validate(raw)
    except pydantic.ValidationError as failed:
        raise ConfigError(_problems(failed)) from None


def _problems(failed: pydantic.ValidationError, below: tuple[str, ...] = ()) -> Iterator[Problem]:
    for error in failed.errors():
        names = [str(part) for part in (*below, *error["loc"]) if not isinstance(part, int)]
        what = OPTIONS.get(names[-1], names[-1]) if names else "answers"
        if names[:2] == ["environments", "name"]:
            what = OPTIONS["environments"]
        value = error["input"] if isinstance(error["input"], str) else ""
        if error["type"] == "missing":
            yield Problem(f"{what}: missing", hint=f"pass {what} VALUE")
        else:
            yield Problem(f"{what}: {error['msg'].removeprefix('Value error, ')}", value)


def placeholders(answers: Answers) -> list[str]:
    """Return the placeholders that a user must replace before the first deployment."""
    texts = [answers.github, *(each.project_number for each in answers.environments)]
    return [text for text in (PLACEHOLDER_REPOSITORY, PLACEHOLDER_NUMBER) if text in texts]


def name_from(folder: str) -> str:
    """Return a project name made from a folder's name; ``training`` if no characters remain."""
    name = re.sub(r"[^a-z0-9]+", "-", folder.lower()).strip("-0123456789")[:40].rstrip("-")
    return name or "training"


def project_like(first: str, environment: str) -> str:
    """Return a project id for an environment: ``acme-dev`` and staging give ``acme-staging``."""
    name = re.sub(r"[^a-z0-9]", "", environment.lower())[:20]
    stem = first.removesuffix(f"-{FIRST}")[: 29 - len(name)].rstrip("-")
    return f"{stem}-{name}"


def of_options(
    repository: Mapping[str, Any], environment: Mapping[str, str], folder: str
) -> Answers:
    """Return a new repository's answers from options and defaults. Raises ConfigError."""
    first = {"name": FIRST, "region": USUAL_REGION, **environment}
    return parse({"name": name_from(folder), **repository, "environments": [first]})


def environment_of_options(
    name: str, options: Mapping[str, str], first: EnvironmentAnswers
) -> EnvironmentAnswers:
    """Return an environment with defaults from the first environment. Raises ConfigError."""
    defaults = {
        "project": project_like(first.project, name),
        "projectNumber": PLACEHOLDER_NUMBER,
        "region": first.region,
    }
    try:
        return EnvironmentAnswers.model_validate({"name": name, **defaults, **options})
    except pydantic.ValidationError as failed:
        raise ConfigError(_problems(failed, ("environments",))) from None


_TEMPLATES: Final = Path(__file__).with_name("templates")


class Kind(enum.StrEnum):
    """Kinds of files, by their treatment in an upgrade to a newer release."""

    MERGED = enum.auto()
    """An upgrade merges changes with the company's edits."""
    ONCE = enum.auto()
    """An upgrade never changes the file, because a changed job would be submitted again."""
    REPLACED = enum.auto()
    """An upgrade replaces the file. Users must not edit the file."""


@dataclass(frozen=True, slots=True)
class GeneratedFile:
    """A file of a repository. In the table below, ``text`` is the name of the file's template."""

    path: str
    """Path of the file. ``{}`` is a placeholder for the name of each environment."""
    text: str
    kind: Kind = Kind.MERGED
    executable: bool = False


_FILES: Final = (
    GeneratedFile("Pulumi.yaml", "project.yaml.j2"),
    GeneratedFile("stack.schema.json", "stack.schema.json", Kind.REPLACED),
    GeneratedFile("Pulumi.local.yaml", "local.yaml.j2", Kind.ONCE),
    GeneratedFile("Pulumi.{}.yaml", "environment.yaml.j2", Kind.ONCE),
    GeneratedFile("__main__.py", "main.py.j2"),
    GeneratedFile("Makefile", "makefile.j2"),
    GeneratedFile("README.md", "readme.md.j2"),
    GeneratedFile("requirements.txt", "requirements.txt.j2"),
    GeneratedFile("requirements-dev.txt", "requirements-dev.txt.j2"),
    GeneratedFile("pytest.ini", "pytest.ini.j2"),
    GeneratedFile(".gitignore", "gitignore.j2"),
    GeneratedFile(".gitattributes", "gitattributes.j2"),
    GeneratedFile("jobs/digits.yaml", "digits.yaml.j2", Kind.ONCE),
    GeneratedFile("jobs/digits/__init__.py", "digits_init.py.j2", Kind.ONCE),
    GeneratedFile("jobs/digits/task.py", "digits_task.py.j2", Kind.ONCE),
    GeneratedFile("jobs/digits/training.py", "digits_training.py.j2", Kind.ONCE),
    GeneratedFile("jobs/job.schema.json", "job.schema.json", Kind.REPLACED),
    GeneratedFile("tests/test_digits.py", "test_digits.py.j2", Kind.ONCE),
    GeneratedFile("tests/test_stacks.py", "test_stacks.py.j2"),
    GeneratedFile("bootstrap/Pulumi.yaml", "bootstrap_project.yaml.j2"),
    GeneratedFile("bootstrap/README.md", "bootstrap_readme.md", Kind.REPLACED),
    GeneratedFile("bootstrap/stack.schema.json", "bootstrap.schema.json", Kind.REPLACED),
    GeneratedFile("bootstrap/__main__.py", "bootstrap_main.py.j2"),
    GeneratedFile("bootstrap/Pulumi.{}.yaml", "bootstrap_environment.yaml.j2", Kind.ONCE),
    GeneratedFile("policy/PulumiPolicy.yaml", "policy_project.yaml.j2"),
    GeneratedFile("policy/__main__.py", "policy_main.py.j2"),
    GeneratedFile("tools/report", "report.j2", executable=True),
    GeneratedFile("tools/releases.sha256", "releases.sha256.j2", Kind.ONCE),
    GeneratedFile("tools/deployed_commit.py", "deployed_commit.py.j2"),
    GeneratedFile("tools/foreground", "foreground.j2", executable=True),
    GeneratedFile(".github/CODEOWNERS", "codeowners.j2"),
    GeneratedFile(".github/workflows/check.yml", "workflow_check.yml.j2"),
    GeneratedFile(".github/workflows/preview.yml", "workflow_preview.yml.j2"),
    GeneratedFile(".github/workflows/report.yml", "workflow_report.yml.j2"),
    GeneratedFile(".github/workflows/deploy.yml", "workflow_deploy.yml.j2"),
    GeneratedFile(".github/workflows/drift.yml", "workflow_drift.yml.j2"),
    GeneratedFile(".github/workflows/advance.yml", "workflow_advance.yml.j2"),
)


def render(answers: Answers, release: str) -> dict[str, GeneratedFile]:
    """Return all files of a repository by path. ``release`` is the release to pin."""
    context = {
        "answers": answers,
        "first": answers.environments[0],
        "release": release,
        "engine_version": ENGINE_VERSION,
        "local_project": f"{LOCAL_PREFIX}training",
    }
    jinja, files = _jinja(), dict[str, GeneratedFile]()
    for file in _FILES:
        for environment in answers.environments if "{}" in file.path else (None,):
            path = file.path.format(environment.name) if environment else file.path
            if file.text.endswith(".j2"):
                text = jinja.get_template(file.text).render(context, environment=environment)
            else:
                text = (_TEMPLATES / file.text).read_text(encoding="utf-8")
            files[path] = replace(file, path=path, text=text)
    return files


def release() -> str:
    """Return the version of this package. Raises CommandError."""
    try:
        return version("vertex-training")
    except PackageNotFoundError:
        what = "the package vertex-training is not installed."
        raise CommandError(what, "run `make setup`.") from None


def _jinja() -> jinja2.Environment:
    """Return a template engine whose delimiters occur neither in workflows nor in shell scripts."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        variable_start_string="[[",
        variable_end_string="]]",
        block_start_string="[%",
        block_end_string="%]",
        comment_start_string="[#",
        comment_end_string="#]",
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    environment.filters["flow"] = lambda values: f"[{', '.join(values)}]"  # a YAML list on one line
    return environment
