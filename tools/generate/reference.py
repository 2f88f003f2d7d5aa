"""Write the tables of rules and policies for the site. ``docs/site/conf.py`` adds the tables."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from tools.generate import stack_file
from vertex_training.customjob import rules
from vertex_training.customjob.rules.registry import Rule
from vertex_training.guardrails.policy import NOT_IN_STACKS, Policy, load

RULES: Final = {
    "file": "The file",
    "fields": "Fields and types",
    "machines": "Worker pools, machines, accelerators and disks",
    "capacity": "Reservations and scarce machines",
    "images": "Images",
    "storage": "Outputs and packages",
    "environment": "Environment, command and arguments",
    "launch": "Command line and machines",
    "secrets": "Secrets",
    "network": "Networks",
    "identity": "Account, key, TensorBoard and labels",
    "study": "Tuning: metrics and parameters",
    "trials": "Tuning: trials",
    "stack": "Across the stack",
    "batch": "Jobs on Batch",
}
POLICIES: Final = {
    "grants": "IAM grants and networks",
    "storage": "Buckets, repositories and secrets",
    "jobs": "Jobs, models and endpoints",
}


def rule_tables() -> str:
    """Return a table of the rules for each subject."""
    return _tables(rules.ALL, RULES, ("Rule", "Level", "Requirement", "Source"), _rule_row)


def policy_tables() -> str:
    """Return a table of the policies for each subject."""
    columns = ("Policy", "Severity", "Requirement and reason", "Settings", "Other checks")
    return _tables(load(), POLICIES, columns, _policy_row)


def _tables(
    rows: Iterable[Any],
    titles: Mapping[str, str],
    columns: Sequence[str],
    format_row: Callable[[Any], str],
) -> str:
    parts: list[str] = []
    for subject, group in itertools.groupby(rows, key=lambda row: row.subject):
        parts += [f"## {titles[subject]}\n", f"| {' | '.join(columns)} |"]
        parts += [f"|{'---|' * len(columns)}", *map(format_row, group), ""]
    return "\n".join(parts)


def _rule_row(rule: Rule) -> str:
    # A `<` outside of code would begin an HTML tag.
    summary = rule.summary if "`" in rule.summary else rule.summary.replace("<", "&lt;")
    summary = summary.replace("|", "\\|")
    source = rule.source
    if source.startswith("docs/"):
        source = f"[{source}](../{source.removeprefix('docs/')})"
    elif source.startswith("https://") and " " not in source:
        source = f"[{source.removeprefix('https://').rsplit('/', 1)[-1]}]({source})"
    return f"| `{rule.id}` | {rule.level} | {summary} | {source} |"


def _policy_row(policy: Policy) -> str:
    options = {k: v for k, v in policy.settings.items() if v or k != NOT_IN_STACKS}
    settings = "<br>".join(f"`{k}`: `{json.dumps(v)}`" for k, v in options.items())
    elsewhere = "<br>".join(policy.standards)
    text = f"{policy.what}<br>{policy.why} ([docs]({policy.url}))"
    return f"| `{policy.id}` | {policy.severity} | {text} | {settings} | {elsewhere} |"


#: Pages of the site, and the functions that return their tables.
TABLES: Final[Mapping[str, Callable[[], str]]] = {
    "docs/site/rules": rule_tables,
    "docs/site/policies": policy_tables,
    "docs/site/stack-file": stack_file.tables,
}
