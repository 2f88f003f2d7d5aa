"""Write ``docs/rules.md``: every rule for job files with its level, requirement and source.

    .venv/bin/python -m tools.generate.rules_doc          rewrite the file
    .venv/bin/python -m tools.generate.rules_doc --check  exit 1 if it is not up to date

A test runs ``--check``.
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import Final

from tools.generate import generated
from vertex_training.customjob import rules
from vertex_training.customjob.rules import Rule

TARGET: Final = Path(__file__).parents[2] / "docs" / "rules.md"
TITLES: Final = {
    "file": "The file",
    "fields": "Fields and types",
    "pools": "Worker pools",
    "machines": "Machines, accelerators and disks",
    "capacity": "Reservations and scarce machines",
    "images": "Images",
    "storage": "Outputs and packages",
    "environment": "Environment, command and arguments",
    "launch": "The command line against the machines",
    "secrets": "Secrets",
    "network": "Networks",
    "identity": "Account, key, TensorBoard and labels",
    "study": "Tuning: metrics",
    "parameters": "Tuning: parameters",
    "trials": "Tuning: trials",
    "stack": "Across the stack",
    "fit": "The network and reservations of the stack",
    "batch": "Jobs on Batch",
}
HEAD: Final = """\
# Rules of job files

`vt check` and the preview of a stack apply these rules to job files. An **error** refuses the job:
Google documents the rule, or the official client enforces it, or the job would expose a secret or
overwrite another job's output. A **warning** was observed or concluded, and refuses nothing. A
**note** is advice that `vt check --all` shows. Rules
across the stack need a stack: `vt check --stack STACK`, or a preview.

This page is written by `python -m tools.generate.rules_doc`; the same list: `vt check --rules`.
"""


def generate() -> str:
    """The file's text."""
    parts = [HEAD]
    for subject, group in itertools.groupby(rules.ALL, key=lambda rule: rule.subject):
        parts += [f"## {TITLES[subject]}\n", "| Rule | Level | Requirement | Source |"]
        parts += ["|---|---|---|---|", *(_row(rule) for rule in group), ""]
    return "\n".join(parts).rstrip() + "\n"


def _row(rule: Rule) -> str:
    # `<` outside of code would begin a tag.
    summary = rule.summary if "`" in rule.summary else rule.summary.replace("<", "&lt;")
    summary = summary.replace("|", "\\|")
    source = rule.source
    if source.startswith("docs/"):
        source = f"[{source}]({source.removeprefix('docs/')})"
    elif source.startswith("https://") and " " not in source:
        source = f"[{source.removeprefix('https://').rsplit('/', 1)[-1]}]({source})"
    return f"| `{rule.id}` | {rule.level} | {summary} | {source} |"


if __name__ == "__main__":
    sys.exit(generated.main(TARGET, generate, "tools.generate.rules_doc"))
