"""Records the resources that the programs declare, with Pulumi's mocks instead of an engine.

No backend and no cloud is read. Values that the cloud chooses are ``UNKNOWN``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

import pulumi
from pulumi.runtime.settings import ROOT

from vertex_training import program
from vertex_training import stack as stacks
from vertex_training.catalog import resource_types
from vertex_training.catalog.resource_types import ACCOUNT, CUSTOM_ROLE
from vertex_training.customjob.request.job_file import JobRequest
from vertex_training.errors import CommandError, ConfigError, TrainingError
from vertex_training.extra import declare_extra, load, problem_of
from vertex_training.settings import project_files, stack_files
from vertex_training.stack import Stack

#: Text for a value that the cloud chooses.
UNKNOWN: Final = "(not known yet)"


@dataclass(frozen=True, slots=True)
class DeclaredResource:
    """A resource as the program registers it."""

    type: str
    name: str
    inputs: Mapping[str, Any]

    @property
    def id(self) -> str:
        """Return the resource's id in the cloud; empty if its type has no rule for the id."""
        return resource_types.find(self.type).id_to_import(self.inputs)


@dataclass(frozen=True, slots=True)
class DeclaredStack:
    """A stack, its jobs' requests, and its program's resources."""

    stack: Stack
    requests: Mapping[str, JobRequest]
    """Key of a job in the stack file -> request."""
    resources: tuple[DeclaredResource, ...]


def declare_stack(root: Path, name: str) -> DeclaredStack:
    """Return the resources that a stack's program declares."""
    stack = stacks.load(root, name)
    results = stack.check_jobs()
    if problems := [problem for result in results.values() for problem in result.errors]:
        raise ConfigError(problems)
    requests = {key: result.request for key, result in results.items() if result.request}
    extra = load(root)
    if extra.problems:
        raise ConfigError(extra.problems)
    recorded = record_resources(
        root, name, stack.settings.project,
        lambda: declare_extra(extra, program.declare(stack, requests)),
    )  # fmt: skip
    return DeclaredStack(stack, requests, tuple(recorded))


class _Recorder(pulumi.runtime.Mocks):
    def __init__(self, project: str) -> None:
        self.project = project
        self.resources: list[DeclaredResource] = []

    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str, dict[str, Any]]:
        self.resources.append(DeclaredResource(args.typ, args.name, args.inputs))
        inputs = {"project": self.project, **args.inputs}
        state = dict(inputs)
        if args.typ == ACCOUNT:
            email = f"{inputs['accountId']}@{inputs['project']}.iam.gserviceaccount.com"
            state |= {"email": email, "member": f"serviceAccount:{email}", "uniqueId": email}
            state["name"] = f"projects/{inputs['project']}/serviceAccounts/{email}"
        elif args.typ == CUSTOM_ROLE:
            state["name"] = f"projects/{inputs['project']}/roles/{inputs['roleId']}"
        return inputs.get("name") or args.name, state

    def call(self, args: pulumi.runtime.MockCallArgs) -> NoReturn:
        raise CommandError(
            f"cannot list declared resources: the program calls {args.token}, which needs a cloud.",
            "write the value into extra.py, or use `vt review`, which runs the engine",
        )


def record_resources(
    root: Path, stack: str, project: str, declare: Callable[[], object]
) -> list[DeclaredResource]:
    """Return the resources that ``declare`` registers, ordered by type and name.

    ``project`` is the default project of resources.
    """
    recorder = _Recorder(project)
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    name = project_files.project_name(root) or stacks.SCHEMA.namespace
    ROOT.set(None)  # Remove outputs and transformations of the previous program.
    pulumi.runtime.set_mocks(recorder, name, stack, preview=True)
    values, secret = stack_files.engine_config(name, root, stack, UNKNOWN)
    pulumi.runtime.set_all_config(values, secret)
    try:
        pulumi.runtime.test(declare)()
    except TrainingError:
        raise
    except Exception as error:  # A team may run any code in an ``apply``.
        problem = problem_of(error, "apply", root)
        if not problem.location.file:
            raise
        raise ConfigError([problem]) from error
    finally:
        pulumi.runtime.set_all_config({}, [])
        ROOT.set(None)
        _end_tasks(loop)
    return sorted(recorder.resources, key=lambda resource: (resource.type, resource.name))


def _end_tasks(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel pending tasks after a failure. The process would report them at its exit."""
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
