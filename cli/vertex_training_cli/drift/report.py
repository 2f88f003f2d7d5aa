"""Writes drift as Markdown for an issue, and as JSON for programs."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import Final

from vertex_training_cli.drift.findings import (
    BEYOND_UP,
    GRANTED,
    Drift,
    DriftOutcome,
    ResourceDifference,
)
from vertex_training_cli.engine.values import redact
from vertex_training_cli.review.parts import visible

#: Version of the JSON format. It increases when a key changes its meaning or is removed.
VERSION: Final = 2
#: Maximum length of an issue or a comment on GitHub.
MAX_TEXT: Final = 65_536
#: Characters reserved for the text after the differences.
ROOM: Final = 4_096

_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]()#+!|<>~@&:])")


def title(stack: str) -> str:
    """Return the title of the issue about a stack's drift."""
    return f"Drift in {stack}"


def markdown(drift: Drift) -> str:
    """Return the report, cut to GitHub's maximum length."""
    if drift.outcome is DriftOutcome.CLEAN:
        return f"Stack **{_text(drift.stack)}** has no drift.\n{_not_checked(drift)}"
    if drift.outcome is DriftOutcome.FAILED:
        quoted = "\n".join(
            f"> {_text(line)}" for error in drift.errors for line in error.splitlines() or [""]
        )
        return f"Stack **{_text(drift.stack)}** was not compared with the cloud:\n\n{quoted}\n"
    count = len(drift.differences)
    what = "1 resource differs" if count == 1 else f"{count} resources differ"
    text = f"In stack **{_text(drift.stack)}**, {what} from the declaration.\n"
    if drift.never_made:
        names = ", ".join(_text(name) for name in drift.never_made[:20])
        text += (
            f"\n**A deployment did not finish.** {len(drift.never_made)} declared resources were "
            f"never created: {names}. Deploy again: `make deploy STACK={drift.stack}`.\n"
        )
    for number, difference in enumerate(drift.differences):
        part = _difference(difference)
        if len(text) + len(part) > MAX_TEXT - ROOM:
            rest = count - number
            text += f"\nThe workflow's log lists {rest} more differences.\n"
            break
        text += part
    if any(difference.op == GRANTED for difference in drift.differences):
        text += (
            "\nDeployments do not remove undeclared members. Remove each with `gcloud` "
            "(`remove-iam-policy-binding`). To keep a member, declare it, or list it with a "
            "reason under `drift.allowed`.\n"
        )
    by_engine = any(difference.op not in BEYOND_UP for difference in drift.differences)
    is_lost = any(difference.is_lost for difference in drift.differences)
    text += _remediation(drift.stack, is_lost) if by_engine else ""
    return text + _not_checked(drift)


def _not_checked(drift: Drift) -> str:
    if not drift.not_looked_at:
        return ""
    lines, size = list[str](), 0
    for number, line in enumerate(drift.not_looked_at):
        size += len(part := f"- {_text(line)}\n")
        if size > ROOM // 2:
            rest = len(drift.not_looked_at) - number
            lines.append(f"- {rest} more lines in the JSON of this report\n")
            break
        lines.append(part)
    count = len(drift.not_looked_at)
    head = f"\n<details><summary>Not checked: {count}</summary>\n\n"
    return head + "".join(lines) + "\n</details>\n"


def _difference(difference: ResourceDifference) -> str:
    text = f"\n### {_text(difference.name)} {difference.summary}\n\n{_text(difference.type)}"
    text += f", {_text(difference.id)}\n" if difference.id else "\n"
    if difference.fields:
        text += "\n| property | in the cloud | declared |\n|---|---|---|\n"
        for field in difference.fields:
            cells = (field.path, field.cloud, field.declared)
            text += "| " + " | ".join(_text(cell) or "(none)" for cell in cells) + " |\n"
    return text + (f"\n{_text(difference.note)}\n" if difference.note else "")


def _remediation(stack: str, is_lost: bool) -> str:
    if is_lost:
        return (
            "\n**Restore deleted resources first**, by the steps above: a deployment with "
            "*refresh* recreates them without data, and then their data cannot be restored under "
            f"the same name (docs/operations.md). Then compare again: `make drift STACK={stack}`.\n"
        )
    preview = f"make preview STACK={stack} REFRESH=1"
    return (
        f"\nTo undo manual changes, review the plan that `{preview}` prints. Then run the workflow "
        "*deploy* by hand: enter the digest of that plan's report, and select *refresh*. To keep a "
        "change, declare it in a pull request.\n"
    )


def _text(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", visible(redact(text))).replace("\\@", "@\u200b")


def as_json(drift: Drift) -> str:
    """Return the report as JSON."""
    document = dataclasses.asdict(drift) | {"outcome": drift.outcome.name.lower()}
    del document["ids"], document["declared"], document["network"], document["deployed_by_hand"]
    return json.dumps({"version": VERSION, **redact(document)}, indent=2, ensure_ascii=False) + "\n"
