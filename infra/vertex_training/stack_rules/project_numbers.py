"""Numbers of projects, as far as they can be judged without asking Google. Pure but for files.

The number of a local project is known. Two files of this checkout that give one project two numbers
cannot both be right.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from vertex_training import naming
from vertex_training.errors import Path as ProblemPath
from vertex_training.errors import Problem
from vertex_training.located_yaml.loader import Loader
from vertex_training.settings import project_files
from vertex_training.settings.model import Settings
from vertex_training.settings.reader import STAND_INS

#: Of a file that has no number yet, or an encrypted one; and what then stands in for it.
NOT_GIVEN: Final = ("", STAND_INS["projectNumber"])


def problems(settings: Settings, root: Path) -> Iterator[Problem]:
    """Numbers that are not their project's. ``root`` has the stack files to compare with."""
    given: list[tuple[ProblemPath, str, str]] = [
        (("projectNumber",), settings.project, settings.project_number)
    ]
    if host := settings.shared_vpc:
        path = ("sharedVpc", "hostProjectNumber")
        given.append((path, host.host_project, host.host_project_number))
    others = list(_numbers(root, project_files.file_name(settings.stack)))
    for path, project, number in given:
        if number in NOT_GIVEN:
            continue  # nobody gave one: a component does without, and so does an unfinished file
        if naming.is_local(project):
            right = naming.local_project_number(project)
            if number != right:
                what = f"is not the number of {project} in the local cloud"
                yield Problem(what, number, f'write "{right}"', path)
            continue
        for file, other, its_number in others:
            if other == project and its_number not in (number, *NOT_GIVEN):
                what = f"{file} gives {project} the number {its_number}: one of them is wrong"
                hint = f"gcloud projects describe {project} --format='value(projectNumber)'"
                yield Problem(what, number, hint, path)
                break


def _numbers(root: Path, own: str) -> Iterator[tuple[str, str, str]]:
    """(file, project, number) of every other stack file below ``root``, as far as readable."""
    for file in sorted([*root.glob("Pulumi.*.yaml"), *root.glob("bootstrap/Pulumi.*.yaml")]):
        if file.name == own and file.parent == root:
            continue
        config = config_of(file)
        by_key = {key.rpartition(":")[2]: value for key, value in config.items()}
        shown = file.relative_to(root).as_posix()
        yield shown, str(config.get("gcp:project")), _number(by_key.get("projectNumber"))
        host = by_key.get("sharedVpc")
        if isinstance(host, dict):
            yield shown, str(host.get("hostProject")), _number(host.get("hostProjectNumber"))


def _number(value: Any) -> str:
    return str(value) if isinstance(value, str | int) else ""


def config_of(file: Path) -> dict[str, Any]:
    try:
        content = yaml.load(file.read_bytes(), Loader=Loader)
    except (OSError, yaml.YAMLError, UnicodeDecodeError):
        return {}  # its own stack's check reports it
    config = content.get("config") if isinstance(content, dict) else None
    return {str(key): value for key, value in config.items()} if isinstance(config, dict) else {}
