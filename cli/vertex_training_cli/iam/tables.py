"""Who can do what, as text, Markdown or JSON."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Sequence
from typing import Final

from vertex_training_cli.iam.recording import EnvironmentIam
from vertex_training_cli.review.grants import IamBinding

HEAD: Final = ("MEMBER", "ROLE", "ON", "CONDITION")
PAGE: Final = """\
# Who can do what

What the programs in `bootstrap/` and of a stack grant, written from the two:

```sh
vt iam dev prod --format markdown
```

It leaves out what Google grants to its own service agents, and what others grant in the projects.
A role without a dot is a custom role; its permissions are below. A condition is CEL, evaluated by
IAM. A denial wins over every grant.
"""


def as_json(accesses: Iterable[EnvironmentIam]) -> str:
    """A list of environments."""
    found = [{**dataclasses.asdict(a), "grants": [*map(_as_object, a.grants)]} for a in accesses]
    return json.dumps(found, indent=2)


def _as_object(grant: IamBinding) -> dict[str, str]:
    member, role, on = grant.member, grant.role, _on(grant)
    return {"member": member, "role": role, "on": on, "condition": grant.condition}


def _on(grant: IamBinding) -> str:
    return f"{grant.kind} {grant.target}"


def as_table(accesses: Iterable[EnvironmentIam]) -> str:
    """The grants in columns; conditions are numbered and written below."""
    return "\n\n".join(_table(access) for access in accesses)


def _table(access: EnvironmentIam) -> str:
    conditions: list[str] = []
    rows = [HEAD, *(_row(grant, conditions) for grant in access.grants)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    notes = [f"[{number}] {text}" for number, text in enumerate(conditions, 1)]
    denied = [
        f"denied to all accounts of CI{f' if {d.condition}' if d.condition else ''}: "
        f"{', '.join(d.permissions)}"
        for d in access.denials
    ]
    return "\n".join([f"{access.stack}:", *lines, *notes, *denied])


def _row(grant: IamBinding, conditions: list[str]) -> tuple[str, str, str, str]:
    mark = ""
    if grant.condition:
        if grant.condition not in conditions:
            conditions.append(grant.condition)
        mark = f"[{conditions.index(grant.condition) + 1}]"
    return grant.member, grant.role, _on(grant), mark


def as_markdown(accesses: Sequence[EnvironmentIam]) -> str:
    """A page with the grants, custom roles and denials of each environment."""
    parts = [PAGE]
    for access in accesses:
        parts += [_section(access)]
    return "\n".join(parts)


def _section(access: EnvironmentIam) -> str:
    lines = [f"## {access.stack}", "", "| member | role | on | condition |", "|---|---|---|---|"]
    lines += [
        f"| {_code(g.member)} | {_code(g.role)} | {_code(_on(g))} | {_code(g.condition)} |"
        for g in access.grants
    ]
    lines += ["", "| custom role | permissions |", "|---|---|"]
    lines += [
        f"| {_code(role)} | {', '.join(permissions)} |"
        for role, permissions in sorted(access.roles.items())
    ]
    lines += ["", "| denied to all accounts of CI | if |", "|---|---|"]
    lines += [
        f"| {d.title}: {', '.join(_code(p) for p in d.permissions)} | {_code(d.condition)} |"
        for d in access.denials
    ]
    return "\n".join([*lines, ""])


def _code(text: str) -> str:
    """A cell; a bar inside of a table must be escaped."""
    return f"`{text}`".replace("|", "\\|") if text else ""
