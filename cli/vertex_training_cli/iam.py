"""``vt iam``: IAM grants in an environment, from the resources that both programs declare."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import typer

from vertex_training.catalog import resource_types
from vertex_training.catalog.resource_types import CUSTOM_ROLE, DENY_POLICY, words_of_inputs
from vertex_training.foundation import program as foundation
from vertex_training.foundation.settings import SCHEMA, parse
from vertex_training.naming import is_local
from vertex_training.settings import project_files, stack_files
from vertex_training_cli.console import print_line
from vertex_training_cli.declared import UNKNOWN, declare_stack, record_resources
from vertex_training_cli.engine.paths import root_of
from vertex_training_cli.review.grants import IamBinding, bindings_in, target_input
from vertex_training_cli.review.parts import code, table_rows, visible

HEAD: Final = ("MEMBER", "ROLE", "RESOURCE", "CONDITION")
PAGE: Final = """\
# IAM grants

IAM grants that the programs of `bootstrap/` and of a stack declare. This command writes the page:

```sh
vt iam dev prod --format markdown
```

Grants of Google to its own service agents, and grants from outside these programs, are not listed.
A role without a dot is a custom role. The permissions of custom roles are listed below the grants.
A condition is a CEL expression that IAM evaluates. A denial overrides all grants.
"""


def iam(
    stacks: Annotated[
        list[str] | None,
        typer.Argument(help="Stacks. Default: all environments of bootstrap/.", metavar="STACK..."),
    ] = None,
    format_: Annotated[
        Literal["table", "json", "markdown"],
        typer.Option(
            "--format", "-f", metavar="FORMAT", help="Output format: table, json or markdown."
        ),
    ] = "table",
) -> None:
    """List all IAM grants that bootstrap and the stacks declare: member, role, resource.

    The command does not read grants in Google Cloud.

    Exit code: 0 listed, 1 a file has mistakes, 2 wrong usage.
    """
    here = Path.cwd()
    root = here if project_files.names(here) else root_of(here) or here
    names = stacks or environments(root)
    records = [record(root, name) for name in names]
    if not names:
        print_line("vt iam: no stack has a file in bootstrap/. Hint: run vt iam STACK")
        raise typer.Exit(2)
    for name in names:
        if name not in project_files.names(root / "bootstrap"):
            print_line(
                f"vt iam: environment {name} has no file in bootstrap/: only the grants of the "
                "stack are listed"
            )
    show = {"table": as_table, "json": as_json, "markdown": as_markdown}[format_]
    typer.echo(show(records).rstrip("\n"))


def as_json(accesses: Iterable[EnvironmentIam]) -> str:
    """Return the environments as a JSON list."""
    objects = [
        {
            **dataclasses.asdict(access),
            "grants": [
                {"member": g.member, "role": g.role, "on": _on(g), "condition": g.condition}
                for g in access.grants
            ],
        }
        for access in accesses
    ]
    return json.dumps(objects, indent=2)


def _on(grant: IamBinding) -> str:
    return f"{grant.kind} {grant.target}"


def as_table(accesses: Iterable[EnvironmentIam]) -> str:
    """Return the grants in columns. Conditions are numbered, and listed below the table."""
    return "\n\n".join(_table(access) for access in accesses)


def _table(access: EnvironmentIam) -> str:
    conditions = list(dict.fromkeys(g.condition for g in access.grants if g.condition))
    marks = {condition: f"[{number}]" for number, condition in enumerate(conditions, 1)}
    rows = [HEAD, *((g.member, g.role, _on(g), marks.get(g.condition, "")) for g in access.grants)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    notes = [f"{mark} {condition}" for condition, mark in marks.items()]
    denied = [
        f"denied to all CI accounts{f' if {d.condition}' if d.condition else ''}: "
        f"{', '.join(d.permissions)}"
        for d in access.denials
    ]
    return "\n".join([f"{access.stack}:", *lines, *notes, *denied])


def as_markdown(accesses: Sequence[EnvironmentIam]) -> str:
    """Return a page with the grants, custom roles and denials of each environment."""
    return "\n".join([PAGE, *map(_section, accesses)])


def _section(access: EnvironmentIam) -> str:
    grants = (map(_code, (g.member, g.role, _on(g), g.condition)) for g in access.grants)
    roles = ((_code(role), ", ".join(names)) for role, names in sorted(access.roles.items()))
    denials = (
        (f"{d.title}: {', '.join(_code(p) for p in d.permissions)}", _code(d.condition))
        for d in access.denials
    )
    lines = [
        *(f"## {access.stack}", ""),
        *table_rows(("member", "role", "resource", "condition"), grants),
        *("", *table_rows(("custom role", "permissions"), roles)),
        *("", *table_rows(("permission denied to all CI accounts", "condition"), denials)),
    ]
    return "\n".join([*lines, ""])


def _code(text: str) -> str:
    if "`" in text:
        return code(text, len(text))
    return f"`{visible(text)}`".replace("|", "\\|") if text else ""


@dataclass(frozen=True, slots=True)
class DenyRule:
    """One rule of the deny policy."""

    title: str
    permissions: tuple[str, ...]
    condition: str = ""


@dataclass(frozen=True, slots=True)
class EnvironmentIam:
    """Grants, custom roles and denials of one environment."""

    stack: str
    grants: tuple[IamBinding, ...]
    roles: Mapping[str, tuple[str, ...]]
    """Id of a custom role -> its permissions."""
    denials: tuple[DenyRule, ...]


def record(root: Path, name: str) -> EnvironmentIam:
    """Return the IAM resources that both programs declare for an environment."""
    resources = [*declare_stack(root, name).resources]
    folder = root / "bootstrap"
    if name in project_files.names(folder):
        settings = parse(stack_files.read_raw(SCHEMA, folder, name))
        deploy = partial(foundation.deploy, settings)
        resources += record_resources(folder, name, settings.project, deploy)
    grants = {grant for resource in resources for grant in _grants(resource.type, resource.inputs)}
    custom = [resource.inputs for resource in resources if resource.type == CUSTOM_ROLE]
    roles = {role["roleId"]: tuple(role["permissions"]) for role in custom}
    denying = [resource.inputs for resource in resources if resource.type == DENY_POLICY]
    denials = (
        DenyRule(
            rule["description"],
            tuple(rule["denyRule"]["deniedPermissions"]),
            (rule["denyRule"].get("denialCondition") or {}).get("expression", ""),
        )
        for policy in denying
        for rule in policy["rules"]
    )
    return EnvironmentIam(name, tuple(sorted(grants)), roles, tuple(denials))


def environments(root: Path) -> list[str]:
    """Return stacks of Google Cloud that also have a file in ``bootstrap/``."""
    folder = root / "bootstrap"
    both = (name for name in project_files.names(folder) if name in project_files.names(root))
    projects = {name: stack_files.read_raw(SCHEMA, folder, name) for name in both}
    return [name for name, raw in projects.items() if not is_local(str(raw.get("project")))]


def _grants(token: str, inputs: Mapping[str, Any]) -> Iterator[IamBinding]:
    if resource_types.iam_kind(token) is None:
        return
    named = target_input(inputs) or "project"
    kind = words_of_inputs().get(named, named)
    target = str(inputs.get(named, UNKNOWN)).rpartition("/")[2]
    for binding in bindings_in(inputs):
        role = str(binding.get("role") or UNKNOWN).rpartition("/")[2]
        condition = str((binding.get("condition") or {}).get("expression", ""))
        for member in binding.get("members") or [binding.get("member") or UNKNOWN]:
            yield IamBinding(str(member), role, kind, target, condition)
