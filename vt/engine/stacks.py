"""Which stack a command is about, and the environment in which it is reached.

A stack whose project is named `local-…` lives in the local cloud; commands go there by themselves,
from any terminal.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from infra.errors import CommandError
from infra.settings import project_files as stack_names
from localcloud.pulumi_shim import find_project, selected_stack

DEFAULT = "local"


@dataclass(frozen=True)
class Place:
    """A stack of the project around the current folder, and where on Google Cloud it lives."""

    root: Path
    pulumi_project: str
    stack: str
    project: str
    region: str

    @property
    def is_local(self) -> bool:
        return self.project.startswith("local-")

    @property
    def parent(self) -> str:
        return f"projects/{self.project}/locations/{self.region}"


def place(stack: str | None, start: Path | None = None) -> Place:
    """The stack named, else `$PULUMI_STACK`, else the one selected in Pulumi, else `local`.

    Raises CommandError: no Pulumi.yaml here, no such stack file, or one without project or region.
    """
    found = find_project(str(start or Path.cwd()))
    if found is None:
        raise CommandError("there is no Pulumi.yaml here or above.", "go to the checkout.")
    root = Path(found[0])
    name = (stack or _selected(root)).rpartition("/")[2]
    file = root / f"Pulumi.{name}.yaml"
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        known = stack_names.names(root)
        hint = f"there are: {', '.join(known)}." if known else ""
        raise CommandError(f"there is no stack {name!r}: {file.name} is missing.", hint) from None
    except UnicodeDecodeError:
        raise CommandError(f"{file.name} is no stack file: it is not UTF-8.") from None
    except OSError as error:
        raise CommandError(f"{file.name} cannot be read: {error.strerror}.") from None
    config = _config(file.name, text)
    missing = [key for key in ("gcp:project", "gcp:region") if not config.get(key)]
    if missing:
        raise CommandError(f"{file.name}: {' and '.join(missing)} must be set.")
    return Place(root, found[1], name, str(config["gcp:project"]), str(config["gcp:region"]))


def _config(name: str, text: str) -> dict[str, object]:
    try:
        config = (yaml.safe_load(text) or {}).get("config") or {}
    except (yaml.YAMLError, AttributeError):
        raise CommandError(f"{name} is no stack file.", f"`vt check --stack {name}`") from None
    return config if isinstance(config, dict) else {}


def _selected(root: Path) -> str:
    if named := os.environ.get("PULUMI_STACK"):
        return named
    pulumi = shutil.which("pulumi")
    return (selected_stack(pulumi, str(root)) if pulumi else None) or DEFAULT


def environment(where: Place, say: Callable[[str], None]) -> Mapping[str, str]:
    """This process's environment, for a local project with the local cloud's on top, started.

    Raises CommandError if the local cloud does not start.
    """
    if not where.is_local or os.environ.get("VERTEX_EMULATOR_HOST"):
        return os.environ
    from localcloud import lifecycle
    from localcloud.environment import environment as local_environment
    from localcloud.home import Home

    home = Home.find(cwd=where.root)
    return local_environment(home, lifecycle.start(home, say).ports)


def reach(where: Place) -> None:
    """Point Google's clients in this process at the local cloud, if the stack lives there.

    Raises CommandError if it does not run.
    """
    if not where.is_local or os.environ.get("VERTEX_EMULATOR_HOST"):
        return
    from localcloud import lifecycle
    from localcloud.home import Home

    info = lifecycle.running(Home.find(cwd=where.root))
    if info is None:
        raise CommandError("the local cloud does not run.", "`vt local start`")
    os.environ["VERTEX_EMULATOR_HOST"] = f"127.0.0.1:{info.vertex_port}"
