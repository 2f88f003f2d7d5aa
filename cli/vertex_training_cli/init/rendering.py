"""Renders the files of a repository from answers. The folder ``templates/`` has the texts."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

import jinja2

from vertex_training.errors import CommandError
from vertex_training.naming import LOCAL_PREFIX
from vertex_training_cli.init.answers import Answers
from vertex_training_cli.toolchain.layout import ENGINE_VERSION

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
