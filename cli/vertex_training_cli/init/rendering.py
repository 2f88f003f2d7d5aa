"""Answers -> the files of a repository. The texts are in ``templates/``."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

import jinja2

from vertex_training.errors import CommandError
from vertex_training.naming import LOCAL_PREFIX, deployer
from vertex_training_cli.init.answers import Answers
from vertex_training_cli.toolchain.layout import ENGINE_VERSION

_TEMPLATES: Final = Path(__file__).with_name("templates")


class Kind(enum.StrEnum):
    """What a newer release does with a file."""

    MERGED = enum.auto()
    """Its changes are merged with those of the company."""
    ONCE = enum.auto()
    """Nothing: it is the company's from the first day. A changed job would be submitted anew."""
    REPLACED = enum.auto()
    """It is generated: nobody edits it."""


@dataclass(frozen=True, slots=True)
class GeneratedFile:
    """A file of a repository."""

    path: str
    text: str
    kind: Kind = Kind.MERGED
    executable: bool = False


@dataclass(frozen=True, slots=True)
class _Template:
    """Which template makes which file; ``{}`` stands for the name of an environment."""

    path: str
    template: str
    kind: Kind = Kind.MERGED
    executable: bool = False


_FILES: Final = (
    _Template("Pulumi.yaml", "project.yaml.j2"),
    _Template("stack.schema.json", "stack.schema.json", Kind.REPLACED),
    _Template("Pulumi.local.yaml", "local.yaml.j2", Kind.ONCE),
    _Template("Pulumi.{}.yaml", "environment.yaml.j2", Kind.ONCE),
    _Template("__main__.py", "main.py.j2"),
    _Template("Makefile", "makefile.j2"),
    _Template("README.md", "readme.md.j2"),
    _Template("requirements.txt", "requirements.txt.j2"),
    _Template("requirements-dev.txt", "requirements-dev.txt.j2"),
    _Template("pytest.ini", "pytest.ini.j2"),
    _Template(".gitignore", "gitignore.j2"),
    _Template(".gitattributes", "gitattributes.j2"),
    _Template("jobs/digits.yaml", "digits.yaml.j2", Kind.ONCE),
    _Template("jobs/digits/__init__.py", "digits_init.py.j2", Kind.ONCE),
    _Template("jobs/digits/task.py", "digits_task.py.j2", Kind.ONCE),
    _Template("jobs/digits/training.py", "digits_training.py.j2", Kind.ONCE),
    _Template("jobs/job.schema.json", "job.schema.json", Kind.REPLACED),
    _Template("tests/test_digits.py", "test_digits.py.j2", Kind.ONCE),
    _Template("tests/test_stacks.py", "test_stacks.py.j2"),
    _Template("bootstrap/Pulumi.yaml", "bootstrap_project.yaml.j2"),
    _Template("bootstrap/stack.schema.json", "bootstrap.schema.json", Kind.REPLACED),
    _Template("bootstrap/__main__.py", "bootstrap_main.py.j2"),
    _Template("bootstrap/Pulumi.{}.yaml", "bootstrap_environment.yaml.j2", Kind.ONCE),
    _Template("policy/PulumiPolicy.yaml", "policy_project.yaml.j2"),
    _Template("policy/__main__.py", "policy_main.py.j2"),
    _Template("tools/report", "report.j2", executable=True),
    _Template("tools/releases.sha256", "releases.sha256.j2", Kind.ONCE),
    _Template("tools/deployed_commit.py", "deployed_commit.py.j2"),
    _Template("tools/foreground", "foreground.j2", executable=True),
    _Template(".github/CODEOWNERS", "codeowners.j2"),
    _Template(".github/workflows/check.yml", "workflow_check.yml.j2"),
    _Template(".github/workflows/preview.yml", "workflow_preview.yml.j2"),
    _Template(".github/workflows/report.yml", "workflow_report.yml.j2"),
    _Template(".github/workflows/deploy.yml", "workflow_deploy.yml.j2"),
    _Template(".github/workflows/drift.yml", "workflow_drift.yml.j2"),
    _Template(".github/workflows/advance.yml", "workflow_advance.yml.j2"),
)


@dataclass(frozen=True, slots=True)
class _Environment:
    """An environment as templates see it."""

    name: str
    project: str
    project_number: str
    region: str
    earlier: tuple[_Environment, ...]
    """The environments that are deployed before this one."""

    @property
    def is_first(self) -> bool:
        return not self.earlier

    @property
    def variable(self) -> str:
        """The end of the names of GitHub's variables."""
        return self.name.upper()

    @property
    def deployer(self) -> str:
        """The IAM member that deploys it."""
        return deployer(self.project, self.name)


@dataclass(frozen=True, slots=True)
class _View:
    """The answers as templates see them."""

    answers: Answers
    environments: tuple[_Environment, ...]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.answers, name)

    @property
    def first(self) -> _Environment:
        return self.environments[0]

    @property
    def later(self) -> tuple[_Environment, ...]:
        return self.environments[1:]

    @property
    def names(self) -> list[str]:
        return [each.name for each in self.environments]

    @property
    def later_names(self) -> list[str]:
        return self.names[1:]

    @property
    def owner(self) -> str:
        return self.answers.github.partition("/")[0]

    @property
    def repository(self) -> str:
        return self.answers.github.partition("/")[2]

    @property
    def codeowner(self) -> str:
        return f"@{self.owner}/{self.answers.team}"


def render(answers: Answers, release: str) -> dict[str, GeneratedFile]:
    """All files of a repository, by path. Equal answers give equal texts.

    ``release`` is the version of the package that the repository pins.
    """
    jinja, view = _jinja(), _view(answers)
    given = {
        "answers": view,
        "first": view.first,
        "release": release,
        "engine_version": ENGINE_VERSION,
        "local_project": f"{LOCAL_PREFIX}training",
    }
    found: dict[str, GeneratedFile] = {}
    for file in _FILES:
        each = view.environments if "{}" in file.path else (None,)
        for environment in each:
            path = file.path.format(environment.name) if environment else file.path
            text = _text(jinja, file.template, {**given, "environment": environment})
            found[path] = GeneratedFile(path, text, file.kind, file.executable)
    return found


def release() -> str:
    """Return the version of this package.

    Raises:
        CommandError: it is not installed.
    """
    try:
        return version("vertex-training")
    except PackageNotFoundError:
        raise CommandError("this is a checkout that is not installed.", "`make setup`") from None


def _view(answers: Answers) -> _View:
    environments: tuple[_Environment, ...] = ()
    for each in answers.environments:
        environments += (_Environment(earlier=environments, **each.model_dump()),)
    return _View(answers, environments)


def _jinja() -> jinja2.Environment:
    """Delimiters that neither GitHub's expressions nor shell scripts have."""
    made = jinja2.Environment(
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
    made.filters["flow"] = _flow
    return made


def _flow(values: Iterable[str]) -> str:
    """A list of YAML on one line."""
    return f"[{', '.join(values)}]"


def _text(jinja: jinja2.Environment, template: str, given: dict[str, Any]) -> str:
    if not template.endswith(".j2"):
        return (_TEMPLATES / template).read_text(encoding="utf-8")
    return jinja.get_template(template).render(given)
