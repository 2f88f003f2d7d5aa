"""``vt local shell``: a program with the environment of the local cloud."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import yaml

from localgcp.clients import cloud_sdk, python_clients
from localgcp.environment import environment
from localgcp.home import Home
from localgcp.pulumi_shim import find_project, make_stack
from vertex_training.naming import is_local
from vertex_training.settings.project_files import file_name

DEFAULT_STACK: Final = "local"
#: Where Google's client libraries find their project.
_CLIENTS_PROJECT: Final = "GOOGLE_CLOUD_PROJECT"
_UNREADABLE: Final = (OSError, ValueError, AttributeError, TypeError, KeyError, yaml.YAMLError)


def _select_local(home: Home, env: dict[str, str]) -> None:
    """Select stack ``local`` where none was selected yet, so that commands need no ``--stack``.

    The selection lies in PULUMI_HOME below VT_LOCAL_HOME; one made by hand later stays.
    """
    project = find_project(str(home.repo))
    if project is None or (home.pulumi_home / "workspaces").exists():
        return
    folder, name = project
    if not os.path.isfile(os.path.join(folder, file_name(DEFAULT_STACK))):
        return
    pulumi = shutil.which("pulumi", path=env["PATH"])
    if pulumi is None:
        return  # the command itself says what is missing
    make_stack(pulumi, str(home.stacks / name), name, DEFAULT_STACK, env)
    command = [pulumi, "-C", folder, "stack", "select", DEFAULT_STACK, "--non-interactive"]
    subprocess.run(command, env=env, check=False, stdout=subprocess.DEVNULL)


def _stack_defaults(home: Home) -> dict[str, str]:
    """Project and region of stack ``local`` for gcloud; nothing if the stack names no such project.

    A project that is chosen already, as in a shell inside of a shell, stays.
    """
    project = find_project(str(home.repo))
    found: dict[str, str] = {}
    if project is not None:
        file = os.path.join(project[0], file_name(DEFAULT_STACK))
        # A stack file with a mistake keeps nobody out of a shell; `pulumi` says what is wrong.
        with suppress(*_UNREADABLE), open(file, encoding="utf-8") as stack:
            found = cloud_sdk.defaults(yaml.safe_load(stack)["config"])
    chosen = os.environ.get(cloud_sdk.PROJECT, "")
    found |= {cloud_sdk.PROJECT: chosen} if is_local(chosen) else {}
    project = found.get(cloud_sdk.PROJECT, "")
    return {**found, _CLIENTS_PROJECT: project} if is_local(project) else {}


def enter(home: Home, command: str | None, report: Callable[[str], None], umask: int) -> None:
    """Become the shell (or the command) with ``umask``; starts the local cloud if needed."""
    from localgcp import lifecycle  # loads the servers' modules, which an environment needs not

    info = lifecycle.start(home, report)
    env = environment(home, info.ports) | _stack_defaults(home)
    env |= python_clients.environment(home.cloud_sdk, env)
    cloud_sdk.write_settings(home.cloud_sdk)
    python_clients.write_settings(home.cloud_sdk)
    _select_local(home, env)
    sys.stdout.flush()
    os.umask(umask)
    if command is not None:
        os.execve("/bin/sh", ["sh", "-c", command], env)
    report(
        "pulumi and Google's clients for Python use the local cloud in this shell; `exit` leaves it"
    )
    program = os.environ.get("SHELL") or "/bin/sh"
    os.execve(program, [program], env)
