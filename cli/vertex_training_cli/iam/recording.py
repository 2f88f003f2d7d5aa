"""Grants that ``bootstrap/`` and a stack declare, recorded by Pulumi's mocks without an engine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

import pulumi
from pulumi.runtime.settings import ROOT

from vertex_training import program, stack
from vertex_training.catalog.resource_types import (
    ACCOUNT,
    CUSTOM_ROLE,
    DENY_POLICY,
    words_of_inputs,
)
from vertex_training.errors import CommandError, ConfigError, TrainingError
from vertex_training.extra.declaring import declare_extra
from vertex_training.extra.faults import problem_of
from vertex_training.extra.loading import load
from vertex_training.foundation import config
from vertex_training.foundation import program as foundation
from vertex_training.naming import is_local
from vertex_training.settings import project_files, stack_files
from vertex_training_cli.review.grants import IamBinding

#: What stands for a value that the cloud chooses.
UNKNOWN: Final = "(not known yet)"


@dataclass(frozen=True, slots=True)
class Denial:
    """A rule of the deny policy."""

    title: str
    permissions: tuple[str, ...]
    condition: str = ""


@dataclass(frozen=True, slots=True)
class EnvironmentIam:
    """Who can do what in one environment."""

    stack: str
    grants: tuple[IamBinding, ...]
    """Roles and resources by their short names."""
    roles: Mapping[str, tuple[str, ...]]
    """Permissions of the custom roles, by their ids."""
    denials: tuple[Denial, ...]


def record(root: Path, name: str) -> EnvironmentIam:
    """What both programs declare for this environment.

    Raises:
        ConfigError: with every mistake in a stack file or a job file.
        UnknownStackError: it has no file.
    """
    declared = stack.load(root, name)
    results = declared.check_jobs()
    if problems := [problem for result in results.values() for problem in result.errors]:
        raise ConfigError(problems)
    requests = {key: result.request for key, result in results.items() if result.request}
    extra = load(root)
    if extra.problems:
        raise ConfigError(extra.problems)
    ours = _World(root, name, declared.settings.project)
    resources = _run(ours, lambda: declare_extra(extra, program.declare(declared, requests)))
    resources += _bootstrap(root, name)
    grants = {grant for inputs in resources for grant in _grants(inputs)}
    roles = {r["roleId"]: tuple(r["permissions"]) for r in resources if r["type"] == CUSTOM_ROLE}
    denials = [_denial(rule) for r in resources if r["type"] == DENY_POLICY for rule in r["rules"]]
    return EnvironmentIam(name, tuple(sorted(grants)), roles, tuple(denials))


def environments(root: Path) -> list[str]:
    """The stacks in Google Cloud that have a file in ``bootstrap/`` as well.

    Raises:
        ConfigError: a file there cannot be read.
    """
    folder = root / "bootstrap"
    both = (name for name in project_files.names(folder) if name in project_files.names(root))
    projects = {name: stack_files.read_raw(config.SCHEMA, folder, name) for name in both}
    return [name for name, raw in projects.items() if not is_local(str(raw.get("project", "")))]


def _bootstrap(root: Path, name: str) -> list[dict[str, Any]]:
    """Resources of the other program, which is a project of its own; none without a file there."""
    folder = root / "bootstrap"
    if name not in project_files.names(folder):
        return []
    settings = config.parse(stack_files.read_raw(config.SCHEMA, folder, name))
    return _run(_World(folder, name, settings.project), lambda: foundation.deploy(settings))


@dataclass(frozen=True, slots=True)
class _World:
    """What an engine tells a program, and what its provider fills in."""

    root: Path
    stack: str
    project: str
    """Of resources that name none."""


class _Recorder(pulumi.runtime.Mocks):
    """Keeps inputs, and answers with what the cloud would fill in."""

    def __init__(self, project: str) -> None:
        self.project = project
        self.resources: list[dict[str, Any]] = []

    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str, dict[str, Any]]:
        self.resources.append({"type": args.typ, **args.inputs})
        given = {"project": self.project, **args.inputs}
        state = dict(given)
        if args.typ == ACCOUNT:
            email = f"{given['accountId']}@{given['project']}.iam.gserviceaccount.com"
            state |= {"email": email, "member": f"serviceAccount:{email}", "uniqueId": email}
            state["name"] = f"projects/{given['project']}/serviceAccounts/{email}"
        elif args.typ == CUSTOM_ROLE:
            state["name"] = f"projects/{given['project']}/roles/{given['roleId']}"
        return given.get("name") or args.name, state

    def call(self, args: pulumi.runtime.MockCallArgs) -> NoReturn:
        raise CommandError(
            f"vt iam: the program looks something up: {args.token}, and `vt iam` asks no cloud.",
            "name it in extra.py; `vt review` shows grants of what is looked up.",
        )


def _run(world: _World, declare: Callable[[], object]) -> list[dict[str, Any]]:
    """The inputs of what ``declare`` registers.

    Raises:
        ConfigError: code of a team raised something where a value was applied.
    """
    recorder = _Recorder(world.project)
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    name = project_files.project_name(world.root) or stack.SCHEMA.namespace
    ROOT.set(None)  # outputs and transformations of the program before are of another stack
    pulumi.runtime.set_mocks(recorder, name, world.stack, preview=True)
    values, secret = stack_files.engine_config(name, world.root, world.stack, UNKNOWN)
    pulumi.runtime.set_all_config(values, secret)
    try:
        pulumi.runtime.test(declare)()
    except TrainingError:
        raise
    except Exception as error:  # any code may stand in an ``apply``
        problem = problem_of(error, "apply", world.root)
        if not problem.location.file:
            raise
        raise ConfigError([problem]) from error
    finally:
        pulumi.runtime.set_all_config({}, [])
        ROOT.set(None)
        _end_tasks(loop)
    return recorder.resources


def _end_tasks(loop: asyncio.AbstractEventLoop) -> None:
    """End what still waits after a failure: it would be reported at the end of the process."""
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))


def _grants(inputs: Mapping[str, Any]) -> Iterator[IamBinding]:
    """Grants of a member, a binding or a policy; what is not known yet is said to be so."""
    kind = inputs["type"].lower()
    if kind.endswith("iampolicy"):
        for binding in _bindings(inputs.get("policyData")):
            part = {key: binding.get(key) for key in ("role", "members", "condition")}
            yield from _grants({**inputs, **part, "type": f"{inputs['type'][:-6]}Binding"})
    if not kind.endswith(("iammember", "iambinding")):
        return
    condition = (inputs.get("condition") or {}).get("expression", "")
    role = str(inputs.get("role", UNKNOWN)).rpartition("/")[2]
    for member in inputs.get("members") or [inputs.get("member", UNKNOWN)]:
        yield IamBinding(str(member), role, *_place(inputs), condition)


def _bindings(policy: object) -> list[dict[str, Any]]:
    """The bindings of a policy in JSON; one of unknown members if the policy is not known yet."""
    try:
        return list(json.loads(str(policy)).get("bindings", []))
    except (ValueError, AttributeError):
        return [{"role": UNKNOWN, "members": [UNKNOWN]}]


def _place(inputs: Mapping[str, Any]) -> tuple[str, str]:
    """Kind and name of a grant's resource; of types that only teams declare, by the input."""
    for key, word in words_of_inputs().items():
        if key in inputs and (key != "project" or inputs["type"].startswith("gcp:projects/")):
            return word, str(inputs[key]).rpartition("/")[2]
    apart = ("type", "role", "member", "members", "condition", "policyData")
    apart += ("project", "location", "region")
    named = next((key for key in inputs if key not in apart), "project")
    return named, str(inputs.get(named, UNKNOWN)).rpartition("/")[2]


def _denial(rule: Mapping[str, Any]) -> Denial:
    denied = rule["denyRule"]
    condition = (denied.get("denialCondition") or {}).get("expression", "")
    return Denial(rule["description"], tuple(denied["deniedPermissions"]), condition)
